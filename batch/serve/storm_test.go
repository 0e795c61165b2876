package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/race"
)

// fewMore are the descriptors that the runtime opens for itself, such as that of its poller.
const fewMore = 4

// descriptors counts the open files of this process; 0: the system does not list them.
func descriptors() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}

// Clients that are killed at any instant, by both versions of HTTP, leave nothing behind: each call of
// theirs is cancelled at the provider, each place is free, the sums are right, and no connection stays open.
func TestKilledClients(t *testing.T) {
	clients := 1000
	if race.Enabled {
		clients = 300
	}
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int64
			late := make(chan time.Duration, clients+1) // from the end of a client to that of its call
			killed := make([]atomic.Int64, clients)     // when, in Unix nanoseconds
			before := descriptors()
			var calls sync.WaitGroup // whose contexts have not ended: the provider still works for them
			base := trip(func(r *http.Request) (*http.Response, error) {
				n := made.Add(1)
				calls.Add(1)
				var body struct{ Seed int }
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
					t.Error(err)
				}
				context.AfterFunc(r.Context(), func() {
					defer calls.Done()
					if at := killed[body.Seed].Load(); at != 0 {
						late <- time.Since(time.Unix(0, at))
					}
				})
				step := later(time.Duration(n*7%20)*time.Millisecond, flows(5*time.Millisecond, slicesOf("data: {}\n\n", 6)...))
				return step(r)
			})
			m := over(t, dialects["openai"], base, nil, batch.WithPlainLaw(), batch.WithConcurrency(64))
			server := httptest.NewUnstartedServer(m)
			server.EnableHTTP2 = http2
			server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes end early, too
			scheme := "http"
			if http2 {
				scheme = "https"
				server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: clients} // handshakes of more connections would take most of the time
				server.StartTLS()
			} else {
				server.Start() // likewise
			}
			client := server.Client()
			var asked sync.WaitGroup
			ask := func(n int, life time.Duration) {
				ctx, kill := context.WithTimeout(t.Context(), life)
				defer kill()
				defer context.AfterFunc(ctx, func() { killed[n].Store(time.Now().UnixNano()) })()
				r := m.request(ctx, "/v1/chat/completions", fmt.Sprintf(`{"stream":true,"seed":%d,`, n)+chatBody[1:])
				r.RequestURI = ""
				r.URL.Scheme, r.URL.Host = scheme, server.Listener.Addr().String()
				resp, err := client.Do(r)
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body) // it was killed
					_ = resp.Body.Close()
				}
			}
			ask(0, time.Minute) // there is a connection then, and a call
			rng := rand.New(rand.NewPCG(1, 2))
			for n := range clients {
				life := time.Duration(rng.IntN(1000)) * time.Millisecond
				asked.Go(func() { ask(n, life) })
			}
			asked.Wait()
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
			server.Close()
			m.proves(t)
			calls.Wait()
			client.CloseIdleConnections()
			if after := descriptors(); after > before+fewMore {
				t.Errorf("%d descriptors are open, and %d were before", after, before)
			}
			close(late)
			var all []time.Duration
			for d := range late {
				all = append(all, d)
			}
			if slices.Sort(all); len(all) > 0 {
				t.Logf("%d of %d calls were cancelled, half of them within %v of the end of their client, all within %v", len(all), made.Load(), all[len(all)/2], all[len(all)-1])
			}
			if made.Load() < 2 {
				t.Errorf("%d calls were made", made.Load())
			}
		})
	}
}
