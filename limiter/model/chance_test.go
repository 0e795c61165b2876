package model

import (
	"fmt"
	"math"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// recount computes, from a list of all that happened, what chance sums up as it goes.
type recount struct {
	since []bool // calls since the sums were emptied: refused
}

// sums returns the two cumulative sums after the list, call by call. Each call that was let in
// takes from both, each refused one adds to both, and they are never below zero when a refusal
// comes.
func (r *recount) sums(share float64) (flood, creep float64) {
	p := max(leastShare, share)
	half, more := (1+p)/2, min(0.97, 2*p+creepMargin)
	for _, refused := range r.since {
		if refused {
			flood = max(0, flood) + math.Log(half/p)
			creep = max(0, creep) + math.Log(more/p)
			continue
		}
		flood += math.Log((1 - half) / (1 - p))
		creep += math.Log((1 - more) / (1 - p))
	}
	return flood, creep
}

// The alarm is that of the two sums computed anew from all that happened.
func TestChanceStrikesAsRecomputed(t *testing.T) {
	alarms := 0
	for seed := range uint64(300) {
		rng := seeded(seed)
		var c chance
		for range 400 { // slower paces, of which the share is known, and stays
			refused := rng.Float64() < float64(seed%5)/10
			c.paces.book(10, refused)
		}
		share, pace := c.share(30), 1+40*rng.Float64()
		thick := rng.Float64()
		var r recount
		for i := range 60 {
			if refused := rng.Float64() < thick; !refused {
				c.letInRow++
				r.since = append(r.since, false)
				continue
			}
			got := c.soundsAlarm(30, pace)
			r.since = append(r.since, true)
			flood, creep := r.sums(share)
			rarer := math.Log(max(1, pace/alarmPace))
			p := max(leastShare, share)
			if expected := flood > alarmNats*(1+p)+rarer || creep > alarmNats+rarer; got != expected {
				t.Fatalf("seed %d, call %d: alarm %v, flood %v, creep %v", seed, i, got, flood, creep)
			}
			near(t, "flood", c.flood, flood, 1e-6)
			near(t, "creep", c.creep, creep, 1e-6)
			if got {
				alarms++
				c.resetSums()
				r.since = nil
			}
		}
	}
	if alarms < 300 {
		t.Errorf("only %d alarms", alarms)
	}
}

// Chance is blamed for what is refused at slower paces, and for no more than is refused
// at this one; never for more than half, and for nothing before anything was refused.
func TestShareIsThatOfSlowerPaces(t *testing.T) {
	for seed := range uint64(500) {
		rng := seeded(seed)
		var c chance
		var s countsOf
		for range rng.IntN(4000) {
			bin := rng.IntN(20)
			refused := rng.IntN(20) < bin*int(seed%3)/2
			if s[bin][0] < tableMost {
				c.paces.book(bin, refused)
				s.book(bin, refused)
			}
		}
		for bin := range 25 {
			n, k := s.sum(0, bin)
			expected := min(mostShare, k/(n+doubtCalls))
			if own := s[bin]; own[0] >= ownCalls {
				expected = min(expected, own[1]/own[0])
			}
			if k < 1 {
				expected = 0
			}
			near(t, "share", c.share(bin), expected, 1e-12)
		}
	}
}

// The share of chance is that of all calls, but for an item that is refused each time that it is asked for a
// while: a few of those do not raise it.
func TestAnItemRefusedAgainAndAgainIsNotChances(t *testing.T) {
	for _, strikes := range []float64{0.03, 0.1, 0.3, 0.45} {
		rng := seeded(3)
		var c chance
		for item := range 2000 {
			var n limiter.News
			for rng.Float64() < strikes || item%100 == 0 && n.Refusals < 40 {
				c.bookRefusal(10, &n)
				n.Refusals++
			}
			c.paces.book(10, false)
		}
		near(t, fmt.Sprintf("share of %v", strikes), c.share(11), strikes, 0.02+0.15*strikes)
	}
}

// Refusals at random, as thick as chance is known to be, sound hardly any alarm; half of
// all calls refused does so within seconds.
func TestAlarmsAreRareAndQuick(t *testing.T) {
	rng := seeded(9)
	var c chance
	alarms := 0
	for range 100_000 {
		refused := rng.Float64() < 0.1
		c.paces.book(10, rng.Float64() < 0.1)
		if !refused {
			c.letInRow++
		} else if c.soundsAlarm(20, 5) {
			alarms++
			c.resetSums()
		}
	}
	if alarms > 100 { // of ten thousand refusals
		t.Errorf("%d false alarms", alarms)
	}
	for calls := 0; ; calls++ {
		if calls > 60 {
			t.Fatal("no alarm, though every second call is refused")
		}
		if c.letInRow++; calls%2 == 0 && c.soundsAlarm(20, 5) {
			break
		}
	}
}

// What is refused too often is named as a share that can be meant.
func TestExcessIsAShare(t *testing.T) {
	for n := range 200 {
		for k := 0; k <= n; k += 3 {
			c := chance{calls: float64(n), refused: float64(k)}
			e := c.excess()
			if !(e > 0 && e < 1) || n > 50 && k > 10 && math.Abs(e-float64(k)/float64(n)) > 0.1+1.5/float64(n) {
				t.Fatalf("%d of %d: %v", k, n, e)
			}
		}
	}
}
