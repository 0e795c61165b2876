package claim

import (
	"time"
)

// An ID names a claim among those of one worker: the number of the delivery that it began
// with. Events about a claim that is over, or an item that has ended, have no effect.
type ID uint64

// An Event is one fact for [Machine.Step]. The types below are all there are. If an event has a non-nil
// Err, its other fields mean nothing: the request may have been carried out or not.
type Event interface{ event() }

// Events from the queue.
type (
	// Delivered says that the queue gave out a chunk. The caller chooses the delivery's number,
	// a different one each time.
	Delivered struct {
		Delivery ID
		Chunk    Chunk
	}
	// FetchEnded says that a [Fetch] of a job ended without a chunk.
	FetchEnded struct {
		Job string
		Err error
	}
	// Offered lists the jobs of which the queue has chunks, or had them lately.
	Offered struct{ Jobs []string }
	// BeatEnded says how a [Beat] ended. Forgotten adds to an Err that the queue does not know the
	// delivery: it has lost its state, and will give the chunk out as one without an owner.
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

// Events from the store.
type (
	// PartLooked answers [CheckPart].
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
	// JournalsRead answers [ReadJournals]. Gone says that one of them no longer exists: another
	// worker has joined and deleted it.
	JournalsRead struct {
		ID   ID
		Gone bool
		Err  error
	}
	// Saved says that this many more lines of the claim's journal survive a loss of power.
	Saved struct {
		ID    ID
		Lines int
	}
	// JournalBroke says that nothing more can be saved in the claim's journal.
	JournalBroke struct {
		ID  ID
		Err error
	}
	// Closed answers [Close]: nothing is written any more. Unsaved results are lost, and
	// JournalBroke has reported them before.
	Closed struct{ ID ID }
	// Joined answers [Join].
	Joined struct {
		ID      ID
		Outcome Outcome
		Err     error
	}
	// Cleaned answers [Clean], whether all journals were deleted or not.
	Cleaned struct{ ID ID }
)

// An Outcome is the result of a [Join].
type Outcome uint8

// The outcomes of a join.
const (
	Made       Outcome = iota // the part is there, and it is this claim's
	Taken                     // the part was there
	Incomplete                // an item has a line in none of the journals
)

// Events from other workers.
type (
	// Answered reports a worker's answer: whether it holds the chunk. Silent says that there is no
	// worker of that name to ask. A worker that says nothing needs no event.
	Answered struct {
		ID     ID
		Who    string
		Holds  bool
		Silent bool
	}
	// ClaimedByOther says that another worker has claimed a chunk, under this name.
	ClaimedByOther struct {
		Chunk Chunk
		Name  Name
	}
	// Connected gives the time since which the bus is there: at the beginning, and after each absence.
	Connected struct{ At time.Time }
)

// Events about items. Each item has a number of its own within its claim.
type (
	// Fed says that an item was read and is on its way to be called.
	Fed struct {
		ID   ID
		Item int
	}
	// ReadOut says that nothing of the chunk is left to read.
	ReadOut struct {
		ID  ID
		Err error
	}
	// Begun asks whether a call of the item may leave now: [Go] or [Refuse] answers.
	Begun struct {
		ID   ID
		Item int
	}
	// Missed says that a call left and brought no result: there may be another call.
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

// Orders to the worker.
type (
	// Drained says that the worker must finish its calls in flight and claim nothing more.
	Drained struct{}
	// Canceled says that nothing of a job may run any more.
	Canceled struct{ Job string }
	// Resumed takes a Canceled back.
	Resumed struct{ Job string }
)

func (Delivered) event()      {}
func (FetchEnded) event()     {}
func (Offered) event()        {}
func (BeatEnded) event()      {}
func (Acked) event()          {}
func (PartLooked) event()     {}
func (Listed) event()         {}
func (Created) event()        {}
func (JournalsRead) event()   {}
func (Saved) event()          {}
func (JournalBroke) event()   {}
func (Closed) event()         {}
func (Joined) event()         {}
func (Cleaned) event()        {}
func (Answered) event()       {}
func (ClaimedByOther) event() {}
func (Connected) event()      {}
func (Fed) event()            {}
func (ReadOut) event()        {}
func (Begun) event()          {}
func (Missed) event()         {}
func (Took) event()           {}
func (Unrun) event()          {}
func (Drained) event()        {}
func (Canceled) event()       {}
func (Resumed) event()        {}

// An Action is an order from [Machine.Ready]. The types below are all there are. Begin each in the order
// given, and wait for none. An action that an event answers is answered once, however long that takes.
type Action interface{ action() }

// Actions at the queue.
type (
	// Fetch asks for a chunk of a job: [Delivered] or [FetchEnded].
	Fetch struct{ Job string }
	// Beat says that a chunk is being worked on. It must end within a bound of a second or
	// two: [BeatEnded].
	Beat struct{ ID, Delivery ID }
	// Ack says that a chunk needs no more work. It must end within [AckTime]: [Acked].
	Ack struct{ ID, Delivery ID }
	// Return puts a chunk back, to be given out again after that time and not before. No event
	// follows if it fails: the queue finds out by itself.
	Return struct {
		Delivery ID
		After    time.Duration
		Why      string
	}
	// Drop says that a delivery needs no answer any more.
	Drop struct {
		Delivery ID
		Why      string
	}
)

// Actions at the store.
type (
	// CheckPart looks whether the chunk's part is there: [PartLooked].
	CheckPart struct{ ID ID }
	// List lists the journals of the chunk: [Listed].
	List struct{ ID ID }
	// Create makes the claim's own journal, unless one of that name exists: [Created].
	Create struct {
		ID   ID
		Name Name
	}
	// Remove deletes the claim's own journal, which is empty. No event follows if it fails.
	Remove struct {
		ID   ID
		Name Name
	}
	// ReadJournals reads which items have ended in these journals, and begins to read the
	// others from the input: [JournalsRead].
	ReadJournals struct {
		ID    ID
		Names []Name
	}
	// Flush saves the waiting results now: [Saved], [JournalBroke].
	Flush struct{ ID ID }
	// Close saves the waiting results and closes the journal: [Saved], then [Closed].
	Close struct{ ID ID }
	// Join makes the part from these journals, unless the part is there: [Joined]. Each item gets the
	// line in the first journal that has one. The lines stand in the order of the input.
	Join struct {
		ID    ID
		Names []Name
	}
	// Clean deletes all journals of the chunk: [Cleaned].
	Clean struct{ ID ID }
)

// Actions towards other workers.
type (
	// Ask asks these workers whether they hold the chunk: [Answered] for each. The machine decides how
	// long an answer counts, so the asker waits longer, until the claim is over. An answer also counts
	// if it came in time but lay unread while this process was frozen.
	Ask struct {
		ID  ID
		Who []string
	}
	// Tell informs these workers that the claim has taken the chunk over.
	Tell struct {
		ID   ID
		Who  []string
		Name Name
	}
	// SayDone announces that the chunk's part is there.
	SayDone struct{ Chunk Chunk }
)

// Actions on items and claims.
type (
	// Go lets the call of an item leave: [Missed], [Took] or [Unrun].
	Go struct {
		ID   ID
		Item int
	}
	// Refuse ends an item without a call. The claim waits for no report of it.
	Refuse struct {
		ID   ID
		Item int
	}
	// Forget says that a claim is over: the machine waits for nothing of it, and will ask nothing
	// of it. Give back everything that the claim still holds.
	Forget struct{ ID ID }
)

func (Fetch) action()        {}
func (Beat) action()         {}
func (Ack) action()          {}
func (Return) action()       {}
func (Drop) action()         {}
func (CheckPart) action()    {}
func (List) action()         {}
func (Create) action()       {}
func (Remove) action()       {}
func (ReadJournals) action() {}
func (Flush) action()        {}
func (Close) action()        {}
func (Join) action()         {}
func (Clean) action()        {}
func (Ask) action()          {}
func (Tell) action()         {}
func (SayDone) action()      {}
func (Go) action()           {}
func (Refuse) action()       {}
func (Forget) action()       {}
