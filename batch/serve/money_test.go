package serve

import (
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// meter is a provider whose calls take a second and cost what their usage says.
type meter struct {
	status int
	calls  chan struct{}
}

func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	m.calls <- struct{}{}
	select {
	case <-time.After(time.Second):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	body := `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10}}`
	return &http.Response{
		StatusCode: m.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// costly makes a server whose calls are priced at 3 cents and cost 2.
func costly(t *testing.T, status int, change func(*Config)) (*mill, *meter) {
	t.Helper()
	p := &meter{status: status, calls: make(chan struct{}, 1000)}
	return over(t, dialects["openai"], p, func(c *Config) {
		c.Price = func(_, model string, _, _ float64) (limiter.Money, bool) { return limiter.USD(0.03), model == "m-1" }
		c.Cost = func(_, _ string, u provider.Usage) (limiter.Money, bool) {
			return limiter.USD(0.001 * float64(u.InputTokens+u.OutputTokens)), true
		}
		change(c)
	}, batch.WithConcurrency(64)), p
}

// 64 at a time, and 200 in all, never cost more than the cap, and use nearly all of it. The others hear of the budget.
func TestCapHolds(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"of all":            func(c *Config) { c.MaxCost = limiter.USD(1) },
		"of a client":       func(c *Config) { c.Clients[0].MaxCostRun = limiter.USD(1) },
		"of a client a day": func(c *Config) { c.Clients[0].MaxCostDay = limiter.USD(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, p := costly(t, http.StatusOK, set)
				var wg sync.WaitGroup
				statuses := make([]int, 200)
				for i := range statuses {
					wg.Go(func() {
						resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
						if statuses[i] = resp.StatusCode; resp.StatusCode == http.StatusPaymentRequired && !strings.Contains(body, "headrace_budget") {
							t.Error(body)
						}
					})
				}
				wg.Wait()
				st, err := m.Status(t.Context())
				if err != nil || st.SpentUSD > 1 || st.SpentUSD < 0.97 || st.Reserved != 0 {
					t.Errorf("$%.4f spent, $%.4f reserved, %v", st.SpentUSD, st.Reserved, err)
				}
				paid, refused := 0, 0
				for _, status := range statuses {
					switch status {
					case http.StatusOK:
						paid++
					case http.StatusPaymentRequired:
						refused++
					}
				}
				if paid != len(p.calls) || paid+refused != len(statuses) || math.Abs(float64(paid)*0.02-st.SpentUSD) > 1e-9 {
					t.Errorf("%d paid, %d refused, %d calls", paid, refused, len(p.calls))
				}
				m.proves(t)
			})
		})
	}
}

// A day's cap is whole again on the next day.
func TestCapOfADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := costly(t, http.StatusOK, func(c *Config) { c.Clients[0].MaxCostDay = limiter.USD(0.03) })
		ask := func() int {
			resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
			return resp.StatusCode
		}
		if first, second := ask(), ask(); first != http.StatusOK || second != http.StatusPaymentRequired {
			t.Errorf("%d, %d", first, second)
		}
		time.Sleep(24 * time.Hour)
		if status := ask(); status != http.StatusOK {
			t.Errorf("on the next day: %d", status)
		}
		now := time.Now().UTC()
		time.Sleep(now.Truncate(24 * time.Hour).Add(48*time.Hour - time.Second/2).Sub(now))
		if over, next := ask(), ask(); over != http.StatusOK || next != http.StatusPaymentRequired {
			t.Errorf("a call over midnight, which costs the new day: %d, %d", over, next)
		}
	})
}

// A call that the provider refuses costs nothing; one that is cut off is booked at its price; a model without a price
// is refused under a cap, and is called where there is none.
func TestWhatIsBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := costly(t, http.StatusBadRequest, func(c *Config) { c.MaxCost = limiter.USD(1) })
		m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
		if st, _ := m.Status(t.Context()); st.SpentUSD != 0 || st.Reserved != 0 {
			t.Errorf("a refused call: $%.4f spent, $%.4f reserved", st.SpentUSD, st.Reserved)
		}

		m, p := costly(t, http.StatusOK, func(c *Config) { c.MaxCost = limiter.USD(1) })
		other := strings.Replace(chatBody, "m-1", "m-2", 1)
		if resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", other)); resp.StatusCode != http.StatusPaymentRequired || !strings.Contains(body, "price") || len(p.calls) != 0 {
			t.Errorf("no price: %d %s", resp.StatusCode, body)
		}
		m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody, "X-Headrace-Deadline", "500ms"))
		if st, _ := m.Status(t.Context()); math.Abs(st.SpentUSD-0.03) > 1e-9 {
			t.Errorf("a call that was cut off: $%.4f spent", st.SpentUSD)
		}

		m, p = costly(t, http.StatusOK, func(*Config) {})
		if resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", other)); resp.StatusCode != http.StatusOK || len(p.calls) != 1 {
			t.Errorf("no cap: %d", resp.StatusCode)
		}
	})
}

