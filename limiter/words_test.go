package limiter

import (
	"testing"
	"time"
)

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
		"its limit is not known yet":                                           {Over: 10, Search: 5, Binds: PaceBound{By: BoundCooldown}},
		"600 a minute, 45 may be saved up":                                     limit(0, LimitView{Source: Learned, Refill: 10, Capacity: 45.9}),
		"600 a minute":                                                         limit(0, LimitView{Source: Learned, Refill: 10, Capacity: 1}),
		"1.5 a minute":                                                         limit(0, LimitView{Source: Learned, Refill: 0.025, Capacity: 1}),
		"30 an hour, as told":                                                  limit(0, LimitView{Source: Configured, Refill: 30.0 / 3600}),
		"50 a day, as told":                                                    limit(0, LimitView{Source: Configured, Refill: 50.0 / 86400, Ceiling: 50.0 / 86400}),
		"1,000,000 tokens a minute, as told":                                   limit(1, LimitView{Source: Configured, Refill: 1e6 / 60}),
		"its headers say 600 output tokens a minute, 0 left":                   limit(3, LimitView{Source: Seen, Refill: 10, Capacity: 60, Level: -3}),
		"a window of 600 by the minute, 120 left, 12 s to go":                  limit(0, LimitView{Source: Seen, Refill: 10, Capacity: 600, Level: 120.5, Period: time.Minute, Ends: at(12)}),
		"a window of 90 input tokens by 24 s, 8 left, 2 min to go":             limit(2, LimitView{Source: Seen, Refill: 1, Capacity: 90, Level: 8, Period: 24 * time.Second, Ends: at(100)}),
		"its headers say 600 a minute, 9 left; other clients use 120 a minute": limit(0, LimitView{Source: Seen, Refill: 10, Level: 9, Others: 2}),
		"its refusals say 600 a minute, 9 left":                                limit(0, LimitView{Source: Seen, Said: true, Refill: 10, Level: 9}),
		"its headers say 600 tokens a minute, 9 left; 120 tokens a minute more are drawn than estimated": limit(1, LimitView{Source: Seen, Refill: 10, Level: 9, Others: 2}),
	} {
		v.At = noon
		if got := v.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
