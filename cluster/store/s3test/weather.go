package s3test

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// Weather is what a store goes through while others work with it. Shares are of all requests that it
// concerns, from 0 to 1, drawn from the seed.
type Weather struct {
	Seed    uint64
	Busy    float64 // share that is answered SlowDown
	Broken  float64 // share whose connection breaks before, or after which an error is said
	Unheard float64 // share of PUTs that are done, and whose answer is lost
	Hanging float64 // share on whose connection nothing comes
	// Hang is how long nothing comes, then the connection breaks; half of what hangs is done before that.
	Hang time.Duration
	// SlowList is how long a LIST takes at most.
	SlowList time.Duration
	// Of each Every, the store is away for Away, at its end: nobody reaches it, or it is too busy. 0: it never is.
	Every, Away time.Duration
}

// From is the rule of the weather, which begins at a time.
func (w Weather) From(began time.Time) Rule {
	return func(n int, r *http.Request) Fault {
		chance := rand.New(rand.NewPCG(w.Seed, uint64(n)))
		if w.away(time.Since(began)) {
			return pick(chance, SlowDown, LoseAsk)
		}
		if IsList(r) && w.SlowList > 0 {
			hold(r, time.Duration(chance.Int64N(int64(w.SlowList))))
		}
		return w.one(chance, r)
	}
}

// away reports whether the store is, so long after the beginning.
func (w Weather) away(since time.Duration) bool {
	return w.Every > 0 && since%w.Every >= w.Every-w.Away
}

// one draws what becomes of a request.
func (w Weather) one(chance *rand.Rand, r *http.Request) Fault {
	drawn := chance.Float64()
	below := func(share float64) bool {
		drawn -= share
		return drawn < 0
	}
	switch {
	case below(w.Busy):
		return SlowDown
	case below(w.Broken):
		return pick(chance, LoseAsk, FailAfter)
	case below(w.Hanging):
		hold(r, w.Hang)
		return pick(chance, LoseAsk, LoseAnswer)
	case IsPut(r) && below(w.Unheard):
		return LoseAnswer
	}
	return None
}

func pick(chance *rand.Rand, faults ...Fault) Fault { return faults[chance.IntN(len(faults))] }

// hold keeps a request waiting, until its client gives up.
func hold(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
