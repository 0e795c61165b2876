package serve

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
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

// BenchmarkOverhead makes pairs of calls over loopback, a thousand pairs a second: one to a provider that answers at once, and one
// through a server to it. The figures are those of the pairs, so that a busy machine is busy for both.
func BenchmarkOverhead(b *testing.B) {
	const every, atOnce = time.Millisecond, 256
	model := httptest.NewServer(sim.New(sim.Config{Keys: []string{ownKey}}, clockwork.NewRealClock()))
	defer model.Close()
	_, through := loopback(b, model.URL, atOnce)
	transport := provider.NewHTTPTransport(atOnce)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ask := func(base, key string) time.Duration {
		r := must.Get(http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/chat/completions", strings.NewReader(chatBody)))(b)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
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
	ask(model.URL, ownKey)
	ask(through, token)

	type pair struct{ direct, through time.Duration }
	pairs := make([]pair, b.N)
	var all sync.WaitGroup
	began := time.Now()
	b.ResetTimer()
	for i := range pairs {
		time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
		all.Go(func() {
			if i%2 == 0 { // neither is always the first
				pairs[i].direct = ask(model.URL, ownKey)
			}
			pairs[i].through = ask(through, token)
			if i%2 == 1 {
				pairs[i].direct = ask(model.URL, ownKey)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	show := func(name string, of func(pair) time.Duration) (half time.Duration) {
		took := make([]time.Duration, len(pairs))
		for i, p := range pairs {
			took[i] = of(p)
		}
		slices.Sort(took)
		half = took[len(took)/2]
		b.ReportMetric(float64(half.Nanoseconds())/1e3, name+"-p50-µs")
		b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, name+"-p99-µs")
		return half
	}
	direct := show("direct", func(p pair) time.Duration { return p.direct })
	whole := show("through", func(p pair) time.Duration { return p.through })
	show("added", func(p pair) time.Duration { return p.through - p.direct })
	b.ReportMetric(float64(whole)/float64(direct), "p50-ratio")
}
