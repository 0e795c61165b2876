package claim

import (
	"slices"
	"time"
)

// The life of an item of a working claim:
//
//	         ┌──────missed──────┐
//	         ▼                  │
//	read ─▶ fed ─begun, Go─▶ flying ─took─▶ unsaved ─saved─▶ (counts)
//	         └─begun, Refuse; unrun─▶ ∅ ◀─unrun┘

// Next returns the claim from which to read the next item, among those that have one ready; false: none now.
// It picks the oldest claim of the job with the fewest items that wait for a call. Jobs thereby share the
// stream equally, and no job fills it with items that wait for a limit of theirs.
func (m *Machine) Next(ready func(ID) bool) (ID, bool) {
	waiting := make(map[string]int)
	for _, c := range m.claims {
		if c.state == working {
			waiting[c.chunk.Job] += len(c.items) - c.flying
		}
	}
	var next *claim
	met := make(map[string]bool)
	for _, c := range m.claims {
		job := c.chunk.Job
		if !c.hasItemsToRead() || met[job] {
			continue
		}
		met[job] = true
		if ready(c.id) && (next == nil || waiting[job] < waiting[next.chunk.Job]) {
			next = c
		}
	}
	if next == nil || m.hasShare(waiting[next.chunk.Job], len(waiting)) {
		return 0, false
	}
	return next.id, true
}

func (c *claim) hasItemsToRead() bool { return c.state == working && c.exit == stays && !c.read }

// hasShare reports whether a job has its share of the waiting items, or more.
func (m *Machine) hasShare(items, jobs int) bool {
	return m.cfg.Ahead > 0 && items >= (m.cfg.Ahead+jobs-1)/jobs
}

func (m *Machine) itemFed(c *claim, item int) {
	if c.state == working {
		c.items[item] = false
	}
}

// readOut ends the reading. A chunk that cannot be read is tried again, here or elsewhere. A claim does not decide
// what to do about a changed input.
func (m *Machine) readOut(c *claim, err error) {
	c.read = true
	if err != nil {
		m.putBack(c, "it cannot be read: "+err.Error())
	}
	m.progress(c)
}

// callBegun lets a call leave, holds it in doubt, or refuses it.
func (m *Machine) callBegun(e Begun) {
	c := m.claim(e.ID)
	if c == nil || !c.mayCall(e.Item) {
		m.do(Refuse(e))
		return
	}
	if m.stale(c) {
		c.withheld = append(c.withheld, e.Item)
		return
	}
	m.startCall(c, e.Item)
}

// mayCall reports whether an item may be called: it waits for a call, and the claim works and does not leave.
func (c *claim) mayCall(item int) bool {
	flying, there := c.items[item]
	return there && !flying && c.state == working && c.exit == stays
}

// startCall lets a call leave, or refuses it if the item may not be called any more.
func (m *Machine) startCall(c *claim, item int) {
	if !c.mayCall(item) {
		m.do(Refuse{c.id, item})
		return
	}
	c.items[item] = true
	c.flying++
	m.do(Go{c.id, item})
}

func (m *Machine) callMissed(c *claim, item int) {
	if c.items[item] {
		c.items[item] = false
		c.flying--
		m.progress(c)
	}
}

// tookResult counts an item's result as unsaved, unless the journal takes no more.
func (m *Machine) tookResult(c *claim, item int) {
	if c.removeItem(item) && !c.broken && c.state == working {
		c.unsaved++
		c.wrote, c.flushed = true, false
	}
	m.progress(c)
}

// itemNotRun ends an item that has no result, because nobody can be asked. Without it there is no part, so the
// chunk goes back, and its results stay in the journal.
func (m *Machine) itemNotRun(c *claim, item int) {
	if c.removeItem(item) {
		m.putBack(c, "an item was not run")
		m.progress(c)
	}
}

// removeItem removes an item from the claim, and reports whether the claim had it.
func (c *claim) removeItem(item int) bool {
	flying, there := c.items[item]
	delete(c.items, item)
	if flying {
		c.flying--
	}
	return there
}

func (m *Machine) saved(c *claim, lines int) {
	c.unsaved = max(0, c.unsaved-lines)
	m.progress(c)
}

// journalBroke gives up: results on their way to the journal are lost, and their items will be called again.
func (m *Machine) journalBroke(c *claim, err error) {
	if c.state != working && c.state != closing {
		return
	}
	c.broken, c.unsaved = true, 0
	if c.exit == stays {
		c.exit, c.after, c.why = back, m.cfg.AckWait, "its journal cannot be written: "+err.Error()
		m.refuseWithheld(c)
	}
	m.progress(c)
}

// progress goes on once everything awaited has ended: each item, or the calls in flight if the claim leaves.
func (m *Machine) progress(c *claim) {
	waits := len(c.items) > 0 || !c.read
	if c.exit != stays {
		waits = c.flying > 0
	}
	switch {
	case c.state != working || waits:
	case c.unsaved == 0:
		c.state = closing
		m.do(Close{c.id})
	case !c.flushed:
		c.flushed = true
		m.do(Flush{c.id})
	}
}

