package bank

import (
	"fmt"
	"slices"
	"time"

	"github.com/headrace/headrace/tests/lab/gates"
)

// WeakPoints are worlds in which the law was found to be weak, varied. Their figures are
// added up apart from those of [Worlds]. Each list names its question. Its target follows
// from the question: what a client could do that knows no more than the law.
func WeakPoints(v Vary) []World {
	all := slices.Concat(
		largeCalls(v), shortOutages(v), ownCaps(v), ownSpacing(v), silentTokens(v), gcra(v),
		middlewares(v), shortJobs(v), nearMisses(v), twoProcesses(v), ownChances(v),
		chanceAtLimit(v), leaving(v), busyWindows(v),
	)
	for i := range all {
		all[i].Weak = true
	}
	return all
}

// largeCalls test whether the law never exceeds a limit that the user has set, and uses all
// of it, if a few calls fill its minute.
func largeCalls(v Vary) []World {
	var worlds []World
	for _, percent := range []float64{90, 150} {
		worlds = append(worlds, v.world("P1", fmt.Sprintf("told in tokens, one call in ten of %v %% of a minute", percent),
			asLargeCalls, items(600), configuredMixed(percent)))
	}
	for _, percent := range []float64{20, 50, 97} {
		worlds = append(worlds, v.world("P1", fmt.Sprintf("told in tokens, calls of %v %% of a sliding minute", percent),
			asLargeCalls, items(240), configuredSliding(percent)))
	}
	return append(worlds, v.world("P1", "told in tokens, calls of 60 % of a minute, on a server of one's own",
		asLargeCalls, own, nearby, limit(100/60.), items(120), configuredTokens(60)))
}

// shortOutages test whether the law forgets an outage once it is over. Its 503s mean no
// limit. All places are taken when it begins, and the work is a minute's.
func shortOutages(v Vary) []World {
	var worlds []World
	for _, d := range []time.Duration{5 * tick, 10 * tick, 14 * tick} {
		one := func(name string, traits ...trait) {
			worlds = append(worlds, v.world("P2", fmt.Sprintf("%s, outage of %v", name, d), asShortOutage,
				append(traits, answers(tick, 0), outageOf(30*tick, d))...))
		}
		one("no limit, 256 at work", hands(256), items(15000))
		one("bucket 5 s, 200 a second", limit(12000), hands(512), bucket(5*tick), items(13000))
		one("own, no limit, 256 at work", own, nearby, hands(256), items(15000))
	}
	return worlds
}

// ownCaps test whether the law finds out how many calls a server of one's own takes at once,
// for any length of answers. Each world lasts at least half a minute.
func ownCaps(v Vary) []World {
	var worlds []World
	one := func(most float64, median time.Duration, sigma float64) {
		worlds = append(worlds, v.world("P3", fmt.Sprintf("own, cap %v, %v, σ %v", most, median, sigma), asOwnCap,
			own, nearby, hands(256), capped(most), answers(median, sigma), items(max(400, int(30*most/median.Seconds())))))
	}
	for _, median := range []time.Duration{30 * millis, 200 * millis, tick, 2 * tick} {
		for _, most := range []float64{4, 8, 16, 64} {
			one(most, median, 0.3)
		}
		one(8, median, 0)
		one(64, median, 0)
	}
	return worlds
}

// ownSpacing tests whether the first calls are as few as the headers of the first answer
// will ask.
func ownSpacing(v Vary) []World {
	one := func(perMinute float64, n int, t Target) World {
		return v.world("P4", fmt.Sprintf("own, spacing, %v a minute, headers, %d items", perMinute, n), t,
			own, nearby, limit(perMinute), spacing, headers, answers(200*millis, 0.3), hands(64), items(n))
	}
	return []World{
		one(60, 100, asStrict), one(120, 100, asStrict), one(120, 600, asStrict),
		one(600, 100, asSpacing), one(600, 600, asSpacing),
	}
}

