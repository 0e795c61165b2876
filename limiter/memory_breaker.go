package limiter

import "time"

// A BreakerMemory is what a [Breaker] knows that is worth knowing after a restart. The
// zero value is a closed one.
type BreakerMemory struct {
	State    string    `json:"state"`          // as [BreakerState.String]
	At       time.Time `json:"at"`             // when it was saved
	Until    time.Time `json:"until,omitzero"` // the end of its open interval
	Reopened int       `json:"reopened"`       // times since it was last closed
}

// Save is what a restart should know of the breaker. The window of calls is not in it: it
// is half a minute long.
func (b *Breaker) Save(now time.Time) BreakerMemory {
	k := BreakerMemory{State: b.State(now).String(), At: wallAt(now, 0), Reopened: b.reopened}
	if b.state != Closed {
		k.Until = wallAt(now, b.until.Sub(now).Seconds())
	}
	return k
}

// reopenedMost is how many reopenings are believed of a memory: by then the interval is
// as long as it gets.
const reopenedMost = 64

// Restore takes up what an earlier breaker knew, before the first call. One that was
// open, or about to be tried, is open for the rest of its interval, and tried then; if
// that ended longer ago than failures count, it is closed. What cannot be true is left
// out. A row that opened nothing begins anew: the items that made it would count twice.
func (b *Breaker) Restore(now time.Time, k BreakerMemory) {
	c := b.config.withDefaults()
	*b = Breaker{config: b.config}
	if k.State == Open.String() || k.State == HalfOpen.String() {
		if k.Until.IsZero() || now.Sub(k.Until) >= c.Window {
			return
		}
		b.state, b.reopened = Open, min(max(0, k.Reopened), reopenedMost)
		b.until = now.Add(min(c.MaxOpen, k.Until.Sub(now)))
	}
}
