package claim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The defaults of a [Config]. The simulation in this package measures their costs and savings.
const (
	// DefaultAckWait is the time for which the queue believes in a silent claim. A worker that dies
	// holds its chunks up for that long; one that is frozen for longer loses them. The time is
	// longer than pauses of a virtual machine, and short compared to the minutes that a chunk takes.
	DefaultAckWait = 30 * time.Second
	// DefaultAskTime bounds the answer of another worker: it allows for many ways over a bus, and
	// for a busy processor.
	DefaultAskTime = 300 * time.Millisecond
	// DefaultGrace is the time after a reconnect in which silence does not mean death: clients
	// find a hub that is back within two seconds or so of each other.
	DefaultGrace = 3 * time.Second
)

const (
	// beatsOfAckWait is the number of heartbeats in AckWait: three may be lost.
	beatsOfAckWait = 4
	// AckTime bounds an ack, because an ack whose answer is lost is never answered.
	AckTime = time.Second
	// ackTries bounds the tries of an ack. After that the queue gives the chunk out again, and
	// the next worker finds the part.
	ackTries = 10
	// joinTries bounds the tries of a join. The first pause between them is joinPause; each later
	// one is twice as long, and AckWait at most.
	joinTries = 6
	joinPause = time.Second
	// pause lies between two tries of a failed fetch or look.
	pause = time.Second
)

// Config holds the settings of a [Machine]. A duration of 0 means the default.
type Config struct {
	// Who is the worker's name. It is new with each life of its process. It has no slash and no dot,
	// because it is part of the names of journals.
	Who string
	// Concurrency bounds the worker's calls in flight.
	Concurrency int
	// Ahead bounds the items that wait in the worker's stream for their next call. Jobs share it equally, whatever
	// else is in flight, and a new job adds its share at once. 0: the stream's own bound alone.
	Ahead int

	AckWait time.Duration // the queue's: after this time without a heartbeat it gives a chunk out again
	AskTime time.Duration // bounds the answer of another worker
	Grace   time.Duration // time after a reconnect in which silence does not mean death
}

// JobsAtHand bounds the jobs of a worker at one time. Each job has chunks of its own here, so a job whose
// limit is exhausted holds up no other.
const JobsAtHand = 64

// AtHand returns how many chunks of one job a worker claims at once. It claims two, to read one while the
// last calls of the other are in flight. It claims one more for each thousand calls in flight, because no
// chunk has more than a thousand items.
func (c Config) AtHand() int { return 2 + c.Concurrency/1000 }

// complete fills in the default durations. It refuses a negative duration, and a name that cannot
// be part of a journal's name.
func (c *Config) complete() error {
	for _, d := range []struct {
		is        *time.Duration
		byDefault time.Duration
	}{{&c.AckWait, DefaultAckWait}, {&c.AskTime, DefaultAskTime}, {&c.Grace, DefaultGrace}} {
		if *d.is < 0 {
			return errors.New("claim: config: a duration is negative")
		}
		if *d.is == 0 {
			*d.is = d.byDefault
		}
	}
	if c.Who == "" || strings.ContainsAny(c.Who, "/.") {
		return fmt.Errorf("claim: config: %q cannot be the name of a worker", c.Who)
	}
	return nil
}

// beatEvery returns the time between two heartbeats.
func (c *Config) beatEvery() time.Duration { return c.AckWait / beatsOfAckWait }

// sureFor returns how long after an acknowledged heartbeat a claim calls without a look. Within that time
// the queue cannot have given the chunk to anybody else. This holds however much its clock differs from
// ours, and however long the heartbeat was under way.
func (c *Config) sureFor() time.Duration { return c.AckWait * 3 / 4 }

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
	m.advanceTime(now)
	for _, c := range slices.Clone(m.claims) { // what is due may end a claim
		m.due(c)
	}
	m.fetch()
	r := Ready{Do: m.out, WakeAt: m.nextWake()}
	m.out = nil
	return r
}

// nextWake returns when the next work is due.
func (m *Machine) nextWake() (at time.Time) {
	if !m.draining {
		at = m.wakeOfSources()
	}
	for _, c := range m.claims {
		at = sooner(at, m.wakeOf(c))
	}
	return at
}

