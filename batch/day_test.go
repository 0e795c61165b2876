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
		seen := sighted([]provider.RateLimit{{On: tt.on, Family: tt.family}, l}, tt.lane) // the first one shows none
		if len(seen) != 1 || seen[0].Window != tt.want {
			t.Errorf("%+v: %+v", tt, seen)
		}
	}
}
