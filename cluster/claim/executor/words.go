package executor

import (
	"time"

	"github.com/headrace/headrace/cluster/claim"
)

// Answer tells whether this worker works on a chunk: what another asks before it claims it. Once
// Run has returned it does not; before Run is called it waits for it, as all words do.
func (x *Executor) Answer(c claim.Chunk) (holds bool) {
	answer := make(chan bool, 1)
	if !x.tell(func() { answer <- x.machine.Holds(c) }) {
		return false
	}
	select {
	case holds = <-answer:
		return holds
	case <-x.over:
		return false
	}
}

// Told says that another worker has claimed a chunk, under this name.
func (x *Executor) Told(c claim.Chunk, name claim.Name) { x.hear(claim.Told{Chunk: c, Name: name}) }

// Connected says since when the bus is there, whenever it was away.
func (x *Executor) Connected(at time.Time) { x.hear(claim.Connected{At: at}) }

// Drain lets calls in flight finish, and ends: Items gives nothing more, and items that wait are
// refused when their turn comes. Whoever does not want to wait for that drains the stream as well.
func (x *Executor) Drain() {
	x.tell(func() {
		if x.draining {
			return
		}
		x.draining = true
		x.patience = x.cfg.Clock.AfterFunc(drainTime, x.hurry)
		x.stopFetch()
		x.step(claim.Drained{})
	})
}

// Offer says of which jobs the queue has chunks: nothing is fetched of others.
func (x *Executor) Offer(jobs []string) { x.hear(claim.Offered{Jobs: jobs}) }

// Cancel says that nothing of a job is to be run any more.
func (x *Executor) Cancel(job string) { x.hear(claim.Canceled{Job: job}) }

// Resume takes a Cancel back.
func (x *Executor) Resume(job string) { x.hear(claim.Resumed{Job: job}) }

func (x *Executor) hear(e claim.Event) { x.tell(func() { x.step(e) }) }
