package plain

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// newBucket gives a bucket whose limit is set at now, so that it is full.
func newBucket(perMinute, capacity float64, now time.Time) bucket {
	var b bucket
	b.SetLimit(now, perMinute, capacity)
	return b
}

// take takes n units if they may be taken now, and reports whether it did.
func (b *bucket) take(now time.Time, n float64) bool {
	if b.Wait(now, n) > 0 {
		return false
	}
	b.Debit(now, n)
	return true
}

// The zero value has no limit: nothing waits, nothing is counted.
func TestBucketZeroValueHasNoLimit(t *testing.T) {
	var b bucket
	want(t, "limited", b.Limited(), false)
	want(t, "take", b.take(noon, 1e12), true)
	b.Debit(noon, 1e12)
	b.Drain(noon)
	want(t, "wait", b.Wait(noon, 1e12), 0)
	want(t, "level", b.Level(noon), math.Inf(1))
}

// A bucket starts full, gives what it holds, and then one unit per refill time.
func TestBucketRefills(t *testing.T) {
	b := newBucket(60, 3, noon)
	for range 3 {
		want(t, "take", b.take(noon, 1), true)
	}
	want(t, "take from empty", b.take(noon, 1), false)
	want(t, "wait", b.Wait(noon, 1), time.Second)
	want(t, "take a tick early", b.take(at(1).Add(-time.Nanosecond), 1), false)
	want(t, "take in time", b.take(at(1), 1), true)
	near(t, "level much later", b.Level(at(3600)), 3, 0)
}

