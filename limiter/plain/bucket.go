package plain

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// DebtBudget bounds the debt of a bucket, in minutes of its budget. Debts exist because the
// real draw of a call is known only after it. The bound exists because without it one wrong
// number (a million units debited from 60 a minute) stops a lane for eleven days. A provider
// that counts per minute has forgotten older calls, so deeper debt would model nothing.
const DebtBudget = 1

// A bucket holds units that flow in at a steady rate up to a capacity; calls take them. Its
// level may be negative: a debt, from a call larger than the bucket or from one that drew more
// than was estimated.
//
//	capacity ≤ one minute of budget ──┐ no inflow above; one unit where that is less
//	                             ▒▒▒▒▒│
//	       0 ────────────────────▒▒▒▒▒│ calls that fit go while level ≥ what they draw
//	                                  │
//	−one minute of budget ────────────┘ the debt ends here
//
// So a bucket that gains a unit a minute is full again within two minutes, whatever was drawn
// from it. No wait is longer than [measure.MaxWait]. The zero value has no limit: it grants
// everything at once.
type bucket struct {
	perMinute float64 // 0: no limit
	capacity  float64 // MinCapacity ≤ capacity ≤ perMinute, or MinCapacity
	level     float64 // −DebtBudget·perMinute ≤ level ≤ capacity, as of last
	last      time.Time
}

// Limited reports whether the bucket has a limit at all.
func (b *bucket) Limited() bool { return b.perMinute > 0 }

// Level returns the units that are there; negative in debt, +Inf without a limit.
func (b *bucket) Level(now time.Time) float64 {
	if !b.Limited() {
		return math.Inf(1)
	}
	return min(b.capacity, b.level+b.perMinute*(measure.Elapsed(b.last, now)/60))
}

// Wait returns the time until n units may be taken: 0 if now, never more than
// [measure.MaxWait]. An n larger than the capacity waits for a full bucket, passes then and
// leaves a debt; a wait for n would never end. An n of 0 waits until no debt is left: a caller
// that cannot estimate its calls still waits for their real draw.
func (b *bucket) Wait(now time.Time, n float64) time.Duration {
	if !b.Limited() {
		return 0
	}
	missing := min(units(n), b.capacity) - b.Level(now)
	if missing <= 0 {
		return 0
	}
	return measure.Wait(missing / b.perMinute * 60)
}

// Debit takes n units that are gone already, whether they were there or not.
func (b *bucket) Debit(now time.Time, n float64) { b.move(now, -units(n)) }

// Credit gives n units back, up to the capacity.
func (b *bucket) Credit(now time.Time, n float64) { b.move(now, units(n)) }

// Drain empties the bucket: the provider said that nothing is left. A debt stays.
func (b *bucket) Drain(now time.Time) { b.move(now, -max(0, b.Level(now))) }

// SetLimit changes rate and capacity from now on, to a bucket that gains perMinute units a
// minute and holds capacity units. perMinute of 0, less, NaN or infinity is no limit. The
// bucket holds at least [limiter.MinCapacity] whatever is asked, and beyond that never more than
// perMinute. The level stays, within the new bounds: a higher limit does not invent units that were
// not earned. A bucket that had no limit starts full.
func (b *bucket) SetLimit(now time.Time, perMinute, capacity float64) {
	if !measure.Positive(perMinute) {
		*b = bucket{}
		return
	}
	level := b.Level(now) // +Inf where there was no limit: clamped to full
	if !(capacity > limiter.MinCapacity) {
		capacity = limiter.MinCapacity
	}
	b.perMinute = perMinute
	b.capacity = min(capacity, max(perMinute, limiter.MinCapacity))
	b.set(now, level)
}

// move adds n units, in a limited bucket, to what is there now.
func (b *bucket) move(now time.Time, n float64) {
	if b.Limited() {
		b.set(now, b.Level(now)+n)
	}
}

// set is the only place that writes the level, and so the one that keeps its bounds.
func (b *bucket) set(now time.Time, level float64) {
	b.level = min(max(level, -DebtBudget*b.perMinute), b.capacity)
	if now != b.last {
		b.last = measure.Later(b.last, now)
	}
}

// units makes an amount of n: 0 if n is negative or NaN.
func units(n float64) float64 {
	if n > 0 {
		return n
	}
	return 0
}
