package lab

import (
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
		RetryAfter: s.Retry, RetryAfterMS: false, Latency: latency,
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

// The scenarios that the law must do well in.
func Scenarios() []Scenario {
	base := Scenario{Items: 10000, RPM: 600}
	with := func(name string, change func(*Scenario)) Scenario {
		s := base
		s.Name = name
		change(&s)
		return s
	}
	headers := func(s *Scenario) { s.Headers, s.Retry = true, sim.Always }
	var all []Scenario
	add := func(name string, changes ...func(*Scenario)) {
		all = append(all, with(name, func(s *Scenario) {
			for _, c := range changes {
				c(s)
			}
		}))
	}
	burst := func(d time.Duration) func(*Scenario) { return func(s *Scenario) { s.Burst = d } }
	at := func(d time.Duration, rpm float64) func(*Scenario) {
		return func(s *Scenario) { s.Changes = []sim.Change{{At: d, RPM: rpm}} }
	}
	out := func(m sim.OutageMode) func(*Scenario) {
		return func(s *Scenario) {
			s.Outages = []sim.Outage{{From: 300 * time.Second, For: 60 * time.Second, Mode: m}}
		}
	}
	noisy := func(share float64) func(*Scenario) {
		return func(s *Scenario) { s.Neighbour, s.On, s.Off = share, 30*time.Second, 30*time.Second }
	}
	guess := func(r float64) func(*Scenario) { return func(s *Scenario) { s.Guess = r } }
	told := func(l limiter.Limits) func(*Scenario) { return func(s *Scenario) { s.Told = l } }
	minute, five, one := burst(time.Minute), burst(5*time.Second), burst(time.Second)
	add("headers, 60 s: steady", headers, minute)
	add("headers, 60 s: halves", headers, minute, at(300*time.Second, 300))
	add("headers, 60 s: doubles", headers, minute, at(300*time.Second, 1200))
	add("headers, 60 s: outage", headers, minute, out(sim.Outage503))
	add("headers, 60 s: hangs", headers, minute, out(sim.OutageHang))
	add("headers, 60 s: noisy", headers, minute, noisy(0.8))
	add("headers, 5 s: steady", headers, five)
	add("headers, 5 s: noisy", headers, five, noisy(0.8))
	add("told, silent, 60 s", minute, told(limiter.Limits{RPM: 600}))
	add("told, silent, 5 s", five, told(limiter.Limits{RPM: 600}))
	add("told, silent, 1 s", one, told(limiter.Limits{RPM: 600}))
	add("told with its burst, 60 s", minute, told(limiter.Limits{RPM: 600, Burst: time.Minute}))
	add("told twice too high, 60 s", minute, told(limiter.Limits{RPM: 1200}))
	add("guess twice too high, 60 s", minute, guess(20))
	add("guess half, 60 s", minute, guess(5))
	add("silent, 60 s", minute)
	add("silent, 5 s", five)
	add("silent, 1 s", one)
	add("silent, 10 s windows", func(s *Scenario) { s.Window = 10 * time.Second })
	add("silent, 60 s windows", func(s *Scenario) { s.Window = time.Minute })
	add("silent, 60 s: outage", minute, out(sim.Outage503))
	add("silent, 60 s: hangs", minute, out(sim.OutageHang))
	add("silent, 60 s: halves", minute, at(300*time.Second, 300))
	add("silent, 60 s: doubles", minute, at(300*time.Second, 1200))
	add("silent, 60 s: noisy", minute, noisy(0.8))
	add("silent, 1 s: violent", one, noisy(1.5))
	add("Retry-After only, 60 s", minute, func(s *Scenario) { s.Retry = sim.Always })
	add("Retry-After only, 5 s", five, func(s *Scenario) { s.Retry = sim.Always })
	add("headers: token-bound", headers, minute, func(s *Scenario) { s.RPM, s.TPM, s.Tokens = 6000, 600000, 1000 })
	add("headers: estimate ×1.5", headers, minute, func(s *Scenario) { s.RPM, s.TPM, s.Tokens, s.Estimate = 6000, 600000, 1000, 1.5 })
	add("headers: estimate ÷1.5", headers, minute, func(s *Scenario) { s.RPM, s.TPM, s.Tokens, s.Estimate = 6000, 600000, 1000, 1/1.5 })
	add("headers, 60 a minute", headers, minute, func(s *Scenario) { s.RPM, s.Items = 60, 1000 })
	add("headers, 3000 a minute", headers, minute, func(s *Scenario) { s.RPM = 3000 })
	return all
}
