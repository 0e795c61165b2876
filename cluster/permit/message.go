package permit

import (
	"time"
)

// Version is that of the messages here. Who hears another one does not answer. A worker knows the keeper's from what it
// says of itself; if it is another one, the worker says so and waits.
const Version = 1

// Bounds of the protocol; each is a choice, and the simulation in package keeper shows what
// it costs.
const (
	// Life is how long a permit is good, from when the worker sent the ask that it answers:
	// longer than any way to the bus and back, and short enough that who loses touch with the
	// keeper stops soon.
	Life = 2 * time.Second
	// AskEvery is how often a worker asks at most while it has news: calls that have ended.
	AskEvery = 100 * time.Millisecond
	// AskAgain is how often it says what is no news: that it still wants permits, that calls
	// have left, and what was not acknowledged.
	AskAgain = 250 * time.Millisecond
	// AskSoonest is the shortest time between two asks of one lane: so long news that cannot
	// wait is gathered, or a burst of short calls would be a message each.
	AskSoonest = 10 * time.Millisecond
	// AskStill is how often a worker asks that only has calls in flight, or permits in hand:
	// four times before the keeper would take it for gone.
	AskStill = Forgotten / 4
	// GiveEvery is how often the keeper gives something to one lane at most.
	GiveEvery = 25 * time.Millisecond
	// HeardWithin is within what time it acknowledges reports, if it has nothing to give
	// before: soon enough that they need not be said again.
	HeardWithin = 100 * time.Millisecond
	// Forgotten is after how long the keeper takes it that a permit of which nothing was
	// said will not be used, and that a worker of which nothing was heard is gone: two lives.
	Forgotten = 2 * Life
)

// Bounds of a message: the largest ask has some 400 KB, and a bus takes a megabyte.
const (
	// MaxWants is how many calls an ask describes by their cost.
	MaxWants = 64
	// MaxReports is how many reports an ask has at most; the rest follow when those are heard.
	MaxReports = 2048
	// MaxPermits is how many permits a give brings at most.
	MaxPermits = 4096
	// MaxSightings is how many sightings an outcome has at most: a provider shows four limits.
	MaxSightings = 8
	// MaxName is how long the name of a worker, a job or a limit is at most, in bytes.
	MaxName = 256
	// MaxCause is how much of a cause goes over the bus, in bytes: a line for a person.
	MaxCause = 300
)

// A Number names a permit within the epoch of its keeper: from 1, and for one worker rising.
// 0 is none.
type Number uint64

// A Permit lets one call leave.
type Permit struct {
	Number Number `json:"n"`
	Cost   Cost   `json:"c"` // it is for a call of at most that
	Probe  bool   `json:"p,omitempty"`
}

// An Ask is all that one lane of one worker has to say: its lane is a job under a limit.
type Ask struct {
	Version int    `json:"v"`
	Worker  string `json:"w"` // a name that is new with each life of the process
	Job     string `json:"j"`
	Limit   string `json:"l"`
	Seq     uint64 `json:"s"`           // from 1, rising with each ask of this worker, job and limit
	Epoch   uint64 `json:"e"`           // of the keeper that the worker believes in; 0: of none
	Got     Number `json:"g,omitempty"` // the latest permit of that keeper that arrived
	// Wants are the costs of the calls that would leave next, in order, beyond those for which
	// there are permits in hand; More is how many there are beyond MaxWants.
	Wants []Cost `json:"want,omitempty"`
	More  int    `json:"more,omitempty"`
	// Reports are what became of permits, in the order in which it happened: the oldest that
	// no Give has said to have been heard, without a gap. First is the number of the first of
	// them among all reports of this lane, from 1.
	First   uint64   `json:"f,omitempty"`
	Reports []Report `json:"r,omitempty"`
}

// A Report is what became of one permit: it will not be used, or a call has left with it, or
// that call has ended. A call that ended before its leaving was reported is reported once.
type Report struct {
	Epoch  uint64        `json:"e"` // of the keeper that gave the permit
	Number Number        `json:"n"`
	Unused bool          `json:"u,omitempty"` // no call will leave with it
	Cost   Cost          `json:"c,omitzero"`  // of the call that left with it
	Age    time.Duration `json:"a,omitempty"` // from when it left to when the ask was sent
	Ended  *Outcome      `json:"o,omitempty"` // nil: it is in flight
}

// A Give is the keeper's word to one lane of one worker.
type Give struct {
	Version  int      `json:"v"`
	Worker   string   `json:"w"`
	Job      string   `json:"j"`
	Limit    string   `json:"l"`
	Epoch    uint64   `json:"e"`           // of the keeper
	Wave     uint64   `json:"x"`           // of the limit: permits of an older one are void
	Heard    uint64   `json:"s"`           // the latest ask of this lane that was heard; what it reported need not be said again
	Answered bool     `json:"a,omitempty"` // the provider has answered somebody under this limit
	Permits  []Permit `json:"p,omitempty"`
}

// A Cool is the keeper's word to all about one limit: whatever it gave before is void.
type Cool struct {
	Version int           `json:"v"`
	Limit   string        `json:"l"`
	Epoch   uint64        `json:"e"`
	Wave    uint64        `json:"x"`             // from now on; permits of an older one are void
	For     time.Duration `json:"f,omitempty"`   // how long nothing will be given, as far as is known
	Stopped *Cause        `json:"end,omitempty"` // why nothing will be given any more; nil if it will
}
