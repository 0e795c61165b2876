package lease

import (
	"encoding/json"
	"time"
)

// Shares of a term.
const (
	// holds is for how long a write makes its sender keeper, and waits how long a candidate sees one
	// revision before it writes over it. Between the two lies what clocks may differ by.
	holds = 0.99
	waits = 1.01
	// renews is how long lies between two writes of a holder: three may be lost.
	renews = 0.25
	// reads is how long lies between two looks of a candidate: what that adds to a gap.
	reads = 0.1
	// yields is how much longer a candidate waits that leaves it to others first.
	yields = 0.25
	// mints is for how long a holder may be without an epoch: a store that is slow has answered by then.
	// For as long it stands back after that: others, whose way to the store is not broken, go first.
	mints = 3
)

// Config is what a Lease is made of.
type Config struct {
	Who  string        // this life of this process
	Term time.Duration // the same for all
	// Yields says that another is to be keeper rather than this one, if there is one.
	Yields bool
}

// An Action is something to do; its end is told by the fact that it names. One of each kind is
// under way at a time.
type Action interface{ action() }

type (
	// Read reads the lease: [ReadEnded]. A bucket that is gone is made first.
	Read struct{}
	// Write writes the lease over the revision that was seen, of nothing too: [WriteEnded].
	Write struct {
		Value    Value
		Revision uint64
	}
	// Mint makes the next epoch in the store, higher than any there: [MintEnded].
	Mint struct{}
	// Look looks for the highest epoch in the store: [EpochHeard], or nothing if it cannot be told. It comes first of all, and
	// with each write; one that is still under way does for the next.
	Look struct{}
)

func (Read) action()  {}
func (Write) action() {}
func (Mint) action()  {}
func (Look) action()  {}

// A Fact is what a Lease is told.
type Fact interface{ fact() }

type (
	// ReadEnded is what stands in the lease, and its revision; not Found: nothing, which has a revision
	// too, another one each time the bus has forgotten all. With an Err it says nothing.
	ReadEnded struct {
		Found    bool
		Value    Value
		Revision uint64
		Err      error
	}
	// WriteEnded is what became of a write: its new revision, or that it was Taken: not
	// written, as another revision stands there. With an Err it may have been written or not.
	WriteEnded struct {
		Revision uint64
		Taken    bool
		Err      error
	}
	// MintEnded is the epoch that is this one's alone.
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

	// What was seen of the lease: a revision, and since when there is no other.
	seen     bool
	found    bool // something stands there
	revision uint64
	since    time.Time
	before   json.RawMessage // the snapshot in it

	// What this one has written. While it may have written the latest revision it is the holder.
	holder  bool
	won     time.Time // since when it is the holder
	backed  time.Time // it does not stand before that
	counter uint64
	sent    time.Time // when the latest write was sent
	until   time.Time // it is keeper until then, once it has an epoch
	unsure  bool      // the latest write may have succeeded
	epoch   uint64    // 0: none is minted
	highest uint64    // epoch that was heard of
	first   bool      // when it looked there never had been a keeper
	state   json.RawMessage

	looked    bool
	busy      bool // a read or a write is under way
	minting   bool
	next      time.Time // when to read or write again
	mintAfter time.Time
}

// New is a candidate that has seen nothing.
func New(c Config) *Lease { return &Lease{cfg: c} }

func (l *Lease) share(of float64) time.Duration { return time.Duration(of * float64(l.cfg.Term)) }

// Keeper says whether this one is keeper, of which epoch and until when.
func (l *Lease) Keeper(now time.Time) (epoch uint64, until time.Time, is bool) {
	return l.epoch, l.until, l.holder && l.epoch > 0 && now.Before(l.until)
}

// Lapsed says whether this one was the last keeper, for all it knows, and its time has run out: if it
// writes the lease again it goes on.
func (l *Lease) Lapsed(now time.Time) bool {
	return l.holder && l.epoch > 0 && !now.Before(l.until)
}

// Before is the snapshot that the keeper before this one has left; nil: none.
func (l *Lease) Before() json.RawMessage { return l.before }

// Snapshot is what the next write is to leave for the keeper after this one.
func (l *Lease) Snapshot(s json.RawMessage) { l.state = s }

// Highest is the highest epoch that was heard of.
func (l *Lease) Highest() uint64 { return max(l.highest, l.epoch) }

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

// hurry has the first keeper of all wait for nobody: where nothing stands in the lease, and no epoch in the store, there is none
// whose time would have to run out. What it saw may be old by now; but the first epoch is minted once, and
// who gets another waits like any other.
func (l *Lease) hurry(now time.Time) {
	if l.unopposed() {
		l.next = now
	}
}

func (l *Lease) unopposed() bool { return l.first && l.seen && !l.found && !l.holder }

// lose is no holder any more: another is, or was.
func (l *Lease) lose() {
	l.holder, l.unsure, l.epoch, l.seen = false, false, 0, false
	l.until = time.Time{}
}

// read takes what stands in the lease.
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

// readOwn finds out what became of a write whose answer was lost.
//
// The order of events that this is about: write 5 is sent and its answer is lost; a read finds write
// 4, as 5 is still on its way; write 6 is sent, over 4's revision; 5 arrives, so 6 is refused. What stands
// there is this one's all the same: when it was sent is forgotten, so it makes nobody keeper for
// longer, but the next write goes over it.
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

// wrote takes the end of a write.
func (l *Lease) wrote(now time.Time, f WriteEnded) {
	switch {
	case !l.holder: // it was lost meanwhile: what stands there is looked at as by any candidate
	case f.Err != nil || f.Taken: // look what stands there
		l.unsure, l.next = true, now
	default:
		l.renewed(f.Revision)
	}
}

func (l *Lease) minted(now time.Time, f MintEnded) {
	switch {
	case f.Err != nil:
		l.mintAfter = now.Add(l.share(reads))
	case !l.holder: // it was lost meanwhile: the epoch is nobody's
		l.highest = max(l.highest, f.Epoch)
	case l.first && f.Epoch > 1: // there was one meanwhile
		l.highest, l.first = max(l.highest, f.Epoch), false
		l.lose()
	case f.Epoch < l.highest:
		l.mintAfter = now // somebody else has a higher one: another is needed
	default:
		l.epoch = f.Epoch
	}
}

// Ready is everything that follows, and when to ask again if nothing is told.
type Ready struct {
	Do     []Action
	WakeAt time.Time // zero: only when something is told
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
		r.Do = append(r.Do, Look{})
	}
	if !l.busy {
		r.WakeAt = l.next
	}
	if l.holder && l.epoch == 0 && !l.minting && l.mintAfter.After(now) && (r.WakeAt.IsZero() || l.mintAfter.Before(r.WakeAt)) {
		r.WakeAt = l.mintAfter
	}
	return r
}

// decide reads or writes.
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
		do = append(do, Look{})
	}
	return do
}

// leaves is what the next keeper is to find: until this one knows anything, what it has found itself.
func (l *Lease) leaves() json.RawMessage {
	if l.state != nil {
		return l.state
	}
	return l.before
}

// ripe reports whether one revision was seen for as long as its writer may be keeper.
func (l *Lease) ripe(now time.Time) bool {
	wait := l.share(waits)
	if l.cfg.Yields {
		wait += l.share(yields)
	}
	return (l.unopposed() || l.seen && now.Sub(l.since) >= wait) && !now.Before(l.backed)
}
