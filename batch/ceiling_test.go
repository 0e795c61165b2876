package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A given limit is a ceiling under either law: a server that holds exactly that limit
// refuses nothing, and nearly all of the limit is used.
func TestConfiguredLimitIsACeiling(t *testing.T) {
	for name, c := range map[string]struct {
		configured Limits
		tokens     float64 // of each call
		fits       float64 // calls a minute
	}{
		"3 requests":    {Limits{RPM: 3}, 0, 3},
		"60 requests":   {Limits{RPM: 60}, 0, 60},
		"calls of 20 %": {Limits{TPM: 60_000}, 12_000, 5},
		"calls of 97 %": {Limits{TPM: 30_000}, 29_000, 30.0 / 29},
		"a daily limit": {Limits{TPM: 500_000 / 1440.0}, 2_000, 500_000 / 1440.0 / 2_000},
	} {
		for law, opts := range map[string][]Option{"model": nil, "plain": {WithPlainLaw()}} {
			t.Run(fmt.Sprint(law, ", ", name), func(t *testing.T) {
				if law == "plain" && c.tokens > c.configured.TPM {
					t.Skip("the debt of the plain law ends at a minute")
				}
				synctest.Test(t, func(t *testing.T) {
					const items = 60
					bucket := make(chan float64, 1) // how many calls it holds: one, full at the start
					bucket <- 1
					last, refused := time.Now(), make(chan struct{}, 10*items)
					fn := func(ctx context.Context, i int) (int, error) {
						if law == "model" { // it allows for calls that are late
							time.Sleep(time.Duration(i*7%10) * 2 * time.Millisecond)
						}
						level := <-bucket
						now := time.Now()
						level = min(1, level+c.fits*now.Sub(last).Minutes())
						last = now
						if level < 1-1e-6 {
							bucket <- level
							refused <- struct{}{}
							return 0, RetryAfter(time.Second, errTeapot)
						}
						bucket <- level - 1
						return i, pause(ctx, time.Second)
					}
					began := time.Now()
					opts := append(opts[:len(opts):len(opts)], WithLimits(c.configured), WithConcurrency(32), WithCostOf(func(int) Cost { return Cost{Input: c.tokens} }))
					_, sum, err := judged(t.Context(), t, numbers(items), fn, opts...)
					used := (items - 1) / c.fits / (time.Since(began) - time.Second).Minutes() // without the last answer
					if err != nil || sum.Succeeded != items || len(refused) > 0 || used < 0.97 {
						t.Errorf("%v, %d succeeded, %d calls were refused, and %.3f of the limit used", err, sum.Succeeded, len(refused), used)
					}
				})
			})
		}
	}
}

// Costs that cannot be meant draw nothing, and leave a told limit as it is.
func TestSenselessCostsMoveNoLimit(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1e6} {
		for law, opts := range map[string][]Option{"model": nil, "plain": {WithPlainLaw()}} {
			t.Run(fmt.Sprint(law, ", ", x), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cost := func(i int) Cost {
						if i%10 == 9 {
							return Cost{Requests: x, Input: x, Output: x}
						}
						return Cost{Input: 500, Output: 100}
					}
					began := time.Now()
					opts = append(opts[:len(opts):len(opts)], WithLimits(Limits{TPM: 60_000}), WithConcurrency(16), WithCostOf(cost))
					_, sum, err := judged(t.Context(), t, numbers(1000), takes(time.Second), opts...)
					want := 540 * time.Second // 900 calls of 600 tokens
					if took := time.Since(began); err != nil || sum.Succeeded != 1000 || took < want*97/100 || took > want*103/100 {
						t.Errorf("%v, %d succeeded in %v, want %v", err, sum.Succeeded, took, want)
					}
				})
			})
		}
	}
}

// slots are those of a function of one's own: it refuses one more at once.
func slots(n int, takes time.Duration, refused *int) Func[int, int] {
	free := make(chan int, 1)
	free <- n
	return func(ctx context.Context, i int) (int, error) {
		left := <-free
		if left == 0 {
			*refused++
			free <- 0
			return i, &Error{Kind: Throttled}
		}
		free <- left - 1
		err := pause(ctx, takes)
		free <- <-free + 1
		return i, err
	}
}

