package panel

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/must"
)

func of[T any](x T) *T { return &x }

// shown is a run that a panel is made of.
type shown struct {
	event.Progress
	speeds string // the level of each, 0 to 7
	span   time.Duration
}

// list is the speeds that are shown by those levels, where 7 a second are allowed.
func (s *shown) list() (speeds []float64) {
	for _, level := range s.speeds {
		speeds = append(speeds, float64(level-'0')+0.01)
	}
	return speeds
}

// but is a run that differs in something.
func (s shown) but(change func(*shown)) shown {
	change(&s)
	return s
}

// steady is bound by a limit on requests.
func steady() shown {
	return shown{
		Progress: event.Progress{
			State: "running", ElapsedS: 5320, Done: 52_114, Total: of(100_000), Failed: 31, InFlight: 31, Waiting: 1024, PerSecond: 9.8,
			Input: "prompts.jsonl", Output: "results.jsonl", Provider: "openai", Models: []string{"gpt-4o-mini"}, OfModels: 1, Concurrency: 64,
			Bound: "requests", BoundText: "the provider's limit on requests: 588 of 600 a minute (its headers)",
			BoundMore:  "next would be tokens, at 3.1 times this speed; then -c 64",
			BoundShort: "requests limit: 588 of 600/min", Allowed: of(7.0),
			Ends: &event.Ends{LikelyS: 4860}, EndsText: "16:37, in 1 h 21 min (± 4 min), if that limit stays",
			Spent: event.Spent{USD: of(5.21), InputTokens: 18_200_000, OutputTokens: 4_100_000}, InAll: &event.InAll{USD: 10, PlusMinus: 0.06},
			Answered: 52_083, Cooldowns: 2, Again: 112, P50MS: of(int64(2900)), P95MS: of(int64(6100)),
			Failures: []event.Failure{{Kind: "invalid", Code: "context_length_exceeded", Count: 24}, {Kind: "refused", Code: "content_filter", Count: 4}, {Kind: "refused", Code: "400", Count: 3}},
			Latest:   "14:31:08 cooled 3.2 s for a refusal that 12 calls met; full speed 14:31:15",
		},
		speeds: "666666004" + strings.Repeat("6", 27), span: 10 * time.Minute,
	}
}

// ending is a run that is given nothing more.
func ending(s *shown) {
	s.ElapsedS, s.Done, s.InFlight, s.OldestS = 5326, 52_139, 6, of(4.2)
}

