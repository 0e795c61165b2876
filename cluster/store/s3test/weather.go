package s3test

import (
	"math/rand/v2"
	"net/http"
	"time"
)

// Weather is the trouble of a store while others work with it. Shares are of all requests concerned, from 0 to 1,
// drawn from the seed.
type Weather struct {
	Seed    uint64
	Busy    float64 // share that is answered SlowDown
	Broken  float64 // share whose connection breaks before, or that get an error after success
	Unheard float64 // share of PUTs that succeed and whose answer is lost
	Hanging float64 // share whose connection stays silent
	// Hang is the time for which a connection stays silent before it breaks; half of the hanging requests are done
	// before that.
	Hang time.Duration
	// SlowList bounds the delay of a LIST.
	SlowList time.Duration
	// At the end of each Every, the store is away for Away: out of reach, or too busy. 0: it never is.
	Every, Away time.Duration
}

// From returns the rule of the weather, which begins at a time.
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

// away reports whether the store is away, at a time since the beginning.
func (w Weather) away(since time.Duration) bool {
	return w.Every > 0 && since%w.Every >= w.Every-w.Away
}

// one draws the fate of a request.
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
