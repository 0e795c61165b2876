package serve

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/wire"
)

// loopback returns a server over TCP to a provider at an address, and the address of the server.
func loopback(tb testing.TB, base string, inFlight int) (m *Server, at string) {
	tb.Helper()
	shared := must.Get(batch.NewShared(batch.WithConcurrency(inFlight), batch.WithPlainLaw()))(tb)
	tb.Cleanup(shared.Close)
	client := must.Get(wire.New(wire.Config{
		Dialect: dialects["openai"].Dialect, BaseURL: base, Auth: must.Get(auth.Bearer(ownKey))(tb), Transport: provider.NewHTTPTransport(inFlight),
	}))(tb)
	tb.Cleanup(client.CloseIdle)
	m = must.Get(New(Config{
		Shared: shared, Upstream: func(string) Upstream { return client }, MaxWaiting: 100_000, // a busy machine falls behind
		Clients: []door.Client{{Name: "one", SHA256: sha256.Sum256([]byte(token))}},
	}))(tb)
	server := httptest.NewServer(m)
	tb.Cleanup(server.Close)
	tb.Cleanup(func() { must.Do(tb, m.Close(context.WithoutCancel(tb.Context()))) })
	return m, server.URL
}

// BenchmarkOverhead makes calls over loopback, three together a thousand times a second: one to a provider that answers at once, one through
// the standard library's proxy, and one through a server. The figures are those of the three together, so that a busy machine is
// busy for each.
func BenchmarkOverhead(b *testing.B) {
	const every, atOnce = time.Millisecond, 256
	model := httptest.NewServer(sim.New(sim.Config{}, clockwork.NewRealClock()))
	defer model.Close()
	_, through := loopback(b, model.URL, atOnce)
	bare := httputil.NewSingleHostReverseProxy(must.Get(url.Parse(model.URL))(b))
	onward := provider.NewHTTPTransport(atOnce)
	defer onward.CloseIdleConnections()
	bare.Transport = onward
	proxy := httptest.NewServer(bare)
	defer proxy.Close()
	transport := provider.NewHTTPTransport(atOnce)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ask := func(base string) time.Duration {
		r := must.Get(http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/chat/completions", strings.NewReader(chatBody)))(b)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		began := time.Now()
		resp, err := client.Do(r)
		if err != nil {
			b.Error(err)
			return 0
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
			b.Error(resp.Status)
		}
		return time.Since(began)
	}
	bases := [...]string{model.URL, proxy.URL, through}
	took := make([][len(bases)]time.Duration, b.N)
	var all sync.WaitGroup
	began := time.Now()
	b.ResetTimer()
	for i := range took {
		time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
		all.Go(func() {
			for k := range bases {
				which := (i + k) % len(bases) // none is always the first
				took[i][which] = ask(bases[which])
			}
		})
	}
	all.Wait()
	b.StopTimer()
	for name, of := range map[string]func([len(bases)]time.Duration) time.Duration{
		"direct": func(t [len(bases)]time.Duration) time.Duration { return t[0] },
		"added":  func(t [len(bases)]time.Duration) time.Duration { return t[2] - t[0] },
		"bare":   func(t [len(bases)]time.Duration) time.Duration { return t[1] - t[0] },
	} {
		each := make([]time.Duration, len(took))
		for i, t := range took {
			each[i] = of(t)
		}
		slices.Sort(each)
		b.ReportMetric(float64(each[len(each)/2].Nanoseconds())/1e3, name+"-p50-µs")
		b.ReportMetric(float64(each[len(each)*99/100].Nanoseconds())/1e3, name+"-p99-µs")
	}
}
