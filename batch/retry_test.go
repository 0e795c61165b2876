package batch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// judge returns an ending as it is judged.
func judge(e ending, attempts, refusals int, p policy) ending {
	e.judge(attempts, refusals, p)
	return e
}

// Every kind of failure, with attempts to spare: whether the item is tried again,
// whether it used up an attempt, and what the lane learns.
func TestJudgeEveryKind(t *testing.T) {
	const no, yes = false, true
	type verdict struct {
		again, tried bool
		first, later uint8
		signal       machine.Signal
	}
	table := map[provider.Kind]verdict{
		provider.Unknown:        {yes, yes, 0, 0, machine.Failed},
		provider.Throttled:      {yes, no, 0, 0, machine.Throttled},
		provider.Overloaded:     {yes, no, 0, 0, machine.Overloaded},
		provider.QuotaExhausted: {yes, no, 0, 0, machine.Exhausted}, // back, to end as not run
		provider.Unauthorized:   {yes, no, 1, 5, machine.Exhausted},
		provider.Timeout:        {yes, yes, 0, 0, machine.Failed},
		provider.TransportFault: {yes, yes, 0, 0, machine.Failed},
		provider.EmptyAnswer:    {yes, yes, 0, 0, machine.Failed},
		provider.Server:         {yes, yes, 0, 0, machine.Failed},
		provider.Invalid:        {no, yes, 0, 0, machine.Answered},
		provider.Refused:        {no, yes, 0, 0, machine.Answered},
		provider.Truncated:      {no, yes, 0, 0, machine.Answered},
		provider.Canceled:       {no, no, 0, 0, machine.Nothing},
		provider.ModelNotFound:  {yes, no, 1, 5, machine.Exhausted},
		provider.Misconfigured:  {yes, no, 0, 0, machine.Exhausted},
		provider.Misfit:         {no, yes, 0, 0, machine.Answered},
	}
	for k := provider.Kind(0); k.String() != provider.Unknown.String() || k == 0; k++ {
		want, ok := table[k]
		if !ok {
			t.Errorf("%v: a kind that this table does not know", k)
			continue
		}
		for name, err := range map[string]error{"bare": k, "wrapped": &provider.Error{Kind: k, Err: errors.New("x")}} {
			j := judge(ending{err: err}, 0, 0, policy{maxAttempts: 5, patience: OverloadPatience})
			if got := (verdict{j.again, j.tried, j.outcome.First, j.outcome.Later, j.outcome.Signal}); got != want {
				t.Errorf("%v, %s: %+v, want %+v", k, name, got, want)
			}
			if !errors.Is(j.err, k) || !errors.Is(j.err, err) {
				t.Errorf("%v, %s: the error became %v", k, name, j.err)
			}
		}
		delete(table, k)
	}
	for k := range table {
		t.Errorf("%v: not looked at", k)
	}
}

// Refusals and patience each end an item at their bound, and not one before; with the last
// attempt it goes to the machine, which finds out whether it has failed. What is not counted
// ends nothing.
func TestJudgeBounds(t *testing.T) {
	p := policy{maxAttempts: 3, patience: time.Minute}
	for _, c := range []struct {
		name               string
		kind               provider.Kind
		attempts, refusals int
		since              time.Duration
		again, last        bool
	}{
		{"second attempt of three", provider.Server, 1, 0, 0, true, false},
		{"third attempt of three", provider.Server, 2, 0, 0, true, true},
		{"refusals use no attempt", provider.Server, 1, MaxRefusals, 0, true, false},
		{"attempts are no refusals", provider.Throttled, 2, 0, 0, true, false},
		{"last refusal but one", provider.Throttled, 0, MaxRefusals - 2, 0, true, false},
		{"last refusal", provider.Throttled, 0, MaxRefusals - 1, 0, false, false},
		{"a throttle is not bounded in time", provider.Throttled, 0, 0, time.Hour, true, false},
		{"patience not over", provider.Overloaded, 0, 0, time.Minute - 1, true, false},
		{"patience over", provider.Overloaded, 0, 0, time.Minute, false, false},
	} {
		j := judge(ending{err: c.kind, sinceFirst: c.since}, c.attempts, c.refusals, p)
		if j.again != c.again || j.outcome.Last != c.last {
			t.Errorf("%s: again is %v, last is %v", c.name, j.again, j.outcome.Last)
		}
	}
}

// What is not the provider's word is not laid at its door: success, a panic, an
// abandoned call, an item whose own time was up.
func TestJudgeOurOwnEnds(t *testing.T) {
	p := policy{maxAttempts: 3, patience: time.Minute}
	boom := &PanicError{Value: "boom"}
	for _, c := range []struct {
		name   string
		e      ending
		signal machine.Signal
		tried  bool
		kind   error
	}{
		{"success", ending{}, machine.Succeeded, true, nil},
		{"success, abandoned", ending{abandoned: true}, machine.Succeeded, true, nil},
		{"panic", ending{err: boom}, machine.Nothing, true, boom},
		{"panic, abandoned", ending{err: boom, abandoned: true}, machine.Nothing, true, boom},
		{"abandoned", ending{err: context.Canceled, abandoned: true}, machine.Nothing, false, ErrNotRun},
		{"expired", ending{err: provider.Timeout, expired: true}, machine.Failed, true, ErrItemTimeout},
	} {
		j := judge(c.e, 0, 0, p)
		if j.again || j.outcome.Signal != c.signal || j.tried != c.tried || !errors.Is(j.err, c.kind) {
			t.Errorf("%s: %+v", c.name, j)
		}
	}
}

