package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// do carries out an action of the machine.
func (x *Executor) do(a claim.Action) {
	switch a := a.(type) {
	case claim.Fetch:
		x.fetch(a.Job)
	case claim.Return:
		x.putBack(a)
	case claim.Drop:
		x.sayReturned(a.Delivery, a.Why)
		delete(x.deliveries, a.Delivery)
	case claim.SayDone:
		x.sayDone(a.Chunk)
	case claim.Go:
		x.answerCall(itemKey{a.ID, a.Item}, true)
	case claim.Refuse:
		x.answerCall(itemKey{a.ID, a.Item}, false)
	default:
		x.doOnClaim(a)
	}
}

// doOnClaim carries out an action on one claim.
func (x *Executor) doOnClaim(a claim.Action) {
	switch a := a.(type) {
	case claim.Beat:
		x.replyToQueue(a.Delivery, replyTime, Delivery.Working, func(err error) {
			x.step(claim.BeatEnded{ID: a.ID, Err: err, Forgotten: errors.Is(err, ErrForgotten)})
		})
	case claim.Ack:
		x.stateOf(a.ID) // the first that is heard of a claim, if its job is canceled
		x.replyToQueue(a.Delivery, claim.AckTime, Delivery.Done, func(err error) { x.step(claim.Acked{ID: a.ID, Err: err}) })
	case claim.Ask:
		x.ask(x.stateOf(a.ID), a.Who)
	case claim.Tell:
		x.tellAll(x.stateOf(a.ID), a)
	case claim.CheckPart:
		x.checkPart(x.stateOf(a.ID))
	case claim.List:
		x.list(x.stateOf(a.ID))
	case claim.Create:
		x.create(x.stateOf(a.ID), a.Name)
	case claim.Remove:
		x.remove(x.stateOf(a.ID), a.Name)
	case claim.ReadJournals:
		x.startReading(x.stateOf(a.ID), a.Names)
	case claim.Flush:
		x.stateOf(a.ID).dueAt = time.Time{}
	case claim.Close:
		x.close(x.stateOf(a.ID))
	case claim.Join:
		x.join(x.stateOf(a.ID), a.Names)
	case claim.Clean:
		x.clean(x.stateOf(a.ID))
	case claim.Forget:
		x.forget(x.stateOf(a.ID))
	}
}

// delivered is a chunk that the queue gave out, and that was not answered yet.
type delivered struct {
	Delivery
	chunk job.Chunk
}

// fetch asks the queue for a chunk of a job, and brings the result to the machine. A chunk of
// another job counts as one that cannot be read.
func (x *Executor) fetch(job string) {
	x.inBackground(func() func() {
		d, came, err := x.cfg.Queue.Fetch(x.fetching, job)
		if err != nil || !came {
			return func() { x.step(claim.FetchEnded{Job: job, Err: err}) }
		}
		c, err := chunkOf(d.Body())
		if err == nil && c.Job != job {
			err = fmt.Errorf("%v is queued as one of job %s", &c, job)
		}
		return func() { x.delivered(delivered{d, c}, job, err) }
	})
}

// chunkOf reads the description of a chunk, and checks its name and numbers.
func chunkOf(body []byte) (c job.Chunk, err error) {
	if err = json.Unmarshal(body, &c); err == nil {
		err = job.CheckName(c.Job)
	}
	if err == nil && (c.Number < 0 || c.Round < 0) {
		err = fmt.Errorf("%v has a negative number", &c)
	}
	return c, err
}

// delivered begins a claim. A chunk that this worker cannot read may need a newer worker.
func (x *Executor) delivered(d delivered, job string, err error) {
	x.number++
	x.deliveries[x.number] = d
	if err == nil {
		x.step(claim.Delivered{Delivery: x.number, Chunk: NameOf(&d.chunk)})
		return
	}
	x.step(claim.FetchEnded{Job: job, Err: err})
	x.putBack(claim.Return{Delivery: x.number, After: x.machine.Config().AckWait, Why: "it is not a chunk: " + err.Error()})
}

// NameOf returns the name by which a chunk is claimed.
func NameOf(c *job.Chunk) claim.Chunk {
	return claim.Chunk{Job: c.Job, Number: c.Number, Round: c.Round}
}

// replyToQueue sends a reply about a delivery to the queue, in the background. then gets its error in the owner.
func (x *Executor) replyToQueue(id claim.ID, within time.Duration, reply func(Delivery, context.Context) error, then func(error)) {
	d := x.deliveries[id].Delivery
	x.inBackground(func() func() {
		ctx, cancel := x.bounded(x.ctx, within)
		defer cancel()
		err := reply(d, ctx)
		return func() { then(err) }
	})
}

// putBack returns a delivery to the queue, and tells people why.
func (x *Executor) putBack(a claim.Return) {
	x.sayReturned(a.Delivery, a.Why)
	reply := func(d Delivery, ctx context.Context) error { return d.Return(ctx, a.After) }
	x.replyToQueue(a.Delivery, replyTime, reply, func(error) {}) // the queue finds out by itself
	delete(x.deliveries, a.Delivery)
}

