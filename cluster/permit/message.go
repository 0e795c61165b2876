package permit

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Version is the version of the messages here. A process does not answer a message of another version. A worker learns
// the keeper's version from the keeper's status; if it differs, the worker says so and waits.
const Version = 1

// Bounds of the protocol; each is a choice, and the simulation in package keeper shows its cost.
const (
	// Life is the time for which a permit is good, from the sending of the ask that it answers. It is longer than any
	// way to the bus and back. It is short enough to stop a worker soon that loses touch with the keeper.
	Life = 2 * time.Second
	// AskEvery is the least time between two asks with news: calls that have ended.
	AskEvery = 100 * time.Millisecond
	// AskAgain is the time between two asks without news: about permits still wanted, calls that have left, and
	// unacknowledged reports.
	AskAgain = 250 * time.Millisecond
	// AskSoonest is the shortest time between two asks of one lane. Urgent news gathers for so long; else a burst of
	// short calls would be a message each.
	AskSoonest = 10 * time.Millisecond
	// AskStill is the time between two asks of a worker that only has calls in flight, or permits in hand. Four of
	// them pass before the keeper takes the worker for gone.
	AskStill = Forgotten / 4
	// GiveEvery is the least time between two gives to one lane.
	GiveEvery = 25 * time.Millisecond
	// HeardWithin bounds the time until the keeper acknowledges reports if it has nothing to give before. It is short
	// enough that the worker need not repeat them.
	HeardWithin = 100 * time.Millisecond
	// Forgotten is the silence after which the keeper assumes that a permit will not be used, or that a worker is
	// gone: two lives.
	Forgotten = 2 * Life
)

// Bounds of a message: the largest ask has some 400 KB, and a bus takes a megabyte.
const (
	// MaxWants bounds the calls that an ask describes by their cost.
	MaxWants = 64
	// MaxReports bounds the reports in an ask; the rest follow when those are heard.
	MaxReports = 2048
	// MaxPermits bounds the permits in a give.
	MaxPermits = 4096
	// MaxSightings bounds the sightings in an outcome: a provider shows four limits.
	MaxSightings = 8
	// MaxName bounds the name of a worker, a job or a limit, in bytes.
	MaxName = 256
	// MaxCause bounds the text of a cause on the bus, in bytes: a line for a person.
	MaxCause = 300
)

// A Number names a permit within the epoch of its keeper. Numbers begin with 1, and rise for each worker. 0 names
// none.
type Number uint64

// A Permit lets one call leave.
type Permit struct {
	Number Number `json:"n"`
	Cost   Cost   `json:"c"` // the most that the call may cost
	Probe  bool   `json:"p,omitempty"`
}

// An Ask carries all that one lane of one worker reports and wants; its lane is a job under a limit.
type Ask struct {
	Version int    `json:"v"`
	Worker  string `json:"w"` // a name that is new with each life of the process
	Job     string `json:"j"`
	Limit   string `json:"l"`
	Seq     uint64 `json:"s"`           // from 1, rising with each ask of this worker, job and limit
	Epoch   uint64 `json:"e"`           // of the keeper that the worker believes in; 0: of none
	Got     Number `json:"g,omitempty"` // the latest permit of that keeper that arrived
	// Wants are the costs of the calls that would leave next, in order, beyond those with permits in hand. More counts
	// the calls beyond those that Wants describes.
	Wants []Cost `json:"want,omitempty"`
	More  int    `json:"more,omitempty"`
	// Reports tell the fates of permits, in the order of events: the oldest that no Give has acknowledged, without a
	// gap. First is the number of the first one among all reports of this lane, from 1.
	First   uint64   `json:"f,omitempty"`
	Reports []Report `json:"r,omitempty"`
	// Weight is the share of a holder whose calls are no job's, relative to those of jobs; 0: the job has its own.
	Weight float64 `json:"wt,omitempty"`
}

// A Report says one thing of a permit: it will not be used, a call has left with it, or that call has ended. A call
// that ended before its leaving was reported is reported once.
type Report struct {
	Epoch  uint64        `json:"e"` // of the keeper that gave the permit
	Number Number        `json:"n"`
	Unused bool          `json:"u,omitempty"` // no call will leave with it
	Cost   Cost          `json:"c,omitzero"`  // of the call that left with it
	Age    time.Duration `json:"a,omitempty"` // from its leaving to the sending of the ask
	Ended  *Outcome      `json:"o,omitempty"` // nil: it is in flight
}

