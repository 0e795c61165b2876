package lease

import (
	"encoding/json"
	"time"
)

// Shares of a term.
const (
	// holds is the time for which a write makes its sender keeper. A candidate sees one revision for waits before it
	// writes over it. The difference allows for clocks that differ.
	holds = 0.99
	waits = 1.01
	// renews is the time between two writes of a holder: three may be lost.
	renews = 0.25
	// reads is the time between two reads of a candidate; it adds to a gap without a keeper.
	reads = 0.1
	// yields is the extra wait of a candidate that leaves the lease to others first.
	yields = 0.25
	// mints is the time for which a holder may lack an epoch: a slow store has answered by then. After that the holder
	// stands back for as long. Others, whose way to the store is not broken, go first.
	mints = 3
)

// Config holds the settings of a Lease.
type Config struct {
	Who  string        // this life of this process
	Term time.Duration // the same for all
	// Yields prefers another process as keeper, if there is one.
	Yields bool
}

// An Action is something to do. The fact that each type names reports its end. At most one of each kind is under way at
// a time.
type Action interface{ action() }

type (
	// Read reads the lease, and makes a bucket that is gone: [ReadEnded].
	Read struct{}
	// Write writes the lease over the revision that was seen, also where nothing stands in it: [WriteEnded].
	Write struct {
		Value    Value
		Revision uint64
	}
	// Mint creates the next epoch in the store, higher than any there: [MintEnded].
	Mint struct{}
	// FindEpoch finds the highest epoch in the store: [EpochHeard], or no fact if the store cannot tell. A lease looks at
	// the start and with each write. A look that is still under way does for the next.
	FindEpoch struct{}
)

func (Read) action()      {}
func (Write) action()     {}
func (Mint) action()      {}
func (FindEpoch) action() {}

// A Fact is an input of a Lease.
type Fact interface{ fact() }

type (
	// ReadEnded carries the content and revision of the lease. If it is not Found, nothing stands there; that has a
	// revision too, a new one each time the bus has forgotten everything. With an Err it says nothing.
	ReadEnded struct {
		Found    bool
		Value    Value
		Revision uint64
		Err      error
	}
	// WriteEnded carries the new revision of a write. Taken: it was not written, as another revision stands there. With
	// an Err it may have been written or not.
	WriteEnded struct {
		Revision uint64
		Taken    bool
		Err      error
	}
	// MintEnded carries the epoch that this process alone has.
	MintEnded struct {
		Epoch uint64
		Err   error
	}
	// EpochHeard says that there is a keeper of that epoch, or was; 0: there never was one.
	EpochHeard struct{ Epoch uint64 }
)

func (ReadEnded) fact()  {}
func (WriteEnded) fact() {}
func (MintEnded) fact()  {}
func (EpochHeard) fact() {}

// A Lease is one candidate's view. It is a value in the care of one owner.
type Lease struct {
	cfg Config

	// The latest known state of the lease.
	seen     bool
	found    bool // a value stands there
	revision uint64
	since    time.Time
	before   json.RawMessage // the snapshot in it

	// The writes of this process. It is the holder while the latest revision may be its own.
	holder  bool
	won     time.Time // when it became the holder
	backed  time.Time // the earliest time to stand again
	counter uint64
	sent    time.Time // when the latest write was sent
	until   time.Time // it is keeper until then, once it has an epoch
	unsure  bool      // the latest write may have succeeded
	epoch   uint64    // 0: none is minted
	highest uint64    // the highest epoch heard of
	first   bool      // at the last look, no keeper had ever existed
	state   json.RawMessage

	looked    bool
	busy      bool // a read or a write is under way
	minting   bool
	next      time.Time // when to read or write again
	mintAfter time.Time
}

// New returns a candidate that has seen nothing.
func New(c Config) *Lease { return &Lease{cfg: c} }

func (l *Lease) share(of float64) time.Duration { return time.Duration(of * float64(l.cfg.Term)) }