// A cap without prices would hold nothing.
func TestCapNeedsPrices(t *testing.T) {
	if _, err := New(Config{Shared: &batch.Shared{}, Upstream: func(string) Upstream { return nil }, Open: true, MaxCost: 1}); err == nil {
		t.Error("no error")
	}
}

// Each call that breaks may be billed, and so may the one that is answered in the end. The cap bounds them together: a
// call that it does not cover is not made.
func TestBrokenCallsAreBooked(t *testing.T) {
	usage := `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10}}`
	for name, test := range map[string]struct {
		limit  float64
		steps  []func(*http.Request) (*http.Response, error)
		status int
		calls  int
		spent  float64
	}{
		"two breaks, then an answer":   {1, steps(resets, resets, says(200, usage)), 200, 3, 0.03 + 0.03 + 0.02},
		"breaks alone":                 {1, steps(resets), 502, 5, 5 * 0.03},
		"room for one call":            {0.05, steps(resets, says(200, usage)), 402, 1, 0.03},
		"room for two":                 {0.06, steps(resets, resets, says(200, usage)), 402, 2, 0.06},
		"a refusal needs no more room": {0.05, steps(says(429, busy, "Retry-After", "1"), says(200, usage)), 200, 2, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &script{steps: test.steps}
				m := over(t, dialects["openai"], up, func(c *Config) {
					c.MaxCost = limiter.USD(test.limit)
					c.Price = func(string, string, float64, float64) (limiter.Money, bool) { return limiter.USD(0.03), true }
					c.Cost = func(_, _ string, u provider.Usage) (limiter.Money, bool) {
						return limiter.USD(0.001 * float64(u.InputTokens+u.OutputTokens)), true
					}
				}, batch.WithPlainLaw())
				resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
				st, err := m.Status(t.Context())
				if resp.StatusCode != test.status || up.calls != test.calls || err != nil || math.Abs(st.SpentUSD-test.spent) > 1e-9 || st.Reserved != 0 {
					t.Errorf("%d %s, %d calls, $%.4f spent, $%.4f reserved, %v", resp.StatusCode, body, up.calls, st.SpentUSD, st.Reserved, err)
				}
				m.proves(t)
			})
		})
	}
}

// A request that waits for money keeps nobody from calling: a cheaper one passes it, and it goes once money is back.
func TestWaitForMoneyKeepsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := later(10*time.Second, says(200, `{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`))
		m := over(t, dialects["openai"], trip(answer), func(c *Config) {
			c.MaxCost = limiter.USD(1)
			c.Price = func(_, _ string, input, _ float64) (limiter.Money, bool) {
				if input > 100 {
					return limiter.USD(0.8), true
				}
				return limiter.USD(0.1), true
			}
			c.Cost = func(string, string, provider.Usage) (limiter.Money, bool) { return limiter.USD(0.01), true }
		})
		defer m.shared.Close()
		dear := strings.Replace(chatBody, "water", strings.Repeat("water ", 500), 1)
		ended := make(chan string, 3)
		began := time.Now()
		for i, body := range []string{dear, dear, chatBody} {
			go func() {
				resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", body))
				ended <- []string{"first", "second", "cheap"}[i] + " " + resp.Status + " " + time.Since(began).Round(time.Second).String()
			}()
			synctest.Wait()
		}
		got := map[string]bool{<-ended: true, <-ended: true, <-ended: true}
		for _, want := range []string{"first 200 OK 10s", "cheap 200 OK 10s", "second 200 OK 20s"} {
			if !got[want] {
				t.Errorf("no %q in %v", want, got)
			}
		}
		m.proves(t)
	})
}
