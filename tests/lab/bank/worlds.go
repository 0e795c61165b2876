package bank

import (
	"fmt"
	"slices"
	"time"
)

const minute = time.Minute

// tick is a second under a short name, as the lists have long lines.
const tick = time.Second

const millis = time.Millisecond

// Worlds returns the whole bank, varied.
func Worlds(v Vary) []World {
	return slices.Concat(
		buckets(v), windowed(v), caps(v), chances(v), broken(v), shared(v), tokens(v), changing(v),
		unkind(v), liars(v), sizes(v), strict(v), short(v), busy(v), near(v), ceilings(v),
	)
}

func buckets(v Vary) []World {
	return []World{
		v.world("W1", "bucket 60 s", asBucket, bucket(minute)),
		v.world("W1", "bucket 5 s", asBucket, bucket(5*tick)),
		v.world("W1", "bucket 1 s", asFlatBucket, bucket(tick)),
		v.world("W1", "bucket 2 calls", asFlatBucket, bucketOf(2)),
		v.world("W1", "bucket 60 s, headers", asHeaders, bucket(minute), headers),
		v.world("W1", "bucket 5 s, headers", asHeaders, bucket(5*tick), headers),
		v.world("W1", "bucket 5 s, Retry-After", asBucket, bucket(5*tick), retryAfter),
	}
}

// ceilings are servers that hold exactly the limit that the law knows.
func ceilings(v Vary) []World {
	var worlds []World
	for _, perMinute := range []float64{1, 3, 6, 20, 60, 600} {
		worlds = append(worlds, v.world("W21", fmt.Sprintf("told %v a minute", perMinute), asConfigured,
			limit(perMinute), items(int(max(120, 5*perMinute))), configuredRequests))
	}
	for _, perMinute := range []float64{6, 60, 600} {
		worlds = append(worlds, v.world("W21", fmt.Sprintf("told %v a minute, and a burst of 15 s", perMinute), asConfigured,
			limit(perMinute), items(int(max(120, 5*perMinute))), configuredBurst(15*tick), configuredRequests))
	}
	for _, percent := range []float64{1, 20, 50, 97, 150} {
		worlds = append(worlds, v.world("W21", fmt.Sprintf("told in tokens, calls of %v %% of a minute", percent), asConfigured,
			limit(100/percent), items(int(max(120, 500/percent))), configuredTokens(percent)))
	}
	return worlds
}

// windowed lists servers with fixed windows, with sliding ones, and with a time between two calls.
func windowed(v Vary) []World {
	return []World{
		v.world("W2", "windows 1 s", asWindows, windows(tick)),
		v.world("W2", "windows 10 s", asWindows, windows(10*tick)),
		v.world("W2", "windows 60 s", asWindows, windows(minute)),
		v.world("W2", "windows 1 s, headers", asWindowsConfigured, windows(tick), headers),
		v.world("W2", "windows 60 s, headers", asWindowsConfigured, windows(minute), headers),
		v.world("W2", "windows 60 s, Retry-After", asWindows, windows(minute), retryAfter),
		v.world("W3", "sliding 10 s", asWindows, sliding(10*tick)),
		v.world("W3", "sliding 60 s", asWindows, sliding(minute)),
		v.world("W4", "spacing", asSpacing, spacing),
	}
}

// caps are combined with a bucket of 8 a second. Eight calls at work are some seven a
// second, so the cap binds; with 32 the bucket does.
func caps(v Vary) []World {
	return []World{
		v.world("W5", "cap 8, σ 0.5", asCap, capped(8)),
		v.world("W5", "cap 8, σ 1", asCap, capped(8), answers(tick, 1)),
		v.world("W5", "cap 64, σ 0.5", asCap, capped(64)),
		v.world("W5", "cap 64, σ 1", asCap, capped(64), answers(tick, 1)),
		v.world("W5", "cap 8 + bucket 5 s", asCap, limit(480), capped(8), bucket(5*tick)),
		v.world("W5", "cap 32 + tight bucket", asCap, limit(480), capped(32), bucket(5*tick)),
		v.world("W5", "cap 8, Retry-After 1 s", asCap, capped(8), named(tick)),
		v.world("W5", "cap 32, 20 s answers", asCap, capped(32), answers(20*tick, 0.5), items(2000)),
		v.world("W5", "cap 8, 100 ms answers", asCap, capped(8), answers(100*millis, 0.5)),
	}
}

