package batch

import (
	"context"
	"errors"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
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
		j := judge(ending{err: c.kind, sinceOne: c.since}, c.attempts, c.refusals, p)
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
		{"success, abandoned", ending{left: true}, machine.Succeeded, true, nil},
		{"panic", ending{err: boom}, machine.Nothing, true, boom},
		{"panic, abandoned", ending{err: boom, left: true}, machine.Nothing, true, boom},
		{"abandoned", ending{err: context.Canceled, left: true}, machine.Nothing, false, ErrNotRun},
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
func TestJudgePassesOnWhatWasTold(t *testing.T) {
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
		e := ending{err: &provider.Error{Kind: kind}, probe: true, sinceOne: time.Hour}
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
		{provider.Throttled, false},
	} {
		if got := judge(ending{err: c.err}, 0, 0, policy{maxAttempts: 3}).outcome.Unsent; got != c.unsent {
			t.Errorf("%v: never left: %v", c.err, got)
		}
	}
}
