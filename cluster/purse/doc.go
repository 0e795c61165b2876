// Package purse holds the money of a job that may cost no more than its user says. Each worker has a purse for each such
// job, and no call leaves without money in it.
//
// The store is the one place that knows how much is left: the cap is cut into [Slices] notes, and a worker has a note
// once it has created the note's object. So no two workers have the same money, also when one of them dies, or
// the keeper does, and nothing of it is on the bus.
//
//	store: jobs/<job>/money/<raise>-<note>, created if absent
//	   │ draw
//	   ▼
//	 left ──Reserve──▶ reserved ──Settle──▶ spent
//	   ▲                  │  └─ in doubt: it counts as spent
//	   └── what the call did not cost ──────┘
//
// It promises that calls cost no more than the cap, plus what they cost beyond their reservations. What a worker has
// drawn and not spent when it dies is lost to the job: its calls in flight, and less than a note. A user who raises the
// cap adds notes; those that were drawn before count as spent. One who lowers it keeps workers from drawing more: what they
// have drawn may still be spent, unless the job stops.
//
// Read it in this order: purse.go (what a call does), notes.go (how money is drawn).
package purse
