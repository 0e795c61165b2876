package claim

import (
	"slices"
	"time"
)

// How a chunk comes to be worked on, with one function for each awaited answer:
//
//	delivered ─▶ looking ─▶ listing ─▶ asking ─▶ naming ─▶ settling ─▶ (asking) ─▶ checking ─▶ reading ─▶ working
//	                │                    │ held, or who knows?   │ overtaken            │
//	                └─there─▶ acking     └──────▶ put back ◀─────┘        there─▶ acking┘
//
// A claim lists the journals again once it has its own. Of two workers that claim a chunk at once, each
// lists after making its own journal, so at least one meets the other. After that the claim looks for the
// part again: another worker may have made it and deleted the journals between the first look and the list.

// delivered begins a claim of a chunk that the queue gave out. A draining worker puts the chunk back. A chunk that is claimed here
// already has only a new delivery, and one of a canceled job is left at once.
func (m *Machine) delivered(e Delivered) {
	m.sources.endFetch(e.Chunk.Job, time.Time{})
	earlier := m.claimOf(e.Chunk)
	switch {
	case earlier != nil:
		m.redelivered(earlier, e.Delivery)
	case m.draining:
		m.do(Return{e.Delivery, 0, whyDrain})
	default:
		c := &claim{
			id: e.Delivery, delivery: e.Delivery, chunk: e.Chunk,
			sure: m.now, heard: m.now, beatAt: m.now.Add(m.cfg.beatEvery()), items: make(map[int]bool),
		}
		m.claims = append(m.claims, c)
		if m.canceled[e.Chunk.Job] {
			m.leave(c, dropped, 0, whyCanceled)
		} else {
			m.do(CheckPart{c.id})
		}
	}
}

// redelivered handles a second delivery of a chunk at hand: the queue has given it out twice, or has forgotten its
// holder. The claim answers to the later delivery; a claim that is about to end puts it back.
func (m *Machine) redelivered(c *claim, delivery ID) {
	if c.exit != stays || c.state == cleaning {
		m.do(Return{delivery, m.cfg.AckWait, "an earlier claim of it here has not ended"})
		return
	}
	m.do(Drop{c.delivery, "given out again"})
	c.delivery = delivery
}

// partLooked goes on without a part, or acknowledges the chunk if its part is there.
func (m *Machine) partLooked(c *claim, e PartLooked) {
	switch {
	case c.state != looking && c.state != checking:
	case e.Err != nil:
		m.putBack(c, "the part cannot be looked for: "+e.Err.Error())
	case e.There:
		m.ack(c)
	case c.vanished:
		m.putBack(c, "its journals are gone")
	case c.state == looking:
		c.state = listing
		m.do(List{c.id})
	default:
		c.state = reading
		m.do(ReadJournals{c.id, c.earlierNames()})
	}
}

// listed handles a list: the first one, the one after the claim named itself, or one in doubt.
func (m *Machine) listed(c *claim, e Listed) {
	if c.inspecting {
		m.inspectionListed(c, e)
		return
	}
	if e.Err != nil {
		m.putBack(c, "the journals cannot be listed: "+e.Err.Error())
		return
	}
	switch c.state {
	case listing:
		c.setNames(e.Names)
		m.ask(c)
	case settling:
		c.setNames(e.Names)
		m.checkOvertaken(c)
	}
}

// checkOvertaken looks for other claims of the chunk made at the same time.
func (m *Machine) checkOvertaken(c *claim) {
	if by, is := c.overtakenBy(); is {
		m.putBack(c, by.Who+" claimed it at the same time")
		return
	}
	if !slices.Contains(c.names, c.name) {
		c.vanished = true
		m.checkPart(c)
		return
	}
	m.ask(c)
}

// checkPart looks for the part once more before the work begins.
func (m *Machine) checkPart(c *claim) {
	c.state = checking
	m.do(CheckPart{c.id})
}

// ask asks the workers that were not asked yet. A heartbeat goes with the question: once it is
// acknowledged the question has left, and the time to answer begins.
func (m *Machine) ask(c *claim) {
	c.asks = c.unaskedWorkers(m.cfg.Who)
	if len(c.asks) == 0 {
		m.proceed(c)
		return
	}
	c.state, c.askedAt, c.late, c.beatAt, c.mute = asking, m.now, time.Time{}, m.now, nil
	m.do(Ask{c.id, slices.Clone(c.asks)})
}