// A function may accept only so many calls at a time and refuse one more at once. Its run
// is nearly as fast as one that knows the cap. Besides the refusals that find the cap, the
// run tries one more call from time to time.
func TestFunctionThatTakesSoManyAtATime(t *testing.T) {
	for _, n := range []int{1, 2, 4, 8, 16, 64} {
		for _, takes := range []time.Duration{30 * time.Millisecond, 200 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("%d of %v", n, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const each = 125 // calls in each slot: 500 in four
					refused, ideal := 0, each*takes
					var sum Summary
					_, err := Run(t.Context(), numbers(each*n), slots(n, takes, &refused), WithConcurrency(max(64, 4*n)), WithSummary(&sum))
					if err != nil || sum.Succeeded != each*n || sum.Elapsed > ideal*5/4 {
						t.Errorf("%v, %v of %v, %+v", err, sum.Elapsed, ideal, sum)
					}
					if refused > 3*n+each*n/30 {
						t.Errorf("%d refused", refused)
					}
				})
			})
		}
	}
}

// A server of one's own that queues is asked more and more. One that refuses beyond so many
// calls is found out with no more refusals than any other.
func TestLocalServerThatTakesSoManyAtATime(t *testing.T) {
	for _, n := range []int{8, 20, 64, 150} {
		for _, takes := range []time.Duration{30 * time.Millisecond, 300 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("%d of %v", n, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const each = 125
					refused, ideal := 0, each*takes
					var sum Summary
					_, err := Run(t.Context(), numbers(each*n), slots(n, takes, &refused), WithConcurrency(max(64, 4*n)), WithLocalServer(time.Minute), WithSummary(&sum))
					t.Logf("%d refused, %v of %v", refused, sum.Elapsed, ideal)
					if err != nil || sum.Succeeded != each*n {
						t.Errorf("%v, %+v", err, sum)
					}
					if refused > 3*n+each*n/100 {
						t.Errorf("%d refused", refused)
					}
				})
			})
		}
	}
}

// Two lanes of one pool, with the same limit and the same items, charge by their own
// rules: where the bound on output is charged a tenth as much is let through in a minute.
func TestLanesOfAPoolChargeByTheirOwnRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		fn := func(ctx context.Context, i int) (int, error) {
			j.add(LaneFrom(ctx))
			return i, pause(ctx, 100*time.Millisecond)
		}
		limits := Limits{TPM: 60_000}
		_, sum, err := proved(t.Context(), t, numbers(1100), fn, WithPool("p", "prompt", "both"), WithPoolOf(func(int) string { return "p" }),
			WithCostOf(func(int) Cost { return Cost{Input: 100, Output: 900} }), WithConcurrency(8),
			WithLane("prompt", LaneConfig{Limits: limits, Charge: Charge{Rule: limiter.ChargePromptOnly}}),
			WithLane("both", LaneConfig{Limits: limits, Charge: Charge{Rule: limiter.ChargeBoth}}))
		if err != nil || j.lanes["prompt"] < 9*j.lanes["both"] || j.lanes["both"] < 50 {
			t.Errorf("%v in %v: %v", j.lanes, sum.Elapsed, err)
		}
	})
}

// Input that came from a cache comes back to the limit once the answer says so, where the
// lane has it free, and only there.
func TestCachedInputComesBack(t *testing.T) {
	took := func(free bool) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			fn := func(ctx context.Context, i int) (int, error) {
				r := provider.RecorderFrom(ctx)
				err := pause(ctx, 10*time.Millisecond)
				r.Response(http.StatusOK, nil)
				r.Usage(provider.Usage{InputTokens: 1000, CachedTokens: 900})
				return i, err
			}
			_, sum, err := proved(t.Context(), t, numbers(600), fn, WithConcurrency(2), WithLimits(Limits{InputTPM: 60_000}),
				WithCharge(Charge{CachedFree: free}), WithCostOf(func(int) Cost { return Cost{Input: 1000} }))
			if err != nil {
				t.Error(err)
			}
			d = sum.Elapsed
		})
		return d
	}
	free, paid := took(true), took(false)
	if paid < 9*time.Minute || free > 2*time.Minute {
		t.Errorf("%v where cached input is free, %v where it is not", free, paid)
	}
}

// What WithLaneDefaults says of a rule, or of periods, counts more than the options for
// all lanes, and WithLane more than either.
func TestTheNearerWordOfARuleCounts(t *testing.T) {
	both, prompt := Charge{Rule: limiter.ChargeBoth}, Charge{Rule: limiter.ChargePromptOnly}
	day, minute := Periods{{Per: 24 * time.Hour}}, Periods{{Per: time.Minute}}
	for _, opts := range [][]Option{
		{WithCharge(both), WithPeriods(day)},
		{WithCharge(prompt), WithPeriods(minute), WithLaneDefaults(LaneConfig{Charge: both, Periods: day})},
		{WithLaneDefaults(LaneConfig{Window: 3}), WithCharge(both), WithPeriods(day), WithLane("x", LaneConfig{Charge: prompt, Periods: minute})},
	} {
		c := configure(opts)
		if lane := c.machine.Lane; lane.Charge != both || lane.Periods != day || c.check() != nil {
			t.Errorf("%v: %+v, %v", opts, lane, c.check())
		}
		if x, ok := c.machine.Lanes["x"]; ok && (x.Charge != prompt || x.Periods != minute) {
			t.Errorf("%+v", x)
		}
	}
}

