package observe

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// A run next to another on one Shared reports only its own: not the lanes or the outage of the
// other, and not the other's waiting items on lanes that both use.
func TestBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := must.Get(batch.NewShared(batch.WithPlainLaw()))(t)
		defer shared.Close()
		run := func(rec *Recorder, n int, lane string, drain chan struct{}, fn batch.Func[int, int]) {
			opts := append(rec.Options(), batch.WithShared(shared), batch.WithDrain(drain), batch.WithConcurrency(8),
				batch.WithPoolOf(func(i int) string {
					if i%2 == 0 {
						return "both"
					}
					return lane
				}))
			_, _ = batch.Run(t.Context(), numbers(n), fn, opts...)
		}
		mine, other, drain, done := New(Config{}), New(Config{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			run(other, 200, "theirs", drain, func(_ context.Context, i int) (int, error) {
				time.Sleep(time.Second)
				if i%2 == 1 || i%20 == 0 {
					return 0, &provider.Error{Kind: provider.Server, Status: 500, RetryAfter: 10 * time.Minute}
				}
				return 0, nil
			})
		}()
		go run(mine, 400, "mine", drain, aSecond)
		time.Sleep(30 * time.Second)
		theirs, p := other.Snapshot(time.Now()), mine.Snapshot(time.Now())
		if theirs.Open+theirs.HalfOpen == 0 || theirs.Parked+theirs.Delayed == 0 {
			t.Fatalf("the others are well: %+v", theirs)
		}
		var names []string
		for _, l := range p.Lanes {
			names = append(names, l.Name)
		}
		if slices.Sort(names); !slices.Equal(names, []string{"both", "mine"}) || p.OfLanes != 2 {
			t.Errorf("%d lanes: %q", p.OfLanes, names)
		}
		if p.Parked+p.Delayed > 0 || !p.FirstDue.IsZero() {
			t.Errorf("%d wait in all: %d parked, %d delayed until %v", p.Waiting, p.Parked, p.Delayed, p.FirstDue)
		}
		close(drain)
		<-done
	})
}
