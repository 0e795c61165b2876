package servers

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Chance refuses by the throw of a die, at any pace. A refusal takes as long as an answer:
// the die is thrown behind the gateway.
type Chance struct {
	Latency time.Duration
	Refused float64     // share of the calls
	Faults  float64     // share that gets a 500
	Header  http.Header // of a refusal
}

// Start starts it.
func (c Chance) Start() Start {
	return inProcess(func() http.Handler {
		die := newDie()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x := die()
			read(r)
			time.Sleep(c.Latency)
			c.answer(w, x)
		})
	})
}

func (c Chance) answer(w http.ResponseWriter, x float64) {
	switch {
	case x < c.Refused:
		maps.Copy(w.Header(), c.Header)
		refuse(w, http.StatusTooManyRequests, silentBody)
	case x < c.Refused+c.Faults:
		refuse(w, http.StatusInternalServerError, faultBody)
	default:
		reply(w)
	}
}

// newDie throws from 0 up to 1, the same throws in every run, so that builds can be
// compared.
func newDie() func() float64 {
	var mu sync.Mutex
	draws := rand.New(rand.NewPCG(1, 1))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return draws.Float64()
	}
}

// AtMost refuses calls at once while so many are in flight.
func AtMost(most int64, latency time.Duration) Start {
	return inProcess(func() http.Handler {
		var inFlight atomic.Int64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			read(r)
			defer inFlight.Add(-1)
			if inFlight.Add(1) > most {
				refuse(w, http.StatusTooManyRequests, silentBody)
				return
			}
			time.Sleep(latency)
			reply(w)
		})
	})
}

// Bucket lets so many calls through a minute, with some saved up, and refuses the rest at
// once.
type Bucket struct {
	PerMinute float64
	Saved     float64
	Latency   time.Duration
	Headers   bool // OpenAI's, on every answer; otherwise it has no headers
}

// Start starts it.
func (b Bucket) Start() Start {
	return inProcess(func() http.Handler {
		f := &fill{perSecond: b.PerMinute / 60, most: b.Saved, level: b.Saved, at: time.Now()}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			read(r)
			ok, level := f.take(time.Now())
			if b.Headers {
				b.say(w.Header(), level)
			}
			if !ok {
				refuse(w, http.StatusTooManyRequests, b.words(level))
				return
			}
			time.Sleep(b.Latency)
			reply(w)
		})
	})
}

// say adds headers for the limit, what is left of it and when it is full again.
func (b Bucket) say(h http.Header, level float64) {
	h.Set("x-ratelimit-limit-requests", strconv.Itoa(int(b.PerMinute)))
	h.Set("x-ratelimit-remaining-requests", strconv.Itoa(int(level)))
	h.Set("x-ratelimit-reset-requests", b.refill(b.Saved-level).String())
}

func (b Bucket) words(level float64) string {
	if !b.Headers {
		return silentBody
	}
	return fmt.Sprintf(`{"error":{"message":"Rate limit reached for m in organization org-peer on requests per min (RPM): Limit %d, Used %d, Requested 1. Please try again in %v.",`+
		`"type":"requests","param":null,"code":"rate_limit_exceeded"}}`, int(b.PerMinute), int(b.PerMinute), b.refill(1-level))
}

// refill returns the time in which so many calls flow in, in whole milliseconds as OpenAI
// gives it.
func (b Bucket) refill(calls float64) time.Duration {
	return time.Duration(math.Ceil(calls*60_000/b.PerMinute)) * time.Millisecond
}

// fill is the level of a bucket.
type fill struct {
	mu                     sync.Mutex
	perSecond, most, level float64
	at                     time.Time
}

// take takes one call's worth if it is there, and returns what is left.
func (f *fill) take(now time.Time) (ok bool, level float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.level = min(f.most, f.level+now.Sub(f.at).Seconds()*f.perSecond)
	f.at = now
	if f.level < 1 {
		return false, f.level
	}
	f.level--
	return true, f.level
}