// byTheDay is a provider whose headers show requests by the day and tokens by the minute,
// in the same words as others show both by the minute: Groq's.
type byTheDay struct {
	day, minute float64 // requests, tokens
	places      chan dayCounts
	fixed       bool          // what is used of the day comes back at its end, else bit by bit
	ends        time.Duration // of that day, from the start
	began       time.Time
}

type dayCounts struct {
	requests, tokens float64 // that are left
	at               time.Time
	answered         int
	refused          int
	firstMinute      int // answered in it
}

const callTokens = 500

func newByTheDay(day, minute float64) *byTheDay {
	s := &byTheDay{day: day, minute: minute, places: make(chan dayCounts, 1), began: time.Now(), ends: 17 * time.Hour}
	s.places <- dayCounts{requests: day, tokens: minute, at: s.began}
	return s
}

func (s *byTheDay) refill(c *dayCounts, now time.Time) {
	passed := now.Sub(c.at).Seconds()
	c.tokens = min(s.minute, c.tokens+passed*s.minute/60)
	if !s.fixed {
		c.requests = min(s.day, c.requests+passed*s.day/86400)
	}
	c.at = now
}

func (s *byTheDay) call(ctx context.Context, i int) (int, error) {
	c, now := <-s.places, time.Now()
	s.refill(&c, now)
	ok := c.requests >= 1 && c.tokens >= callTokens
	if ok {
		c.requests, c.tokens, c.answered = c.requests-1, c.tokens-callTokens, c.answered+1
		if now.Sub(s.began) < time.Minute {
			c.firstMinute++
		}
	} else {
		c.refused++
	}
	h := s.headers(&c, now)
	s.places <- c
	if err := pause(ctx, 300*time.Millisecond); err != nil {
		return i, err
	}
	r := provider.RecorderFrom(ctx)
	if !ok {
		r.Response(http.StatusTooManyRequests, h)
		return i, provider.Classify(http.StatusTooManyRequests, h, []byte(`{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`))
	}
	r.Response(http.StatusOK, h)
	r.Usage(provider.Usage{InputTokens: callTokens})
	return i, nil
}

func (s *byTheDay) headers(c *dayCounts, now time.Time) http.Header {
	whole := time.Duration((s.day - c.requests) / s.day * 86400 * 1e9)
	if s.fixed {
		whole = s.ends - now.Sub(s.began)
	}
	h := http.Header{}
	h.Set("x-ratelimit-limit-requests", fmt.Sprint(s.day))
	h.Set("x-ratelimit-remaining-requests", fmt.Sprint(math.Floor(max(0, c.requests))))
	h.Set("x-ratelimit-reset-requests", whole.String())
	h.Set("x-ratelimit-limit-tokens", fmt.Sprint(s.minute))
	h.Set("x-ratelimit-remaining-tokens", fmt.Sprint(math.Floor(c.tokens)))
	h.Set("x-ratelimit-reset-tokens", time.Duration((s.minute-c.tokens)/s.minute*60e9).String())
	return h
}

var groqPeriods = Periods{{Family: "openai", On: limiter.Requests, Per: 24 * time.Hour}, {Family: "openai", On: limiter.Tokens, Per: time.Minute}}

