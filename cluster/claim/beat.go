package claim

import (
	"slices"
	"time"
)

// connectedAt records that the bus is back after an absence. A worker that claimed a chunk meanwhile could not
// say so.
func (m *Machine) connectedAt(at time.Time) {
	m.connected = at
	for _, c := range slices.Clone(m.claims) {
		m.doubt(c)
		m.dropUnannounced(c)
	}
}

// dropUnannounced gives up a takeover that the bus may not have announced: the worker taken for dead may live, and not
// know of it.
func (m *Machine) dropUnannounced(c *claim) {
	if c.unheard {
		m.putBack(c, "the bus went away as it was taken over")
	}
}

// doubt holds calls back until a heartbeat has been acknowledged, and after that a list has been read.
func (m *Machine) doubt(c *claim) { c.doubted, c.beatAt = m.now, m.now }

// due does the work of a claim that is due by now.
func (m *Machine) due(c *claim) {
	if c.state == asking {
		m.judgeSilence(c)
	}
	m.beat(c)
	switch {
	case c.state == working && c.exit == stays:
		m.inspect(c)
	case c.retries() && !m.now.Before(c.tryAt):
		m.retry(c)
	}
}

// wakeOf returns when the next work of a claim is due.
func (m *Machine) wakeOf(c *claim) (wake time.Time) {
	if c.mayBeat() {
		wake = c.beatAt
	}
	switch {
	case c.state == asking && m.now.Before(c.late):
		wake = sooner(wake, c.late)
	case c.state == working && c.exit == stays && !c.inspecting:
		if at := later(c.inspectAt, m.staleAt(c)); m.now.Before(at) {
			wake = sooner(wake, at) // after that the next heartbeat is waited for
		}
	case c.retries():
		wake = sooner(wake, c.tryAt)
	}
	return wake
}

// mayBeat reports whether a heartbeat may be sent.
func (c *claim) mayBeat() bool { return !c.beating && c.state < acking }

// beat sends a heartbeat if one is due.
func (m *Machine) beat(c *claim) {
	if !c.mayBeat() || m.now.Before(c.beatAt) {
		return
	}
	c.beating, c.beatSent, c.beatAt = true, m.now, m.now.Add(m.cfg.beatEvery())
	m.do(Beat{c.id, c.delivery})
}

// beatEnded records the end of a heartbeat. A late acknowledgement does not make the claim sure: the heartbeat may
// have been under way for long, and the queue may have given the chunk to another worker meanwhile. It still
// counts as an acknowledgement.
//
// A claim whose delivery the queue has forgotten can never be sure again. It leaves once it is stale, with its
// results in its journal. A worker full of such claims would ask for none of the queue's chunks, its own among
// them. Until it is stale, the queue may just be between two leaders.
func (m *Machine) beatEnded(c *claim, e BeatEnded) {
	c.beating = false
	if e.Err == nil {
		c.heard = c.beatSent
		if m.now.Sub(c.sure) < m.cfg.sureFor() {
			c.sure = later(c.sure, c.beatSent)
		}
	} else {
		m.dropUnannounced(c)
	}
	if c.state == asking && !c.beatSent.Before(c.askedAt) {
		m.judgeHeartbeat(c, e.Err)
	}
	if e.Forgotten && m.stale(c) {
		m.leave(c, back, 0, "the queue has forgotten it")
	}
}

// judgeHeartbeat handles the end of a heartbeat that went with a question, or came after it. If that heartbeat was slow,
// its acknowledgement and answers to the question may arrive together: then another heartbeat decides.
func (m *Machine) judgeHeartbeat(c *claim, err error) {
	switch {
	case err != nil:
		m.putBack(c, "nobody answers, and neither does the queue: "+err.Error())
		return
	case c.late.IsZero():
		c.late = m.now.Add(m.cfg.AskTime)
	case m.now.Sub(c.beatSent) <= m.cfg.AskTime:
		c.proof = c.beatSent
	}
	m.judgeSilence(c)
}

// stale reports whether another worker may have the chunk by now.
func (m *Machine) stale(c *claim) bool { return !m.now.Before(m.staleAt(c)) }

// staleAt returns when the chunk becomes stale, if nothing happens.
func (m *Machine) staleAt(c *claim) time.Time {
	if !c.doubted.IsZero() {
		return c.doubted
	}
	return c.sure.Add(m.cfg.sureFor())
}

// inspect looks, in doubt, whether a later claim has a journal. Without a heartbeat before the look,
// the look would say nothing about the moment after it.
func (m *Machine) inspect(c *claim) {
	backed := !c.heard.Before(c.doubted) && m.now.Sub(c.heard) < m.cfg.sureFor()
	if c.inspecting || !m.stale(c) || !backed || m.now.Before(c.inspectAt) {
		return
	}
	c.inspecting, c.inspected, c.backed = true, m.now, c.heard
	m.do(List{c.id})
}

// inspectionListed handles the list that was read in doubt. If no later claim is in it the doubt ends, else the claim
// gives up.
func (m *Machine) inspectionListed(c *claim, e Listed) {
	c.inspecting = false
	if c.state != working || c.exit != stays {
		return
	}
	if e.Err != nil {
		c.inspectAt = m.now.Add(pause)
		return
	}
	c.setNames(e.Names)
	if by, is := c.overtakenBy(); is {
		m.leave(c, lost, 0, by.Who+" has taken it over")
		return
	}
	if len(c.names) == 0 || c.names[len(c.names)-1] != c.name {
		m.leave(c, lost, 0, "its journal is gone")
		return
	}
	m.confirm(c)
}

// confirm handles a list without a later claim: the chunk was this claim's when the heartbeat before the list was sent. The calls
// that waited start, unless there is a new doubt, or the claim is stale by now.
func (m *Machine) confirm(c *claim) {
	c.sure = later(c.sure, c.backed)
	if newDoubt := c.doubted.After(c.inspected); !newDoubt {
		c.doubted = time.Time{}
	}
	if m.stale(c) {
		return
	}
	c.unheard = false
	for _, item := range c.withheld {
		m.startCall(c, item)
	}
	c.withheld = nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
