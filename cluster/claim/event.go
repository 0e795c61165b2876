package claim

import "time"

// An ID names a claim among those of one worker: the number of the delivery that it began
// with. News of a claim that is over, or of an item that has ended, says nothing and does no harm.
type ID uint64

// An Event is one fact, as [Machine.Step] takes it. The types below are all there are. Where one
// has an Err, not nil, its other fields mean nothing: what was asked for may have been done or not.
type Event interface{ event() }

// What the queue says.
type (
	// Delivered says that the queue gave out a chunk. The delivery's number is the caller's
	// choice, another one each time.
	Delivered struct {
		Delivery ID
		Chunk    Chunk
	}
	// FetchEnded says that a [Fetch] of a job ended without a chunk.
	FetchEnded struct {
		Job string
		Err error
	}
	// Offered says of which jobs the queue has chunks, or had lately.
	Offered struct{ Jobs []string }
	// BeatEnded says how a [Beat] ended. Forgotten says beside an Err that the queue knows nothing of the
	// delivery: it has lost what it knew, and will give the chunk out as one that nobody has.
	BeatEnded struct {
		ID        ID
		Err       error
		Forgotten bool
	}
	// Acked says how an [Ack] ended.
	Acked struct {
		ID  ID
		Err error
	}
)

// What the store says.
type (
	// PartLooked answers [LookPart].
	PartLooked struct {
		ID    ID
		There bool
		Err   error
	}
	// Listed answers [List].
	Listed struct {
		ID    ID
		Names []Name // in any order
		Err   error
	}
	// Created answers [Create].
	Created struct {
		ID    ID
		Taken bool // a journal of that name is there
		Err   error
	}
	// JournalsRead answers [ReadJournals]. Gone says that one of them is not there any more:
	// whoever has joined them has deleted it.
	JournalsRead struct {
		ID   ID
		Gone bool
		Err  error
	}
	// Saved says that so many lines more of the claim's journal survive the loss of power.
	Saved struct {
		ID    ID
		Lines int
	}
	// JournalBroke says that nothing more can be saved in the claim's journal.
	JournalBroke struct {
		ID  ID
		Err error
	}
	// Closed answers [Close]: nothing is written any more. What could not be saved is lost, and
	// JournalBroke has said so before.
	Closed struct{ ID ID }
	// Joined answers [Join].
	Joined struct {
		ID      ID
		Outcome Outcome
		Err     error
	}
	// Cleaned answers [Clean], whether all of it was done or not.
	Cleaned struct{ ID ID }
)

// An Outcome is what became of a [Join].
type Outcome uint8

// The outcomes of a join.
const (
	Made       Outcome = iota // the part is there, and it is this claim's
	Taken                     // the part was there
	Incomplete                // an item has a line in none of the journals
)

// What other workers say.
type (
	// Answered says what a worker that was asked has said: whether it holds the chunk. Silent
	// says that nobody of that name is there to be asked. Whoever says nothing needs no event.
	Answered struct {
		ID     ID
		Who    string
		Holds  bool
		Silent bool
	}
	// Told says that another worker has claimed a chunk, under this name.
	Told struct {
		Chunk Chunk
		Name  Name
	}
	// Connected says since when the bus is there: at the beginning, and whenever it was away.
	Connected struct{ At time.Time }
)

// What becomes of items. Each has a number of its own among those of its claim.
type (
	// Fed says that an item was read and is on its way to be called.
	Fed struct {
		ID   ID
		Item int
	}
	// ReadOut says that there is nothing more to be read of the chunk.
	ReadOut struct {
		ID  ID
		Err error
	}
	// Begun asks whether a call of the item may leave now: [Go] or [Refuse] answers.
	Begun struct {
		ID   ID
		Item int
	}
	// Missed says that a call that left has brought no result: there may be another.
	Missed struct {
		ID   ID
		Item int
	}
	// Took says that an item has its result, which is on its way to the journal.
	Took struct {
		ID   ID
		Item int
	}
	// Unrun says that an item ended without a result.
	Unrun struct {
		ID   ID
		Item int
	}
)

// What the worker is told to do.
type (
	// Drained says that the worker is to finish what flies and to claim nothing more.
	Drained struct{}
	// Canceled says that nothing of a job is to be run any more.
	Canceled struct{ Job string }
	// Resumed takes a Canceled back.
	Resumed struct{ Job string }
)

func (Delivered) event()    {}
func (FetchEnded) event()   {}
func (Offered) event()      {}
func (BeatEnded) event()    {}
func (Acked) event()        {}
func (PartLooked) event()   {}
func (Listed) event()       {}
func (Created) event()      {}
func (JournalsRead) event() {}
func (Saved) event()        {}
func (JournalBroke) event() {}
func (Closed) event()       {}
func (Joined) event()       {}
func (Cleaned) event()      {}
func (Answered) event()     {}
func (Told) event()         {}
func (Connected) event()    {}
func (Fed) event()          {}
func (ReadOut) event()      {}
func (Begun) event()        {}
func (Missed) event()       {}
func (Took) event()         {}
func (Unrun) event()        {}
func (Drained) event()      {}
func (Canceled) event()     {}
func (Resumed) event()      {}