// How a claim ends:
//
//	working ─all items are saved─▶ closing ─▶ joining ─▶ acking ─▶ cleaning ─▶ over
//	   └─it leaves, and what flies is saved─▶ closing ─▶ put back, lost; or acked if the job is canceled
//
// The order matters. The part exists before the claim reports to the queue, so a chunk that the queue forgets is
// done. Journals are deleted only then, so a worker that finds none finds the part.

const (
	whyDrain    = "the worker drains"
	whyCanceled = "the job is canceled"
)

// putBack leaves, and keeps others from trying again before AckWait.
func (m *Machine) putBack(c *claim, why string) { m.leave(c, back, m.cfg.AckWait, why) }

// leave ends a claim early: at once, or once its calls in flight are saved. A claim that has all its
// results goes on, because making the part harms nobody.
func (m *Machine) leave(c *claim, reason exit, after time.Duration, why string) {
	if c.state > closing || c.state == closing && c.exit == stays {
		return
	}
	if reason > c.exit || reason == back && c.exit == back && after < c.after {
		c.exit, c.after, c.why = reason, after, why
	}
	if c.state < working {
		m.endEarly(c)
		return
	}
	m.refuseWithheld(c)
	m.progress(c)
}

func (m *Machine) refuseWithheld(c *claim) {
	for _, item := range c.withheld {
		m.do(Refuse{c.id, item})
	}
	c.withheld = nil
}

// closed goes on to the part, or ends the claim.
func (m *Machine) closed(c *claim) {
	switch {
	case c.state != closing:
	case c.exit == stays:
		m.join(c)
	default:
		m.endEarly(c)
	}
}

// endEarly ends a claim that leaves. It removes an empty journal, which would look like a living claim
// to other workers.
func (m *Machine) endEarly(c *claim) {
	if c.named() && !c.wrote {
		m.do(Remove{c.id, c.name})
	}
	switch c.exit {
	case dropped:
		m.ack(c)
		return
	case lost:
		m.do(Drop{c.delivery, c.why})
	default:
		m.do(Return{c.delivery, c.after, c.why})
	}
	m.forget(c)
}

func (m *Machine) forget(c *claim) {
	c.state = gone
	m.do(Forget{c.id})
	m.claims = slices.DeleteFunc(m.claims, func(o *claim) bool { return o == c })
}

// join has the part made from the journals of this claim and all earlier ones.
func (m *Machine) join(c *claim) {
	c.state = joining
	c.tries++
	c.tryAt = time.Time{}
	m.do(Join{c.id, append(c.earlierNames(), c.name)})
}

// joined acknowledges the chunk once its part is there. It lets a failed join be tried again, up
// to joinTries times. It gives the chunk back after the last try, or if the journals lack lines.
func (m *Machine) joined(c *claim, e Joined) {
	switch {
	case c.state != joining:
	case e.Err != nil && c.tries < joinTries:
		c.tryAt = m.now.Add(min(m.cfg.AckWait, joinPause<<(c.tries-1)))
	case e.Err != nil:
		m.giveBack(c, "its part cannot be made: "+e.Err.Error())
	case e.Outcome == Incomplete:
		m.giveBack(c, "its journals do not have all")
	default:
		m.ack(c)
	}
}

// giveBack returns a chunk whose part cannot be made.
func (m *Machine) giveBack(c *claim, why string) {
	c.exit, c.after, c.why = back, m.cfg.AckWait, why
	m.endEarly(c)
}

// ack tells the queue that the chunk needs no more work. It counts the tries.
func (m *Machine) ack(c *claim) {
	if c.state != acking {
		c.state, c.tries = acking, 0
	}
	c.tries++
	c.tryAt, c.sent = time.Time{}, m.now
	m.do(Ack{c.id, c.delivery})
}

// acked goes on to clean up, ends a dropped claim, or lets the ack be tried again. A queue that got no
// ack gives the chunk out again, and the next worker finds the part.
func (m *Machine) acked(c *claim, err error) {
	switch {
	case c.state != acking:
	case err != nil && c.tries < ackTries:
		c.tryAt = later(m.now, c.sent.Add(AckTime))
	case c.exit == dropped:
		m.forget(c)
	default:
		c.state = cleaning
		m.do(SayDone{c.chunk})
		m.do(Clean{c.id})
	}
}

// retries reports whether a join or an ack has failed and will be tried again.
func (c *claim) retries() bool {
	return (c.state == joining || c.state == acking) && !c.tryAt.IsZero()
}

func (m *Machine) retry(c *claim) {
	if c.state == joining {
		m.join(c)
		return
	}
	m.ack(c)
}

// drain makes every claim leave, unless it is about to make its part.
func (m *Machine) drain() {
	m.draining = true
	m.leaveAll(func(*claim) bool { return true }, back, whyDrain)
}

func (m *Machine) cancel(job string) {
	m.canceled[job] = true
	m.leaveAll(func(c *claim) bool { return c.chunk.Job == job }, dropped, whyCanceled)
}

func (m *Machine) leaveAll(which func(*claim) bool, how exit, why string) {
	for _, c := range slices.Clone(m.claims) {
		if which(c) {
			m.leave(c, how, 0, why)
		}
	}
}