// The eleven-day wait cannot happen: a bucket of 60 a minute from which a million
// units are drawn is full again within two minutes, and no wait on the way is longer.
func TestBucketDebtIsBounded(t *testing.T) {
	for name, draw := range map[string]func(*bucket){
		"at once":       func(b *bucket) { b.Debit(noon, 1_000_000) },
		"call by call":  func(b *bucket) { drawEach(b, 1_000_000) },
		"one huge call": func(b *bucket) { b.take(noon, 1_000_000) },
		"without bound": func(b *bucket) { b.Debit(noon, math.Inf(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(60, 60, noon)
			draw(&b)
			near(t, "level", b.Level(noon), -60, 0)
			want(t, "wait for one", b.Wait(noon, 1), 61*time.Second)
			want(t, "wait for all", b.Wait(noon, 60), measure.MaxWait)
			want(t, "wait for more", b.Wait(noon, 1e9), measure.MaxWait)
			near(t, "level after two minutes", b.Level(at(120)), 60, 1e-9)
			want(t, "all is there", b.take(at(120), 60), true)
		})
	}
}

func drawEach(b *bucket, n int) {
	for range n {
		b.Debit(noon, 1)
	}
}

// A call larger than the bucket waits for a full one, passes, and leaves a debt that
// holds the calls after it to the rate.
func TestBucketLetsALargeCallPass(t *testing.T) {
	b := newBucket(600, 10, noon)
	b.take(noon, 5)
	want(t, "wait for full", b.Wait(noon, 35), 500*time.Millisecond)
	want(t, "not before", b.take(noon, 35), false)
	want(t, "when full", b.take(at(0.5), 35), true)
	near(t, "debt", b.Level(at(0.5)), -25, 1e-9)
	want(t, "the next one pays", b.Wait(at(0.5), 1), 2600*time.Millisecond)
}

// A caller that estimates nothing is still held to what its calls drew.
func TestBucketHoldsCallsOfNoCostWhileInDebt(t *testing.T) {
	b := newBucket(60, 10, noon)
	b.Debit(noon, 15)
	want(t, "in debt", b.take(noon, 0), false)
	want(t, "wait", b.Wait(noon, 0), 5*time.Second)
	want(t, "out of debt", b.take(at(5), 0), true)
	want(t, "nothing was drawn", b.take(at(5), 0), true)
}

// A credit never lifts the level above the capacity.
func TestBucketCreditStopsAtCapacity(t *testing.T) {
	b := newBucket(60, 10, noon)
	b.take(noon, 4)
	b.Credit(noon, 3)
	near(t, "level", b.Level(noon), 9, 0)
	b.Credit(noon, math.Inf(1))
	near(t, "level", b.Level(noon), 10, 0)
}

// Amounts that cannot be meant move nothing.
func TestBucketIgnoresSenselessAmounts(t *testing.T) {
	b := newBucket(60, 10, noon)
	b.take(noon, 4)
	for _, n := range []float64{-1, math.NaN(), math.Inf(-1)} {
		b.Debit(noon, n)
		b.Credit(noon, n)
		want(t, "take", b.take(noon, n), true)
		near(t, "level", b.Level(noon), 6, 0)
	}
}

// Drain empties a bucket but forgives no debt.
func TestBucketDrain(t *testing.T) {
	b := newBucket(60, 10, noon)
	b.Drain(noon)
	near(t, "level", b.Level(noon), 0, 0)
	b.Debit(noon, 7)
	b.Drain(at(1))
	near(t, "level in debt", b.Level(at(1)), -6, 1e-9)
}

// A changed limit keeps the level inside the new bounds, and never invents units.
func TestBucketSetLimit(t *testing.T) {
	b := newBucket(600, 100, noon)
	b.SetLimit(noon, 6000, 1000)
	near(t, "raised: nothing invented", b.Level(noon), 100, 0)
	b.SetLimit(noon, 60, 10)
	near(t, "lowered: clamped", b.Level(noon), 10, 0)
	b.Debit(noon, 70)
	b.SetLimit(noon, 30, 10)
	near(t, "the debt's bound shrinks too", b.Level(noon), -30, 0)
	b.SetLimit(noon, 0, 0)
	want(t, "taken away", b.Limited(), false)
	b.SetLimit(noon, 60, 10)
	near(t, "a new limit starts full", b.Level(noon), 10, 0)
}

// What was earned before a change of limit was earned at the old rate.
func TestBucketSetLimitAccruesAtTheOldRate(t *testing.T) {
	b := newBucket(600, 600, noon)
	b.Drain(noon)
	b.SetLimit(at(10), 60, 60)
	near(t, "level", b.Level(at(10)), 60, 0)
	c := newBucket(60, 60, noon)
	c.Drain(noon)
	c.SetLimit(at(10), 600, 600)
	near(t, "level", c.Level(at(10)), 10, 1e-9)
}

// A bucket holds at least one unit, and beyond that never more than a minute of its budget.
func TestBucketCapacityBounds(t *testing.T) {
	for _, c := range []struct{ perMinute, asked, holds float64 }{
		{60, 1000, 60},
		{60, 0, 1},
		{60, math.NaN(), 1},
		{60, math.Inf(1), 60},
		{0.5, 1, 1},
	} {
		b := newBucket(c.perMinute, c.asked, noon)
		near(t, "level", b.Level(noon), c.holds, 0)
	}
}

// Limits that cannot be meant are none.
func TestBucketSenselessLimitIsNone(t *testing.T) {
	for _, x := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		b := newBucket(x, 10, noon)
		want(t, "limited", b.Limited(), false)
	}
}

// Half a call a minute is one call in two minutes.
func TestBucketSlowerThanOneAMinute(t *testing.T) {
	b := newBucket(0.5, 1, noon)
	want(t, "first", b.take(noon, 1), true)
	want(t, "wait", b.Wait(noon, 1), 2*time.Minute)
	want(t, "second", b.take(at(120), 1), true)
}

// A clock that goes back neither refills nor drains, and what was refilled before is
// not refilled again when it comes forward.
func TestBucketClockGoesBack(t *testing.T) {
	b := newBucket(60, 10, noon)
	b.Debit(noon, 10)
	want(t, "take", b.take(at(5), 5), true)
	near(t, "an hour earlier", b.Level(at(-3600)), 0, 1e-9)
	want(t, "take an hour earlier", b.take(at(-3600), 1), false)
	b.Credit(at(-3600), 1)
	near(t, "back at five", b.Level(at(5)), 1, 1e-9)
	near(t, "at six", b.Level(at(6)), 2, 1e-9)
}

// exactBucket replays every event in exact arithmetic.
type exactBucket struct {
	perMinute, capacity, level *big.Rat
	last                       time.Time
}

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

