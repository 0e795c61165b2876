package lab

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// A trait is one property of a scenario.
type trait func(*Scenario)

// named makes a scenario of 10,000 items at 600 a minute with these traits.
func named(name string, traits ...trait) Scenario {
	s := Scenario{Name: name, Items: 10000, RPM: 600}
	for _, t := range traits {
		t(&s)
	}
	return s
}

func headers(s *Scenario) { s.Headers, s.Retry = true, sim.Always }

func retryAfter(s *Scenario) { s.Retry = sim.Always }

// exact is "try again in 97ms": the least wait after which one call fits.
func exact(s *Scenario) { s.Retry, s.Exact = sim.Always, true }

// slowly makes a provider, or the way to it, slow to refuse: calls that leave meanwhile are
// refused too.
func slowly(s *Scenario) { s.Refusal = 200 * time.Millisecond }

func burst(d time.Duration) trait { return func(s *Scenario) { s.Burst = d } }

func windows(d time.Duration) trait { return func(s *Scenario) { s.Window = d } }

func configured(l limiter.Limits) trait { return func(s *Scenario) { s.Configured = l } }

func guess(perSecond float64) trait { return func(s *Scenario) { s.Guess = perSecond } }

// limit sets another limit than 600, and items for some minutes.
func limit(rpm float64, items int) trait {
	return func(s *Scenario) { s.RPM, s.Items = rpm, items }
}

// turns sets another limit in the middle.
func turns(rpm float64) trait {
	return func(s *Scenario) { s.Changes = []sim.Change{{At: 300 * time.Second, RPM: rpm}} }
}

// out is a minute's outage.
func out(m sim.OutageMode) trait {
	return func(s *Scenario) {
		s.Outages = []sim.Outage{{From: 300 * time.Second, For: time.Minute, Mode: m}}
	}
}

// noisy adds a neighbour that takes that share of the limit for half of every minute.
func noisy(share float64) trait {
	return func(s *Scenario) { s.Neighbour, s.On, s.Off = share, 30*time.Second, 30*time.Second }
}

// tokens makes tokens bind, at ten items a second, and our estimate of them wrong
// by a factor.
func tokens(estimate float64) trait {
	return func(s *Scenario) { s.RPM, s.TPM, s.Tokens, s.Estimate = 6000, 600000, 1000, estimate }
}

// Scenarios lists those in which the law must do well.
func Scenarios() []Scenario {
	var all []Scenario
	for _, some := range [][]Scenario{withHeaders(), withLimits(), silent(), misfortunes(), inTokens(), otherLimits()} {
		all = append(all, some...)
	}
	return all
}

var (
	minute = burst(time.Minute)
	five   = burst(5 * time.Second)
	one    = burst(time.Second)
)

// withHeaders lists scenarios in which every answer shows the limit, and each refusal names the
// wait.
func withHeaders() []Scenario {
	return []Scenario{
		named("headers, 60 s: steady", headers, minute),
		named("headers, 60 s: halves", headers, minute, turns(300)),
		named("headers, 60 s: doubles", headers, minute, turns(1200)),
		named("headers, 60 s: outage", headers, minute, out(sim.Outage503)),
		named("headers, 60 s: hangs", headers, minute, out(sim.OutageHang)),
		named("headers, 60 s: noisy", headers, minute, noisy(0.8)),
		named("headers, 5 s: steady", headers, five),
		named("headers, 5 s: hangs", headers, five, out(sim.OutageHang)),
		named("headers, 5 s: noisy", headers, five, noisy(0.8)),
		named("headers, 1 s windows", headers, windows(time.Second)),
		named("headers, 10 s windows", headers, windows(10*time.Second)),
		named("headers, 60 s windows", headers, windows(time.Minute)),
	}
}

// withLimits lists scenarios in which the user has set the limit or guessed it, rightly or wrongly.
// The provider's answers do not show it.
func withLimits() []Scenario {
	limits := limiter.Limits{RPM: 600}
	return []Scenario{
		named("told, silent, 60 s", minute, configured(limits)),
		named("told, silent, 5 s", five, configured(limits)),
		named("told, silent, 1 s", one, configured(limits)),
		named("told, silent, 10 s windows", windows(10*time.Second), configured(limits)),
		named("told with its burst, 60 s", minute, configured(limiter.Limits{RPM: 600, Burst: time.Minute})),
		named("told twice too high, 60 s", minute, configured(limiter.Limits{RPM: 1200})),
		named("guess twice too high, 60 s", minute, guess(20)),
		named("guess half, 60 s", minute, guess(5)),
	}
}

// silent lists scenarios in which only refusals, and the wait that some of them name, show the
// limit.
func silent() []Scenario {
	return []Scenario{
		named("silent, 60 s", minute),
		named("silent, 5 s", five),
		named("silent, 1 s", one),
		named("silent, 1 s windows", windows(time.Second)),
		named("silent, 10 s windows", windows(10*time.Second)),
		named("silent, 60 s windows", windows(time.Minute)),
		named("Retry-After only, 60 s", minute, retryAfter),
		named("Retry-After only, 5 s", five, retryAfter),
		named("Retry-After only, 1 s", one, retryAfter),
		named("exact waits, 60 s", minute, exact),
		named("exact waits, 5 s", five, exact),
		named("exact waits, 1 s", one, exact),
		named("slow to refuse, 60 s", minute, slowly),
		named("slow to refuse, exact, 20 s", burst(20*time.Second), slowly, exact),
		named("Retry-After only, 10 s windows", windows(10*time.Second), retryAfter),
	}
}

func misfortunes() []Scenario {
	return []Scenario{
		named("silent, 60 s: outage", minute, out(sim.Outage503)),
		named("silent, 60 s: hangs", minute, out(sim.OutageHang)),
		named("silent, 60 s: halves", minute, turns(300)),
		named("silent, 60 s: doubles", minute, turns(1200)),
		named("silent, 60 s: noisy", minute, noisy(0.8)),
		named("silent, 5 s: noisy", five, noisy(0.8)),
		named("silent, 1 s: violent", one, noisy(1.5)),
	}
}

func inTokens() []Scenario {
	limits := limiter.Limits{RPM: 6000, TPM: 600000}
	return []Scenario{
		named("headers: token-bound", headers, minute, tokens(1)),
		named("headers: estimate ×1.5", headers, minute, tokens(1.5)),
		named("headers: estimate ÷1.5", headers, minute, tokens(1/1.5)),
		named("told, silent: token-bound", minute, tokens(1), configured(limits)),
	}
}

// otherLimits have enough items for ten minutes or more: learning must be worth its cost.
func otherLimits() []Scenario {
	return []Scenario{
		named("headers, 60 a minute", headers, minute, limit(60, 1000)),
		named("headers, 3000 a minute", headers, minute, limit(3000, 10000)),
		named("silent, 60 a minute", minute, limit(60, 1000)),
		named("silent, 3000 a minute", minute, limit(3000, 10000)),
		named("silent, 3000 a minute, long", minute, limit(3000, 50000)),
	}
}
