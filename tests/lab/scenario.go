package lab

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// A Scenario is a provider, the events that it meets, and what we know of it.
type Scenario struct {
	Name       string
	Items      int
	RPM, TPM   float64
	Burst      time.Duration // depth of the bucket
	Window     time.Duration // > 0: fixed windows instead
	Headers    bool
	Retry      sim.Mode
	Exact      bool           // the wait is given to the millisecond, as in the words of OpenAI's refusals
	Refusal    time.Duration  // time of a refusal; 0: 20 ms
	Configured limiter.Limits // the limits that the user has set
	Guess      float64        // calls per second that the user thinks are allowed; 0: no guess
	Tokens     float64        // per item, 0: none
	Estimate   float64        // our estimate of an item's cost, as a share of Tokens; 0: 1
	Changes    []sim.Change
	Outages    []sim.Outage
	Neighbour  float64       // share of the limit that the other client takes while it calls
	On, Off    time.Duration // its bursts, and the pauses between
}

// latency of answers: one second, and one in forty over two and a half.
var latency = sim.Latency{Median: time.Second, Sigma: 0.5}

func (s Scenario) provider(seed uint64) sim.Config {
	return sim.Config{
		RPM: s.RPM, TPM: s.TPM, Burst: s.Burst, Window: s.Window, Headers: s.Headers,
		RetryAfter: s.Retry, RetryAfterMS: s.Exact, Refusal: s.Refusal, Latency: latency,
		Changes: s.Changes, Outages: s.Outages, Seed: seed,
	}
}

// tokens of an item vary by a factor of three around the mean.
func (s Scenario) tokens(item int) float64 {
	u := float64((uint64(item)*0x9E3779B97F4A7C15)>>40) / (1 << 24)
	return s.Tokens * (0.5 + u)
}

// perSecond returns the number of items that the limits allow, per second.
func (s Scenario) perSecond() float64 {
	rate := s.RPM / 60
	if s.TPM > 0 && s.Tokens > 0 {
		rate = min(rate, s.TPM/60/s.Tokens)
	}
	return rate
}

// Batch returns what a law learns of the scenario.
func (s Scenario) Batch() Batch {
	b := Batch{
		Items: s.Items, Concurrency: concurrency, Workers: workers, Configured: s.Configured, Guess: s.Guess,
		PerSecond: s.perSecond(), Estimate: s.Estimate,
	}
	if s.Tokens > 0 {
		b.Tokens = s.tokens
	}
	return b
}

func (s Scenario) neighbour() Neighbour {
	return Neighbour{PerSecond: s.Neighbour * s.RPM / 60, On: s.On, Off: s.Off}
}

// optimum is the makespan of a law that knows everything: it uses at once every unit that
// flows in and that the neighbour does not take.
func (s Scenario) optimum(neighbours []time.Duration) time.Duration {
	const dt = 50 * time.Millisecond
	depth := s.Burst
	if depth == 0 {
		depth = time.Minute
	}
	var done float64
	req, tok := newFluid(s.RPM, depth, s.Window), newFluid(s.TPM, depth, s.Window)
	req.whole = true
	rpm, tpm := s.RPM, s.TPM
	changes := s.Changes
	next := 0
	for t := time.Duration(0); ; t += dt {
		for len(changes) > 0 && changes[0].At <= t {
			rpm, tpm = changes[0].RPM, changes[0].TPM
			changes = changes[1:]
		}
		req.flow(rpm, t, dt)
		tok.flow(tpm, t, dt)
		for next < len(neighbours) && neighbours[next] <= t {
			req.level--
			next++
		}
		if s.down(t) {
			continue
		}
		n := req.level
		if s.TPM > 0 && s.Tokens > 0 {
			n = min(n, tok.level/s.Tokens)
		}
		if n <= 0 {
			continue
		}
		req.level -= n
		tok.level -= n * s.Tokens
		if done += n; done >= float64(s.Items) {
			return t + latency.Median
		}
	}
}

func (s Scenario) down(t time.Duration) bool {
	for _, o := range s.Outages {
		if t >= o.From && t < o.From+o.For {
			return true
		}
	}
	return false
}

// fluid is a bucket, or a row of windows, without grain.
type fluid struct {
	level  float64
	depth  time.Duration
	window time.Duration
	nth    time.Duration
	whole  bool // half a call is of no use: the remainder of a window is lost
}

func newFluid(perMinute float64, depth, window time.Duration) fluid {
	f := fluid{depth: depth, window: window, nth: -1}
	if window == 0 {
		f.level = perMinute / 60 * depth.Seconds()
	}
	return f
}

// flow fills the level for the step dt that begins at t. A new window replaces the rest of the one
// before; a bucket keeps its rest, up to its depth.
func (f *fluid) flow(perMinute float64, t, dt time.Duration) {
	if f.window > 0 {
		if nth := t / f.window; nth != f.nth {
			f.nth, f.level = nth, perMinute/60*f.window.Seconds()
			if f.whole {
				f.level = math.Floor(f.level + 1e-9)
			}
		}
		return
	}
	f.level = min(perMinute/60*f.depth.Seconds(), f.level+perMinute/60*dt.Seconds())
}

// recovery returns the time from the end of the last outage until our accepted calls are at
// 95 % of the limit again.
func (s Scenario) recovery(accepted []time.Duration) time.Duration {
	if len(s.Outages) == 0 {
		return 0
	}
	o := s.Outages[len(s.Outages)-1]
	return Recovery(accepted, o.From+o.For, 0.95*s.RPM/60)
}

// Recovery returns the time from that end until so many calls were accepted within a second
// again; negative if they never were.
func Recovery(accepted []time.Duration, end time.Duration, perSecond float64) time.Duration {
	from := 0
	for i, at := range accepted {
		if at < end {
			from = i + 1
			continue
		}
		for accepted[from] < at-time.Second {
			from++
		}
		if float64(i-from+1) >= perSecond {
			return at - end
		}
	}
	return -1
}