func (m *Machine) advanceTime(now time.Time) {
	if now.After(m.now) {
		m.now = now
	}
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// Idle reports whether a draining machine has nothing left to do.
func (m *Machine) Idle() bool { return m.draining && !m.sources.anyFetching() && len(m.claims) == 0 }

// Holds reports whether this worker works on a chunk. It answers a worker that asks before it claims the
// chunk. A claim without a name has done nothing that another could not do as well. A claim that has lost
// the chunk holds it until its last call has ended, so that nobody repeats that call.
func (m *Machine) Holds(chunk Chunk) bool {
	c := m.claimOf(chunk)
	return c != nil && c.named()
}

// Step absorbs one event.
func (m *Machine) Step(now time.Time, e Event) {
	m.advanceTime(now)
	switch e := e.(type) {
	case Delivered:
		m.delivered(e)
	case FetchEnded:
		m.fetchEnded(e)
	case Offered:
		m.sources.offer(e.Jobs)
	case ClaimedByOther:
		m.claimedByOther(e)
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
		m.onClaim(e.ID, func(c *claim) { m.partLooked(c, e) })
	case Listed:
		m.onClaim(e.ID, func(c *claim) { m.listed(c, e) })
	case Answered:
		m.onClaim(e.ID, func(c *claim) { m.answered(c, e) })
	case Created:
		m.onClaim(e.ID, func(c *claim) { m.created(c, e) })
	case JournalsRead:
		m.onClaim(e.ID, func(c *claim) { m.journalsRead(c, e) })
	case BeatEnded:
		m.onClaim(e.ID, func(c *claim) { m.beatEnded(c, e) })
	case Joined:
		m.onClaim(e.ID, func(c *claim) { m.joined(c, e) })
	case Acked:
		m.onClaim(e.ID, func(c *claim) { m.acked(c, e.Err) })
	case Closed:
		m.onClaim(e.ID, m.closed)
	case Cleaned:
		m.onClaim(e.ID, m.forget)
	default:
		m.stepItem(e)
	}
}

// stepItem absorbs an event about an item, or about the journal that takes the item.
func (m *Machine) stepItem(e Event) {
	switch e := e.(type) {
	case Begun:
		m.callBegun(e)
	case Fed:
		m.onClaim(e.ID, func(c *claim) { m.itemFed(c, e.Item) })
	case ReadOut:
		m.onClaim(e.ID, func(c *claim) { m.readOut(c, e.Err) })
	case Missed:
		m.onClaim(e.ID, func(c *claim) { m.callMissed(c, e.Item) })
	case Took:
		m.onClaim(e.ID, func(c *claim) { m.tookResult(c, e.Item) })
	case Unrun:
		m.onClaim(e.ID, func(c *claim) { m.itemNotRun(c, e.Item) })
	case Saved:
		m.onClaim(e.ID, func(c *claim) { m.saved(c, e.Lines) })
	case JournalBroke:
		m.onClaim(e.ID, func(c *claim) { m.journalBroke(c, e.Err) })
	}
}

func (m *Machine) onClaim(id ID, absorb func(*claim)) {
	if c := m.claim(id); c != nil {
		absorb(c)
	}
}

func (m *Machine) claim(id ID) *claim {
	return m.findClaim(func(c *claim) bool { return c.id == id })
}

func (m *Machine) claimOf(chunk Chunk) *claim {
	return m.findClaim(func(c *claim) bool { return c.chunk == chunk })
}

func (m *Machine) findClaim(is func(*claim) bool) *claim {
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

// A source holds a machine's knowledge of one job's chunks in the queue.
type source struct {
	job       string
	fetching  bool      // a Fetch is under way
	notBefore time.Time // no other Fetch before that
}

// sources are those of all jobs that have chunks. The one asked last is at the end.
type sources []*source

// offer updates which jobs have chunks. A Fetch that is under way ends by itself.
func (q *sources) offer(jobs []string) {
	*q = slices.DeleteFunc(*q, func(o *source) bool { return !o.fetching && !slices.Contains(jobs, o.job) })
	for _, job := range jobs {
		if q.indexOf(job) < 0 {
			*q = append(*q, &source{job: job})
		}
	}
}

func (q sources) indexOf(job string) int {
	return slices.IndexFunc(q, func(o *source) bool { return o.job == job })
}

// endFetch records the end of a Fetch, and lets other jobs go first.
func (q sources) endFetch(job string, again time.Time) {
	i := q.indexOf(job)
	if i < 0 {
		return
	}
	o := q[i]
	o.fetching, o.notBefore = false, again
	copy(q[i:], q[i+1:])
	q[len(q)-1] = o
}

func (q sources) anyFetching() bool {
	return slices.ContainsFunc(q, func(o *source) bool { return o.fetching })
}

func (m *Machine) fetchEnded(e FetchEnded) {
	var again time.Time
	if e.Err != nil {
		again = m.now.Add(pause)
	}
	m.sources.endFetch(e.Job, again)
}

// fetch asks for chunks, one at a time for each job, while few chunks of the job are at hand. Jobs without a
// chunk at hand take turns for the rest of [JobsAtHand].
func (m *Machine) fetch() {
	if m.draining {
		return
	}
	counts := m.countClaims()
	jobs := len(counts)
	for _, q := range m.sources {
		if counts[q.job] == 0 && q.fetching {
			jobs++
		}
	}
	for _, q := range m.sources {
		begins := counts[q.job] == 0
		if q.fetching || m.now.Before(q.notBefore) || counts[q.job] >= m.cfg.AtHand() || begins && jobs >= JobsAtHand {
			continue
		}
		if begins {
			jobs++
		}
		q.fetching = true
		m.do(Fetch{q.job})
	}
}

// countClaims counts the chunks at hand by their jobs.
func (m *Machine) countClaims() map[string]int {
	counts := make(map[string]int)
	for _, c := range m.claims {
		counts[c.chunk.Job]++
	}
	return counts
}

// wakeOfSources returns when a job may be asked for again after an error.
func (m *Machine) wakeOfSources() (at time.Time) {
	for _, q := range m.sources {
		if !q.fetching && q.notBefore.After(m.now) {
			at = sooner(at, q.notBefore)
		}
	}
	return at
}
