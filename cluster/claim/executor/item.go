package executor

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/provider"
)

// An Item is one item of a claim on its way through the stream. Pool and Cost come from the job's item.
type Item struct {
	*promptfile.Item

	job    *Job
	claim  *claimState // the owner's
	number int
	stage  stage // owned by the goroutine that calls it, later by the one that takes its result
}

// Result is the result of an Item.
type Result = batch.Result[*Item, provider.Reply]

// A stage is how far an item has come.
type stage uint8

const (
	waits   stage = iota // it may be called
	calls                // a call has left
	refused              // it may not be called: nobody waits for it
	unheard              // its call waited in vain to be let go, or there is no money for it
)

// itemKey identifies an item among those of all claims.
type itemKey struct {
	id   claim.ID
	item int
}

func (it *Item) key() itemKey { return itemKey{it.claim.id, it.number} }

// pendingCall is a call that waits for permission to leave.
type pendingCall struct {
	answer    chan<- bool // has room
	abandoned bool        // nobody waits for it
}

// ErrRefused is the error of an item that may not be called here: another claim has its chunk, or
// the job is canceled, or the worker drains. It is no failure, and Took handles it.
var ErrRefused = errors.New("executor: the item is not to be called here")

// errUnsent is the stream's error for a call that was not let go. One part says that the caller asked for the end, so
// the stream learns nothing and does not try again. Another says that the call did not leave, so the stream refunds
// its charge.
var errUnsent = errors.Join(ErrRefused, &provider.Error{Kind: provider.Canceled}, provider.ErrUnsent)

// Items yields the items of all chunks, one after the other, for a stream. One goroutine ranges over it,
// once. It ends when the executor drains. A stream that stops before that drains the executor.
func (x *Executor) Items() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for {
			it := x.nextItem()
			if it == nil {
				return
			}
			if !yield(it) {
				x.Drain()
				return
			}
		}
	}
}

// nextItem waits for the next item; nil: there are no more.
func (x *Executor) nextItem() *Item {
	given := make(chan *Item, 1)
	select {
	case x.requests <- given:
	case <-x.over:
		return nil
	}
	select {
	case it := <-given:
		return it
	case <-x.over:
		return nil
	}
}

// feed gives an item to a caller that waits for one, if there is an item.
func (x *Executor) feed() (fed bool) {
	if x.waitingCaller == nil {
		return false
	}
	if x.draining {
		x.give(nil)
		return false
	}
	id, ok := x.machine.Next(func(id claim.ID) bool { return len(x.states[id].ready) > 0 })
	if !ok {
		return false
	}
	d := x.states[id]
	it := d.next()
	x.step(claim.Fed{ID: id, Item: it.number})
	x.readOut(d)
	x.give(it)
	return true
}

// give hands the waiting caller an item; nil: there are no more.
func (x *Executor) give(it *Item) {
	x.waitingCaller <- it
	x.waitingCaller = nil
}

// Call makes one call of an item, if the item may be called. The stream calls it.
func (x *Executor) Call(ctx context.Context, it *Item) (provider.Reply, error) {
	paid, funded := x.reserve(ctx, it)
	if !funded {
		return provider.Reply{}, errUnsent
	}
	if !x.mayLeave(ctx, it) {
		paid(provider.Reply{}, ErrRefused)
		return provider.Reply{}, errUnsent
	}
	reply, err := it.job.Call(ctx, it.Item)
	paid(reply, err)
	if fault := provider.ClassifyErr(err); fault != nil && (fault.Kind.Again() || fault.AskAgain) {
		x.missed(it)
	}
	return reply, err
}

// reserve sets aside the money for a call, if its job has a cap. The caller reports the end of the call to paid. Without
// the money funded is false: the call must not be made, and the item counts as one that was not run.
func (x *Executor) reserve(ctx context.Context, it *Item) (paid func(provider.Reply, error), funded bool) {
	if it.job.Reserve == nil {
		return func(provider.Reply, error) {}, true
	}
	x.missed(it) // before the stage is overwritten: the item's previous call has ended, and Reserve may take long
	paid, err := it.job.Reserve(ctx, it.Item)
	if err != nil {
		it.stage = unheard
	}
	return paid, err == nil
}

