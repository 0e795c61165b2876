package executor

import (
	"time"

	"github.com/headrace/headrace/cluster/claim"
)

// Answer reports whether this worker works on a chunk, for another worker that asks before it claims it. Once
// Run has returned it returns false. Before Run is called it blocks, as do all methods that bring news.
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

// Told passes on that another worker has claimed a chunk, under this name.
func (x *Executor) Told(c claim.Chunk, name claim.Name) { x.hear(claim.Told{Chunk: c, Name: name}) }

// Connected passes on since when the bus is there, after each absence.
func (x *Executor) Connected(at time.Time) { x.hear(claim.Connected{At: at}) }

// Drain lets calls in flight finish, and ends the run. Items yields nothing more, and waiting items are refused
// when their turn comes. Drain the stream as well to avoid that wait.
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

// Offer sets the jobs of which the queue has chunks. The executor fetches no others.
func (x *Executor) Offer(jobs []string) { x.hear(claim.Offered{Jobs: jobs}) }

// Cancel says that nothing of a job may run any more.
func (x *Executor) Cancel(job string) { x.hear(claim.Canceled{Job: job}) }

// Resume takes a Cancel back.
func (x *Executor) Resume(job string) { x.hear(claim.Resumed{Job: job}) }

func (x *Executor) hear(e claim.Event) { x.tell(func() { x.step(e) }) }
