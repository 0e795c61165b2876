package bank

import (
	"time"

	"github.com/headrace/headrace/tests/lab/gates"
)

func changing(v Vary) []World {
	return []World{
		v.world("W10", "halves, 60 s", asBucket, turning(0.5, minute)),
		v.world("W10", "doubles, 60 s", asBucket, turning(2, minute)),
		v.world("W10", "drifts, 60 s", asBucket, drifting(minute)),
		v.world("W10", "halves, 5 s", asBucket, turning(0.5, 5*tick)),
		v.world("W10", "doubles, 5 s", asBucket, turning(2, 5*tick)),
		v.world("W10", "drifts, 5 s", asBucket, drifting(5*tick)),
		v.world("W10", "doubles, 60 s, headers", asHeaders, turning(2, minute), headers),
	}
}

func unkind(v Vary) []World {
	return []World{
		v.world("W11", "refusals charged, bucket 5 s", asBucket, bucket(5*tick), charged),
		v.world("W11", "refusals charged, windows 10 s", asWindows, windows(10*tick), charged),
		v.world("W11", "refusals charged, sliding 10 s", asWindows, sliding(10*tick), charged),
		v.world("W11", "penalty box", asShared, bucket(5*tick), penalty),
	}
}

func liars(v Vary) []World {
	return []World{
		v.world("W14", "remaining never falls", asLies, bucket(5*tick), lying(gates.NeverFalls)),
		v.world("W14", "limit ten times too high", asLies, bucket(5*tick), lying(gates.TenTimes)),
		v.world("W14", "day's limit", asLies, bucket(5*tick), lying(gates.DaysLimit)),
	}
}

// sizes lists servers with small and large limits, with quick and slow answers, and without any
// limit.
func sizes(v Vary) []World {
	few := func(w *World) { limit(30)(w); items(600)(w) }
	many := func(w *World) { limit(6000)(w); items(30000)(w) }
	quick, slow := answers(100*millis, 0.5), answers(20*tick, 0.5)
	return []World{
		v.world("W16", "bucket 60 s, 30 a minute", asFew, few, bucket(minute)),
		v.world("W16", "windows 60 s, 30 a minute", asFew, few, windows(minute)),
		v.world("W16", "bucket 60 s, 30 a minute, headers", asHeaders, few, bucket(minute), headers),
		v.world("W16", "bucket 60 s, 6000 a minute", asFastBucket, many, bucket(minute)),
		v.world("W16", "windows 60 s, 6000 a minute", asWindows, many, windows(minute)),
		v.world("W16", "bucket 60 s, 6000 a minute, headers", asFastHeaders, many, bucket(minute), headers),
		v.world("W16", "bucket 5 s, 100 ms answers", asBucket, bucket(5*tick), quick),
		v.world("W16", "bucket 5 s, 20 s answers", asSlowBucket, bucket(5*tick), slow),
		v.world("W16", "bucket 5 s, 20 s answers, headers", asSlowHeaders, bucket(5*tick), slow, headers),
		v.world("W16", "no limit at all", asCap, hands(64)),
	}
}

// strict lists servers with headers that save up one call or two, so that a call a moment too early
// is refused.
func strict(v Vary) []World {
	one := func(name string, perMinute, calls float64, t Target) World {
		return v.world("W17", name, t, limit(perMinute), items(600), bucketOf(calls), headers)
	}
	return []World{
		one("one call saved up, 10 a minute, headers", 10, 1, asStrict),
		one("one call saved up, 30 a minute, headers", 30, 1, asStrict),
		one("one call saved up, 60 a minute, headers", 60, 1, asStrict),
		one("one call saved up, 120 a minute, headers", 120, 1, asStrict),
		// A hop's jitter is a tenth of the time between two calls.
		one("one call saved up, 600 a minute, headers", 600, 1, asSpacing),
		one("two calls saved up, 60 a minute, headers", 60, 2, asStrict),
	}
}

