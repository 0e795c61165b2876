package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
	"github.com/headrace/headrace/limiter/plain"
)

// A witness watches what a law answers to refusals that name a wait.
type witness struct {
	limiter.Law
	t    *testing.T
	name string

	alone, cooled, straggled int // refusals of each kind
}

// Refused sees that nobody is let go before the time that the server named: neither the
// lane nor the item, where only that one waits. Nor are they much later, but where they
// waited longer already.
func (w *witness) Refused(now time.Time, n limiter.News) limiter.Refusal {
	r := w.Law.Refused(now, n)
	w.check(now, n, r.Until)
	if r.Alone {
		w.alone++
	} else {
		w.cooled++
	}
	return r
}

func (w *witness) Straggled(now time.Time, n limiter.News) time.Time {
	until := w.Law.Straggled(now, n)
	w.check(now, n, until)
	w.straggled++
	return until
}

func (w *witness) check(now time.Time, n limiter.News, until time.Time) {
	if n.NamesWait() && until.Before(now.Add(n.RetryAfter)) {
		w.t.Errorf("%s: %v was asked for, %v is waited", w.name, n.RetryAfter, until.Sub(now))
	}
}

// A wait that the server names is kept whole, whatever the law blames.
func TestNamedWaitIsKept(t *testing.T) {
	const after = 7 * time.Second
	first, second := fullPail(10, 10), fullPail(10, 10)
	for _, c := range []struct {
		name    string
		law     limiter.LawConfig
		refuses func(t float64, beside int) bool
		least   witness // how often each of its answers must have been seen
	}{
		{"a bucket", limiter.LawConfig{}, func(t float64, _ int) bool { return !first.takes(t, 1) }, witness{cooled: 1, straggled: 1}},
		{"chance", limiter.LawConfig{Limits: limiter.Limits{RPM: 600}}, chanceOf(0.05), witness{alone: 5}},
		{"an outage", limiter.LawConfig{Limits: limiter.Limits{RPM: 600}}, func(t float64, _ int) bool { return t > 20 && t < 50 }, witness{cooled: 3}},
		{"a neighbour", limiter.LawConfig{Rate: limiter.RateConfig{Initial: 10}}, func(t float64, _ int) bool { return t > 40 && t < 41 || !second.takes(t, 1) }, witness{cooled: 1}},
	} {
		w := newLawWorld(c.law, 1, func(t float64, beside int) reply {
			if c.refuses(t, beside) {
				return reply{kind: isRefused, after: 0.1, news: limiter.News{Directed: true, RetryAfter: after}}
			}
			return reply{after: 0.5}
		})
		seen := &witness{Law: w.law, t: t, name: c.name}
		w.law = seen
		w.run(120, 2000)
		if seen.alone < c.least.alone || seen.cooled < c.least.cooled || seen.straggled < c.least.straggled {
			t.Errorf("%s: %d waited alone, %d times the lane did, %d straggled", c.name, seen.alone, seen.cooled, seen.straggled)
		}
	}
}

func chanceOf(share float64) func(float64, int) bool {
	rng := seeded(5)
	return func(float64, int) bool { return rng.Float64() < share }
}

// One that straggles lengthens the hold by what it names, and no other shortens it.
func TestStragglersLengthenTheHold(t *testing.T) {
	bothLaws(t, limiter.LawConfig{Cooldown: limiter.CooldownConfig{Jitter: -1}}, func(t *testing.T, law func() limiter.Law) {
		l := law()
		first, second, third := leave(l, noon, one), leave(l, noon, one), leave(l, noon, one)
		until := l.Refused(at(1), first).Until
		second.Present, second.Directed, second.RetryAfter = false, true, 40*time.Second
		longer := l.Straggled(at(2), second)
		if longer.Before(at(42)) || !longer.After(until) {
			t.Errorf("held until %v, and until %v when 40 s were named after two", until, longer)
		}
		third.Present, third.Directed, third.RetryAfter = false, true, time.Second
		if again := l.Straggled(at(3), third); again.Before(longer) {
			t.Errorf("held until %v, and only until %v when another names a second", longer, again)
		}
	})
}

// A server that minds how fast the calls become more, and not how many they are, gets
// half of them at once, and twice as many a minute later.
func TestGrowthThatIsMindedIsSlowed(t *testing.T) {
	pace := func(slow bool, after float64) float64 {
		m := newModel(limiter.LawConfig{Limits: limiter.Limits{RPM: 6000, Burst: 5 * time.Second}}, noon)
		n := leave(m, at(0), one)
		n.Slow = slow
		m.Refused(at(1), n)
		return viewOf(m, at(1+after)).Most
	}
	for _, c := range []struct{ after, share float64 }{{0, 0.5}, {30, 0.5 * 1.4142}} {
		near(t, "share of the rate", pace(true, c.after)/100, c.share, 0.01)
	}
	for _, after := range []float64{0, 30} {
		if p := pace(false, after); p < 99 {
			t.Errorf("%v calls a second, where nobody minds", p)
		}
	}
	if p := pace(true, 61); p < 99 {
		t.Errorf("%v calls a second a minute later", p)
	}
}

