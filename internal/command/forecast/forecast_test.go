package forecast

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

func batchOf(n int, c Call) *Sample {
	s := &Sample{}
	for range n {
		s.Add(c)
	}
	return s
}

var small = Call{Cost: limiter.Cost{Requests: 1, Input: 100, Output: 50}, Latency: time.Second}

func about(t *testing.T, what string, got, want, slack time.Duration) {
	t.Helper()
	if got < want-slack || got > want+slack {
		t.Errorf("%s: %v, want %v ± %v", what, got, want, slack)
	}
}

// The tightest limit decides how long it takes, and is full.
func TestTightestLimitBinds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits limiter.Limits
		width  int
		want   time.Duration // 6,000 calls
		full   limiter.Dimension
	}{
		{"requests", limiter.Limits{RPM: 600, TPM: 1e6}, 64, 10 * time.Minute, limiter.Requests},
		{"tokens", limiter.Limits{RPM: 6000, TPM: 90000}, 64, 10 * time.Minute, limiter.Tokens},
		{"input", limiter.Limits{RPM: 6000, InputTPM: 60000, OutputTPM: 1e6}, 64, 10 * time.Minute, limiter.InputTokens},
		{"output", limiter.Limits{RPM: 6000, InputTPM: 1e6, OutputTPM: 30000}, 64, 10 * time.Minute, limiter.OutputTokens},
		{"concurrency", limiter.Limits{RPM: 6000}, 10, 650 * time.Second, limiter.None},
		{"concurrency alone", limiter.Limits{}, 10, 650 * time.Second, limiter.None},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := Run(Config{Limits: []limiter.Limits{tt.limits}, Concurrency: tt.width}, batchOf(6000, small))
			about(t, tt.name, f.Took, tt.want, tt.want/14)
			if f.Refused > 0 || f.Scaled {
				t.Errorf("%d refused, scaled %v", f.Refused, f.Scaled)
			}
			for d, used := range f.Lanes[0].Used {
				if full := used > 0.9; full != (d == tt.full) {
					t.Errorf("%s is used to %.2f", d, used)
				}
			}
			if full := f.Concurrency > 0.9; full != (tt.full == limiter.None) {
				t.Errorf("concurrency is used to %.2f", f.Concurrency)
			}
		})
	}
}

// The same batch has the same forecast.
func TestSameForecast(t *testing.T) {
	c := Config{Limits: []limiter.Limits{{RPM: 600}}, Concurrency: 64, Seed: 3}
	if a, b := Run(c, batchOf(500, small)), Run(c, batchOf(500, small)); a.Took != b.Took {
		t.Errorf("%v and %v", a.Took, b.Took)
	}
}

// Lanes go side by side, each at its own pace.
func TestLanesSideBySide(t *testing.T) {
	s := &Sample{}
	for i := range 2000 {
		c := small
		c.Pool = i % 2
		s.Add(c)
	}
	f := Run(Config{Limits: []limiter.Limits{{RPM: 600}, {RPM: 100}}, Concurrency: 64}, s)
	about(t, "fast lane", f.Lanes[0].Took, 100*time.Second, 15*time.Second)
	about(t, "slow lane", f.Lanes[1].Took, 10*time.Minute, 40*time.Second)
	if f.Took != f.Lanes[1].Took {
		t.Errorf("%v in all", f.Took)
	}
}

// A call that a minute's limit cannot hold is reported, and holds up nothing.
func TestTooLarge(t *testing.T) {
	s := batchOf(10, small)
	s.Add(Call{Cost: limiter.Cost{Requests: 1, Input: 5e4}, Latency: time.Second})
	f := Run(Config{Limits: []limiter.Limits{{TPM: 20000}}, Concurrency: 4}, s)
	if f.Lanes[0].TooLarge != 1 {
		t.Errorf("%d are too large", f.Lanes[0].TooLarge)
	}
}

// A million items are forecast from a sample, within a few percent of the fluid
// time, whatever alternates in them.
func TestScaled(t *testing.T) {
	const n = 1_000_000
	s := &Sample{}
	for i := range n {
		c := small
		c.Pool = i % 2
		c.Cost.Input = float64(50 + 100*(i/2%2))
		s.Add(c)
	}
	if s.Len() != n || s.Kept() > maxSample || s.Kept() < maxSample/3 {
		t.Fatalf("%d of %d kept", s.Kept(), s.Len())
	}
	f := Run(Config{Limits: []limiter.Limits{{RPM: 60000}, {TPM: 6_000_000}}, Concurrency: 10000}, s.Smaller(30000))
	if !f.Scaled {
		t.Error("it is not said that it was a sample")
	}
	about(t, "requests", f.Lanes[0].Took, 500*time.Second, 40*time.Second)
	about(t, "tokens", f.Lanes[1].Took, 750*time.Second, 60*time.Second)
}

