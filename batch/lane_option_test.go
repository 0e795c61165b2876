package batch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A lane that is named has what was said of it, the others have not.
func TestWithLaneIsAboutThatLane(t *testing.T) {
	for lane, most := range map[string]time.Duration{"told": 3 * time.Minute, "other": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			fn := func(_ context.Context, i int) (int, error) { return i, nil }
			pool := WithPoolOf(func(int) string { return lane })
			_, sum, err := proved(t.Context(), t, numbers(4), fn, pool, WithLane("told", LaneConfig{Limits: Limits{RPM: 1}}))
			if err != nil || sum.Succeeded != 4 || sum.Elapsed > 2*most || sum.Elapsed < most/2 && lane == "told" {
				t.Errorf("%s: %v in %v", lane, err, sum.Elapsed)
			}
		})
	}
}

// A server of one's own whose answers take the longer the more it is asked at once is asked
// no more at once than its target of latency allows.
func TestLocalServerIsPacedByLatency(t *testing.T) {
	most := func(t *testing.T, opts ...Option) (most int) {
		synctest.Test(t, func(t *testing.T) {
			type book struct{ begun, flying, most int }
			books := make(chan book, 1)
			books <- book{}
			fn := func(ctx context.Context, i int) (int, error) {
				b := <-books
				b.begun, b.flying = b.begun+1, b.flying+1
				if b.begun > 1000 { // when it has had time to settle
					b.most = max(b.most, b.flying)
				}
				books <- b
				err := pause(ctx, time.Duration(b.flying)*100*time.Millisecond)
				b = <-books
				b.flying--
				books <- b
				return i, err
			}
			if _, err := Run(t.Context(), numbers(2000), fn, append(opts, WithConcurrency(64))...); err != nil {
				t.Error(err)
			}
			most = (<-books).most
		})
		return most
	}
	local, other := most(t, WithLocalServer(time.Second)), most(t)
	if local > 20 || other < 40 {
		t.Errorf("%d calls at once to your own server, %d to another", local, other)
	}
}

// A run that made a hundred calls a second before a ramp makes as many right after it, and
// by the first of them the concurrency is used in full.
func TestNoLimitOutsideARamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		began, over := time.Now(), time.Time{}
		fn := func(ctx context.Context, i int) (int, error) {
			n := log.add("")
			err := pause(ctx, 100*time.Millisecond)
			if n == 500 {
				over = time.Now().Add(time.Second + 10*time.Second) // the wait, and the ramp
				return i, RetryAfter(time.Second, errors.New("busy"))
			}
			return i, err
		}
		_, sum, err := proved(t.Context(), t, numbers(2000), fn, exact, WithRamp(5, 20, 10*time.Second), WithConcurrency(10))
		if err != nil || sum.Succeeded != 2000 {
			t.Fatal(err, sum)
		}
		before, within := log.until(began.Add(4*time.Second)), log.until(over)
		after := log.until(over.Add(2*time.Second)) - within
		if before < 390 || within < 600 || within > 640 || after < 190 {
			t.Errorf("%d calls in four seconds before, %d until the ramp's end, and %d in two seconds after it", before, within, after)
		}
	})
}

// Chance is the seed's: with the same one the same waits follow, with another others.
func TestSeedDecidesTheWaits(t *testing.T) {
	took := func(seed uint64) (d time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			fn := func(context.Context, int) (int, error) { return 0, &Error{Kind: Server} }
			_, sum, err := proved(t.Context(), t, numbers(1), fn, WithSeed(seed))
			if d = sum.Elapsed; err != nil || sum.Failed != 1 || d == 0 {
				t.Errorf("%v: %+v", err, sum)
			}
		})
		return d
	}
	if a, b, c := took(1), took(1), took(2); a != b || a == c {
		t.Errorf("seed 1 took %v and %v, seed 2 %v", a, b, c)
	}
}