// The wait that the server named reaches the lane, from the error first and from
// the recorded header else; usage and latency too.
func TestJudgePassesOnTheAnswer(t *testing.T) {
	record := provider.Record{
		HasRetryAfter: true, RetryAfter: 9 * time.Second, HasUsage: true,
		Usage: provider.Usage{InputTokens: 3, OutputTokens: 4},
	}
	p := policy{maxAttempts: 3}
	j := judge(ending{err: RetryAfter(time.Second, errors.New("x")), record: record, latency: time.Minute}, 0, 0, p)
	if o := j.outcome; !o.Directed || o.RetryAfter != time.Second || o.Latency != time.Minute ||
		!o.Measured || o.Actual.Requests != 1 || o.Actual.Input != 3 || o.Actual.Output != 4 {
		t.Errorf("%+v", o)
	}
	if o := judge(ending{err: provider.Throttled, record: record}, 0, 0, p).outcome; !o.Directed || o.RetryAfter != 9*time.Second {
		t.Errorf("%+v", o)
	}
	if o := judge(ending{err: provider.Throttled}, 0, 0, p).outcome; o.Directed || o.Measured {
		t.Errorf("%+v", o)
	}
}

// The kind of an error that says nothing itself is found in the recorded answer,
// and both can be asked for.
func TestJudgeKeepsTheUsersError(t *testing.T) {
	own := errors.New("sdk: request failed")
	j := judge(ending{err: own, record: provider.Record{Status: 429}}, 0, 0, policy{maxAttempts: 3})
	var fault *provider.Error
	if !j.again || !errors.Is(j.err, own) || !errors.Is(j.err, provider.Throttled) ||
		!errors.As(j.err, &fault) || fault.Status != 429 || j.err.Error() != own.Error() {
		t.Errorf("%+v", j)
	}
}

// A failed probe is the lane's test: it uses up no refusal of the item that happened to go,
// however long that takes; whether it is an attempt the machine finds out.
func TestProbesUseUpNothing(t *testing.T) {
	p := policy{maxAttempts: 1, patience: time.Minute}
	for _, kind := range []provider.Kind{provider.Server, provider.Throttled, provider.Overloaded} {
		e := ending{err: &provider.Error{Kind: kind}, probe: true, sinceFirst: time.Hour}
		if j := judge(e, 9, MaxRefusals, p); !j.again || j.outcome.Last != (kind == provider.Server) {
			t.Errorf("%v: again is %v, last is %v", kind, j.again, j.outcome.Last)
		}
	}
}

// A call to which no connection was made drew nothing; one that was cut off may have.
func TestJudgeTellsWhatNeverLeft(t *testing.T) {
	for _, c := range []struct {
		err    error
		unsent bool
	}{
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		{&url.Error{Op: "Post", URL: "http://x", Err: &net.DNSError{Err: "no such host", Name: "x"}}, true},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, false},
		{errors.Join(&provider.Error{Kind: provider.Canceled}, provider.ErrUnsent), true},
		{provider.Throttled, false},
	} {
		if got := judge(ending{err: c.err}, 0, 0, policy{maxAttempts: 3}).outcome.Unsent; got != c.unsent {
			t.Errorf("%v: never left: %v", c.err, got)
		}
	}
}

// A limit named in a refusal counts if it can be true: its period must be known, and not
// more used than there is. The remainder is the limit less the used units.
func TestNotedLimits(t *testing.T) {
	good := provider.QuotaNote{On: "requests", Limit: 100, Used: 40, Per: "minute"}
	for on := range dimensions {
		if dimensions[on] == limiter.Requests {
			good.On = on
		}
	}
	for per := range messagePeriods {
		if messagePeriods[per] == time.Minute {
			good.Per = per
		}
	}
	seen, ok := limitInMessage(good)
	if !ok || seen.Dimension != limiter.Requests || seen.Limit != 100 || seen.Remaining != 60 || seen.Window != time.Minute || !seen.Said {
		t.Errorf("%+v: %+v, %v", good, seen, ok)
	}
	whole := good
	whole.Used = whole.Limit
	if seen, ok := limitInMessage(whole); !ok || seen.Remaining != 0 {
		t.Errorf("a limit that is used up: %+v, %v", seen, ok)
	}
	for name, wrong := range map[string]func(*provider.QuotaNote){
		"no limit":     func(q *provider.QuotaNote) { q.Limit = 0 },
		"less is used": func(q *provider.QuotaNote) { q.Used = -1 },
		"more is used": func(q *provider.QuotaNote) { q.Used = 101 },
	} {
		q := good
		if wrong(&q); q == good {
			t.Fatal("nothing is wrong")
		}
		if seen, ok := limitInMessage(q); ok || seen.Limit != 0 {
			t.Errorf("%s: %+v, %v", name, seen, ok)
		}
	}
}

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
