package claim

import "time"

// An Action is something to do that [Machine.Ready] answers with. The types below are all there
// are. Each is to be begun in the order in which it is given, and none to be waited for; those
// that an event answers are answered once, however long that takes.
type Action interface{ action() }

// What to say to the queue.
type (
	// Fetch asks for a chunk of a job: [Delivered] or [FetchEnded].
	Fetch struct{ Job string }
	// Beat says that a chunk is being worked on. It is to end within a bound, a second or
	// two: [BeatEnded].
	Beat struct{ ID, Delivery ID }
	// Ack says that a chunk needs no more work. It is to end within [AckTime]: [Acked].
	Ack struct{ ID, Delivery ID }
	// Return puts a chunk back: it is to be given out again, and not before that time has
	// passed. Nothing follows if it fails: the queue finds out by itself.
	Return struct {
		Delivery ID
		After    time.Duration
		Why      string
	}
	// Drop says that a delivery is not to be answered any more.
	Drop struct {
		Delivery ID
		Why      string
	}
)

// What to do at the store.
type (
	// LookPart looks whether the chunk's part is there: [PartLooked].
	LookPart struct{ ID ID }
	// List lists the journals of the chunk: [Listed].
	List struct{ ID ID }
	// Create makes the claim's own journal, if none of that name is there: [Created].
	Create struct {
		ID   ID
		Name Name
	}
	// Remove deletes the claim's own journal, in which nothing is. Nothing follows if it fails.
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
	// Flush saves now what waits to be saved: [Saved], [JournalBroke].
	Flush struct{ ID ID }
	// Close saves what waits and closes the journal: [Saved], then [Closed].
	Close struct{ ID ID }
	// Join makes the part of these journals, of each item the line in the first that has
	// one, in the order of the input, unless the part is there: [Joined].
	Join struct {
		ID    ID
		Names []Name
	}
	// Clean deletes all journals of the chunk: [Cleaned].
	Clean struct{ ID ID }
)

// What to say to others.
type (
	// Ask asks these workers whether they hold the chunk: [Answered] for each. How long an answer
	// is waited for is the machine's to say, so whoever asks waits for longer, until the claim
	// is over: what was said in time and lay unread in a process that was frozen counts.
	Ask struct {
		ID  ID
		Who []string
	}
	// Tell tells these workers that the claim has taken the chunk over.
	Tell struct {
		ID   ID
		Who  []string
		Name Name
	}
	// SayDone says to whoever counts that the chunk's part is there.
	SayDone struct{ Chunk Chunk }
)

// What becomes of items and claims.
type (
	// Go lets the call of an item leave: [Missed], [Took] or [Unrun].
	Go struct {
		ID   ID
		Item int
	}
	// Refuse ends an item without a call. The claim waits for no word of it.
	Refuse struct {
		ID   ID
		Item int
	}
	// Forget says that a claim is over: nothing of it is waited for, and nothing will be
	// asked of it. What it still holds is to be given back.
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