// short jobs are over before the law learns anything.
func short(v Vary) []World {
	quick := answers(100*millis, 0.5)
	return []World{
		v.world("W18", "24 s, told, windows 1 s", asWell, items(240), configured, windows(tick)),
		v.world("W18", "24 s, headers, bucket 1 s", asWell, items(240), headers, bucket(tick)),
		v.world("W18", "24 s, headers, bucket 5 s", asWell, items(240), headers, bucket(5*tick)),
		v.world("W18", "84 s, told and headers, bucket 60 s", asWell, items(840), configured, headers, bucket(minute)),
		v.world("W18", "no limit, 100 ms answers", asWell, items(12000), hands(256), quick),
		v.world("W18", "100 a second, told, 100 ms answers", asWell, limit(6000), items(2400), configured, bucket(tick), quick),
	}
}

// busy servers refuse with 503, and so does a server that is down.
func busy(v Vary) []World {
	bound := func(name string, t Target, traits ...trait) World {
		return v.world("W19", "503, "+name, t, append(traits, overloaded)...)
	}
	half := named(500 * millis)
	return []World{
		bound("bucket 5 s", asBucket, bucket(5*tick)),
		bound("bucket 60 s", asBucket, bucket(minute)),
		bound("bucket 5 s, Retry-After", asBucket, bucket(5*tick), retryAfter),
		bound("spacing", asSpacing, spacing),
		bound("windows 10 s", asWindows, windows(10*tick)),
		bound("windows 60 s", asWindows, windows(minute)),
		bound("sliding 10 s", asWindows, sliding(10*tick)),
		bound("cap 8", asCap, capped(8)),
		bound("cap 64", asCap, capped(64)),
		bound("chance 10 %", asChance, shed(0.1), hands(64)),
		bound("chance 10 %, 100 ms, RA 0.5 s", asQuickChance, shed(0.1), hands(256), half, answers(100*millis, 0.4)),
		bound("chance 10 % + bucket 5 s", asChance, shed(0.1), bucket(5*tick)),
		bound("halves, 5 s", asBucket, turning(0.5, 5*tick)),
		bound("violent, bucket 1 s", asShared, bucket(tick), neighbour(1.5)),
		bound("autoscaler", asShared, scaler),
		bound("bucket 5 s, outage of a minute at 30 s", asOutage, bucket(5*tick), outage(30*tick)),
		bound("bucket 5 s, outage of a minute at 300 s", asOutage, bucket(5*tick), outage(300*tick)),
		bound("no limit, outage of a minute at 30 s", asFreeOutage, hands(64), outage(30*tick)),
		// Three times the items, as all would be over before it begins.
		bound("no limit, outage of a minute at 300 s", asFreeOutage, hands(64), items(30000), outage(300*tick)),
	}
}

// near are servers in a test on one machine: there is no distance, and all is over in
// seconds.
func near(v Vary) []World {
	exact := answers(100*millis, 0)
	chance := func(w *World) { nearby(w); exact(w); hands(256)(w); items(5000)(w) }
	at50 := func(w *World) { nearby(w); exact(w); limit(3000)(w); hands(64)(w); items(1000)(w) }
	return []World{
		v.world("W20", "shed 0.01", asQuickChance, chance, shed(0.01)),
		v.world("W20", "shed 0.3", asQuickThird, chance, shed(0.3)),
		v.world("W20", "0.1 500s + 0.1 429s, RA 0.5 s", asQuickBreaks, chance, shed(0.1), named(500*millis), breaks(0.1)),
		v.world("W20", "cap 8, 200 ms answers", asCap, nearby, capped(8), answers(200*millis, 0), hands(64), items(1000)),
		v.world("W20", "cap 64, 1 s answers", asCap, nearby, capped(64), answers(time.Second, 0), hands(256), items(2000)),
		v.world("W20", "spacing, 50 a second", asSpacing, at50, spacing),
		v.world("W20", "bucket 20 calls, 50 a second", asFlatBucket, at50, bucketOf(20)),
		v.world("W20", "sliding 6 s, 50 a second", asWindows, at50, sliding(6*tick)),
		v.world("W20", "windows 10 s, 50 a second", asWindows, at50, windows(10*tick)),
		v.world("W20", "bucket 1 s, 200 a second", asFlatBucket, chance, limit(12000), bucket(tick)),
	}
}