// A Give is the keeper's message to one lane of one worker.
type Give struct {
	Version  int      `json:"v"`
	Worker   string   `json:"w"`
	Job      string   `json:"j"`
	Limit    string   `json:"l"`
	Epoch    uint64   `json:"e"`           // of the keeper
	Wave     uint64   `json:"x"`           // of the limit: permits of an older one are void
	Heard    uint64   `json:"s"`           // the latest ask of this lane that was heard; its reports need not be repeated
	Answered bool     `json:"a,omitempty"` // the provider has answered a call under this limit
	Permits  []Permit `json:"p,omitempty"`
}

// A Cool is the keeper's message to all about one limit: it voids all permits of older waves.
type Cool struct {
	Version int           `json:"v"`
	Limit   string        `json:"l"`
	Epoch   uint64        `json:"e"`
	Wave    uint64        `json:"x"`             // from now on; permits of an older one are void
	For     time.Duration `json:"f,omitempty"`   // the time without permits, as far as is known
	Stopped *Cause        `json:"end,omitempty"` // why the keeper gives no more permits; nil: it will give more
}

// ErrVersion is the kind of error about a message of another version.
var ErrVersion = errors.New("permit: version")

// Validate checks that this version reads the ask. Its error is [ErrVersion], or [ErrMessage]
// for an ask that no worker sends.
func (a *Ask) Validate() error {
	if err := checkHead(a.Version, a.Worker, a.Job, a.Limit); err != nil {
		return err
	}
	switch {
	case a.Seq == 0:
		return fmt.Errorf("%w: ask: its number is 0", ErrMessage)
	case len(a.Wants) > MaxWants || a.More < 0:
		return fmt.Errorf("%w: ask: %d wants and %d more", ErrMessage, len(a.Wants), a.More)
	case !(a.Weight >= 0) || math.IsInf(a.Weight, 1):
		return fmt.Errorf("%w: ask: a weight of %v", ErrMessage, a.Weight)
	case len(a.Reports) > MaxReports || len(a.Reports) > 0 && a.First == 0:
		return fmt.Errorf("%w: ask: %d reports from number %d on", ErrMessage, len(a.Reports), a.First)
	}
	for _, c := range a.Wants {
		if !c.valid() {
			return fmt.Errorf("%w: ask: no call draws %v", ErrMessage, c)
		}
	}
	for i := range a.Reports {
		if err := a.Reports[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

// oldest is more than any call takes.
const oldest = 7 * 24 * time.Hour

// validate checks that a report makes sense by itself. Only the keeper knows whether there is such
// a permit.
func (r *Report) validate() error {
	switch {
	case r.Number == 0 || r.Epoch == 0:
		return fmt.Errorf("%w: report: of no permit", ErrMessage)
	case r.Unused && r.Ended != nil:
		return fmt.Errorf("%w: report: permit %d was not used, and its call ended", ErrMessage, r.Number)
	case !r.Cost.valid() || r.Age < 0 || r.Age > oldest:
		return fmt.Errorf("%w: report: a call of %v, %v ago", ErrMessage, r.Cost, r.Age)
	case r.Ended != nil:
		_, err := r.Ended.Machine()
		return err
	}
	return nil
}

// Validate checks that this version reads the give, as [Ask.Validate] does.
func (g *Give) Validate() error {
	if err := checkHead(g.Version, g.Worker, g.Job, g.Limit); err != nil {
		return err
	}
	if g.Epoch == 0 || len(g.Permits) > MaxPermits {
		return fmt.Errorf("%w: give: %d permits of keeper %d", ErrMessage, len(g.Permits), g.Epoch)
	}
	for _, p := range g.Permits {
		if p.Number == 0 || !p.Cost.valid() {
			return fmt.Errorf("%w: give: permit %d for %v", ErrMessage, p.Number, p.Cost)
		}
	}
	return nil
}

// Validate checks that this version reads the message, as [Ask.Validate] does.
func (c *Cool) Validate() error {
	if err := checkHead(c.Version, "-", "-", c.Limit); err != nil {
		return err
	}
	if c.Epoch == 0 || c.For < 0 {
		return fmt.Errorf("%w: cool: for %v, of keeper %d", ErrMessage, c.For, c.Epoch)
	}
	return nil
}

func checkHead(version int, worker, job, limit string) error {
	if version != Version {
		return fmt.Errorf("%w: %d, and this is %d", ErrVersion, version, Version)
	}
	for _, name := range []string{worker, job, limit} {
		if name == "" || len(name) > MaxName {
			return fmt.Errorf("%w: a name has 1..%d bytes, and %.20q… has %d", ErrMessage, MaxName, name, len(name))
		}
	}
	return nil
}
