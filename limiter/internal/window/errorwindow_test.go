package window

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// record is heed for a window whose law has looked on for long enough.
func (e *Errors) record(now time.Time, failed bool) bool {
	since := e.since(now)
	e.count(since, failed)
	return e.decide(since)
}

// record spreads calls over ten milliseconds from a time on, so many of them failed.
func record(e *Errors, from time.Time, calls, failed int) {
	for i := range calls {
		e.record(from.Add(time.Duration(i)*10*time.Millisecond/time.Duration(calls)), i < failed)
	}
}

// The empty window has a rate of 0 and full speed.
func TestErrorWindowEmpty(t *testing.T) {
	var zero Errors
	for _, e := range []Errors{zero, NewErrors(limiter.ErrorWindowConfig{})} {
		near(t, "rate", e.Rate(noon), 0, 0)
		near(t, "factor", e.Factor(noon), 1, 0)
		e.record(noon, true)
		near(t, "rate with one failure", e.Rate(noon), 1, 0)
		near(t, "rate when it is forgotten", e.Rate(at(60)), 0, 0)
	}
}

// Above 30 % failures the rate is halved, at 30 % it is not.
func TestErrorWindowHalvesAboveHigh(t *testing.T) {
	var e Errors
	record(&e, noon, 70, 0)
	record(&e, at(1), 30, 30)
	near(t, "rate", e.Rate(at(2)), 0.30, 0)
	near(t, "factor at 30 %", e.Factor(at(2)), 1, 0)
	e.record(at(2), true)
	near(t, "factor above", e.Factor(at(2)), 0.5, 0)
}

// Fewer than twenty calls decide nothing.
func TestErrorWindowNeedsSamples(t *testing.T) {
	var e Errors
	record(&e, noon, 19, 19)
	near(t, "factor", e.Factor(at(1)), 1, 0)
	e.record(at(1), false)
	near(t, "factor", e.Factor(at(1)), 0.5, 0)
}

// However well it goes afterwards, the rate stays halved for the hold, to its last
// nanosecond, and is restored at its end. That end lies within a slot here.
func TestErrorWindowHolds(t *testing.T) {
	var e Errors
	e.record(noon, false)
	for range 20 {
		e.record(at(2), true)
	}
	record(&e, at(6), 1000, 0)
	near(t, "rate is low", e.Rate(at(7)), 0.02, 0.001)
	near(t, "factor during the hold", e.Factor(at(44)), 0.5, 0)
	near(t, "factor at its last moment", e.Factor(at(62).Add(-time.Nanosecond)), 0.5, 0)
	near(t, "factor after it", e.Factor(at(62)), 1, 0)
}

// After the hold the rate is restored only below 10 %; between 10 and 30 it stays.
func TestErrorWindowRestoresBelowLow(t *testing.T) {
	var e Errors
	for range 20 {
		e.record(noon, true)
	}
	record(&e, at(58), 90, 18)
	near(t, "rate", e.Rate(at(62)), 0.2, 0)
	near(t, "factor", e.Factor(at(62)), 0.5, 0)
	record(&e, at(62), 91, 0)
	near(t, "rate", e.Rate(at(63)), 18.0/181, 0)
	near(t, "factor", e.Factor(at(63)), 1, 0)
}

// A rate that was low for a moment after the hold has restored the speed, though
// nobody looked at that moment and it rose again.
func TestErrorWindowRestoreDoesNotNeedAWitness(t *testing.T) {
	config := limiter.ErrorWindowConfig{Window: 60 * time.Second, Buckets: 12, Hold: 10 * time.Second}
	unseen, seen := NewErrors(config), NewErrors(config)
	for _, e := range []*Errors{&unseen, &seen} {
		record(e, noon, 20, 20)  // slot 0, forgotten at 60
		record(e, at(6), 80, 0)  // slot 1, forgotten at 65
		record(e, at(12), 20, 4) // slot 2: with slot 1 it is 4 %, alone 20 %
		near(t, "slowed", e.Factor(at(59)), 0.5, 0)
	}
	near(t, "low for a moment", seen.Factor(at(61)), 1, 0)
	near(t, "not low any more", seen.Rate(at(66)), 0.2, 0)
	near(t, "seen", seen.Factor(at(66)), 1, 0)
	near(t, "unseen", unseen.Factor(at(66)), 1, 0)
	unseen.record(at(66), false)
	near(t, "unseen, after a call", unseen.Factor(at(66)), 1, 0)
}

