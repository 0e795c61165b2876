package batch

import (
	"fmt"
	"runtime/debug"

	"github.com/headrace/headrace/coordinator/machine"
)

// feedChunk is how many items one message to the coordinator carries at most,
// and how many jobs are allocated at once. Beyond 64 a message's cost no longer
// shows beside its items'.
const feedChunk = 64

// read takes items from the caller's input, numbers them, and passes them on.
// It stands apart from feed because the input may block for as long as it
// likes, and an item that was taken must not wait for the next.
//
// It takes an item only with a credit in hand.
func (r *run[In, Out]) read() {
	defer close(r.jobs)
	defer func() {
		if v := recover(); v != nil {
			r.inputErr = fmt.Errorf("%w: panicked: %v\n%s", ErrInput, v, debug.Stack())
		}
	}()
	var (
		credits int
		spare   []job[In]
		seq     uint64
	)
	if !r.mayTake(&credits) {
		return
	}
	for in := range r.items {
		if isClosed(r.stop) {
			return // this one was taken too late; the caller has it still
		}
		if len(spare) == 0 {
			spare = make([]job[In], feedChunk)
		}
		j := &spare[0]
		spare = spare[1:]
		r.address(j, in, seq)
		r.jobs <- j
		seq++
		if credits--; !r.mayTake(&credits) {
			return
		}
	}
	r.exhausted = true
}

// mayTake waits for a credit, and reports false if the run is to take no more.
func (r *run[In, Out]) mayTake(credits *int) bool {
	for *credits == 0 {
		select {
		case n := <-r.credit:
			*credits += n
		case <-r.stop:
			return false
		}
	}
	return !isClosed(r.stop)
}

// address fills in what the machine needs to know of an item.
func (r *run[In, Out]) address(j *job[In], in In, seq uint64) {
	j.in = in
	j.Seq, j.Pool, j.Cost, j.Payload = seq, r.hints.pool(in), r.hints.cost(in), j
}

// feed offers what was read, as many items at once as are there. It waits while
// the coordinator's door is shut, and that ends: what waits behind the door is
// run, or released when the run is stopped.
func (r *run[In, Out]) feed() {
	defer r.session.EndInput()
	for j := range r.jobs {
		items := append(make([]*machine.Item, 0, feedChunk), &j.Item)
		for more := true; more && len(items) < feedChunk; {
			select {
			case next, ok := <-r.jobs:
				if more = ok; ok {
					items = append(items, &next.Item)
				}
			default:
				more = false
			}
		}
		r.session.Offer(items)
	}
}