func (e *exactBucket) move(now time.Time, n float64) {
	if now.After(e.last) {
		minutes := big.NewRat(int64(now.Sub(e.last)), int64(time.Minute))
		e.level.Add(e.level, minutes.Mul(minutes, e.perMinute))
		e.last = now
	}
	e.clamp()
	e.level.Add(e.level, rat(n))
	e.clamp()
}

func (e *exactBucket) clamp() {
	if e.level.Cmp(e.capacity) > 0 {
		e.level.Set(e.capacity)
	}
	if floor := new(big.Rat).Neg(e.perMinute); e.level.Cmp(floor) < 0 {
		e.level.Set(floor)
	}
}

// Against an exact replay of the same events the level is right to a nanosecond of
// refill, Take grants only what is there, and it grants at the instant Wait named.
func TestBucketAgreesWithExactReplay(t *testing.T) {
	for seed := range uint64(40) {
		rng := seeded(seed)
		perMinute := math.Exp(rng.Float64() * 16)
		capacity := max(min(1, perMinute), perMinute*rng.Float64())
		b := newBucket(perMinute, capacity, noon)
		e := &exactBucket{rat(perMinute), rat(b.capacity), rat(b.capacity), noon}
		now, tick := noon, perMinute/60e9
		for range 300 {
			now = now.Add(time.Duration(rng.ExpFloat64()*5e9) - time.Second/2)
			n := capacity * rng.Float64() * 1.2
			switch rng.IntN(5) {
			case 0:
				b.Debit(now, n*3)
				e.move(now, -n*3)
			case 1:
				b.Credit(now, n)
				e.move(now, n)
			default:
				e.move(now, 0)
				now = measure.Later(now, e.last).Add(b.Wait(measure.Later(now, e.last), n))
				e.move(now, 0)
				if there, _ := e.level.Float64(); there < min(n, capacity)-tick {
					t.Fatalf("seed %d: wait for %v ended with %v there", seed, n, there)
				}
				want(t, "take after wait", b.take(now, n), true)
				e.move(now, -n)
			}
			exact, _ := e.level.Float64()
			near(t, "level", b.Level(now), exact, tick)
		}
	}
}

// Whatever is done to a bucket, in whatever order and at whatever times, its level
// stays within its bounds, no wait exceeds MaxWait, a shorter one is a promise that is kept,
// and two minutes of rest make one full that gains a unit a minute.
func FuzzBucket(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 4, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, script []byte) {
		b, now := newBucket(60, 10, noon), noon
		latest := now
		for len(script) >= 5 {
			n := float64(math.Float32frombits(binary.LittleEndian.Uint32(script[1:5])))
			now = now.Add(time.Duration(int8(script[0])) * 100 * time.Millisecond)
			latest = measure.Later(latest, now)
			operate(&b, script[0], now, n)
			checkBucket(t, b, now, n)
			script = script[5:]
		}
		if b.perMinute >= limiter.MinCapacity && b.Wait(latest.Add(measure.MaxWait), b.capacity) != 0 {
			t.Errorf("not full after two minutes: %+v", b)
		}
	})
}

func operate(b *bucket, op byte, now time.Time, n float64) {
	switch op % 6 {
	case 0:
		b.take(now, n)
	case 1:
		b.Debit(now, n)
	case 2:
		b.Credit(now, n)
	case 3:
		b.SetLimit(now, n, n/10)
	case 4:
		b.Drain(now)
	case 5:
		b.SetLimit(now, 60, n)
	}
}

func checkBucket(t *testing.T, b bucket, now time.Time, n float64) {
	t.Helper()
	if !b.Limited() {
		return
	}
	if l := b.Level(now); !(l >= -b.perMinute && l <= b.capacity && b.capacity <= max(b.perMinute, limiter.MinCapacity)) {
		t.Fatalf("level %v out of bounds: %+v", l, b)
	}
	w := b.Wait(now, n)
	if w < 0 || w > measure.MaxWait {
		t.Fatalf("wait %v for %v: %+v", w, n, b)
	}
	from := measure.Later(now, b.last)
	if w := b.Wait(from, n); w < measure.MaxWait && !b.take(from.Add(w), n) {
		t.Fatalf("wait for %v was too short: %+v", n, b)
	}
}