// silentTokens test whether the law finds out that tokens are limited, where requests are as
// well.
func silentTokens(v Vary) []World {
	both := func(span time.Duration, draws func(int) float64) trait {
		return func(w *World) { w.tokens = draws; requestBucket(span)(w); tokenBucket(span)(w) }
	}
	return []World{
		v.world("P5", "RPM and TPM, 60 s, silent, mixed", asSilentTokens, both(minute, mixed)),
		v.world("P5", "RPM and TPM, 5 s, silent, mixed", asSilentTokens, both(5*tick, mixed)),
		v.world("P5", "RPM and TPM, 60 s, silent, few large", asSilentTokens, both(minute, fewLarge)),
		v.world("P5", "RPM and TPM, 60 s, silent, in turns", asSilentTokens, both(minute, inTurns)),
		v.world("P5", "own, RPM and TPM, 60 s, silent, mixed", asSilentTokens, own, nearby, both(minute, mixed)),
	}
}

// gcra tests whether the law notices headers that are misread. Their limit is the burst.
// Names that give no period are read as "21 a minute", and x-ratelimit-limit as "21 a
// second".
func gcra(v Vary) []World {
	const holds = 21
	one := func(name string, perMinute float64, n int, more ...trait) World {
		return v.world("P6", "GCRA "+name, asGCRA, append([]trait{
			limit(perMinute), items(n), hands(64), answers(100*millis, 0.3), bucketOf(holds), headers, lying(gates.AsGCRA(holds)),
		}, more...)...)
	}
	return []World{
		one("50 a second, read as 21 a minute", 3000, 2000),
		one("50 a second, read as 21 a second", 3000, 2000, bySecond),
		one("5 a second, read as 21 a minute", 300, 600),
		one("5 a second, read as 21 a second", 300, 600, bySecond),
		one("50 a second, read as 21 a minute, own", 3000, 2000, own, nearby),
		one("50 a second, read as 21 a second, own", 3000, 2000, own, nearby, bySecond),
	}
}

// middlewares test whether the law uses what a window of ten seconds lets in, however it
// counts and whatever its headers look like.
func middlewares(v Vary) []World {
	const width = 10 * tick
	var worlds []World
	for _, kind := range []struct {
		name   string
		traits []trait
	}{
		{"httprate", []trait{counter(width, false), named(width), xRateLimit}},
		{"HAProxy", []trait{counter(width, true)}},
		{"ulule", []trait{expiring(width), xRateLimit}},
		{"plain windows", []trait{windows(width)}},
	} {
		worlds = append(worlds,
			v.world("P7", "own, 200 in 10 s, "+kind.name, asMiddleware,
				append([]trait{own, nearby, limit(1200), answers(100*millis, 0), hands(64), items(2000)}, kind.traits...)...),
			v.world("P7", "200 in 10 s, 1 s answers, "+kind.name, asMiddleware,
				append([]trait{limit(1200), answers(tick, 0.3), hands(64), items(2000)}, kind.traits...)...))
	}
	quick := func(w *World) {
		own(w)
		nearby(w)
		limit(3000)(w)
		answers(100*millis, 0)(w)
		hands(64)(w)
		items(1000)(w)
	}
	return append(worlds,
		v.world("P7", "own, 50 in 1 s, HAProxy", asMiddleware, quick, counter(tick, true)),
		v.world("P7", "own, spacing of 50 a second, nginx", asMiddleware, quick, spacing, overloaded))
}

// shortJobs test what the lesson costs where there is little time to use it. The calls that
// a window or a full bucket gives away at once are left out: nobody can know of them in
// time.
func shortJobs(v Vary) []World {
	var worlds []World
	for _, n := range []int{300, 600, 1000} {
		one := func(name string, target Target, t trait) {
			worlds = append(worlds, v.world("P8", fmt.Sprintf("%s, %d items", name, n), target, t, items(n)))
		}
		one("bucket 5 s", asShort, bucket(5*tick))
		one("bucket 1 s", asShort, bucket(tick))
		one("spacing", asShortSpacing, spacing)
		if n == 1000 {
			one("bucket 60 s", asShort, bucket(minute))
			one("windows 10 s", asShort, windows(10*tick))
			one("sliding 10 s", asShort, sliding(10*tick))
		}
	}
	return worlds
}

