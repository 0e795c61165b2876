package bus

import (
	"encoding/json"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
)

// This file holds what the processes of a cluster tell each other besides permits, as JSON. Package permit has the
// messages about permits, and permit.Version counts the versions of both. A process reads what the version before it
// has sent, and a field that it does not know says nothing to it.

// A Change is the message about a job or a limit; the zero value says that a job has changed.
type Change struct {
	Reset string    `json:"reset,omitempty"` // a person vouches for a limit
	Set   *LimitSet `json:"set,omitempty"`   // a person sets a limit
}

// A LimitSet holds the properties of a limit.
type LimitSet struct {
	Name string             `json:"name"`
	Lane machine.LaneConfig `json:"lane"`
}

// PartDone is the message that a chunk's part is there.
type PartDone struct {
	Chunk  int             `json:"n"`
	Round  int             `json:"round,omitempty"`
	Footer json.RawMessage `json:"footer,omitempty"`
}

// WorkerStatus is a worker's report of itself, sent once a second.
type WorkerStatus struct {
	At       time.Time                     `json:"at"` // by its own clock, for people
	InFlight int                           `json:"in_flight"`
	Done     uint64                        `json:"done"` // items that ended here, since it began
	Calls    uint64                        `json:"calls"`
	Refused  uint64                        `json:"refused"`
	Limits   map[string]machine.LaneConfig `json:"limits,omitempty"` // properties of the limits that it works under

	UpS         float64            `json:"up_s"` // seconds since it began, so that no clocks need to be compared
	Concurrency int                `json:"concurrency"`
	Jobs        map[string]JobWork `json:"jobs,omitempty"`    // jobs that it has made calls for, at most MostJobs
	Refuses     map[string]Refusal `json:"refuses,omitempty"` // jobs that it cannot work on, at most MostJobs
	Serves      *Serving           `json:"serves,omitempty"`  // it takes no chunks, and calls for clients of its own; nil: it is a worker
}

// Serving is a server whose calls draw on the limits of the cluster: headrace serve --join.
type Serving struct {
	At      string  `json:"at"`      // its address, for people
	Waiting int     `json:"waiting"` // requests that wait
	Weight  float64 `json:"weight"`  // its share of the limits, relative to jobs
}

// MostJobs bounds the jobs in a worker's report: its busiest.
const MostJobs = 32

// JobWork is a worker's work for one job.
type JobWork struct {
	InFlight  int    `json:"in_flight"`
	Waiting   int    `json:"waiting"` // items that wait for another call
	Done      uint64 `json:"done"`    // items that ended here, since it began
	Calls     uint64 `json:"calls"`   // likewise
	Refused   uint64 `json:"refused"`
	Cooldowns uint64 `json:"cooldowns"`
	MeanMS    int64  `json:"latency_ms"`
	P95MS     int64  `json:"p95_ms"`
}

// A Refusal says why a worker cannot work on a job.
type Refusal struct {
	Why string `json:"why"`
	// Final marks a reason that stops the job once all workers refuse it: the input is missing, or the limit has
	// stopped.
	Final bool    `json:"final,omitempty"`
	Bound bool    `json:"bound,omitempty"` // the reason is a bound of the job's user
	ForS  float64 `json:"for_s"`           // age of the refusal in seconds, so that no clocks need to be compared
	Tries int     `json:"tries"`           // tries that have failed since then, with a pause after each
}

// A Picture is the state of all limits of a cluster, as its keeper reports each second.
type Picture struct {
	Version int            `json:"v"`     // [permit.Version] of the keeper
	Epoch   uint64         `json:"epoch"` // of the keeper
	Limits  []LimitPicture `json:"limits"`
}

// A LimitPicture is the state of one limit.
type LimitPicture struct {
	Name     string       `json:"name"`
	Phase    string       `json:"phase"`
	InFlight int          `json:"in_flight"`
	Why      string       `json:"why,omitempty"`    // reason why the next call waits; "": it does not wait
	Bound    string       `json:"bound"`            // the word for what holds its calls back, as in a run; "": nothing
	WaitS    float64      `json:"wait_s,omitempty"` // seconds of that wait, as far as time alone decides
	Known    []Known      `json:"known,omitempty"`  // the law's beliefs about it
	Pace     *float64     `json:"per_second"`       // calls that may leave; null: as many as are wanted
	Given    uint64       `json:"given"`            // permits since the keeper began, as the next three
	Ended    uint64       `json:"ended"`
	Refused  uint64       `json:"refused"`
	Vanished uint64       `json:"vanished"`
	Stopped  string       `json:"stopped,omitempty"` // why; "": it is not
	Account  string       `json:"account,omitempty"` // whose limits stop together; "": it has none
	Jobs     []JobPicture `json:"jobs"`
}

// Known is the law's belief about one limited thing.
type Known struct {
	Limit     string  `json:"limit"` // requests, tokens, input_tokens or output_tokens
	PerSecond float64 `json:"per_second"`
	Source    string  `json:"source"` // told, learned or seen; seen is by headers
}

// A JobPicture is the state of a job under a limit.
type JobPicture struct {
	Job     string  `json:"job"`
	Weight  float64 `json:"weight"`
	Given   uint64  `json:"given"`
	Wanted  int     `json:"wanted"`
	Out     int     `json:"out"`
	Workers int     `json:"workers"`
}

// A Task is a job whose inputs are to be read through, and cut for a number of workers.
type Task struct {
	Job     string `json:"job"`
	Workers int    `json:"workers"`
}

// A Taken announces a takeover: the work belongs to the new worker, who has the higher turn.
type Taken struct {
	Work Work   `json:"work"`
	Turn int    `json:"turn"`
	By   string `json:"by"` // the life that holds the work now
}