// Requests by the day are spent as fast as the tokens by the minute allow, from the first
// header on: neither as if the day's came back each minute nor as if they had to last. When
// they are gone the lane stops, and says when they are all there again; nothing before that
// is lost, and nothing is refused for it.
func TestRequestsByTheDay(t *testing.T) {
	const day, minute = 1440, 120_000 // so that tokens allow 240 calls a minute
	for _, fixed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newByTheDay(day, minute)
			s.fixed = fixed
			var sum Summary
			_, err := Run(t.Context(), numbers(3000), s.call, WithSummary(&sum), WithPeriods(groqPeriods),
				WithCostOf(func(int) Cost { return Cost{Requests: 1, Input: callTokens} }))
			c := <-s.places
			var wait *WaitError
			var used *UsedUpError
			if !errors.Is(err, ErrStopped) || !errors.As(err, &wait) || !errors.As(err, &used) || used.Dimension != limiter.Requests || used.Limit != day {
				t.Fatalf("fixed %v: %v", fixed, err)
			}
			whole := 24 * time.Hour
			if fixed {
				whole = s.ends - sum.Elapsed
			}
			if off := (wait.Wait - whole).Abs(); off > 5*time.Minute {
				t.Errorf("fixed %v: whole again in %v, want %v", fixed, wait.Wait, whole)
			}
			t.Logf("fixed %v: %d answered in %v, %d in the first minute, %d refused", fixed, c.answered, sum.Elapsed, c.firstMinute, c.refused)
			if c.answered < day || c.answered > day+day/20 || c.refused > 0 || sum.Elapsed > 12*time.Minute {
				t.Errorf("fixed %v: %d answered, %d refused, in %v", fixed, c.answered, c.refused, sum.Elapsed)
			}
			if c.firstMinute < 100 || c.firstMinute > 480 {
				t.Errorf("fixed %v: %d in the first minute", fixed, c.firstMinute)
			}
		})
	}
}

// A day of which enough is left stops nobody, and holds nobody back.
func TestEnoughOfTheDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newByTheDay(14400, 1e9)
		var sum Summary
		_, err := Run(t.Context(), numbers(3000), s.call, WithSummary(&sum), WithPeriods(groqPeriods))
		if c := <-s.places; err != nil || sum.Succeeded != 3000 || c.refused > 0 || sum.Elapsed > 2*time.Minute {
			t.Errorf("%v: %+v in %v", err, c, sum.Elapsed)
		}
	})
}

// A limit of 0 in a refusal stops the lane, where its headers are known to mean what they
// show; others' zeros mean nothing.
func TestNoQuotaInHeaders(t *testing.T) {
	h := http.Header{}
	h.Set("x-ratelimit-limit-requests", "0")
	h.Set("x-ratelimit-limit-tokens", "6000")
	h.Set("x-ratelimit-remaining-tokens", "6000")
	refuse := func(ctx context.Context, _ int) (int, error) {
		provider.RecorderFrom(ctx).Response(http.StatusTooManyRequests, h)
		return 0, provider.Classify(http.StatusTooManyRequests, h, []byte(`{"error":{"message":"slow down"}}`))
	}
	synctest.Test(t, func(t *testing.T) {
		results, sum, err := proved(t.Context(), t, numbers(50), refuse, WithPeriods(groqPeriods), WithConcurrency(4))
		if !errors.Is(err, ErrStopped) || !errors.Is(err, QuotaExhausted) || sum.Counters.Calls > 4 || !strings.Contains(err.Error(), "its limit of requests is 0") {
			t.Errorf("%d calls: %v", sum.Counters.Calls, err)
		}
		if !errors.Is(results[0].Err, ErrNotRun) {
			t.Error(results[0].Err)
		}
	})
	for name, periods := range map[string]Periods{"nothing is known": {}, "of others": {{Family: "anthropic", Per: time.Minute}}, "of tokens": {{On: limiter.Tokens, Per: time.Minute}}} {
		synctest.Test(t, func(t *testing.T) {
			_, sum, err := proved(t.Context(), t, numbers(1), refuse, WithPeriods(periods))
			if !errors.Is(err, ErrOutage) || errors.Is(err, QuotaExhausted) || sum.Counters.Calls < MaxRefusals {
				t.Errorf("%s: %d calls: %v", name, sum.Counters.Calls, err)
			}
		})
	}
}

// The period of a limit is the lane's word, else the family's, else to be found out.
func TestWindowOf(t *testing.T) {
	lane := &LaneConfig{Periods: Periods{{Family: "openai", On: limiter.Requests, Per: 24 * time.Hour}, {Family: "plain", Per: time.Minute}}}
	for _, tt := range []struct {
		family string
		on     provider.Dimension
		lane   *LaneConfig
		want   time.Duration
	}{
		{"openai", provider.Requests, lane, 24 * time.Hour},
		{"openai", provider.Requests, nil, 0},
		{"openai", provider.Tokens, lane, 0},
		{"plain", provider.Requests, lane, time.Minute},
		{"plain", provider.Requests, &LaneConfig{}, time.Second},
		{"plain", provider.Tokens, nil, time.Second},
	} {
		l := provider.RateLimit{On: tt.on, Family: tt.family, Limit: 9, Remaining: 1}
		seen := sightingsOf([]provider.RateLimit{{On: tt.on, Family: tt.family}, l}, tt.lane) // the first one shows none
		if len(seen) != 1 || seen[0].Window != tt.want {
			t.Errorf("%+v: %+v", tt, seen)
		}
	}
}
