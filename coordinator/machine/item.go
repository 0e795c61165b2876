package machine

import (
	"time"

	"github.com/headrace/headrace/limiter"
)

// A Place is where an item is. It is in exactly one at any time.
type Place uint8

// The places, in the order in which an item may pass through them.
const (
	Nowhere   Place = iota // not offered yet, or of another machine
	Waiting                // in its pool, for a grant
	InFlight               // granted: its call is running
	Parked                 // in its pool, after a refusal, ahead of those that wait
	Delayed                // in its pool, until its own backoff is over, or its own wait after a refusal
	Undecided              // in its pool, its call failed for good: it is not known yet whether the lane is to blame
	Releasing              // on its way out without a further call
	Over                   // settled or released
)

var placeWords = [...]string{"nowhere", "waiting", "in flight", "parked", "delayed", "undecided", "releasing", "over"}

func (p Place) String() string { return placeWords[p] }

// An Item is one element of a run's input, while the machine knows it.
//
// Ownership moves with the pointer. A caller who offers an item must not touch it afterwards.
// The machine owns the item while it waits. A grant lends it to one worker, until that worker
// reports the end of the call. The machine writes the exported fields below Payload only while
// it owns the item, so a worker may read them without asking.
type Item struct {
	Seq     uint64       // its number in its run; also its place in the line
	Pool    string       // the pool that it waits in; "" is the default pool
	Cost    limiter.Cost // expected draw of its call, or the estimate from which the Charge of its lane makes it: prompt, and bound on output; no requests mean one
	Payload any          // the caller's own; never looked at here

	Attempts  int           // attempts that failed and used one up, those in doubt among them
	Throttled int           // calls that were refused for now (429, 503, 529), or never left
	Waited    time.Duration // from each hand-over to the grant that answered it
	Expires   time.Time     // when it may not be tried again; zero: never
	Calls     int           // calls granted
	Probe     bool          // its latest call was a probe: the lane's test, and not the item's try
	place     Place
	verdict   Verdict   // why it is Releasing
	unwanted  bool      // it was withdrawn in flight, or before it was offered
	timed     int32     // its position in the machine's expiry, from 1; 0: not in it. Here it takes no room
	Offered   time.Time // when the machine took it over
	First     time.Time // when its first call was granted; zero: never
	Sent      time.Time // when its latest call was granted

	run        *run
	pool       *pool
	lane       *lane          // of the latest call
	epoch      uint64         // of the lane, when that call left
	ticket     limiter.Ticket // of the latest call, from its law
	serial     uint64         // of the latest grant: older news of this item is dropped
	prev, next *Item          // in the list that holds it

	// Only items that come back use these, so they are not next to the fields that each item
	// touches.
	cause error     // what is behind the verdict
	due   time.Time // when Delayed is over; of a refusal until when the item alone waits
	since time.Time // when it was handed over
	pos   int32     // in the heap that holds it; of InFlight, in its run's flights

	refused uint8 // of Throttled: calls that a server refused
	doubts  uint8 // of Attempts: those that may yet prove to be another's failure
	probed  uint8 // probes of a breaker that it failed
	counted bool  // it has counted against a lane, once and for all
}

// Queued returns the wait of the item for its first call; zero before that call.
func (it *Item) Queued() time.Duration {
	if it.First.IsZero() {
		return 0
	}
	return it.First.Sub(it.Offered)
}

// expired reports whether the item's time is up.
func (it *Item) expired(now time.Time) bool {
	return !it.Expires.IsZero() && !now.Before(it.Expires)
}