// panels are the runs of testdata/panels.txt, by name: each panel there is shown of one of
// them, on a terminal of that size.
var panels = map[string]struct {
	shown
	width, height int
	style         Style
}{
	"1 ramping up": {steady().but(func(s *shown) {
		s.ElapsedS, s.Done, s.Failed, s.InFlight, s.PerSecond = 11, 410, 0, 47, 58.1
		s.Bound, s.BoundText = "search", "nothing known yet: 64 calls/s, doubled every 2.5 s until refused"
		s.BoundMore = "no header names a limit; --rpm and --tpm would skip this search"
		s.Ends, s.EndsWhy, s.EndsText = nil, "early", "too early to say"
		s.Spent, s.InAll = event.Spent{USD: of(0.04), InputTokens: 142_000, OutputTokens: 31_000}, nil
		s.Cooldowns, s.Again, s.P50MS, s.P95MS, s.Failures = 0, 0, of(int64(800)), of(int64(1600)), nil
		s.Latest = "15:03:02 started: 100,000 items, none done before"
		s.speeds, s.span, s.Allowed = "0001123457", 11*time.Second, nil
	}), 80, 24, Style{}},
	"2 requests limit, steady":     {steady(), 80, 24, Style{}},
	"2 in ASCII (LANG=C)":          {steady(), 80, 24, Style{ASCII: true}},
	"40x10":                        {steady().but(func(s *shown) { s.speeds = "660466666666" }), 40, 10, Style{}},
	"one row (20 columns)":         {steady(), 20, 24, Style{}},
	"one row (3 rows)":             {steady(), 80, 3, Style{}},
	"60x14, where less is left":    {steady(), 60, 14, Style{}},
	"2 where signs may be wide":    {steady(), 80, 24, Style{Wide: true}},
	"2 in colour (⟨ is an escape)": {steady(), 80, 24, Style{Color: true}},
	"3 tokens limit": {steady().but(func(s *shown) {
		s.ElapsedS, s.Done, s.Total, s.Failed, s.InFlight, s.PerSecond = 2463, 8120, of(20_000), 0, 12, 3.3
		s.Bound, s.BoundText = "tokens", "the provider's limit on tokens: 196 k of 200 k a minute (its headers)"
		s.BoundMore = "an item draws 990 tokens; 512 of them are max_tokens, and 97 are used"
		s.EndsText = "15:58, in 1 h 1 min (± 3 min), if that limit stays"
		s.P50MS, s.P95MS, s.Cooldowns, s.Again, s.Failures = of(int64(3400)), of(int64(8800)), 0, 0, nil
		s.Spent, s.InAll = event.Spent{USD: of(1.07), InputTokens: 3_900_000, OutputTokens: 800_000}, &event.InAll{USD: 2.63, PlusMinus: 0.05}
		s.Answered, s.Truncated = 8120, 312
		s.Latest = "14:20:41 the limit on tokens rose from 150 k to 200 k a minute"
		s.speeds = "565665646566565665665646566565665656"
	}), 80, 24, Style{}},
	"4 cooling down": {steady().but(func(s *shown) {
		s.InFlight, s.Parked, s.PerSecond, s.Cooldowns = 3, 9, 0, 0
		s.Bound, s.BoundText = "cooldown", "a cooldown: refused (429, Retry-After 20 s); a probe leaves in 12.4 s"
		s.BoundMore = "12 calls met this wave; 9 items wait for it and go first"
		s.EndsText = "16:38, in 1 h 22 min (± 5 min), if the limit of before comes back"
		s.Latest = "15:15:40 rate limit hit: cooling for 20.0 s (Retry-After)"
		s.speeds = strings.Repeat("6", 34) + "40"
	}), 80, 24, Style{}},
	"40x10 cooling": {steady().but(func(s *shown) {
		s.PerSecond, s.BoundShort, s.EndsText = 0, "a cooldown: probe in 12.4 s", "16:38, in 1 h 22 min (± 5 min), if the limit of before comes back"
		s.speeds = "666666666640"
	}), 40, 10, Style{}},
	"5 breaker open": {steady().but(func(s *shown) {
		s.InFlight, s.Delayed, s.PerSecond, s.Cooldowns, s.Again = 0, 38, 0, 0, 151
		s.Bound, s.BoundText = "breaker", "an outage: 23 of the last 40 calls broke (503); next try in 28 s"
		s.BoundMore = "third try since 15:14:02; a try costs no item an attempt"
		s.Ends, s.EndsWhy, s.EndsText = nil, "outage", "cannot be said during an outage; 1 h 21 min of work is left"
		s.Latest = "15:15:38 probe: 503 once more, waiting 30 s"
		s.speeds = strings.Repeat("6", 28) + "10000000"
	}), 80, 24, Style{}},
	"6 draining": {steady().but(ending).but(func(s *shown) {
		s.State, s.Bound, s.BoundMore = "draining", "draining", ""
		s.BoundText = "your Ctrl-C: 6 calls finish and are saved; Ctrl-C again drops them"
		s.Ends, s.EndsText = nil, "within about 8 s; 47,861 items are left"
	}), 80, 24, Style{}},
	"7 quota stopped": {steady().but(ending).but(func(s *shown) {
		s.State, s.Bound = "stopped", "stopped"
		s.BoundText = "the quota is used up: gpt-4o-mini answers insufficient_quota"
		s.BoundMore = "nothing more is sent; 6 calls in flight finish and are saved"
		s.Ends, s.EndsText = nil, "in a few seconds, exit code 3; 47,861 items are left for a resume"
	}), 80, 24, Style{}},
	"8 own concurrency": {steady().but(func(s *shown) {
		s.ElapsedS, s.Done, s.Failed, s.InFlight, s.PerSecond = 492, 9840, 0, 64, 20.1
		s.Bound, s.BoundText = "concurrency", "your -c 64: all 64 calls are in flight, each takes 3.1 s"
		s.BoundMore = "the limit allows 2.4 times as many: -c 154 next time"
		s.EndsText = "15:41, in 1 h 15 min (± 2 min)"
		s.P50MS, s.P95MS, s.Cooldowns, s.Again, s.Failures = of(int64(3100)), of(int64(4000)), 0, 0, nil
		s.Spent, s.InAll = event.Spent{USD: of(0.98), InputTokens: 3_400_000, OutputTokens: 800_000}, &event.InAll{USD: 9.96, PlusMinus: 0.11}
		s.Latest = "14:17:55 limit seen in headers: 3,000 requests and 2.0 M tokens a minute"
		s.speeds, s.span = "45"+strings.Repeat("6", 30), 8*time.Minute
	}), 80, 24, Style{}},
	"9 own input": {steady().but(func(s *shown) {
		s.Input, s.ElapsedS, s.Done, s.Total, s.Failed, s.InFlight, s.Waiting, s.PerSecond = "-", 492, 1512, nil, 2, 4, 0, 3.1
		s.Bound, s.BoundText, s.BoundMore = "input", "your input: it gives 3.1 items/s, nothing waits (4 of 64 in flight)", ""
		s.Ends, s.EndsWhy, s.EndsText = nil, "total", "when standard input ends"
		s.Cooldowns, s.Again, s.Failures = 0, 0, []event.Failure{{Kind: "timeout", Count: 2}}
		s.Spent, s.InAll, s.Latest = event.Spent{USD: of(0.15), InputTokens: 528_000, OutputTokens: 119_000}, nil, ""
		s.speeds, s.span = "5666566656665666566656665666", 8*time.Minute
	}), 80, 24, Style{}},
	"200x50":                 {severalLanes(), 200, 50, Style{}},
	"120x30, fewer columns":  {severalLanes(), 120, 30, Style{}},
	"200x29, too low for it": {severalLanes(), 200, 29, Style{}},
	"120x30, lanes of a file": {severalLanes().but(func(s *shown) {
		s.Lanes[0].Name, s.Lanes[0].USD, s.Lanes[0].Left = "mine/gpt-4o", of(4.31), nil
		s.Lanes[1].Name, s.Lanes[1].USD, s.Lanes[1].Left = "spare/gpt-4o-mini", of(0.0412), nil
		s.Lanes[2].Name, s.Lanes[2].Left = "home/o4-mini", nil // it has no price
	}), 120, 30, Style{}},
}

