package limiter

import (
	"regexp"
	"slices"
	"testing"
	"time"
)

// fast is a law that was let alone, and the world that taught it.
func modelRig(g gate) *rig { return newRig(NewModelLaw(LawConfig{}, noon, seeded(1)), g) }

func (r *rig) view() View { return r.law.View(r.now, Cost{Requests: 1}) }

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
		a.sightings = []Sighting{{
			Dimension: Requests, Limit: 6000, Remaining: 5999, Reset: 10 * time.Millisecond, HasReset: true,
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
		told Limits
		gate func() gate
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
		`600 a minute, as told`:                                  {Limits{RPM: 600}, func() gate { return anything }},
		`6,000 tokens a minute, as told`:                         {Limits{TPM: 6000}, func() gate { return anything }},
		`\d+ a minute, not the 600 a minute that were set`:       {Limits{RPM: 600}, func() gate { return bucketGate(5, 30) }},
	} {
		said, last := false, ""
		for seed := uint64(1); seed <= 4 && !said; seed++ {
			r := newRig(NewModelLaw(LawConfig{Limits: of.told}, noon, seeded(seed)), of.gate())
			r.varies = seeded(100 + seed)
			said = r.says(5*time.Minute, pattern)
			last = r.view().String()
		}
		if !said {
			t.Errorf("%s: in five minutes it never came; now: %s", pattern, last)
		}
	}
}

// Where nothing is known there are no words, and none of a world that has no limit.
func TestNoWordsWithoutBelief(t *testing.T) {
	for range 2 {
		r := modelRig(anything)
		want(t, "at the start", r.view().String(), "")
		want(t, "after a minute without a refusal", r.run(time.Minute).view().String(), "")
	}
	want(t, "plain", newRig(NewPlainLaw(LawConfig{}, noon, seeded(1)), anything).view().String(), "")
}

// The plain law says what it was told, and what it learned.
func TestWordsOfThePlainLaw(t *testing.T) {
	r := newRig(NewPlainLaw(LawConfig{Limits: Limits{RPM: 600, InputTPM: 1200}}, noon, seeded(1)), bucketGate(5, 5))
	want(t, "told", r.view().String(), "600 a minute, as told; 1,200 input tokens a minute, as told")
	if !r.says(time.Minute, `\d+ a minute, not the 600 a minute that were set`) {
		t.Errorf("after a minute of half as many: %v", r.view())
	}
}

// Each phrase, to the letter.
func TestPhrases(t *testing.T) {
	ago := func(s float64) time.Time { return at(-s) }
	limit := func(d int, l LimitView) (v View) {
		v.Limits[d] = l
		return v
	}
	for want, v := range map[string]View{
		"no more than 1,200 in flight":                  {Cap: 1200},
		"one call in two is refused, at any pace":       {Chance: 0.5, ChanceSeen: 1000},
		"one call in three is refused, at any pace":     {Chance: 0.333, ChanceSeen: 1000},
		"one call in twenty is refused, at any pace":    {Chance: 0.0495, ChanceSeen: 1000},
		"one call in fifty is refused, at any pace":     {Chance: 0.02, ChanceSeen: 1000},
		"one call in a hundred is refused, at any pace": {Chance: 0.0102, ChanceSeen: 1000},
		"3 calls in 100 are refused, at any pace":       {Chance: 0.03, ChanceSeen: 1000},
		"40 calls in 100 are refused, at any pace":      {Chance: 0.4, ChanceSeen: 1000},
		"14 calls in 1,000 are refused, at any pace":    {Chance: 0.0142, ChanceSeen: 1000},
		"one call in ten is refused, at any pace":       {Chance: 0.093, ChanceSeen: 25}, // nobody knows it better
		"": {Chance: 0.5, ChanceSeen: 2},
		"going slower to see whether refusals stop":                            {Chance: 0.5, ChanceSeen: 100, Trial: ago(1)},
		"nothing is let in":                                                    {Drought: ago(0.5), Probed: 2, Trial: ago(1)},
		"nothing is let in, for 12 s now":                                      {Drought: ago(12), Probed: 5},
		"nothing is let in, for 3 min now":                                     {Drought: ago(190), Probed: 9},
		"its headers say 6,000 a minute, and they are wrong":                   {Lied: 100},
		"its limit is not known yet":                                           {Over: 10, Search: 5, Binds: Bound{By: ByHold}},
		"600 a minute, 45 may be saved up":                                     limit(dimRequests, LimitView{Source: Learned, Refill: 10, Capacity: 45.9}),
		"600 a minute":                                                         limit(dimRequests, LimitView{Source: Learned, Refill: 10, Capacity: 1}),
		"1.5 a minute":                                                         limit(dimRequests, LimitView{Source: Learned, Refill: 0.025, Capacity: 1}),
		"30 an hour, as told":                                                  limit(dimRequests, LimitView{Source: Told, Refill: 30.0 / 3600}),
		"50 a day, as told":                                                    limit(dimRequests, LimitView{Source: Told, Refill: 50.0 / 86400, Ceiling: 50.0 / 86400}),
		"1,000,000 tokens a minute, as told":                                   limit(dimTokens, LimitView{Source: Told, Refill: 1e6 / 60}),
		"its headers say 600 output tokens a minute, 0 left":                   limit(dimOutput, LimitView{Source: Seen, Refill: 10, Capacity: 60, Level: -3}),
		"a window of 600 by the minute, 120 left, 12 s to go":                  limit(dimRequests, LimitView{Source: Seen, Refill: 10, Capacity: 600, Level: 120.5, Period: time.Minute, Ends: at(12)}),
		"a window of 90 input tokens by 24 s, 8 left, 2 min to go":             limit(dimInput, LimitView{Source: Seen, Refill: 1, Capacity: 90, Level: 8, Period: 24 * time.Second, Ends: at(100)}),
		"its headers say 600 a minute, 9 left; other clients use 120 a minute": limit(dimRequests, LimitView{Source: Seen, Refill: 10, Level: 9, Others: 2}),
		"its refusals say 600 a minute, 9 left":                                limit(dimRequests, LimitView{Source: Seen, Said: true, Refill: 10, Level: 9}),
		"its headers say 600 tokens a minute, 9 left; 120 tokens a minute more are drawn than estimated": limit(dimTokens, LimitView{Source: Seen, Refill: 10, Level: 9, Others: 2}),
	} {
		v.At = noon
		if got := v.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