// Keeper reports whether this process is keeper, its epoch, and the end of its time.
func (l *Lease) Keeper(now time.Time) (epoch uint64, until time.Time, is bool) {
	return l.epoch, l.until, l.holder && l.epoch > 0 && now.Before(l.until)
}

// Before returns the snapshot that the previous keeper left; nil: none.
func (l *Lease) Before() json.RawMessage { return l.before }

// Snapshot sets what the next write leaves for the next keeper.
func (l *Lease) Snapshot(s json.RawMessage) { l.state = s }

// Step absorbs a fact.
func (l *Lease) Step(now time.Time, f Fact) {
	switch f := f.(type) {
	case ReadEnded:
		l.busy = false
		if f.Err == nil {
			l.read(now, f)
		}
	case WriteEnded:
		l.busy = false
		l.wrote(now, f)
	case MintEnded:
		l.minting = false
		l.minted(now, f)
	case EpochHeard:
		l.highest = max(l.highest, f.Epoch)
		l.first = l.highest == 0 && !l.holder
		l.hurry(now)
		if l.epoch > 0 && f.Epoch > l.epoch {
			l.lose()
		}
	}
}

// hurry spares the first keeper of all the wait. If nothing stands in the lease, and no epoch in the store, no keeper's
// time has to run out. What it saw may be old by now. But the first epoch is minted once, and a process that gets
// another one waits like any other.
func (l *Lease) hurry(now time.Time) {
	if l.unopposed() {
		l.next = now
	}
}

func (l *Lease) unopposed() bool { return l.first && l.seen && !l.found && !l.holder }

// lose stops being the holder: another is, or was.
func (l *Lease) lose() {
	l.holder, l.unsure, l.epoch, l.seen = false, false, 0, false
	l.until = time.Time{}
}

// read absorbs the content of the lease.
func (l *Lease) read(now time.Time, f ReadEnded) {
	if !f.Found {
		f.Value = Value{}
	}
	if l.holder {
		l.readOwn(now, f)
		return
	}
	if !l.seen || l.revision != f.Revision {
		l.seen, l.revision, l.since = true, f.Revision, now
	}
	l.found = f.Found
	l.hurry(now)
	if f.Value.Snapshot != nil {
		l.before = f.Value.Snapshot
	}
	l.highest = max(l.highest, f.Value.Epoch)
}

// readOwn finds the result of a write whose answer was lost.
//
// It handles this order of events. Write 5 is sent and its answer is lost. A read finds write 4, as 5 is still on its
// way. Write 6 is sent, over 4's revision. Write 5 arrives, so 6 is refused. The value there is this process's all the
// same. The time of its sending is forgotten, so it makes nobody keeper for longer, but the next write goes over it.
func (l *Lease) readOwn(now time.Time, f ReadEnded) {
	mine := f.Found && f.Value.Holder == l.cfg.Who
	switch {
	case mine && f.Value.Counter == l.counter:
		l.renewed(f.Revision)
	case mine:
		l.unsure, l.revision = false, f.Revision
	default:
		l.lose()
		l.read(now, f)
	}
}

func (l *Lease) renewed(revision uint64) {
	l.unsure, l.revision = false, revision
	l.until = l.sent.Add(l.share(holds))
}

// wrote absorbs the end of a write.
func (l *Lease) wrote(now time.Time, f WriteEnded) {
	switch {
	case !l.holder: // the lease was lost meanwhile: it is read as by any candidate
	case f.Err != nil || f.Taken: // read the lease
		l.unsure, l.next = true, now
	default:
		l.renewed(f.Revision)
	}
}