// When it goes wrong again after being restored it is halved again, and never below
// one half.
func TestErrorWindowHalvesAgain(t *testing.T) {
	var e Errors
	record(&e, noon, 40, 40)
	record(&e, at(30), 40, 40)
	near(t, "once", e.Factor(at(31)), 0.5, 0)
	near(t, "restored", e.Factor(at(200)), 1, 0)
	record(&e, at(200), 40, 40)
	near(t, "again", e.Factor(at(201)), 0.5, 0)
	near(t, "held from the second time on", e.Factor(at(259)), 0.5, 0)
}

// A breaker that opens takes upon itself what led to it, though a few calls were still
// answered meanwhile; what broke before that stays counted.
func TestErrorWindowLeavesAnOutageToTheBreaker(t *testing.T) {
	var e Errors
	record(&e, noon, 30, 3)
	for i := range 24 {
		e.record(at(10+float64(i)/10), i%4 > 0)
	}
	near(t, "share", e.Rate(at(13)), 21.0/54, 1e-9)
	near(t, "slowed", e.Slowed(at(13)), 0.5, 0)
	e.Broken()
	near(t, "share without the outage", e.Rate(at(13)), 3.0/36, 1e-9)
	near(t, "slowed no more", e.Slowed(at(13)), 0, 0)
}

// One that slowed down before the outage stays so.
func TestErrorWindowStaysSlowedAfterAnOutage(t *testing.T) {
	var e Errors
	record(&e, noon, 60, 24)
	near(t, "slowed", e.Slowed(at(1)), 0.5, 0)
	record(&e, at(20), 30, 0)
	record(&e, at(30), 10, 10)
	e.Broken()
	near(t, "share", e.Rate(at(31)), 24.0/90, 1e-9)
	near(t, "slowed", e.Slowed(at(31)), 0.5, 0)
}

// Settings that cannot be meant have their defaults.
func TestErrorWindowConfigDefaults(t *testing.T) {
	nan := math.NaN()
	got := complete(limiter.ErrorWindowConfig{Window: -1, Buckets: -1, High: nan, Low: -1, Factor: math.Inf(1), Hold: -1, MinSamples: -1})
	want(t, "config", got, limiter.ErrorWindowConfig{Window: 60 * time.Second, Buckets: 12, High: 0.3, Low: 0.1, Factor: 0.5, Hold: 60 * time.Second, MinSamples: 20})
	got = complete(limiter.ErrorWindowConfig{Window: 1, Buckets: 1000, High: 0.05, Factor: 2})
	want(t, "buckets", got.Buckets, 60)
	near(t, "low is at most high", got.Low, 0.05, 0)
	near(t, "factor", got.Factor, 1, 0)
	e := NewErrors(limiter.ErrorWindowConfig{Window: 1, Buckets: 60}) // slots shorter than a tick
	e.record(noon, true)
	e.record(at(1), false)
	near(t, "rate", e.Rate(at(1)), 0, 0)
}

// A clock that goes back neither forgets nor revives a call.
func TestErrorWindowClockGoesBack(t *testing.T) {
	var e Errors
	e.record(at(100), true)
	e.record(at(10), false)
	near(t, "earlier", e.Rate(at(-50)), 0.5, 0)
	near(t, "both are of the latest slot", e.Rate(at(159)), 0.5, 0)
	near(t, "forgotten together", e.Rate(at(160)), 0, 0)
}

// listedCalls is the window as a list of everything that happened.
type listedCalls struct {
	slots   []int64
	failed  []bool
	times   []time.Time
	origin  time.Time
	width   time.Duration
	buckets int64
}

