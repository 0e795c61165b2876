package lab

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// A Scenario is a provider, what befalls it, and what we know of it.
type Scenario struct {
	Name      string
	Items     int
	RPM, TPM  float64
	Burst     time.Duration // depth of the bucket
	Window    time.Duration // > 0: fixed windows instead
	Headers   bool
	Retry     sim.Mode
	Exact     bool           // the wait is told to the millisecond, as OpenAI's refusals do in words
	Refusal   time.Duration  // a refusal takes; 0: 20 ms
	Told      limiter.Limits // what the user told us
	Guess     float64        // calls per second that the user thinks are allowed; 0: no guess
	Tokens    float64        // per item, 0: none
	Estimate  float64        // what we think an item costs, as a share of Tokens; 0: 1
	Changes   []sim.Change
	Outages   []sim.Outage
	Neighbour float64       // share of the limit that the other client takes while it calls
	On, Off   time.Duration // its bursts, and the pauses between
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
	if s.Tokens == 0 {
		return 0
	}
	u := float64((uint64(item)*0x9E3779B97F4A7C15)>>40) / (1 << 24)
	return s.Tokens * (0.5 + u)
}

// perSecond is how many items the limits allow, per second.
func (s Scenario) perSecond() float64 {
	rate := s.RPM / 60
	if s.TPM > 0 && s.Tokens > 0 {
		rate = min(rate, s.TPM/60/s.Tokens)
	}
	return rate
}

func (s Scenario) cost(item int) limiter.Cost {
	c := limiter.Cost{Requests: 1}
	if s.Tokens > 0 {
		share := s.Estimate
		if share == 0 {
			share = 1
		}
		c.Input = share * s.tokens(item)
	}
	return c
}

// neighbourGap is the time to the neighbour's next call: at random, by its rate
// while it calls.
func (s Scenario) neighbourGap(now time.Time, rng *rand.Rand) time.Duration {
	gap := time.Duration(rng.ExpFloat64() / (s.Neighbour * s.RPM / 60) * 1e9)
	period := s.On + s.Off
	if period == 0 {
		return gap
	}
	at := now.Add(gap).Sub(start)
	if phase := at % period; phase >= s.On {
		gap += period - phase
	}
	return gap
}

// optimum is the makespan of one who knows everything: every unit that flows in
// and is not taken by the neighbour is used at once.
func (s Scenario) optimum(foreign []time.Time) time.Duration {
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
		for next < len(foreign) && foreign[next].Sub(start) <= t {
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
	whole  bool // half a call is of no use: what a window has left over is lost
}

func newFluid(perMinute float64, depth, window time.Duration) fluid {
	f := fluid{depth: depth, window: window, nth: -1}
	if window == 0 {
		f.level = perMinute / 60 * depth.Seconds()
	}
	return f
}

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

// recovery is how long after the last outage our accepted calls were at 95 % of
// the limit again, over a second.
func (s Scenario) recovery(accepted []time.Time) time.Duration {
	if len(s.Outages) == 0 {
		return 0
	}
	o := s.Outages[len(s.Outages)-1]
	end := start.Add(o.From + o.For)
	from := 0
	for i, at := range accepted {
		if at.Before(end) {
			from = i + 1
			continue
		}
		for accepted[from].Before(at.Add(-time.Second)) {
			from++
		}
		if float64(i-from+1) >= 0.95*s.RPM/60 {
			return at.Sub(end)
		}
	}
	return -1
}
