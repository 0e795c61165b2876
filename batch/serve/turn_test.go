package serve

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/door"
)

// slow is a provider that answers one call a second and keeps their order.
type slow struct{ came chan string }

// order returns the names of the calls that have come since it was last asked.
func (s *slow) order() (names []string) {
	for len(s.came) > 0 {
		names = append(names, <-s.came)
	}
	return names
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.came <- r.Header.Get("X-Name")
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	body := `{"choices":[]}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// one makes a server over a slow provider, with one call in flight at a time.
func one(t *testing.T, change func(*Config)) (*mill, *slow) {
	t.Helper()
	s := &slow{came: make(chan string, 100)}
	return over(t, dialects["openai"], s, change, batch.WithConcurrency(1)), s
}

// send makes requests, each 10 ms after the one before, and waits for their answers.
func send(t *testing.T, m *mill, headers ...[]string) (statuses []int, bodies []string) {
	t.Helper()
	statuses, bodies = make([]int, len(headers)), make([]string, len(headers))
	var wg sync.WaitGroup
	for i, h := range headers {
		wg.Go(func() {
			resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody, h...))
			statuses[i], bodies[i] = resp.StatusCode, body
		})
		time.Sleep(10 * time.Millisecond)
	}
	wg.Wait()
	return statuses, bodies
}

// A class goes before another by its share, and a client does not wait behind all that another has sent.
func TestWaitingRequestsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := one(t, func(c *Config) {
			c.Clients[0].MayName, c.Clients[0].First = true, door.Interactive
		})
		var all [][]string
		for i := range 6 {
			all = append(all, []string{"X-Headrace-Priority", "batch", "X-Name", fmt.Sprint("b", i)})
		}
		for i := range 3 {
			all = append(all, []string{"X-Headrace-Client", "many", "X-Name", fmt.Sprint("m", i)})
		}
		all = append(all, []string{"X-Headrace-Client", "few", "X-Name", "f"}, []string{"X-Headrace-Priority", "interactive", "X-Name", "i"})
		statuses, _ := send(t, m, all...)
		for i, status := range statuses {
			if status != http.StatusOK {
				t.Errorf("request %d: status %d", i, status)
			}
		}
		// One call flies and one has had its turn before the others come.
		if got := strings.Join(s.order(), " "); got != "b0 b1 i m0 b2 f m1 m2 b3 b4 b5" {
			t.Errorf("the order is %s", got)
		}
		m.proves(t)
	})
}

// A request that would wait for longer than its client does is refused as it comes, with the forecast, and is never called.
func TestForecastRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := one(t, nil)
		patient := make([][]string, 30)
		for i := range patient {
			patient[i] = []string{"X-Headrace-Max-Wait", "100s", "X-Headrace-Tag", "patient"}
		}
		var wg sync.WaitGroup
		wg.Go(func() { send(t, m, patient...) })
		time.Sleep(12 * time.Second) // the pace is known by then
		began := time.Now()
		resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody, "X-Headrace-Max-Wait", "10s", "X-Headrace-Tag", "patient"))
		if resp.StatusCode != http.StatusOK || time.Since(began) > 4*time.Second {
			t.Errorf("the least patient of a tag goes first: %d after %v %s", resp.StatusCode, time.Since(began), body)
		}
		time.Sleep(100 * time.Millisecond) // no other call leaves in the same instant
		began = time.Now()
		calls := len(s.came)
		resp, body = m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody, "X-Headrace-Max-Wait", "500ms"))
		if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(body, "headrace_wait_too_long") || !strings.Contains(body, "before you") || time.Since(began) != 0 {
			t.Errorf("%d after %v: %s", resp.StatusCode, time.Since(began), body)
		}
		if after := resp.Header.Get("Retry-After"); after == "" || resp.Header.Get("X-Should-Retry") != "true" || len(s.came) != calls {
			t.Errorf("%v, %d calls", resp.Header, len(s.came)-calls)
		}
		wg.Wait()
		m.proves(t)
	})
}

// The bounds of a client hold: requests that wait, and calls in flight.
func TestBoundsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{came: make(chan string, 100)}
		other := "hr-token-of-another-0123456789"
		m := over(t, dialects["openai"], s, func(c *Config) {
			c.Clients[0].MaxInFlight, c.Clients[0].MaxWaiting = 2, 3
			c.Clients = append(c.Clients, door.Client{Name: "two", SHA256: sha256.Sum256([]byte(other))})
		}, batch.WithConcurrency(10))
		var all [][]string
		for i := range 6 {
			all = append(all, []string{"X-Name", fmt.Sprint("a", i)})
		}
		all = append(all, []string{"Authorization", "Bearer " + other, "X-Name", "b"})
		statuses, bodies := send(t, m, all...)
		if got := strings.Join(s.order(), " "); got != "a0 a1 b a2 a3 a4" {
			t.Errorf("the order is %s", got)
		}
		if statuses[5] != http.StatusTooManyRequests || !strings.Contains(bodies[5], "headrace_queue_full") {
			t.Errorf("the sixth: %d %s", statuses[5], bodies[5])
		}
		m.proves(t)
	})
}

// The bounds of a client that names others hold for all of them together.
func TestBoundsOfAClientThatNamesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{came: make(chan string, 100)}
		m := over(t, dialects["openai"], s, func(c *Config) {
			c.Clients[0].MayName, c.Clients[0].MaxInFlight, c.Clients[0].MaxWaiting = true, 2, 3
		}, batch.WithConcurrency(10))
		var all [][]string
		for i := range 6 {
			all = append(all, []string{"X-Headrace-Client", fmt.Sprint("a", i)})
		}
		statuses, bodies := send(t, m, all...)
		if statuses[4] != http.StatusOK || statuses[5] != http.StatusTooManyRequests || !strings.Contains(bodies[5], "headrace_queue_full") {
			t.Errorf("%v, and the sixth gets %s", statuses, bodies[5])
		}
		m.proves(t)
	})
}

// A waiting stream hears how many are before it, and about how long it waits.
func TestPingsTellTheForecast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := one(t, nil)
		var wg sync.WaitGroup
		wg.Go(func() { send(t, m, make([][]string, 30)...) })
		time.Sleep(time.Second)
		_, body := m.ask(m.request(t.Context(), "/v1/chat/completions", `{"stream":true,`+chatBody[1:]))
		if !strings.Contains(body, ": headrace 14 before you, about 1") {
			t.Errorf("%s", body)
		}
		wg.Wait()
		m.proves(t)
	})
}

// A stream of Gemini's that is one JSON array hears nothing before its answer; one of events does.
func TestOnlyEventsArePinged(t *testing.T) {
	for query, pinged := range map[string]bool{"": false, "?alt=sse": true} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{came: make(chan string, 100)}
			m := over(t, dialects["gemini"], s, nil, batch.WithConcurrency(1))
			const path = "/v1beta/models/m-1:streamGenerateContent"
			var wg sync.WaitGroup
			for range 25 {
				wg.Go(func() { m.ask(m.request(t.Context(), path, dialects["gemini"].body)) })
			}
			time.Sleep(time.Second)
			resp, body := m.ask(m.request(t.Context(), path+query, dialects["gemini"].body))
			if got := strings.HasPrefix(body, "\n"); got != pinged || resp.StatusCode != http.StatusOK {
				t.Errorf("%q: %d %q", query, resp.StatusCode, body)
			}
			wg.Wait()
		})
	}
}

// A stop refuses all that wait, and lets what flies end.
func TestStopWithALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := one(t, nil)
		var statuses []int
		var wg sync.WaitGroup
		wg.Go(func() { statuses, _ = send(t, m, make([][]string, 6)...) })
		time.Sleep(500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if statuses[0] != http.StatusOK || len(s.came) != 1 {
			t.Errorf("%v, %d calls", statuses, len(s.came))
		}
		for _, status := range statuses[1:] {
			if status != http.StatusServiceUnavailable {
				t.Errorf("%v", statuses)
			}
		}
	})
}