func (l *listedCalls) add(now time.Time, failed bool) {
	if l.times == nil {
		l.origin = now
	}
	l.slots = append(l.slots, int64(now.Sub(l.origin)/l.width))
	l.failed = append(l.failed, failed)
	l.times = append(l.times, now)
}

func (l *listedCalls) count(now time.Time) (t measure.Tally) {
	slot := int64(now.Sub(l.origin) / l.width)
	for i, s := range l.slots {
		if s > slot-l.buckets {
			t.Total++
			if l.failed[i] {
				t.Failed++
			}
		}
	}
	return t
}

// within counts the calls younger than age.
func (l *listedCalls) within(now time.Time, age time.Duration) (n uint32) {
	for _, at := range l.times {
		if now.Sub(at) < age {
			n++
		}
	}
	return n
}

// Against a list of all timestamps the window's rate is the same at every moment; it
// counts every call younger than eleven twelfths of the window and none older than all
// of it.
func TestErrorWindowAgreesWithAList(t *testing.T) {
	for seed := range uint64(30) {
		rng, now := seeded(seed), noon
		var e Errors
		list := listedCalls{width: 5 * time.Second, buckets: 12}
		pace := rng.ExpFloat64() * 3e9
		for range 400 {
			now = now.Add(time.Duration(rng.ExpFloat64() * pace))
			failed := rng.Float64() < 0.3
			e.record(now, failed)
			list.add(now, failed)
			moment := now.Add(time.Duration(rng.ExpFloat64() * 20e9))
			exact := list.count(moment)
			near(t, "rate", e.Rate(moment), exact.Rate(), 0)
			got := e.calls.Count(moment).Total
			if got < list.within(moment, 55*time.Second) || got > list.within(moment, 60*time.Second) {
				t.Fatalf("seed %d: %d calls counted", seed, got)
			}
		}
	}
}

// Against a window that is asked at every slot of its life, one that is never asked
// has the same factor.
func TestErrorWindowDoesNotDependOnLooking(t *testing.T) {
	for seed := range uint64(60) {
		rng, now := seeded(seed), noon
		config := limiter.ErrorWindowConfig{Hold: 20 * time.Second, MinSamples: 5}
		looked, alone := NewErrors(config), NewErrors(config)
		slow := slowSwitch{}
		for range 300 {
			next := now.Add(time.Duration(rng.ExpFloat64() * 4e9))
			for ; now.Before(next); now = now.Add(100 * time.Millisecond) {
				slow.recover(&looked, now)
			}
			now = next
			slow.recover(&looked, now)
			failed := rng.Float64() < 0.2
			looked.record(now, failed)
			alone.record(now, failed)
			slow.recorded(&looked, now)
			near(t, "factor", alone.Factor(now), slow.factor(), 0)
		}
	}
}

// slowSwitch is the switch of an error window as its drawing says it, asked all the
// time; it uses only Rate and the number of calls.
type slowSwitch struct {
	slowed bool
	until  time.Time
}

func (s *slowSwitch) recover(e *Errors, now time.Time) {
	if s.slowed && !now.Before(s.until) && e.Rate(now) < 0.1 {
		s.slowed = false
	}
}

func (s *slowSwitch) recorded(e *Errors, now time.Time) {
	s.recover(e, now)
	if !s.slowed && e.Rate(now) > 0.3 && e.calls.Count(now).Total >= 5 {
		s.slowed, s.until = true, now.Add(20*time.Second)
	}
}

func (s *slowSwitch) factor() float64 {
	if s.slowed {
		return 0.5
	}
	return 1
}

// A pace that is lowered for ever stays low, though its window is as long.
func TestEndlessHoldIsKept(t *testing.T) {
	e := NewErrors(limiter.ErrorWindowConfig{Window: time.Duration(math.MaxInt64), Hold: time.Duration(math.MaxInt64), Buckets: measure.MaxSlots})
	now := noon
	for range limiter.DefaultErrorMinSamples {
		now = now.Add(time.Second)
		e.record(now, true)
	}
	for range 1000 {
		now = now.Add(time.Second)
		e.record(now, false)
	}
	want(t, "the factor, after a thousand answers", e.Factor(now), limiter.DefaultErrorFactor)
}