func (x *Executor) sayReturned(id claim.ID, why string) {
	d := x.deliveries[id]
	x.cfg.Say(fmt.Sprintf("chunk %v goes back: %s", &d.chunk, why))
}

// ask asks each of these workers, in the background, whether it holds the chunk.
func (x *Executor) ask(d *claimState, who []string) {
	for _, who := range who {
		x.inBackground(func() func() {
			holds, answered, err := x.cfg.Peers.Holds(d.ctx, who, NameOf(&d.chunk))
			return func() {
				x.step(claim.Answered{ID: d.id, Who: who, Holds: holds, Silent: err != nil || !answered})
			}
		})
	}
}

// tellAll informs the workers from which a claim has taken its chunk over. They are taken for
// dead, so a failure is only worth a notice.
func (x *Executor) tellAll(d *claimState, a claim.Tell) {
	for _, who := range a.Who {
		x.inBackground(func() func() {
			ctx, cancel := x.bounded(x.ctx, replyTime)
			defer cancel()
			if err := x.cfg.Peers.Tell(ctx, who, NameOf(&d.chunk), a.Name); err != nil {
				x.cfg.Say(fmt.Sprintf("chunk %v is taken over from %s, which could not be informed: %v", &d.chunk, who, err))
			}
			return func() {}
		})
	}
}

// sayDone announces that a chunk has its part, with the part's sums.
func (x *Executor) sayDone(c claim.Chunk) {
	for _, d := range x.states {
		if !d.over && NameOf(&d.chunk) == c {
			chunk, footer := d.chunk, d.footer
			x.inBackground(func() func() {
				x.cfg.Peers.SayDone(chunk, footer)
				return func() {}
			})
		}
	}
}

// workFolder returns the folder of a chunk's journals, partName the name of its part.
func workFolder(c *job.Chunk) string { return job.WorkFolder(c.Job, c.Number, c.Round) }
func partName(c *job.Chunk) string   { return job.PartName(c.Job, c.Number, c.Round) }

// journalName returns the object name of a claim's journal. It replaces the dot of the claim's name, because
// a store adds its own suffix behind a dot.
func journalName(c *job.Chunk, n claim.Name) string {
	return workFolder(c) + swapLast(n.String(), ".", dotInJournals)
}

const dotInJournals = "_"

func swapLast(s, from, to string) string {
	if at := strings.LastIndex(s, from); at >= 0 {
		return s[:at] + to + s[at+len(from):]
	}
	return s
}

// checkPart looks whether the part exists.
func (x *Executor) checkPart(d *claimState) {
	x.inBackground(func() func() {
		ctx, cancel := x.bounded(d.ctx, storeTime)
		defer cancel()
		there, err := isThere(ctx, x.cfg.Store, partName(&d.chunk))
		return func() { x.step(claim.PartLooked{ID: d.id, There: there, Err: err}) }
	})
}

// isThere reports whether the store has an object of this name.
func isThere(ctx context.Context, s store.Store, name string) (bool, error) {
	in, err := s.Open(ctx, name, 0, 1)
	if err != nil {
		if errors.Is(err, store.ErrMissing) {
			err = nil
		}
		return false, err
	}
	_ = in.Close() // it was not read
	return true, nil
}

// list lists the journals of a claim's chunk, in the background.
func (x *Executor) list(d *claimState) {
	x.inBackground(func() func() {
		ctx, cancel := x.bounded(d.ctx, storeTime)
		defer cancel()
		names, err := x.journals(ctx, &d.chunk)
		return func() { x.step(claim.Listed{ID: d.id, Names: names, Err: err}) }
	})
}

// journals lists the claims that have a journal of a chunk. It leaves out objects of that folder
// that are no claim's journal.
func (x *Executor) journals(ctx context.Context, c *job.Chunk) (names []claim.Name, err error) {
	folder := workFolder(c)
	for object, err := range store.Journals(ctx, x.cfg.Store, folder) {
		if err != nil {
			return nil, err
		}
		if n, ok := claim.ParseName(swapLast(object[len(folder):], dotInJournals, ".")); ok {
			names = append(names, n)
		}
	}
	return names, nil
}

// clean deletes the journals of a chunk whose part is there. Journals that stay do no harm.
func (x *Executor) clean(d *claimState) {
	x.inBackground(func() func() {
		ctx, cancel := x.bounded(d.ctx, storeTime)
		defer cancel()
		names, err := x.journals(ctx, &d.chunk)
		for _, n := range names {
			err = errors.Join(err, store.DeleteJournal(ctx, x.cfg.Store, journalName(&d.chunk, n)))
		}
		if err != nil {
			x.cfg.Say(fmt.Sprintf("chunk %v is done, and some of its journals stay: %v", &d.chunk, err))
		}
		return func() { x.step(claim.Cleaned{ID: d.id}) }
	})
}