// mayLeave asks whether a call of an item may leave. While it is in doubt who has the chunk, it waits for beginTime at
// most, or until ctx ends.
func (x *Executor) mayLeave(ctx context.Context, it *Item) bool {
	x.missed(it)
	it.stage = unheard
	answer := make(chan bool, 1)
	p, b := it.key(), &pendingCall{answer: answer}
	if !x.tell(func() {
		x.begins[p] = b
		x.step(claim.Begun{ID: p.id, Item: p.item})
	}) {
		return false
	}
	timer := x.cfg.Clock.NewTimer(beginTime)
	defer timer.Stop()
	select {
	case goes := <-answer:
		it.stage = refused
		if goes {
			it.stage = calls
		}
		return goes
	case <-timer.Chan():
	case <-ctx.Done():
	case <-x.over:
	}
	x.tell(func() { x.forgetCall(p, b) })
	return false
}

// missed reports that the item's latest call, if one has left, brought no result. The last call of an item needs no
// such report, because the item's result reports its end.
func (x *Executor) missed(it *Item) {
	if it.stage == calls {
		it.stage = waits
		p := it.key()
		x.hear(claim.Missed{ID: p.id, Item: p.item})
	}
}

// forgetCall forgets a call for which nobody waits any more.
func (x *Executor) forgetCall(p itemKey, b *pendingCall) {
	if x.begins[p] == b {
		b.abandoned = true
		return
	}
	x.step(claim.Missed{ID: p.id, Item: p.item}) // the call was let go just now, and nobody makes it
}

// answerCall lets a call go, or refuses it.
func (x *Executor) answerCall(p itemKey, goes bool) {
	b := x.begins[p]
	delete(x.begins, p)
	if b == nil {
		return
	}
	b.answer <- goes
	if b.abandoned && goes {
		x.later = append(x.later, claim.Missed{ID: p.id, Item: p.item})
	}
}

// endedItem is an item that has ended, and its line.
type endedItem struct {
	it   *Item
	line []byte // without the line feed; nil: it has none
}

// Took takes the result of an item, and brings its line to the journal. Only the goroutine of the
// stream's results calls it. It waits while the store is slow.
func (x *Executor) Took(res *Result) {
	t := endedItem{it: res.Item}
	if t.it.stage != refused && t.it.stage != unheard {
		t.line = x.lineOf(res)
	}
	select {
	case x.took <- t:
	case <-x.over:
	}
}

// lineOf returns the journal's line of a result; nil for an item that was not run. If the line is
// too long for a journal, it returns that of a failed item.
func (x *Executor) lineOf(res *Result) []byte {
	r := promptfile.Result{
		Index: res.Index, Item: res.Item.Item, Value: res.Value, Err: res.Err, Pool: res.Pool, Lane: res.Lane,
		Attempts: res.Attempts, Calls: res.Calls, Failures: res.Failures, Usage: res.Usage, Finish: res.Finish, Status: res.Status,
		RequestID: res.RequestID, Queued: res.Queued, Waited: res.Waited, Latency: res.Latency,
	}
	l, ended := res.Item.job.Line(&r)
	if !ended {
		return nil
	}
	line := lineText(&l)
	if most := x.cfg.bounds.lineMost; len(line) > most {
		line = tooLong(l, len(line), most)
	}
	return line
}

// tooLong returns the line of an item whose result is too long for a journal. The item fails, because it
// would otherwise be called for ever.
func tooLong(l journal.Line, size, most int) []byte {
	l.Response, l.Headrace.Text, l.Headrace.Metadata = nil, nil, nil
	l.Error = &journal.Failure{
		Code:    provider.Unknown.String(),
		Message: fmt.Sprintf("the line of its result has %d bytes, and %d are the most", size, most),
	}
	return lineText(&l)
}

// handleResult does in the owner what Took began: it reports the item's end and queues its line. A result that the
// journal does not take any more counts as none.
func (x *Executor) handleResult(t endedItem) {
	d, p := t.it.claim, t.it.key()
	switch {
	case t.it.stage == refused:
	case t.line == nil || d.ended:
		x.step(claim.Unrun{ID: p.id, Item: p.item})
	default:
		x.step(claim.Took{ID: p.id, Item: p.item})
		x.queueLine(d, t.line)
	}
	d.out--
	x.dropIfDone(d)
}
