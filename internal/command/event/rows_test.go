package event

import (
	"testing"

	"github.com/headrace/headrace/internal/command/words"
)

func of[T any](x T) *T { return &x }

// The rows of a panel, to the letter.
func TestRows(t *testing.T) {
	steady := Progress{
		State: "running", InFlight: 31, Concurrency: 64, P50MS: of(int64(2900)), P95MS: of(int64(6100)), Waiting: 1024, Cooldowns: 2,
		Spent: Spent{USD: of(5.21), InputTokens: 18_200_000, OutputTokens: 4_100_000}, InAll: &InAll{USD: 10, PlusMinus: 0.06},
		Failed: 31, Again: 112, Answered: 52083, PerSecond: 9.8, OldestS: of(4.2),
		Failures: []Failure{
			{Kind: "invalid", Code: "context_length_exceeded", Count: 24}, {Kind: "refused", Code: "content_filter", Count: 4}, {Kind: "refused", Code: "400", Count: 3},
		},
	}
	change := func(f func(*Progress)) *Progress {
		p := steady
		f(&p)
		return &p
	}
	for name, c := range map[string]struct {
		p                    *Progress
		calls, spent, failed string
	}{
		"steady": {
			&steady,
			"31 in flight of 64   p50 2.9 s  p95 6.1 s   1,024 wait   2 cooldowns",
			"$5.21, about $10.00 in all (± $0.06)   18.2 M tokens in, 4.1 M out",
			"31: 24 invalid (too long), 7 refused   112 failed and were retried",
		},
		"beginning": {
			change(func(p *Progress) {
				p.InFlight, p.P50MS, p.P95MS, p.Cooldowns, p.Failed, p.Failures, p.Again = 47, of(int64(800)), of(int64(1600)), 0, 0, nil, 0
				p.Spent, p.InAll, p.EndsWhy = Spent{USD: of(0.04), InputTokens: 142_000, OutputTokens: 31_000}, nil, early
			}),
			"47 in flight of 64   p50 0.8 s  p95 1.6 s   1,024 wait",
			"$0.04   142 k tokens in, 31 k out   in all: too early to say",
			"none",
		},
		"first items": {
			change(func(p *Progress) { p.InAll = &InAll{USD: 10} }),
			"31 in flight of 64   p50 2.9 s  p95 6.1 s   1,024 wait   2 cooldowns",
			"$5.21, about $10.00 in all   18.2 M tokens in, 4.1 M out",
			"31: 24 invalid (too long), 7 refused   112 failed and were retried",
		},
		"parked, unpriced, cut off": {
			change(func(p *Progress) {
				p.InFlight, p.Parked, p.Cooldowns, p.Spent.USD, p.InAll, p.Failed, p.Again, p.Answered, p.Truncated = 3, 9, 1, nil, nil, 0, 0, 8120, 312
			}),
			"3 in flight of 64   p50 2.9 s  p95 6.1 s   1,024 wait, 9 parked",
			"18.2 M tokens in, 4.1 M out   no known price: set one with --price",
			"none   312 answers were cut off at their max_tokens (4 %)",
		},
		"breaker, some unpriced, many kinds": {
			change(func(p *Progress) {
				p.InFlight, p.Delayed, p.P50MS, p.Cooldowns, p.Spent.Unpriced, p.Truncated, p.Again = 0, 38, nil, 1, 1, 1, 0
				p.Failures = []Failure{{Kind: "invalid", Code: "400", Count: 20}, {Kind: "model_not_found", Code: "404", Count: 5}, {Kind: "refused", Count: 2}, {Kind: "timeout", Count: 1}}
			}),
			"0 in flight of 64   1,024 wait, 38 in backoff   1 cooldown",
			"at least $5.21, about $10.00 in all (± $0.06)   + 1 call unpriced",
			"31: 20 invalid (400), 5 model not found (404), 2 refused, 4 more",
		},
		"draining": {
			change(func(p *Progress) { p.State, p.InFlight = draining, 6 }),
			"6 in flight, the oldest for 4.2 s", "$5.21   18.2 M tokens in, 4.1 M out", "31: 24 invalid (too long), 7 refused",
		},
		"stopped": {
			change(func(p *Progress) {
				p.State, p.InFlight, p.OldestS, p.Simulated, p.Failures = stopped, 0, nil, true, nil
			}),
			"0 in flight", "18.2 M tokens in, 4.1 M out   (simulated: nothing is paid)", "31",
		},
	} {
		for _, row := range []struct{ name, got, want string }{
			{"calls", CallsRow(c.p), c.calls}, {"spent", SpentRow(c.p), c.spent}, {"failed", FailedRow(c.p), c.failed},
		} {
			if row.got != row.want || cells(row.got) > rowCells {
				t.Errorf("%s: %s:\n%s\nwant\n%s", name, row.name, row.got, row.want)
			}
		}
	}
	if got := SpeedWord(&steady); got != "9.8/s" {
		t.Error(got)
	}
}

// Numbers have three digits that matter, and lengths of time the unit that they are said in.
func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"588": amount(588), "9,999": amount(9999), "10 k": amount(9999.6), "196 k": amount(196_333), "1.0 M": amount(999_600),
		"18.2 M": amount(18_200_000), "182 M": amount(182_000_000), "12 bn": amount(12e9),
		"1,234,567": words.Number(1_234_567), "-1,000": words.Number(-1000), "-100": words.Number(-100),
		"9.8/s": perSecond(9.8), "100/s": perSecond(99.96), "64 ms": shortDuration(64e6), "0.4 s": shortDuration(4e8), "12.4 s": shortDuration(12.4e9), "95 s": shortDuration(95e9), "2 min": shortDuration(100e9),
		"8 s": roughDuration(8e9), "4 min": roughDuration(240e9), "1 h 21 min": roughDuration(4860e9), "1 h": roughDuration(3600e9), "3 d 4 h": roughDuration(76 * 3600e9),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
