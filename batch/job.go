package batch

import (
	"reflect"

	"github.com/headrace/headrace/coordinator/machine"
)

// A job is an item of the caller's on its way. It has two halves, and each has one owner
// at any time. The machine's goes as its type says. The result belongs to the reader,
// then to the worker of the present grant, and once it is finished to the caller's loop,
// while the machine still hears that the item has ended.
type job[In, Out any] struct {
	machine.Item
	result Result[In, Out] // what its calls have told so far; Err is that of the latest
}

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
	r.Usage = r.Usage.Add(e.record.Usage)
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
