package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// A claimState holds an executor's state of one claim. It belongs to the owner.
type claimState struct {
	id    claim.ID
	chunk job.Chunk
	ctx   context.Context // ends with the claim
	end   context.CancelFunc
	over  bool // the machine has forgotten it

	job    *Job
	plan   plan              // once everything is read
	ready  []prompts.Request // read, and not given yet
	places chan struct{}     // one is taken for each of them
	read   bool              // to the end
	given  int               // items, ever
	out    int               // items in the stream

	journal store.Journal
	queue   []journalTask // work for the journal, one piece after the other
	busy    bool
	ended   bool // nothing more is written
	lines   [][]byte
	bytes   int
	dueAt   time.Time // the latest time to write lines
	writing bool

	footer []byte // of the part that it made, as JSON
}

// journalTask is one task for a journal; nil: there is no journal. The owner runs the function that it returns.
type journalTask func(store.Journal) (then func())

// stateOf returns the state of a claim, and sets it up when the machine first names the claim.
func (x *Executor) stateOf(id claim.ID) *claimState {
	if d := x.states[id]; d != nil {
		return d
	}
	d := &claimState{id: id, chunk: x.deliveries[id].chunk, places: make(chan struct{}, readAhead)}
	d.ctx, d.end = context.WithCancel(x.ctx)
	x.states[id] = d
	return d
}

// next takes the next item.
func (d *claimState) next() *Item {
	it := &Item{Item: d.job.Item(d.ready[0]), job: d.job, claim: d, number: d.given}
	d.ready = d.ready[1:]
	<-d.places
	d.given++
	d.out++
	return it
}

// queueTask has w run on the claim's journal once all earlier tasks are done.
func (x *Executor) queueTask(d *claimState, w journalTask) {
	d.queue = append(d.queue, w)
	x.runNextTask(d)
}

// runNextTask starts the next task on a claim's journal, unless one is under way. So the tasks of a journal run one at a
// time, in their order.
func (x *Executor) runNextTask(d *claimState) {
	if d.busy || len(d.queue) == 0 || x.leaving { // leave does the rest
		return
	}
	w, j := d.queue[0], d.journal
	d.queue, d.busy = d.queue[1:], true
	x.inBackground(func() func() {
		then := w(j)
		return func() {
			d.busy = false
			then()
			x.runNextTask(d)
			x.dropIfDone(d)
		}
	})
}

// create makes the claim's journal.
func (x *Executor) create(d *claimState, name claim.Name) {
	object := journalName(&d.chunk, name)
	x.queueTask(d, func(store.Journal) func() {
		j, err := store.CreateJournal(x.ctx, x.cfg.Store, object, x.cfg.Journal)
		return func() {
			d.journal = j
			taken := errors.Is(err, store.ErrExists)
			if taken {
				err = nil
			}
			x.step(claim.Created{ID: d.id, Taken: taken, Err: err})
		}
	})
}

// remove deletes the claim's journal.
func (x *Executor) remove(d *claimState, name claim.Name) {
	object := journalName(&d.chunk, name)
	x.queueTask(d, func(j store.Journal) func() {
		ctx, cancel := x.bounded(x.ctx, storeTime)
		defer cancel()
		closeJournal(ctx, j)
		if err := store.DeleteJournal(ctx, x.cfg.Store, object); err != nil {
			x.cfg.Say(fmt.Sprintf("%s: an empty journal stays: %v", &d.chunk, err))
		}
		return func() { d.journal = nil }
	})
}

// closeJournal ends a journal that is not needed any more.
func closeJournal(ctx context.Context, j store.Journal) {
	if j != nil {
		_ = j.Close(ctx) // unsaved lines are abandoned
	}
}

// queueLine queues a line for the journal.
func (x *Executor) queueLine(d *claimState, line []byte) {
	if d.ended || d.over || d.journal == nil {
		return
	}
	if len(d.lines) == 0 {
		d.dueAt = x.cfg.Clock.Now().Add(commitEvery)
	}
	d.lines = append(d.lines, line)
	d.bytes += len(line)
	x.waiting += len(line)
}

// commit writes the lines that are due, and returns when the next ones are due.
func (x *Executor) commit() (wake time.Time) {
	now := x.cfg.Clock.Now()
	for _, d := range x.states {
		switch {
		case len(d.lines) == 0 || d.writing:
		case now.Before(d.dueAt):
			wake = sooner(wake, d.dueAt)
		default:
			x.write(d)
		}
	}
	return wake
}

