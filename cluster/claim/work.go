package claim

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
		if !c.feeds() || met[job] {
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

func (c *claim) feeds() bool { return c.state == working && c.exit == stays && !c.read }

// hasShare reports whether a job has its share of the waiting items, or more.
func (m *Machine) hasShare(items, jobs int) bool {
	return m.cfg.Ahead > 0 && items >= (m.cfg.Ahead+jobs-1)/jobs
}

func (m *Machine) fed(c *claim, item int) {
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

// begun lets a call leave, holds it in doubt, or refuses it.
func (m *Machine) begun(e Begun) {
	c := m.claim(e.ID)
	if c == nil || !c.calls(e.Item) {
		m.do(Refuse(e))
		return
	}
	if m.stale(c) {
		c.held = append(c.held, e.Item)
		return
	}
	m.start(c, e.Item)
}

// calls reports whether an item may be called at all.
func (c *claim) calls(item int) bool {
	flying, there := c.items[item]
	return there && !flying && c.state == working && c.exit == stays
}

func (m *Machine) start(c *claim, item int) {
	if !c.calls(item) {
		m.do(Refuse{c.id, item})
		return
	}
	c.items[item] = true
	c.flying++
	m.do(Go{c.id, item})
}

func (m *Machine) missed(c *claim, item int) {
	if c.items[item] {
		c.items[item] = false
		c.flying--
		m.progress(c)
	}
}

func (m *Machine) took(c *claim, item int) {
	if c.ended(item) && !c.broken && c.state == working {
		c.unsaved++
		c.wrote, c.flushed = true, false
	}
	m.progress(c)
}

// unrun ends an item that has no result, because nobody can be asked. Without it there is no part, so the
// chunk goes back, and its results stay in the journal.
func (m *Machine) unrun(c *claim, item int) {
	if c.ended(item) {
		m.putBack(c, "an item was not run")
		m.progress(c)
	}
}

// ended removes an item from the claim.
func (c *claim) ended(item int) bool {
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
		m.refuseHeld(c)
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