// A straggler cost nothing: what it was charged comes back, unless that is gone with all
// else, as the refusal before it said that there was nothing.
func TestStragglersGiveTheirChargeBack(t *testing.T) {
	limits := limiter.Limits{RPM: 6, TPM: 60_000, Burst: time.Minute}
	bothLaws(t, limiter.LawConfig{Limits: limits}, func(t *testing.T, law func() limiter.Law) {
		for _, busy := range []bool{true, false} {
			l, c := law(), limiter.Cost{Requests: 1, Input: 1000}
			first, second := leave(l, noon, c), leave(l, noon, c)
			first.Overloaded = busy
			l.Refused(noon, first)
			requests, tokens := viewOf(l, noon).Level(limiter.Requests), viewOf(l, noon).Level(limiter.Tokens)
			second.Present = false
			l.Straggled(noon, second)
			_, plain := l.(*plain.Law)
			if plain && !busy { // it was emptied
				c = limiter.Cost{}
			}
			want(t, "requests that are back", viewOf(l, noon).Level(limiter.Requests)-requests, c.Requests)
			want(t, "tokens that are back", viewOf(l, noon).Level(limiter.Tokens)-tokens, c.Input)
		}
	})
}

// The whole wait is what asking again and again comes to, under each kind of limit, and looking
// for it changes nothing.
func TestWaitInAll(t *testing.T) {
	for name, tt := range map[string]struct {
		c    limiter.LawConfig
		cost limiter.Cost
	}{
		"one a minute":              {limiter.LawConfig{Limits: limiter.Limits{RPM: 1}}, one},
		"three a minute":            {limiter.LawConfig{Limits: limiter.Limits{RPM: 3}}, one},
		"sixty a minute":            {limiter.LawConfig{Limits: limiter.Limits{RPM: 60}}, one},
		"one an hour":               {limiter.LawConfig{Limits: limiter.Limits{RPM: 1.0 / 60}}, one},
		"tokens":                    {limiter.LawConfig{Limits: limiter.Limits{TPM: 60_000}}, limiter.Cost{Requests: 1, Input: 12_000}},
		"calls larger than minutes": {limiter.LawConfig{Limits: limiter.Limits{TPM: 60_000}}, limiter.Cost{Requests: 1, Input: 90_000}},
		"a rate that is searched":   {limiter.LawConfig{Rate: limiter.RateConfig{Initial: 0.2}}, one},
		"while too many calls break": {limiter.LawConfig{
			Limits: limiter.Limits{RPM: 6}, Errors: limiter.ErrorWindowConfig{Buckets: measure.MaxSlots, MinSamples: 1, Hold: 5 * time.Second, Window: 20 * time.Second},
		}, one},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(tt.c, noon, seeded(1))
			now := noon
			for range 40 { // what was saved up is spent
				for wait, _ := m.Wait(now, tt.cost); wait > 0; wait, _ = m.Wait(now, tt.cost) {
					now = now.Add(wait)
				}
				k := m.Sent(now, tt.cost, 0)
				if tt.c.Errors.MinSamples == 1 {
					m.Failed(now, limiter.News{Cost: tt.cost, Ticket: k})
				} else {
					m.Answered(now, limiter.News{Cost: tt.cost, Ticket: k})
				}
			}
			said := m.WaitInAll(now, tt.cost)
			var waited time.Duration
			for wait, _ := m.Wait(now, tt.cost); wait > 0; wait, _ = m.Wait(now.Add(waited), tt.cost) {
				waited += wait
			}
			if waited < time.Second/2 || (said-waited).Abs() > max(AskAgain/2, waited/100) {
				t.Errorf("%v in all, and it took %v", said, waited)
			}
		})
	}
}

// A call that a cap refuses waits as long as the server named, and goes next where it named none.
func TestNamedWaitIsKeptUnderACap(t *testing.T) {
	for _, named := range []time.Duration{0, 7 * time.Second} {
		m := newModel(limiter.LawConfig{}, noon)
		m.crowd.cap = &callCap{most: 8, mostSeen: 8, exact: true, guess: &guess{from: 1, pace: 2}}
		m.refusals = 1
		n := leave(m, noon, one)
		n.Ticket.Beside, n.Latency, n.Directed, n.RetryAfter = 8, time.Second, named > 0, named
		m.crowd.cap.guess.tryingMore = true
		switch r := m.Refused(at(0.1), n); {
		case !r.Alone:
			t.Errorf("%v: the lane waits", named)
		case named == 0 && !r.Until.IsZero(), named > 0 && r.Until.Before(at(0.1).Add(named)):
			t.Errorf("%v was named: the item waits until %v", named, r.Until)
		}
	}
}
