package claim

import "time"

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
	// LookPart looks whether the chunk's part is there: [PartLooked].
	LookPart struct{ ID ID }
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
func (LookPart) action()     {}
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
