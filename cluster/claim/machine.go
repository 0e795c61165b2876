package claim

import (
	"slices"
	"time"
)

// A Machine decides what a worker does about its chunks. It is a value with one owner: no method
// may be called while another runs. Create one with [New].
type Machine struct {
	cfg       Config
	now       time.Time       // time of the latest call; it never goes back
	claims    []*claim        // in the order in which they came
	connected time.Time       // since when the bus is there
	canceled  map[string]bool // jobs; one for each that was canceled and not resumed since the worker began
	draining  bool

	sources sources // of the jobs that have chunks
	out     []Action
}

// New makes a machine that has no claims. Before the first delivery the caller passes the time since
// which the bus is there ([Connected]).
func New(cfg Config) (*Machine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Machine{cfg: cfg, canceled: make(map[string]bool)}, nil
}

// Config returns the machine's settings, with defaults filled in.
func (m *Machine) Config() Config { return m.cfg }

// Ready holds everything that follows from a machine's input. It is valid until the next call of the
// machine.
type Ready struct {
	Do     []Action
	WakeAt time.Time // when to ask again if nothing happens; zero: only after an event
}

// Ready returns the actions to take now, and the time to ask again.
func (m *Machine) Ready(now time.Time) Ready {
	m.pass(now)
	for _, c := range slices.Clone(m.claims) { // what is due may end a claim
		m.due(c)
	}
	m.fetch()
	r := Ready{Do: m.out, WakeAt: m.wake()}
	m.out = nil
	return r
}

// wake returns when the next work is due.
func (m *Machine) wake() (at time.Time) {
	if !m.draining {
		at = m.wakeOfSources()
	}
	for _, c := range m.claims {
		at = sooner(at, m.wakeOf(c))
	}
	return at
}

func (m *Machine) pass(now time.Time) {
	if now.After(m.now) {
		m.now = now
	}
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// Idle reports whether a draining machine has nothing left to do.
func (m *Machine) Idle() bool { return m.draining && !m.sources.busy() && len(m.claims) == 0 }

// Holds reports whether this worker works on a chunk. It answers a worker that asks before it claims the
// chunk. A claim without a name has done nothing that another could not do as well. A claim that has lost
// the chunk holds it until its last call has ended, so that nobody repeats that call.
func (m *Machine) Holds(chunk Chunk) bool {
	c := m.of(chunk)
	return c != nil && c.named()
}

// Step absorbs one event.
func (m *Machine) Step(now time.Time, e Event) {
	m.pass(now)
	switch e := e.(type) {
	case Delivered:
		m.delivered(e)
	case FetchEnded:
		m.fetchEnded(e)
	case Offered:
		m.sources.offer(e.Jobs)
	case Told:
		m.told(e)
	case Connected:
		m.connectedAt(e.At)
	case Drained:
		m.drain()
	case Canceled:
		m.cancel(e.Job)
	case Resumed:
		delete(m.canceled, e.Job)
	default:
		m.stepClaim(e)
	}
}

// stepClaim absorbs an event about one claim.
func (m *Machine) stepClaim(e Event) {
	switch e := e.(type) {
	case PartLooked:
		m.on(e.ID, func(c *claim) { m.partLooked(c, e) })
	case Listed:
		m.on(e.ID, func(c *claim) { m.listed(c, e) })
	case Answered:
		m.on(e.ID, func(c *claim) { m.answered(c, e) })
	case Created:
		m.on(e.ID, func(c *claim) { m.created(c, e) })
	case JournalsRead:
		m.on(e.ID, func(c *claim) { m.journalsRead(c, e) })
	case BeatEnded:
		m.on(e.ID, func(c *claim) { m.beatEnded(c, e) })
	case Joined:
		m.on(e.ID, func(c *claim) { m.joined(c, e) })
	case Acked:
		m.on(e.ID, func(c *claim) { m.acked(c, e.Err) })
	case Closed:
		m.on(e.ID, m.closed)
	case Cleaned:
		m.on(e.ID, m.forget)
	default:
		m.stepItem(e)
	}
}

// stepItem absorbs an event about an item, or about the journal that takes the item.
func (m *Machine) stepItem(e Event) {
	switch e := e.(type) {
	case Begun:
		m.begun(e)
	case Fed:
		m.on(e.ID, func(c *claim) { m.fed(c, e.Item) })
	case ReadOut:
		m.on(e.ID, func(c *claim) { m.readOut(c, e.Err) })
	case Missed:
		m.on(e.ID, func(c *claim) { m.missed(c, e.Item) })
	case Took:
		m.on(e.ID, func(c *claim) { m.took(c, e.Item) })
	case Unrun:
		m.on(e.ID, func(c *claim) { m.unrun(c, e.Item) })
	case Saved:
		m.on(e.ID, func(c *claim) { m.saved(c, e.Lines) })
	case JournalBroke:
		m.on(e.ID, func(c *claim) { m.journalBroke(c, e.Err) })
	}
}

func (m *Machine) on(id ID, absorb func(*claim)) {
	if c := m.claim(id); c != nil {
		absorb(c)
	}
}

func (m *Machine) claim(id ID) *claim {
	return m.find(func(c *claim) bool { return c.id == id })
}

func (m *Machine) of(chunk Chunk) *claim {
	return m.find(func(c *claim) bool { return c.chunk == chunk })
}

func (m *Machine) find(is func(*claim) bool) *claim {
	if i := slices.IndexFunc(m.claims, is); i >= 0 {
		return m.claims[i]
	}
	return nil
}

// sooner returns the earlier of two times. A zero time does not count.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
