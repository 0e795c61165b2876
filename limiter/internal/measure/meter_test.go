package measure

import (
	"testing"
	"time"
)

// Nothing happened, nothing per second.
func TestMeterEmpty(t *testing.T) {
	var m Meter
	near(t, "rate", m.PerSecond(noon), 0, 0)
}

// A young meter divides by its age, but at least by a second.
func TestMeterYoung(t *testing.T) {
	var m Meter
	for range 10 {
		m.Add(noon)
	}
	near(t, "in the first millisecond", m.PerSecond(at(0.001)), 10, 0)
	near(t, "after two seconds", m.PerSecond(at(2)), 5, 1e-9)
}

// A steady stream reads as what it is, at any time.
func TestMeterSteady(t *testing.T) {
	var m Meter
	for i := range 1000 {
		now := at(float64(i) * 0.05)
		m.Add(now)
		if i > 100 {
			near(t, "rate", m.PerSecond(now), 20, 0.2)
		}
	}
}

// After ten quiet seconds nothing is left.
func TestMeterForgets(t *testing.T) {
	var m Meter
	m.Add(noon)
	near(t, "rate", m.PerSecond(at(9.9)), 1/9.9, 1e-9)
	near(t, "rate", m.PerSecond(at(10)), 0, 0)
}

// A clock that goes back divides by what it had covered before.
func TestMeterClockGoesBack(t *testing.T) {
	var m Meter
	m.Add(noon)
	for range 8 {
		m.Add(at(4))
	}
	near(t, "rate", m.PerSecond(at(-100)), 9.0/4, 1e-9)
}

// listedEvents is the meter as a list of everything that happened.
type listedEvents struct {
	Slots   []int64
	Origin  time.Time
	width   time.Duration
	buckets int64
}

func (l *listedEvents) add(now time.Time) {
	if l.Slots == nil {
		l.Origin = now
	}
	l.Slots = append(l.Slots, int64(now.Sub(l.Origin)/l.width))
}

func (l *listedEvents) count(now time.Time) (n int) {
	slot := int64(now.Sub(l.Origin) / l.width)
	for _, s := range l.Slots {
		if s > slot-l.buckets {
			n++
		}
	}
	return n
}

// Against a list of timestamps the rate is the number of those in the covered time,
// divided by it.
func TestMeterAgreesWithAList(t *testing.T) {
	for seed := range uint64(30) {
		rng, now := seeded(seed), noon
		var m Meter
		list := listedEvents{width: time.Second, buckets: 10}
		for range 300 {
			now = now.Add(time.Duration(rng.ExpFloat64() * 5e8))
			m.Add(now)
			list.add(now)
			moment := now.Add(time.Duration(rng.ExpFloat64() * 2e9))
			age := moment.Sub(list.Origin)
			covered := min(age, 9*time.Second+age%time.Second).Seconds()
			near(t, "rate", m.PerSecond(moment), float64(list.count(moment))/max(1, covered), 1e-9)
		}
	}
}
