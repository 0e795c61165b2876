package lab

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Numbers of the AWS SDKs' adaptive retry mode, as botocore's
// retries/{adaptive,bucket,throttling}.py have them.
const (
	awsBeta    = 0.7 // the share of the rate that is left after a throttle
	awsScale   = 0.4 // of the cubic
	awsSmooth  = 0.8 // weight of the latest half second in the measured rate
	awsLeast   = 0.5 // calls per second
	awsBackoff = 20  // seconds, the most
)

// aws is the "adaptive" retry mode of the AWS SDKs: a token bucket in front of all calls. It
// is off until the first throttle, and its rate follows CUBIC (RFC 8312) between throttles,
// up to twice the measured rate. Each item also backs off with full jitter. The SDKs give an
// item up after three tries, and refuse retries when a quota of them is spent; here a worker
// tries it until it is answered, as a batch needs.
type aws struct {
	rng      *rand.Rand
	bucket   bucket
	enabled  bool
	lastMax  float64
	lastTime time.Time // of the latest throttle
	window   float64   // seconds until the cubic is back at lastMax
	measured float64   // calls per second
	count    float64
	slot     float64 // start of the half second that is counted
}

// AWS makes the rival.
func AWS(b Batch, seed uint64) Law {
	return newCrew(b, &aws{rng: random(seed), bucket: bucket{rate: awsLeast, depth: 1, at: start}, lastTime: start})
}

func (a *aws) wait(now time.Time) time.Duration {
	if !a.enabled {
		return 0
	}
	return a.bucket.wait(now)
}

func (a *aws) sent(now time.Time) {
	if a.enabled {
		a.bucket.take(now)
	}
}

func (a *aws) ended(now time.Time, v sim.Verdict, tries int) time.Duration {
	a.measure(now)
	rate := a.cubic(now)
	if v.Kind == sim.RateLimited {
		rate = a.throttled(now)
	}
	a.setRate(now, min(rate, 2*a.measured))
	return seconds(fullJitter(a.rng, max(1, tries), awsBackoff))
}

func (a *aws) measure(now time.Time) {
	slot := math.Floor(now.Sub(start).Seconds()*2) / 2
	a.count++
	if slot > a.slot {
		a.measured = awsSmooth*a.count/(slot-a.slot) + (1-awsSmooth)*a.measured
		a.count, a.slot = 0, slot
	}
}

func (a *aws) throttled(now time.Time) float64 {
	rate := a.measured
	if a.enabled {
		rate = min(rate, a.bucket.rate)
	}
	a.lastMax, a.lastTime = rate, now
	a.window = math.Cbrt(rate * (1 - awsBeta) / awsScale)
	a.enabled = true
	return rate * awsBeta
}

func (a *aws) cubic(now time.Time) float64 {
	x := now.Sub(a.lastTime).Seconds() - a.window
	return awsScale*x*x*x + a.lastMax
}

func (a *aws) setRate(now time.Time, rate float64) {
	a.bucket.advance(now)
	a.bucket.rate = max(rate, awsLeast)
	a.bucket.depth = max(rate, 1)
	a.bucket.level = min(a.bucket.level, a.bucket.depth)
}
