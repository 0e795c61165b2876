package batch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
)

// fate makes one call end in some way.
type fate func(ctx context.Context, rec *provider.Recorder) error

var (
	tokens = provider.Usage{InputTokens: 9, OutputTokens: 4}

	answered fate = func(_ context.Context, rec *provider.Recorder) error { rec.Usage(tokens); return nil }
	// breaks tells of usage before the answer is cut off, as a stream does.
	breaks fate = func(_ context.Context, rec *provider.Recorder) error {
		rec.Response(http.StatusOK, http.Header{})
		rec.Usage(tokens)
		return &provider.Error{Kind: provider.TransportFault, Status: http.StatusOK, Err: io.ErrUnexpectedEOF}
	}
	silent fate = func(ctx context.Context, _ *provider.Recorder) error { return leave(ctx, ctx.Done(), nil) }
	// refused is an answer that says what it used, and is an error.
	refused fate = func(_ context.Context, rec *provider.Recorder) error {
		rec.Response(http.StatusInternalServerError, http.Header{})
		rec.Usage(tokens)
		return &provider.Error{Kind: provider.Server, Status: http.StatusInternalServerError}
	}
	unreached fate = func(ctx context.Context, _ *provider.Recorder) error {
		return leave(ctx, nil, &net.OpError{Op: "dial", Err: errors.New("refused")})
	}
)

// leave sends a request that ends once over is closed, or at once.
func leave(ctx context.Context, over <-chan struct{}, err error) error {
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://h/", http.NoBody)
	_, err = (&provider.Transport{Base: roundTrip(func(*http.Request) (*http.Response, error) {
		if over == nil {
			return nil, err
		}
		<-over
		return nil, ctx.Err()
	})}).RoundTrip(req)
	return err
}

// A call that was sent and whose answer was cut off is in no sum of what was used, but counted
// apart: in its result, in the summary, and for hooks. What a whole answer says that is
// an error stays sure, and a call that reached nobody is nothing.
func TestDoubtfulIsCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fates := [][]fate{
			{answered},
			{breaks, answered},
			{silent, breaks, answered},
			{refused, answered},
			{unreached, answered},
			{breaks, breaks, breaks},
		}
		used := func(n int64) provider.Usage { return provider.Usage{InputTokens: 9 * n, OutputTokens: 4 * n} }
		want := []struct {
			usage int64 // times that of one answer
			doubt provider.Doubtful
		}{
			{1, provider.Doubtful{}},
			{1, provider.Doubtful{Calls: 1, Usage: used(1)}},
			{1, provider.Doubtful{Calls: 2, Usage: used(1)}},
			{2, provider.Doubtful{}},
			{1, provider.Doubtful{}},
			{0, provider.Doubtful{Calls: 3, Usage: used(3)}},
		}
		fn := func(ctx context.Context, i int) (int, error) {
			return i, fates[i][CallFrom(ctx)-1](ctx, provider.RecorderFrom(ctx))
		}
		var calls, ends provider.Doubtful
		results, sum, err := proved(t.Context(), t, numbers(len(fates)), fn, WithConcurrency(1), WithMaxAttempts(3), WithAttemptTimeout(time.Minute), WithKeepGoing(),
			WithCalls(func(c Call) {
				if calls = calls.Add(c.Doubtful); c.Doubtful.Calls > 0 && c.Usage != (provider.Usage{}) {
					t.Errorf("usage that is doubtful is told twice: %+v", c)
				}
			}),
			WithEnds(func(e End) { ends = ends.Add(e.Doubtful) }))
		if err != nil || sum.Failed != 1 {
			t.Fatal(err, sum)
		}
		for i, r := range results {
			if r.Usage != used(want[i].usage) || r.Doubtful() != want[i].doubt {
				t.Errorf("item %d: %+v and %+v, want %+v", i, r.Usage, r.Doubtful(), want[i])
			}
		}
		all := provider.Doubtful{Calls: 6, Usage: used(5)}
		if sum.Usage != used(6) || sum.Doubtful != all || calls != all || ends != all {
			t.Errorf("in all %+v and %+v; told by calls %+v, by ends %+v", sum.Usage, sum.Doubtful, calls, ends)
		}
	})
}

// Calls that a run cuts off as it is abandoned may be billed as well, though their items are not run.
func TestDoubtfulOfARunThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const items = 5
		ctx, cancel := context.WithCancel(t.Context())
		var under atomic.Int64
		fn := func(ctx context.Context, i int) (int, error) {
			if under.Add(1) == items {
				time.AfterFunc(time.Second, cancel)
			}
			return i, silent(ctx, provider.RecorderFrom(ctx))
		}
		_, sum, err := proved(ctx, t, numbers(items), fn, WithConcurrency(items))
		if !errors.Is(err, ErrNotRun) && !errors.Is(err, context.Canceled) || sum.NotRun != items || sum.Doubtful != (provider.Doubtful{Calls: items}) {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}

// A lane learns nothing of what a call has drawn that was cut off: its estimate stands.
func TestDoubtfulUsageIsNotMeasured(t *testing.T) {
	for _, doubtful := range []bool{true, false} {
		e := ending{err: provider.TransportFault, record: provider.Record{Usage: tokens, HasUsage: true}, doubtful: doubtful}
		if o := judge(e, 0, 0, policy{maxAttempts: 3}).outcome; o.Measured == doubtful || (o.Actual.Input == 0) != doubtful {
			t.Errorf("doubtful: %t, and the lane is told %+v", doubtful, o)
		}
	}
}