// minted takes an epoch that is the highest known, if this process still holds the lease. The
// first keeper of all did not wait for an earlier one: see hurry. Any epoch but 1 shows that there
// was one, so minted gives up the lease.
func (l *Lease) minted(now time.Time, f MintEnded) {
	switch {
	case f.Err != nil:
		l.mintAfter = now.Add(l.share(reads))
	case !l.holder: // the lease was lost meanwhile: the epoch is nobody's
		l.highest = max(l.highest, f.Epoch)
	case l.first && f.Epoch > 1: // another keeper came first
		l.highest, l.first = max(l.highest, f.Epoch), false
		l.lose()
	case f.Epoch < l.highest:
		l.mintAfter = now // another process has a higher one, so another is needed
	default:
		l.epoch = f.Epoch
	}
}

// Ready holds the actions to do, and the time to ask again if no fact comes before.
type Ready struct {
	Do     []Action
	WakeAt time.Time // zero: only after a fact
}

// Ready decides.
func (l *Lease) Ready(now time.Time) (r Ready) {
	if l.holder && l.epoch == 0 && now.Sub(l.won) >= l.share(mints) {
		l.lose()
		l.backed = now.Add(l.share(mints))
	}
	if l.holder && l.epoch == 0 && !l.minting && !now.Before(l.mintAfter) && !l.until.IsZero() {
		l.minting = true
		r.Do = append(r.Do, Mint{})
	}
	if !l.busy && !now.Before(l.next) {
		l.busy = true
		r.Do = append(r.Do, l.decide(now)...)
	}
	if !l.looked {
		l.looked = true
		r.Do = append(r.Do, FindEpoch{})
	}
	if !l.busy {
		r.WakeAt = l.next
	}
	if l.holder && l.epoch == 0 && !l.minting && l.mintAfter.After(now) && (r.WakeAt.IsZero() || l.mintAfter.Before(r.WakeAt)) {
		r.WakeAt = l.mintAfter
	}
	return r
}

// decide chooses between a read and a write.
func (l *Lease) decide(now time.Time) []Action {
	switch {
	case l.unsure, !l.holder && !l.ripe(now):
		l.next = now.Add(l.share(reads))
		return []Action{Read{}}
	case !l.holder: // the revision has stood for long enough: nobody is keeper
		l.won, l.first = now, l.unopposed()
		l.holder, l.counter, l.epoch, l.until, l.mintAfter = true, l.counter+1, 0, time.Time{}, time.Time{}
	default:
		l.counter++
	}
	l.sent, l.next = now, now.Add(l.share(renews))
	do := []Action{Write{Revision: l.revision, Value: Value{Holder: l.cfg.Who, Counter: l.counter, Epoch: l.epoch, Snapshot: l.leaves()}}}
	if l.epoch > 0 {
		do = append(do, FindEpoch{})
	}
	return do
}

// leaves returns the snapshot for the next keeper: this keeper's own, or, until it has one, the one it found.
func (l *Lease) leaves() json.RawMessage {
	if l.state != nil {
		return l.state
	}
	return l.before
}

// ripe reports whether one revision has been seen for as long as its writer may be keeper.
func (l *Lease) ripe(now time.Time) bool {
	wait := l.share(waits)
	if l.cfg.Yields {
		wait += l.share(yields)
	}
	return (l.unopposed() || l.seen && now.Sub(l.since) >= wait) && !now.Before(l.backed)
}

// A Value is the content of the lease.
type Value struct {
	Holder  string `json:"holder"`
	Counter uint64 `json:"counter"` // of its holder's writes, from 1
	Epoch   uint64 `json:"epoch"`   // of the keeper; 0: it is not minted yet
	// Snapshot holds the keeper's knowledge for the next keeper. It is opaque here.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
}

// Marshal returns the value as it is written.
func (v Value) Marshal() []byte {
	text, err := json.Marshal(v)
	if err != nil { // a snapshot that is no JSON is left out
		v.Snapshot = nil
		text, _ = json.Marshal(v)
	}
	return text
}

// Parse reads what Marshal has written; false for anything else.
func Parse(text []byte) (v Value, ok bool) {
	err := json.Unmarshal(text, &v)
	return v, err == nil && v.Holder != ""
}