// answered handles an answer. A late one counts until the claim tells the workers that it takes for dead.
func (m *Machine) answered(c *claim, e Answered) {
	waits := c.state == asking && (slices.Contains(c.asks, e.Who) || slices.Contains(c.mute, e.Who))
	late := c.state >= asking && c.state <= settling && slices.Contains(c.dead, e.Who)
	switch {
	case !waits && !late:
	case e.Holds && !e.Silent:
		m.putBack(c, e.Who+" holds it")
	case waits:
		m.noteAnswer(c, e)
	}
}

// noteAnswer handles the answer of a worker that does not hold the chunk, or cannot be asked.
func (m *Machine) noteAnswer(c *claim, e Answered) {
	is := func(who string) bool { return who == e.Who }
	c.asks, c.mute = slices.DeleteFunc(c.asks, is), slices.DeleteFunc(c.mute, is)
	if e.Silent {
		c.mute = append(c.mute, e.Who)
	}
	m.judgeSilence(c)
}

// judgeSilence weighs answers and silence. A worker that says no has answered. A silent worker is dead if the bus
// was there all the time, and before that for long enough that the living have found it. A heartbeat sent
// after the deadline and acknowledged promptly shows that. Answers given in time came before that heartbeat.
// Had the bus gone in between, this worker would have reconnected.
func (m *Machine) judgeSilence(c *claim) {
	trustedFrom := m.connected.Add(m.cfg.Grace)
	switch {
	case m.stale(c):
		m.putBack(c, "the answer may be out of date")
	case len(c.asks)+len(c.mute) == 0:
		m.proceed(c)
	case c.late.IsZero() || m.now.Before(c.late):
	case c.askedAt.Before(trustedFrom):
		m.leave(c, back, max(m.cfg.AskTime, trustedFrom.Sub(m.now)), "nobody answers, but the bus was away")
	case !c.proof.Before(c.late):
		c.dead = append(append(c.dead, c.asks...), c.mute...)
		m.proceed(c)
	case !c.beating || c.beatSent.Before(c.late):
		c.beatAt = m.now
	}
}

// proceed goes on once nobody else is known to hold the chunk: to a name, and with a name to the
// work.
func (m *Machine) proceed(c *claim) {
	if c.named() {
		m.tellDead(c)
		m.checkPart(c)
		return
	}
	turn := 1
	if n := len(c.names); n > 0 {
		turn = c.names[n-1].Turn + 1
	}
	c.state, c.name = naming, Name{turn, m.cfg.Who, c.id}
	m.do(Create{c.id, c.name})
}

// tellDead informs the workers that are taken for dead, in case they live. No call leaves before the bus surely has
// the message: a worker that is cut off now would repeat their calls.
func (m *Machine) tellDead(c *claim) {
	if len(c.dead) > 0 {
		c.unheard = true
		m.do(Tell{c.id, c.dead, c.name})
		m.doubt(c)
	}
}

// created tries the next turn if the name was taken: by an earlier try whose answer was lost.
func (m *Machine) created(c *claim, e Created) {
	switch {
	case c.state != naming:
	case e.Err != nil:
		m.putBack(c, "its journal cannot be made: "+e.Err.Error())
	case e.Taken:
		c.name.Turn++
		m.do(Create{c.id, c.name})
	default:
		c.state = settling
		m.do(List{c.id})
	}
}

// journalsRead begins the work. If a journal is gone, another worker has made the part, so the
// claim looks for the part once more.
func (m *Machine) journalsRead(c *claim, e JournalsRead) {
	switch {
	case c.state != reading:
	case e.Err != nil:
		m.putBack(c, "it cannot be read: "+e.Err.Error())
	case e.Gone:
		c.vanished = true
		m.checkPart(c)
	default:
		c.state = working
		m.progress(c)
	}
}

// claimedByOther handles the claim of another worker. If that claim is later, this one gives up at once: its calls
// in flight finish and are saved in its journal, and no other call is made.
func (m *Machine) claimedByOther(e ClaimedByOther) {
	c := m.claimOf(e.Chunk)
	switch {
	case c == nil:
	case !c.named():
		m.putBack(c, e.Name.Who+" claims it")
	case e.Name.Compare(c.name) > 0:
		m.leave(c, lost, 0, e.Name.Who+" has taken it over")
	}
}
