package model

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/plain"
)

// modelRig is a model law and the world that it is in.
func modelRig(g gate) *rig { return newRig(New(limiter.LawConfig{}, noon, seeded(1)), g) }

func (r *rig) view() limiter.View { return r.law.View(r.now, limiter.Cost{Requests: 1}) }

// says runs until the law says something that matches, at most so long.
func (r *rig) says(d time.Duration, pattern string) bool {
	match := regexp.MustCompile("^" + pattern + "$")
	found := func() bool { return slices.ContainsFunc(r.view().Words(), match.MatchString) }
	next := r.now
	r.runUntil(d, func() bool {
		if r.now.Before(next) {
			return false
		}
		next = r.now.Add(100 * time.Millisecond)
		return found()
	})
	return found()
}

// variedRig has answers that take longer and shorter, as most do.
func variedRig(g gate) *rig {
	r := modelRig(g)
	r.varies = seeded(1)
	return r
}

// lying has a gate say that there is always room for a hundred a second, by the minute.
func lying(g gate) gate {
	return func(now time.Time, beside int) answer {
		a := g(now, beside)
		a.sightings = []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: 6000, Remaining: 5999, Reset: 10 * time.Millisecond, HasReset: true,
		}}
		return a
	}
}

// halving is a bucket that half as much flows into from the second minute on.
func halving() gate { return from(at(60), bucketGate(10, 45), bucketGate(5, 45)) }

// In worlds that are what the words say, the words come: with some seed at least, for the
// course of a law is not what they promise.
func TestWordsOfWorlds(t *testing.T) {
	for pattern, of := range map[string]struct {
		configured limiter.Limits
		gate       func() gate
	}{
		`no more than 8 in flight`:                               {gate: func() gate { return capGate(8) }},
		`(59\d|60\d) a minute, \d+ may be saved up`:              {gate: func() gate { return bucketGate(10, 45) }},
		`its limit is not known yet: [\d,]+ a minute is tried`:   {gate: func() gate { return bucketGate(10, 45) }},
		`[\d,]+ a minute is tried`:                               {gate: func() gate { return bucketGate(10, 45) }},
		`one call in ten is refused, at any pace`:                {gate: func() gate { return chanceGate(0.1, seeded(3)) }},
		`going slower to see whether refusals stop`:              {gate: halving},
		`a window of 600 by the minute, 1\d\d left, 4\d s to go`: {gate: func() gate { return windowGate(600) }},
		`its headers say 600 a minute, 5\d\d left`:               {gate: func() gate { return windowGate(600) }},
		`its headers say 6,000 a minute, and they are wrong`:     {gate: func() gate { return lying(bucketGate(10, 10)) }},
		`nothing is let in, for 12 s now`:                        {gate: func() gate { return from(at(60), bucketGate(10, 45), shut) }},
		`600 a minute, as told`:                                  {limiter.Limits{RPM: 600}, func() gate { return anything }},
		`6,000 tokens a minute, as told`:                         {limiter.Limits{TPM: 6000}, func() gate { return anything }},
		`\d+ a minute, not the 600 a minute that were set`:       {limiter.Limits{RPM: 600}, func() gate { return bucketGate(5, 30) }},
	} {
		said, last := false, ""
		for seed := uint64(1); seed <= 4 && !said; seed++ {
			r := newRig(New(limiter.LawConfig{Limits: of.configured}, noon, seeded(seed)), of.gate())
			r.varies = seeded(100 + seed)
			said = r.says(5*time.Minute, pattern)
			last = r.view().String()
		}
		if !said {
			t.Errorf("%s: in five minutes it never came; now: %s", pattern, last)
		}
	}
}

// Where nothing is known there are no words, and a world without a limit has no words either.
func TestNoWordsWithoutBelief(t *testing.T) {
	for range 2 {
		r := modelRig(anything)
		want(t, "at the start", r.view().String(), "")
		want(t, "after a minute without a refusal", r.run(time.Minute).view().String(), "")
	}
	want(t, "plain", newRig(plain.New(limiter.LawConfig{}, noon, seeded(1)), anything).view().String(), "")
}

// The plain law says what the user told and what it learned.
func TestWordsOfThePlainLaw(t *testing.T) {
	r := newRig(plain.New(limiter.LawConfig{Limits: limiter.Limits{RPM: 600, InputTPM: 1200}}, noon, seeded(1)), bucketGate(5, 5))
	want(t, "told", r.view().String(), "600 a minute, as told; 1,200 input tokens a minute, as told")
	if !r.says(time.Minute, `\d+ a minute, not the 600 a minute that were set`) {
		t.Errorf("after a minute of half as many: %v", r.view())
	}
}