// nearMisses test whether the law recognises a cost that is a few tokens low, and does not
// take it for a cap. A call leaves when headers say that its tokens are there, and a few are
// missing.
func nearMisses(v Vary) []World {
	one := func(name string, span, median time.Duration, more ...trait) World {
		return v.world("P9", "cost a few tokens low, "+name, asNearMiss, append([]trait{
			guessedLow, hands(64), items(1200), tokensOf(span), headers, answers(median, 0.3), nearby,
		}, more...)...)
	}
	return []World{
		one("own, bucket 1 s, 300 ms", tick, 300*millis, own),
		one("own, bucket 1 s, 3 s", tick, 3*tick, own),
		one("own, bucket of a call, 300 ms", 200*millis, 300*millis, own),
		one("bucket 1 s, 300 ms", tick, 300*millis),
	}
}

// twoProcesses test whether two runs that know nothing of each other share a limit that
// nobody announces.
func twoProcesses(v Vary) []World {
	return []World{
		v.world("P10", "two processes, bucket 5 s, 1,000 items", asTwo, twice, bucket(5*tick), items(1000)),
		v.world("P10", "two processes, bucket 5 s", asTwo, twice, bucket(5*tick)),
		v.world("P10", "two processes, bucket 60 s", asTwo, twice, bucket(minute)),
		v.world("P10", "two processes, windows 10 s", asTwo, twice, windows(10*tick)),
	}
}

// ownChances test whether the law soon runs at full speed on a server of one's own that
// refuses by chance. W15 and W20 have lower targets for servers of others.
func ownChances(v Vary) []World {
	quick := func(w *World) { own(w); nearby(w); answers(100*millis, 0)(w); hands(256)(w); items(5000)(w) }
	half := named(500 * millis)
	return []World{
		v.world("P11", "own, shed 0.3", asOwnThird, quick, shed(0.3)),
		v.world("P11", "own, shed 0.3, 503", asOwnThird, quick, shed(0.3), overloaded),
		v.world("P11", "own, 0.1 500s + 0.1 429s, RA 0.5 s", asOwnBreaks, quick, shed(0.1), half, breaks(0.1)),
	}
}

// chanceAtLimit tests whether the law uses all of the limit where some calls are also refused
// by chance.
func chanceAtLimit(v Vary) []World {
	var worlds []World
	for _, share := range []float64{0.1, 0.3, 0.45} {
		one := func(name string, traits ...trait) {
			worlds = append(worlds, v.world("P12", fmt.Sprintf("shed %v + %s", share, name), asSlowChance,
				append(traits, shed(share), hands(256), items(3000))...))
		}
		one("bucket 1 s", bucket(tick))
		one("bucket 5 s", bucket(5*tick))
		one("bucket 1 s, headers", bucket(tick), headers)
		one("bucket 5 s, headers", bucket(5*tick), headers)
	}
	return worlds
}

// leaving tests whether the law soon uses the whole limit again after another client has
// left.
func leaving(v Vary) []World {
	var worlds []World
	for _, depth := range []time.Duration{tick, 3 * tick, 10 * tick} {
		for _, c := range []struct {
			share float64
			on    time.Duration
		}{{0.3, 2 * minute}, {0.6, 20 * tick}, {0.6, 2 * minute}, {0.9, 2 * minute}} {
			worlds = append(worlds, v.world("P13", fmt.Sprintf("bucket %v, another client takes %v for %v", depth, c.share, c.on), asLeft,
				bucket(depth), once(c.share, 3*minute, c.on), items(3000)))
		}
	}
	return worlds
}

// busyWindows test whether the law tells a window by 503 from an outage.
func busyWindows(v Vary) []World {
	var worlds []World
	for _, width := range []time.Duration{10 * tick, 12 * tick, 15 * tick, 20 * tick, 30 * tick} {
		for _, perMinute := range []float64{120, 600} {
			worlds = append(worlds, v.world("P14", fmt.Sprintf("503, windows %v, %v a minute, 300 ms", width, perMinute), asBusyWindow,
				limit(perMinute), windows(width), overloaded, answers(300*millis, 0.3), items(int(perMinute)*5)))
		}
	}
	return worlds
}
