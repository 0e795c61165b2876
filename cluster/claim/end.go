package claim

import (
	"slices"
	"time"
)

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
func (m *Machine) leave(c *claim, how exit, after time.Duration, why string) {
	if c.state > closing || c.state == closing && c.exit == stays {
		return
	}
	if how > c.exit || how == back && c.exit == back && after < c.after {
		c.exit, c.after, c.why = how, after, why
	}
	if c.state < working {
		m.over(c)
		return
	}
	m.refuseHeld(c)
	m.progress(c)
}

func (m *Machine) refuseHeld(c *claim) {
	for _, item := range c.held {
		m.do(Refuse{c.id, item})
	}
	c.held = nil
}

// closed goes on to the part, or ends the claim.
func (m *Machine) closed(c *claim) {
	switch {
	case c.state != closing:
	case c.exit == stays:
		m.join(c)
	default:
		m.over(c)
	}
}

// over ends a claim that leaves. It removes an empty journal, which would look like a living claim
// to other workers.
func (m *Machine) over(c *claim) {
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

func (m *Machine) join(c *claim) {
	c.state = joining
	c.tries++
	c.tryAt = time.Time{}
	m.do(Join{c.id, append(c.others(), c.name)})
}

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
	m.over(c)
}

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
