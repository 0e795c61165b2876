package bank

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
	"github.com/headrace/headrace/tests/lab/gates"
)

// A trait is one property of a world.
type trait func(*World)

// limited adds a gate that limits the rate: a higher rate lets more through.
func limited(m maker) trait {
	return func(w *World) {
		w.makers = append(w.makers, m)
		w.scale = w.vary.Rate
	}
}

// limit sets another limit than 600 a minute. It must precede the gates.
func limit(perMinute float64) trait {
	return func(w *World) { w.perSecond = perMinute / 60 * w.vary.Rate }
}

func items(n int) trait { return func(w *World) { w.items = n } }

func hands(n int) trait { return func(w *World) { w.hands = n } }

// nearby makes it a server in the same rack, which refuses as fast as calls arrive.
func nearby(w *World) { w.hop, w.server.Refusal = time.Millisecond, time.Millisecond }

func answers(median time.Duration, sigma float64) trait {
	return func(w *World) { w.server.Answers = gates.Answers{Median: median, Sigma: sigma} }
}

func bucket(span time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate { return gates.NewBucket(gates.Steady(w.perSecond), span) })
}

// bucketOf is a bucket that holds so many calls.
func bucketOf(calls float64) trait {
	return limited(func(w *World, _ uint64) gates.Gate { return gates.NewBucketOf(gates.Steady(w.perSecond), calls) })
}

// turning is a bucket whose limit changes after 300 s, by which time a law has settled.
func turning(factor float64, span time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate {
		return gates.NewBucket(gates.Turning(w.perSecond, factor, 300*time.Second), span)
	})
}

func drifting(span time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate { return gates.NewBucket(gates.Drifting(w.perSecond), span) })
}

// windows hold whole calls: the remainder is lost.
func windows(width time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate { return gates.NewWindow(w.during(width), width) })
}

func sliding(width time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate { return gates.NewSliding(w.during(width), width) })
}

func (w *World) during(d time.Duration) int { return int(w.perSecond*d.Seconds() + 1e-6) }

// charged makes refused calls of the gate cost as well.
func charged(w *World) {
	plain := w.makers[len(w.makers)-1]
	w.makers[len(w.makers)-1] = func(w *World, seed uint64) gates.Gate {
		g := plain(w, seed)
		switch g := g.(type) {
		case *gates.Bucket:
			g.Charged = true
		case *gates.Window:
			g.Charged = true
		case *gates.Sliding:
			g.Charged = true
		}
		return g
	}
}

func spacing(w *World) {
	limited(func(w *World, _ uint64) gates.Gate { return gates.NewSpacing(gates.Steady(w.perSecond)) })(w)
}

// capped is a cap on calls at work. It scales a world that has no other gate.
func capped(most float64) trait {
	return func(w *World) {
		if len(w.makers) == 0 {
			w.scale = w.vary.Cap
		}
		w.makers = append(w.makers, func(w *World, _ uint64) gates.Gate {
			c := gates.NewCap(int(math.Round(most * w.vary.Cap)))
			c.News = 2 * w.hop
			return c
		})
	}
}

// shed refuses by chance; only the hands bound the calls, and they are not varied.
func shed(share float64) trait {
	return func(w *World) {
		w.makers = append(w.makers, func(w *World, seed uint64) gates.Gate {
			return gates.NewShed(share*w.vary.Chance, seed)
		})
	}
}

// breaks sets the share of admitted calls that end with a 500.
func breaks(share float64) trait {
	return func(w *World) { w.server.Breaks = share * w.vary.Chance }
}

func pool(w *World) {
	limited(func(w *World, seed uint64) gates.Gate { return gates.NewPool(w.perSecond, seed) })(w)
}

func penalty(w *World) {
	w.makers = append(w.makers, func(*World, uint64) gates.Gate { return &gates.Penalty{} })
}

func replicas(span time.Duration) trait {
	return limited(func(w *World, seed uint64) gates.Gate { return gates.NewReplicas(w.perSecond, span, seed) })
}

func scaler(w *World) {
	limited(func(w *World, _ uint64) gates.Gate { return gates.NewScaler(w.perSecond) })(w)
}

// neighbour takes that share of the limit for half of every minute.
func neighbour(share float64) trait {
	return func(w *World) {
		w.neighbour = lab.Neighbour{PerSecond: share * w.perSecond, On: 30 * time.Second, Off: 30 * time.Second}
	}
}

func outage(from time.Duration) trait {
	return func(w *World) { w.server.Outages = []gates.Outage{{From: from, For: time.Minute}} }
}

// headers come with Retry-After in whole seconds.
func headers(w *World) { w.server.Headers, w.server.Retry = true, true }

// lying headers come alone: a true Retry-After would make up for them.
func lying(l gates.Lie) trait {
	return func(w *World) { w.server.Headers, w.server.Lie = true, l }
}

func retryAfter(w *World) { w.server.Retry = true }

// named gives each refusal the same Retry-After.
func named(wait time.Duration) trait {
	return func(w *World) { w.server.Retry, w.server.Named = true, wait }
}

func configured(w *World) { w.configured.RPM = 60 * w.perSecond }

func overloaded(w *World) { w.server.Status = sim.Overloaded }

// Numbers of the worlds in tokens: for each allowed request, so many tokens are allowed, and
// 1.3 times the requests. Therefore now one limit binds, now the other.
const (
	tokensEach  = 4500
	requestsToo = 1.3
	turn        = 1000 // items that are small, followed by as many large ones
	small       = 100.0
	middle      = 1414.0
	large       = 20000.0
)

// inTurns returns the draw of an item: small and large items alternate, and within each
// group every octave has as many.
func inTurns(item int) float64 {
	from, to := small, middle
	if item/turn%2 == 1 {
		from, to = middle, large
	}
	return from * math.Pow(to/from, share(item))
}

func inTokens(w *World) { w.tokens = inTurns }

func tokenBucket(span time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate {
		b := gates.NewBucket(gates.Steady(tokensEach*w.perSecond), span)
		b.Tokens = true
		return b
	})
}

func requestBucket(span time.Duration) trait {
	return limited(func(w *World, _ uint64) gates.Gate {
		return gates.NewBucket(gates.Steady(requestsToo*w.perSecond), span)
	})
}

// configuredRequests gives the law the limit of a bucket that holds the burst, and one call at
// least.
func configuredRequests(w *World) {
	w.configured.RPM = 60 * w.perSecond
	limited(func(w *World, _ uint64) gates.Gate {
		return gates.NewBucketOf(gates.Steady(w.perSecond), w.configured.Capacity(limiter.Requests))
	})(w)
}

func configuredBurst(d time.Duration) trait { return func(w *World) { w.configured.Burst = d } }

// configuredTokens is the same in tokens, where each call draws that share of a minute's known limit.
func configuredTokens(percent float64) trait {
	const perMinute = 60_000
	each := perMinute * percent / 100
	return func(w *World) {
		w.tokens = func(int) float64 { return each }
		w.configured = limiter.Limits{TPM: perMinute * w.vary.Rate}
		configuredBucket(each)(w)
	}
}

// configuredBucket refills at the known limit on tokens, and holds the largest call.
func configuredBucket(largest float64) trait {
	return limited(func(w *World, _ uint64) gates.Gate {
		b := gates.NewBucketOf(gates.Steady(w.configured.TPM/60), max(largest, w.configured.Capacity(limiter.Tokens)))
		b.Tokens = true
		return b
	})
}

func configuredBoth(w *World) {
	w.configured = limiter.Limits{RPM: 60 * requestsToo * w.perSecond, TPM: 60 * tokensEach * w.perSecond}
}
