package batch

import (
	"errors"
	"reflect"
	"strings"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// A job is an item of the caller's on its way. It has two halves, and each has one owner at
// any time. The machine's half moves as its type says. The result belongs to the reader,
// then to the worker of the current grant, and once it is finished to the caller's loop.
// Meanwhile the machine still hears that the item has ended.
type job[In, Out any] struct {
	machine.Item
	result Result[In, Out] // what its calls have reported so far; Err is that of the latest
	key    string          // identifies a remembered item; never written to once it is offered
}

// ItemKey returns the key under which the item is remembered.
func (j *job[In, Out]) ItemKey() string { return j.key }

// jobBytes is the size of one allocation of jobs: room for some fifteen, so that the
// allocation hardly shows. A slow job keeps its neighbours in memory, but not what was in
// them. So jobBytes also bounds what an item in the run holds besides itself.
const jobBytes = 8192

// newJobs allocates as many jobs as fit, and at least one.
func newJobs[In, Out any]() []job[In, Out] {
	return make([]job[In, Out], max(1, jobBytes/int(reflect.TypeFor[job[In, Out]]().Size())))
}

// note adds what the latest call reported, and its error as it was judged.
func (j *job[In, Out]) note(lane string, e ending, err error) {
	r := &j.result
	r.Err, r.Lane, r.Latency = err, lane, e.latency
	r.Status, r.RequestID, r.Finish = e.record.Status, e.record.RequestID, e.record.Finish
	used, doubt := e.used()
	r.Usage = r.Usage.Add(used)
	if err != nil {
		f := failureOf(err)
		f.Doubtful = doubt
		r.Failures = addFailure(r.Failures, f)
	}
}

// used returns the usage of a call, or the doubtful usage if its answer was cut off.
func (e *ending) used() (sure provider.Usage, doubt provider.Doubtful) {
	if e.doubtful {
		return sure, provider.Doubtful{Calls: 1, Usage: e.record.Usage}
	}
	return e.record.Usage, doubt
}

// failureOf returns what a result keeps of a call's error.
func failureOf(err error) Failure {
	f := Failure{Calls: 1}
	var fault *provider.Error
	if errors.As(err, &fault) {
		f.Kind, f.Status, f.Message = fault.Kind, fault.Status, fault.Message
	}
	if f.Message == "" {
		f.Message = provider.Plain(err).Error()
	}
	f.Message = clipped(f.Message)
	return f
}

// mostMessage bounds the part of a message that is kept, in bytes.
const mostMessage = 200

// clipped returns the first line of a text, cut to mostMessage bytes. It is a copy, so that
// a long answer is not kept in memory for it.
func clipped(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > mostMessage {
		s = strings.ToValidUTF8(s[:mostMessage-len("…")], "") + "…"
	}
	return strings.Clone(s)
}

// addFailure adds a failure to those before it. A failure like the last one is counted with
// it, and so is one beyond MostFailures.
func addFailure(all []Failure, f Failure) []Failure {
	if n := len(all); n > 0 {
		last := &all[n-1]
		if last.Kind == f.Kind && last.Status == f.Status && last.Message == f.Message || n == MostFailures {
			last.Calls, last.Doubtful = last.Calls+1, last.Doubtful.Add(f.Doubtful)
			return all
		}
	}
	return append(all, f)
}

// finish fills in the end, and what the machine has counted. Only the worker that the item
// is lent to may call it, or the reader before the offer.
func (j *job[In, Out]) finish(err error, tried bool) {
	r := &j.result
	r.Err, r.Pool, r.Attempts, r.Calls = err, j.Pool, j.Attempts, j.Calls
	r.Queued, r.Waited = j.Queued(), j.Waited
	if tried {
		r.Attempts++
	}
	j.Pool = "" // it may be a piece of the item's text
}

// take returns the result and keeps nothing of it.
func (j *job[In, Out]) take() Result[In, Out] {
	result := j.result
	j.result = Result[In, Out]{}
	return result
}
