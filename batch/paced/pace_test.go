package paced

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider/sim"
)

// 600 calls at once, where 60 a minute are let in, are all answered as fast as that allows. No
// client sees a refusal, and the provider hardly makes one: the limits are given, or its headers
// tell them. A limit that is given holds in the first minute, too: only headers say that a minute's
// calls are there at once.
func TestCallsAtOnceWaitTheirTurn(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []batch.Option
		ideal time.Duration
	}{
		"limits given":            {[]batch.Option{batch.WithLimits(batch.Limits{RPM: 60})}, 600 * time.Second},
		"limits given, and burst": {[]batch.Option{batch.WithLimits(batch.Limits{RPM: 60, Burst: time.Minute})}, 541 * time.Second},
		"limits told":             {nil, 541 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := sim.New(sim.Config{RPM: 60, Headers: true, RetryAfter: sim.Always, Latency: sim.Latency{Median: time.Second}}, clockwork.NewRealClock())
				shared := shares(t, c.opts...)
				defer shared.Close()
				client := &http.Client{Transport: Transport(shared, sim.NewTransport(server))}
				began := time.Now()
				var all sync.WaitGroup
				for range 600 {
					all.Go(func() {
						if status, body, err := ask(client, post(t.Context(), "http://api.example", chat)); status != http.StatusOK || err != nil {
							t.Errorf("%d %s %v", status, body, err)
						}
					})
				}
				all.Wait()
				took := time.Since(began)
				refused := server.Books().Refused429
				t.Logf("%v, %d refused", took, refused)
				if took > c.ideal*105/100 || took < c.ideal*99/100 {
					t.Errorf("it took %v, want %v to 1.05 of it", took, c.ideal)
				}
				if refused > 6 {
					t.Errorf("the provider refused %d of 600 calls", refused)
				}
				proves(t, shared, 600)
			})
		})
	}
}

// A thousand clients are cut off at random instants: in line, before the head of the answer, in
// its midst. Each ends at once, those in line were never sent, the books hold, and the others are answered.
func TestClientsThatGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := sim.New(sim.Config{RPM: 600, Burst: time.Second, Headers: true, Latency: sim.Latency{Median: 4 * time.Second}}, clockwork.NewRealClock())
		shared := shares(t, batch.WithLimits(batch.Limits{RPM: 600}))
		defer shared.Close()
		var sent sync.Map
		base := sim.NewTransport(server)
		client := &http.Client{Transport: Transport(shared, trip(func(r *http.Request) (*http.Response, error) {
			sent.Store(r.Header.Get("X-Number"), true)
			return base.RoundTrip(r)
		}))}
		stream := `{"stream":true,` + chat[1:]
		chance := rand.New(rand.NewPCG(1, 2))
		var all sync.WaitGroup
		var mu sync.Mutex
		var gone, unsent, answered int
		for i := range 1200 {
			ctx, cancel := context.WithCancel(t.Context())
			var cut time.Duration
			if i%6 > 0 {
				cut = time.Duration(chance.Int64N(int64(45 * time.Second)))
			}
			all.Go(func() {
				defer cancel()
				if cut > 0 {
					defer time.AfterFunc(cut, cancel).Stop()
				}
				body := chat
				if i%2 == 0 {
					body = stream
				}
				req := post(ctx, "http://api.example", body)
				number := string(rune('a' + i)) // any name will do
				req.Header.Set("X-Number", number)
				began := time.Now()
				status, text, err := ask(client, req)
				took := time.Since(began)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && status == http.StatusOK:
					answered++
				case cut == 0:
					t.Errorf("%d %s %v", status, text, err)
				case !errors.Is(err, context.Canceled):
					t.Errorf("%d %s %v, want %v", status, text, err, context.Canceled)
				case took != cut:
					t.Errorf("it ended after %v and not after %v", took, cut)
				default:
					gone++
					if _, was := sent.Load(number); !was {
						unsent++
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		t.Logf("%d answered, %d gone, %d of them not sent", answered, gone, unsent)
		if gone < 500 || unsent < 100 || gone-unsent < 20 || answered < 200 {
			t.Errorf("%d answered, %d gone, %d of them not sent: the test misses its point", answered, gone, unsent)
		}
		c := proves(t, shared, 1200)
		if reached := 1200 - unsent; int(c.Calls) < reached {
			t.Errorf("%d calls were granted, and %d sent", c.Calls, reached)
		}
	})
}
