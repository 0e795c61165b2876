package batch

import (
	"errors"
	"reflect"
	"strings"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/provider"
)

// A job is an item of the caller's on its way. It has two halves, and each has one owner
// at any time. The machine's goes as its type says. The result belongs to the reader,
// then to the worker of the present grant, and once it is finished to the caller's loop,
// while the machine still hears that the item has ended.
type job[In, Out any] struct {
	machine.Item
	result Result[In, Out] // what its calls have told so far; Err is that of the latest
	key    string          // by which the item is remembered; never written to once it is offered
}

// ItemKey is by which the item is remembered.
func (j *job[In, Out]) ItemKey() string { return j.key }

// jobBytes is how much is allocated for jobs at once: some fifteen, so that the allocation
// hardly shows. One job that is slow holds those beside it, but not what was in them: so
// this bounds also what an item in the run holds beside itself.
const jobBytes = 8192

// newJobs are as many as fit, and one at least.
func newJobs[In, Out any]() []job[In, Out] {
	return make([]job[In, Out], max(1, jobBytes/int(reflect.TypeFor[job[In, Out]]().Size())))
}

// note adds what the latest call told, and its error as it was judged.
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

// used is what a call is known to have used, or what is doubtful of it.
func (e *ending) used() (sure provider.Usage, doubt provider.Doubtful) {
	if e.doubtful {
		return sure, provider.Doubtful{Calls: 1, Usage: e.record.Usage}
	}
	return e.record.Usage, doubt
}

// failureOf is what is kept of a call's error.
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

// mostMessage bounds what is kept of what was said, in bytes.
const mostMessage = 200

// clipped is the first line of a text, as far as it is kept: a copy, so that a long answer is
// not kept for it.
func clipped(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > mostMessage {
		s = strings.ToValidUTF8(s[:mostMessage-len("…")], "") + "…"
	}
	return strings.Clone(s)
}

// addFailure adds one to those before it. What is like the last one is counted with it, and
// so is what there is no room for.
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

// finish fills in the end, and what the machine has counted. It is for whom the item is
// lent to, or for the reader before it is offered.
func (j *job[In, Out]) finish(err error, tried bool) {
	r := &j.result
	r.Err, r.Pool, r.Attempts, r.Calls = err, j.Pool, j.Attempts, j.Calls
	r.Queued, r.Waited = j.Queued(), j.Waited
	if tried {
		r.Attempts++
	}
	j.Pool = "" // it may be a piece of the item's text
}

// take gives the result away and keeps nothing of it.
func (j *job[In, Out]) take() Result[In, Out] {
	result := j.result
	j.result = Result[In, Out]{}
	return result
}