// write writes the waiting lines, and syncs them.
func (x *Executor) write(d *claimState) {
	lines, size := d.lines, d.bytes
	d.lines, d.bytes, d.writing = nil, 0, true
	x.queueTask(d, func(j store.Journal) func() {
		err := x.save(d.ctx, j, lines)
		return func() {
			x.waiting -= size
			d.writing = false
			x.handleWritten(d, len(lines), err)
		}
	})
}

// handleWritten reports to the machine that lines were saved, or that the journal broke.
func (x *Executor) handleWritten(d *claimState, lines int, err error) {
	if err == nil {
		x.step(claim.Saved{ID: d.id, Lines: lines})
		return
	}
	x.stopLines(d)
	x.step(claim.JournalBroke{ID: d.id, Err: err})
}

// stopLines refuses further lines for a journal, and drops the waiting ones.
func (x *Executor) stopLines(d *claimState) {
	x.waiting -= d.bytes
	d.ended, d.lines, d.bytes = true, nil, 0
}

// save writes lines and syncs them, and tries again while there is time. A full disk or an absent server may
// recover, so save does not throw answers away before. Meanwhile the results that follow wait, and then no
// new call starts.
func (x *Executor) save(claim context.Context, j store.Journal, lines [][]byte) error {
	ctx, cancel := x.bounded(x.closing, closeTime)
	defer cancel()
	if err := writeLines(ctx, j, lines); err != nil {
		return err
	}
	for {
		err := j.Sync(ctx)
		if err == nil || errors.Is(err, store.ErrEnded) {
			return err
		}
		select {
		case <-x.cfg.Clock.After(flushAgain):
		case <-ctx.Done():
			return err
		case <-claim.Done():
			return err
		}
	}
}

func writeLines(ctx context.Context, j store.Journal, lines [][]byte) error {
	for _, line := range lines {
		if err := j.Write(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

// close saves the waiting lines and ends the journal.
func (x *Executor) close(d *claimState) {
	if len(d.lines) > 0 {
		x.write(d)
	}
	d.ended = true
	x.queueTask(d, func(j store.Journal) func() {
		ctx, cancel := x.bounded(x.closing, closeTime)
		defer cancel()
		x.flush(ctx, j)
		err := j.Close(ctx)
		return func() {
			d.journal = nil
			if err != nil {
				x.step(claim.JournalBroke{ID: d.id, Err: err})
			}
			x.step(claim.Closed{ID: d.id})
		}
	})
}

// flush saves all lines of a journal, and tries again until ctx ends: unsaved items must be called again. It gives up on
// a journal that cannot even be synced.
func (x *Executor) flush(ctx context.Context, j store.Journal) {
	for j.Flush(ctx) != nil && j.Sync(ctx) == nil {
		select {
		case <-x.cfg.Clock.After(flushAgain):
		case <-ctx.Done():
			return
		}
	}
}

// forget ends a claim that the machine has forgotten: it drops the claim's lines and deliveries, and closes its journal.
func (x *Executor) forget(d *claimState) {
	x.stopLines(d)
	d.over, d.ready = true, nil
	d.end()
	for id, had := range x.deliveries {
		if NameOf(&had.chunk) == NameOf(&d.chunk) {
			delete(x.deliveries, id)
		}
	}
	x.queueTask(d, func(j store.Journal) func() {
		ctx, cancel := x.bounded(x.ctx, leaveTime)
		defer cancel()
		closeJournal(ctx, j)
		return func() { d.journal = nil }
	})
}

// dropIfDone removes the state of a claim that nothing needs any more.
func (x *Executor) dropIfDone(d *claimState) {
	if !d.over || d.busy || len(d.queue) > 0 || d.out > 0 || x.states[d.id] == nil {
		return
	}
	delete(x.states, d.id)
	d.closeJob()
}

func (d *claimState) closeJob() {
	if d.job != nil && d.job.Close != nil {
		d.job.Close()
	}
}

// abandon saves as much as it can of a claim that Run leaves behind.
func (d *claimState) abandon(ctx context.Context) {
	d.end()
	if d.journal == nil {
		return
	}
	_ = writeLines(ctx, d.journal, d.lines) // what is lost will be called again
	closeJournal(ctx, d.journal)
}
