package serve

import (
	"context"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
)

// Clients that are killed at any instant, by both versions of HTTP, leave nothing behind: each call of
// theirs is cancelled at the provider, each place is free, and the sums are right.
func TestKilledClients(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int64
			var calls sync.WaitGroup // whose contexts have not ended: the provider still works for them
			base := trip(func(r *http.Request) (*http.Response, error) {
				n := made.Add(1)
				calls.Add(1)
				context.AfterFunc(r.Context(), calls.Done)
				step := later(time.Duration(n*7%20)*time.Millisecond, flows(5*time.Millisecond, slicesOf("data: {}\n\n", 6)...))
				return step(r)
			})
			m := over(t, dialects["openai"], base, nil, batch.WithPlainLaw(), batch.WithConcurrency(8))
			server := httptest.NewUnstartedServer(m)
			server.EnableHTTP2 = http2
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes end early, too
			scheme := "http"
			if http2 {
				scheme = "https"
				server.StartTLS()
			} else {
				server.Start() // a handshake for each would take most of the time
			}
			client := server.Client()
			var all sync.WaitGroup
			ask := func(life time.Duration) {
				ctx, kill := context.WithTimeout(t.Context(), life)
				defer kill()
				r := m.request(ctx, "/v1/chat/completions", `{"stream":true,`+chatBody[1:])
				r.RequestURI = ""
				r.URL.Scheme, r.URL.Host = scheme, server.Listener.Addr().String()
				resp, err := client.Do(r)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body) // it was killed
					_ = resp.Body.Close()
				}
			}
			ask(time.Minute) // there is a connection then, and a call
			rng := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				life := time.Duration(rng.IntN(1000)) * time.Millisecond
				all.Go(func() { ask(life) })
			}
			all.Wait()
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
			server.Close()
			m.proves(t)
			calls.Wait()
			if made.Load() < 2 {
				t.Errorf("%d calls were made", made.Load())
			}
		})
	}
}