// A pool of few calls is in each sample: its calls are counted, however many another pool has.
func TestAPoolOfFewCallsIsKept(t *testing.T) {
	for seed := range uint64(3) {
		s := &Sample{}
		for i := range 10_004 {
			c := small
			if i >= 10_000-int(seed) && i < 10_004-int(seed) {
				c.Pool = 1
			}
			s.Add(c)
		}
		f := Run(Config{Limits: []limiter.Limits{{RPM: 1}, {RPM: 60}}, Concurrency: 64, Seed: seed}, s)
		if few, many := f.Lanes[1].CallsOf(1), f.Lanes[0].CallsOf(0); few != 4 || many < 9999.5 || many > 10000.5 {
			t.Errorf("%v and %v calls, want 4 and 10,000", few, many)
		}
		if s.Smaller(1).Kept() != 2 {
			t.Errorf("the smallest sample has %d calls, want one of each pool", s.Smaller(1).Kept())
		}
	}
}

// A lane that ends long before the other takes as long as all its calls, not as those of the sample.
func TestALaneThatEndsEarly(t *testing.T) {
	s := &Sample{}
	for i := range 12_000 {
		c := small
		if i%6 == 0 {
			c.Pool = 1
		}
		s.Add(c)
	}
	f := Run(Config{
		Limits: []limiter.Limits{{RPM: 1}, {RPM: 60}}, Concurrency: 64, Pools: []Pool{{Lanes: []int{0}}, {Lanes: []int{1}}},
	}, s)
	about(t, "the early lane", f.Lanes[1].Took, 2000*time.Second, 300*time.Second)
}

// A limit of a few calls a minute does not make the forecast itself slow.
func TestSlowLimit(t *testing.T) {
	f := Run(Config{Limits: []limiter.Limits{{RPM: 6}}, Concurrency: 4}, batchOf(50000, small))
	about(t, "six a minute", f.Took, 50000*10*time.Second, 800*time.Minute)
}

// Nothing to do takes no time.
func TestNothing(t *testing.T) {
	if f := Run(Config{Concurrency: 4}, &Sample{}); f.Took != 0 || f.Scaled {
		t.Errorf("%+v", f)
	}
}

// A batch of 100,000 is forecast in a fraction of a second.
func BenchmarkRun(b *testing.B) {
	s := batchOf(maxSample, small)
	c := Config{Limits: []limiter.Limits{{RPM: 6000, TPM: 2e6}}, Concurrency: 256}
	b.ReportAllocs()
	for b.Loop() {
		Run(c, s)
	}
}

// The provider of a forecast keeps every limit that the user sets, whatever the machine
// would send: a minute's worth goes in at once, and the next call is refused.
func TestGateKeepsEachLimit(t *testing.T) {
	for _, l := range []limiter.Limits{{RPM: 10}, {TPM: 1500}, {InputTPM: 1000}, {OutputTPM: 500}} {
		g, call := newGate(l, 1), small
		for i := range 11 {
			kind, _ := g.decide(start, &call)
			if refused := kind == sim.RateLimited; refused != (i == 10) {
				t.Errorf("%+v: call %d: %s", l, i, kind)
			}
		}
	}
}

// Lanes of a pool share its calls by their limits. A later tier gets none while the first is well,
// and a lane whose calls last longer takes as much longer.
func TestPoolsOfLanes(t *testing.T) {
	limits := []limiter.Limits{{RPM: 600}, {RPM: 300}, {RPM: 6000}}
	run := func(p Pool, lasts []time.Duration) Forecast {
		return Run(Config{Limits: limits, Concurrency: 64, Pools: []Pool{p}, Lasts: lasts}, batchOf(6000, small))
	}
	f := run(Pool{Lanes: []int{0, 1}}, nil)
	about(t, "both", f.Took, 400*time.Second, 20*time.Second)
	if a, b := f.Lanes[0].Calls[0], f.Lanes[1].Calls[0]; a+b != 6000 || a < 3800 || a > 4200 {
		t.Errorf("%v and %v of the calls", a, b)
	}
	f = run(Pool{Lanes: []int{0, 2}, Tiers: []int{0, 1}, After: time.Minute}, nil)
	about(t, "the first tier alone", f.Took, 600*time.Second, 30*time.Second)
	if n := f.Lanes[2].Calls[0]; n != 0 {
		t.Errorf("%v calls on the later tier", n)
	}
	f = run(Pool{Lanes: []int{2}}, []time.Duration{0, 0, 30 * time.Second})
	about(t, "slow calls", f.Took, 6000/64*32*time.Second, 300*time.Second)
}
