package bank

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/tests/lab"
	"github.com/headrace/headrace/tests/lab/gates"
)

// own marks the server as one's own, as the user says.
func own(w *World) { w.local = true }

func outageOf(from, d time.Duration) trait {
	return func(w *World) { w.server.Outages = []gates.Outage{{From: from, For: d}} }
}

// once adds another client, which takes that share of the limit for a while and then leaves.
func once(share float64, from, on time.Duration) trait {
	return func(w *World) {
		w.neighbour = lab.Neighbour{PerSecond: share * w.perSecond, From: from, On: on, Off: 1000 * time.Hour}
	}
}

// twice splits the items between two processes.
func twice(w *World) { w.processes = 2 }

// bySecond reads a limit in headers as one by the second.
func bySecond(w *World) { w.period = time.Second }

// xRateLimit headers name no period, and are read as those of a limit by the second.
func xRateLimit(w *World) { w.server.Headers = true; bySecond(w) }

func counter(width time.Duration, charged bool) trait {
	return limited(func(w *World, _ uint64) gates.Gate {
		c := gates.NewCounter(w.during(width), width)
		c.Charged = charged
		return c
	})
}

func expiring(width time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate { return gates.NewExpiring(w.during(width), width) })
}

// share returns a number in 0..1 for each item, as good as random.
func share(item int) float64 { return float64((uint64(item+1)*0x9E3779B97F4A7C15)>>40) / (1 << 24) }

// mixed returns a draw of any size, in any order, with the sizes of [inTurns].
func mixed(item int) float64 { return small * math.Pow(large/small, share(item)) }

// fewLarge returns small draws, and for one item in twenty that of a long document.
func fewLarge(item int) float64 {
	const document = 60_000
	if item%20 == 7 {
		return document
	}
	return small * math.Pow(middle/small, share(item))
}

// configuredTPM is the limit on tokens that the user sets, a minute.
const configuredTPM = 60_000

// configuredMixed makes the user set a bucket of tokens. One call in ten draws that share of a
// minute, and the others a hundredth.
func configuredMixed(percent float64) trait {
	const few = configuredTPM / 100
	most := configuredTPM * percent / 100
	return func(w *World) {
		w.tokens = func(item int) float64 {
			if item%10 == 5 {
				return most
			}
			return few
		}
		limit(configuredTPM / (0.9*few + 0.1*most))(w)
		w.configured = limiter.Limits{TPM: configuredTPM * w.vary.Rate}
		configuredBucket(most)(w)
	}
}

// configuredSliding makes the user set a sliding minute of tokens. Each call draws that share:
// with a higher limit calls are larger, and there are as many.
func configuredSliding(percent float64) trait {
	return func(w *World) {
		w.perSecond = math.Floor(100/percent) / 60
		w.configured = limiter.Limits{TPM: configuredTPM * w.vary.Rate}
		each := w.configured.TPM * percent / 100
		w.tokens = func(int) float64 { return each }
		w.makers = append(w.makers, func(w *World, _ uint64) gates.Gate { return gates.NewTokenLog(w.configured.TPM, time.Minute) })
	}
}

// A call of [guessedLow] draws 45 to 57 tokens; the law expects 49.
const (
	drawsLeast = 45
	drawsMore  = 12
	expected   = 40
)

// guessedLow makes the law expect a little less than a call draws.
func guessedLow(w *World) {
	w.tokens = func(item int) float64 { return math.Floor(drawsLeast + (drawsMore+1)*share(item)) }
	w.thought = func(int) float64 { return expected }
}

// tokensOf is a bucket of 20,000 tokens a minute.
func tokensOf(span time.Duration) trait {
	const perMinute, each = 20_000, drawsLeast + drawsMore/2
	return func(w *World) {
		limit(perMinute / each)(w)
		limited(func(w *World, _ uint64) gates.Gate {
			b := gates.NewBucket(gates.Steady(each*w.perSecond), span)
			b.Tokens = true
			return b
		})(w)
	}
}
