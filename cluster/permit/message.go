package permit

import (
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// Version is that of the messages here. Who hears another one does not answer, and says so.
const Version = 1

// Bounds of the protocol; each is a choice, and the simulation in package keeper shows what it costs.
const (
	// Life is how long a permit is good, from when the worker sent the ask that it answers:
	// longer than any way to the bus and back, and short enough that who loses touch with the
	// keeper stops soon.
	Life = 2 * time.Second
	// AskEvery is how often a worker asks while it has anything to say.
	AskEvery = 100 * time.Millisecond
	// GiveEvery is how often the keeper gives.
	GiveEvery = 25 * time.Millisecond
	// MaxWants is how many calls an ask describes by their cost.
	MaxWants = 64
	// Forgotten is after how long the keeper takes it that a permit of which nothing was
	// said will not be used, and that a worker of which nothing was heard is gone: two lives.
	Forgotten = 2 * Life
)

// A Number names a permit within the epoch of its keeper. 0 is none.
type Number uint64

// A Permit lets one call leave.
type Permit struct {
	Number Number       `json:"n"`
	Cost   limiter.Cost `json:"c"` // it is for a call of at most that
	Probe  bool         `json:"p,omitempty"`
}

// An Ask is all that one lane of one worker has to say: its lane is a job under a limit.
type Ask struct {
	Version int    `json:"v"`
	Worker  string `json:"w"` // a name that is new with each life of the process
	Job     string `json:"j"`
	Limit   string `json:"l"`
	Seq     uint64 `json:"s"` // from 1, rising with each ask of this worker, job and limit
	Epoch   uint64 `json:"e"` // of the keeper that the worker believes in; 0: of none
	// Wants are the costs of the calls that would leave next, in order, beyond those for which
	// there are permits in hand; More is how many there are beyond MaxWants.
	Wants []limiter.Cost `json:"want,omitempty"`
	More  int            `json:"more,omitempty"`
	// Reports are what became of permits, in the order in which it happened; all that no
	// Give has said to have been heard.
	Reports []Report `json:"r,omitempty"`
}

// A Report is what became of one permit.
type Report struct {
	Epoch  uint64        `json:"e"` // of the keeper that gave the permit
	Wave   uint64        `json:"w"` // of the Give that brought it
	Number Number        `json:"n"`
	Unused bool          `json:"u,omitempty"` // no call will leave with it
	Cost   limiter.Cost  `json:"c"`           // of the call that left with it
	Age    time.Duration `json:"a"`           // from when it left to when the ask was sent
	Ended  *Outcome      `json:"o,omitempty"` // nil: it is in flight
}

// An Outcome is a [machine.Outcome] as it goes over the bus: its Cause as text. No key, prompt
// or answer is in it.
type Outcome struct {
	machine.Outcome
	Cause string `json:"cause,omitempty"`
}

// A Give is the keeper's word to one lane of one worker.
type Give struct {
	Version int      `json:"v"`
	Worker  string   `json:"w"`
	Job     string   `json:"j"`
	Limit   string   `json:"l"`
	Epoch   uint64   `json:"e"` // of the keeper
	Wave    uint64   `json:"x"` // epoch of the limit's lane: permits of an older one are void
	Heard   uint64   `json:"s"` // the latest ask of this lane that was heard; what it reported need not be said again
	Permits []Permit `json:"p,omitempty"`
}

// A Cool is the keeper's word to all about one limit.
type Cool struct {
	Version int           `json:"v"`
	Limit   string        `json:"l"`
	Epoch   uint64        `json:"e"`
	Wave    uint64        `json:"x"`             // from now on; permits of an older one are void
	For     time.Duration `json:"f,omitempty"`   // how long nothing will be given, as far as is known
	Stopped string        `json:"end,omitempty"` // why nothing will be given any more, "" if it will
	Kind    string        `json:"k,omitempty"`   // of Stopped: the provider's kind of failure, as its String says
}
