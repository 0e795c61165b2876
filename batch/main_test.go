package batch

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exact makes cooldowns last as long as they are asked to.
var exact = WithLaneDefaults(machine.LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1}})

// numbers are 0 to n-1.
func numbers(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// double is a call that never fails.
func double(_ context.Context, i int) (int, error) { return 2 * i, nil }

// takes is a call that lasts d, unless its context ends before.
func takes(d time.Duration) Func[int, int] {
	return func(ctx context.Context, i int) (int, error) { return i, pause(ctx, d) }
}

// pause waits, unless the context ends before. No time takes no timer: one that is due
// before anybody waits for it can crash Go 1.26's runtime, under synctest and the race
// detector together.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// proved runs a batch and fails the test unless its summary proves, and says of
// its results what they are: each item that was taken exactly once.
func proved[In, Out any](ctx context.Context, t *testing.T, items iter.Seq[In], fn Func[In, Out], opts ...Option) ([]Result[In, Out], Summary, error) {
	t.Helper()
	if slices.ContainsFunc(opts, func(o Option) bool { return o.String() == "WithShared()" }) {
		return judged(ctx, t, items, fn, opts...) // its lanes are not this run's to choose
	}
	// The plain law first, as it starts at full speed: most of these tests are about
	// what happens then. An option of the test's own may choose another.
	return judged(ctx, t, items, fn, append([]Option{WithPlainLaw()}, opts...)...)
}

// agrees fails the test unless the summary proves and tells the same as the
// results.
func agrees[In, Out any](t *testing.T, sum Summary, results []Result[In, Out]) {
	t.Helper()
	var reported Summary
	seen := map[int]bool{}
	calls := 0
	for _, r := range results {
		switch {
		case seen[r.Index]:
			t.Errorf("item %d has two results", r.Index)
		case r.Err == nil:
			reported.Succeeded++
		case errors.Is(r.Err, ErrNotRun):
			reported.NotRun++
		default:
			reported.Failed++
		}
		seen[r.Index] = true
		calls += r.Calls
		reported.Usage, reported.Doubtful = reported.Usage.Add(r.Usage), reported.Doubtful.Add(r.Doubtful())
	}
	if !sum.Proves() {
		t.Errorf("the summary proves nothing: %+v", sum)
	}
	if sum.Succeeded != reported.Succeeded || sum.Failed != reported.Failed || sum.NotRun != reported.NotRun || sum.Counters.Calls != uint64(calls) {
		t.Errorf("the summary says %+v, the results %+v and %d calls", sum, reported, calls)
	}
	if sum.Usage != reported.Usage || sum.Doubtful != reported.Doubtful {
		t.Errorf("the summary says %+v and %+v, the results %+v and %+v", sum.Usage, sum.Doubtful, reported.Usage, reported.Doubtful)
	}
}

// journal collects the notes of a test's goroutines.
type journal struct {
	mu    sync.Mutex
	times []time.Time
	lanes map[string]int
}

// add notes a call, and tells how many there were on its lane.
func (j *journal) add(lane string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.times = append(j.times, time.Now())
	if j.lanes == nil {
		j.lanes = map[string]int{}
	}
	j.lanes[lane]++
	return j.lanes[lane]
}