// chances lists servers that refuse a share of the calls at any pace, some with a bucket as well.
func chances(v Vary) []World {
	half := named(500 * millis)
	quick := answers(100*millis, 0.4)
	return []World{
		v.world("W6", "shed 0.01", asChance, shed(0.01), hands(64)),
		v.world("W6", "shed 0.01, RA 0.5 s", asChance, shed(0.01), hands(64), half),
		v.world("W6", "shed 0.1", asChance, shed(0.1), hands(64)),
		v.world("W6", "shed 0.1, RA 0.5 s", asChance, shed(0.1), hands(64), half),
		v.world("W6", "shed 0.3", asChance, shed(0.3), hands(64)),
		v.world("W6", "shed 0.3, RA 0.5 s", asChance, shed(0.3), hands(64), half),
		v.world("W6", "shed 0.1, RA 0", asChance, shed(0.1), hands(64), named(0)),
		v.world("W6", "shed 0.1, 100 ms, RA 0.5 s", asQuickChance, shed(0.1), hands(256), half, quick),
		v.world("W6", "shed 0.1, 20 s answers", asChance, shed(0.1), hands(64), answers(20*tick, 0.5), items(2000)),
		v.world("W6", "shed 0.1 + bucket 60 s", asChance, shed(0.1), bucket(minute)),
		v.world("W6", "shed 0.1 + bucket 5 s", asChance, shed(0.1), bucket(5*tick)),
		v.world("W6", "shed 0.1 + bucket 60 s, headers", asChance, shed(0.1), bucket(minute), headers),
		v.world("W6", "shed 0.01, 100 ms, silent, 5,000 items", asQuickChance,
			shed(0.01), hands(256), answers(100*millis, 0), items(5000)),
	}
}

func broken(v Vary) []World {
	both := func(w *World) { shed(0.1)(w); named(500 * millis)(w); breaks(0.1)(w) }
	return []World{
		v.world("W15", "0.1 500s + 0.1 429s", asChance, both, hands(64)),
		v.world("W15", "0.1 500s + 0.1 429s, 100 ms", asQuickBreaks, both, hands(256), answers(100*millis, 0.5)),
		v.world("W15", "0.1 500s + 0.1 429s, 100 ms, 5,000 items", asQuickBreaks,
			both, hands(256), answers(100*millis, 0), items(5000)),
	}
}

// shared lists servers whose room for our calls changes with the load of others or with the
// machines at work.
func shared(v Vary) []World {
	return []World{
		v.world("W7", "shared pool", asShared, pool),
		v.world("W7", "shared pool, large", asShared, limit(3000), pool, items(30000)),
		v.world("W8", "violent, bucket 1 s", asShared, bucket(tick), neighbour(1.5)),
		v.world("W8", "violent, windows 10 s", asViolent, windows(10*tick), neighbour(1.5)),
		v.world("W8", "violent, windows 10 s, headers", asViolent, windows(10*tick), neighbour(1.5), headers),
		v.world("W8", "noisy, bucket 5 s", asNoisy, bucket(5*tick), neighbour(0.8)),
		v.world("W12", "replicas, 60 s", asShared, replicas(minute)),
		v.world("W12", "replicas, 5 s", asShared, replicas(5*tick)),
		v.world("W13", "autoscaler", asShared, scaler),
	}
}

// tokens lists servers that limit tokens, most of them requests as well.
func tokens(v Vary) []World {
	both := func(span time.Duration) trait {
		return func(w *World) { inTokens(w); requestBucket(span)(w); tokenBucket(span)(w) }
	}
	return []World{
		v.world("W9", "RPM and TPM, headers", asTokens, both(minute), headers),
		v.world("W9", "RPM and TPM, silent", asTokens, both(minute)),
		v.world("W9", "RPM and TPM, 5 s, silent", asTokens, both(5*tick)),
		v.world("W9", "RPM and TPM, 5 s, told", asTokens, both(5*tick), configuredBoth),
		v.world("W9", "TPM alone, silent", asTokens, inTokens, tokenBucket(minute)),
	}
}