// severalLanes is a run of three models.
func severalLanes() shown {
	return steady().but(func(s *shown) {
		s.Models, s.OfModels = []string{"gpt-4o", "gpt-4o-mini", "o4-mini"}, 3
		s.BoundWide = "the provider's limit on tokens of gpt-4o: 442 k of 450 k a minute (its headers), 71 % of the last 10 s; your -c 64 the other 29 %"
		s.EndsText, s.EndsWide = "16:37, in 1 h 21 min (± 4 min)", "16:37, in 1 h 21 min (± 4 min); gpt-4o is the last, the others end at 15:50"
		s.Latest = "14:31:08 gpt-4o: cooled 3.2 s for a refusal that 12 calls met; full speed 14:31:15"
		waves := strings.Repeat("6", 34)
		s.speeds, s.span = "666666004"+waves+"004"+waves+"0046666666666666666666666666", 30*time.Minute
		s.Lanes = []event.Lane{
			{Name: "openai/gpt-4o", Phase: "flowing", BoundShort: "tokens limit", DonePerS: 3.3, Limits: []event.Limit{{Used: of(0.2)}, {}, {Used: of(0.98)}}, InFlight: 12, P50MS: of(int64(3400)), P95MS: 8800, Throttled: 12, Broke: 31, Failed: 24, Left: of(19_204)},
			{Name: "openai/gpt-4o-mini", Phase: "flowing", BoundShort: "-c 64", DonePerS: 6.1, Limits: []event.Limit{{Used: of(0.12)}}, InFlight: 49, P50MS: of(int64(2900)), P95MS: 6100, Broke: 81, Failed: 7, Left: of(28_644)},
			{Name: "openai/o4-mini", Phase: "cooling", BoundShort: "cooldown 4.1 s", Limits: []event.Limit{{Used: of(0.0)}}, InFlight: 3, P50MS: of(int64(9100)), P95MS: 22_000, Throttled: 40, Left: of(38)},
		}
	})
}

// Each panel is as it is drawn in testdata/panels.txt.
func TestPanels(t *testing.T) {
	drawn := panelsOf(t, "testdata/panels.txt")
	for name, c := range panels {
		p := c.shown
		got := Layout(&p.Progress, p.list(), p.span, c.width, c.height, c.style)
		text := strings.ReplaceAll(strings.Join(got, "\n"), "\x1b", "⟨")
		if want, ok := drawn[name]; !ok || text != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, want)
		}
		if len(c.Lanes) == 0 && len(got) > MostRows {
			t.Errorf("%s: %d rows", name, len(got))
		}
		delete(drawn, name)
	}
	for name := range drawn {
		t.Errorf("%s is drawn, and not shown", name)
	}
}

// panelsOf reads panels: each follows a line that names it, and ends with an empty one.
func panelsOf(t *testing.T, file string) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	drawn := map[string]string{}
	for _, part := range strings.Split(string(text), "--- ")[1:] {
		name, panel, _ := strings.Cut(part, "\n")
		drawn[name] = strings.TrimRight(panel, "\n")
	}
	return drawn
}

// However many lanes there are, the table has but eight: those that come first.
func TestMostLanes(t *testing.T) {
	p := severalLanes()
	for len(p.Lanes) < 12 {
		p.Lanes = append(p.Lanes, event.Lane{Name: "another"})
	}
	rows := Layout(&p.Progress, p.list(), p.span, 200, 50, Style{})
	if n := strings.Count(strings.Join(rows, "\n"), "another"); n != mostLanes-3 || len(rows) != 8+2+mostLanes {
		t.Errorf("%d of them, in %d rows", n, len(rows))
	}
}
