package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
)

// RecordFormat is the version of what Records, indexes and parts look like. It rises when what
// an older program does not know would make it do something wrong.
const RecordFormat = 1

// FormatOf is the format in which what concerns a job is written: that of its record, so that programs of
// the time in which it was submitted, which may work on it too, can read it. 0 is RecordFormat.
func FormatOf(record int) int { return cmp.Or(record, RecordFormat) }

const (
	// MaxInputs is how many files a job has at most: they all stand in its record, which is
	// written anew with each change, with 200 bytes each.
	MaxInputs = 10_000
	// MaxRecord is the most bytes of a record.
	MaxRecord = 16 << 20
)

// Why a record cannot be used; errors.Is finds them.
var (
	// ErrNewer: it was written by a program that is newer than this one.
	ErrNewer = errors.New("a newer headrace has written it: update this one")
	// ErrRecord: it is not what this program would have written.
	ErrRecord = errors.New("it is not a record of a job")
)

// State is where a job is on its way.
type State string

// The states.
const (
	Indexing State = "indexing" // its inputs are being read through
	Refused  State = "refused"  // lines of its inputs are bad: nothing was called
	Running  State = "running"
	Canceled State = "canceled" // by its user, who may resume it
	Stopped  State = "stopped"  // by what stands in Why: it may be resumed
	Done     State = "done"     // each item has ended in this round
)

// Record is one job as it was submitted, and its state. It has no secret in it: keys stay where
// calls are made.
type Record struct {
	Format  int    `json:"format"` // RecordFormat of who submitted it
	Job     string `json:"job"`
	Version int    `json:"version"` // from 0; the highest counts

	Inputs []Input `json:"inputs"`
	Open   bool    `json:"open,omitempty"` // more inputs may come: it does not end by itself
	// Output and Errors are where results go in the end, as its user named them; "" nowhere.
	Output string `json:"output,omitempty"`
	Errors string `json:"errors,omitempty"`

	// Submission is what the same command is known by; nil: it is another job each time.
	Submission *Submission `json:"submission,omitempty"`

	Reading Reading `json:"reading"`
	Asking  Asking  `json:"asking"`

	// Limit names what it shares with others, and Weight how much of that it gets beside them.
	Limit  string  `json:"limit"`
	Weight float64 `json:"weight"`
	Told   Told    `json:"told"` // of the limit, by the user

	Bounds Bounds `json:"bounds,omitzero"`

	State State  `json:"state"`
	Why   string `json:"why,omitempty"`   // of Stopped and Refused
	Bound bool   `json:"bound,omitempty"` // of Stopped: by one of Bounds
	Round int    `json:"round"`           // 0; one more each time what failed is tried again

	Cut  Cut    `json:"cut"`
	Plan string `json:"plan,omitempty"` // the object that says how its inputs are cut into chunks; "" not yet
}

// Input is one file of prompts.
type Input struct {
	Name   string `json:"name"`   // as its user named it: complaints do
	Format string `json:"format"` // jsonl, text or csv
	// Added is by which submission it came: 0 with the job, then one more each time.
	Added int `json:"added,omitempty"`
	// Given is what was submitted, as it was then: it may have been unpacked into Objects, or be read but for its first items.
	Given *Object `json:"given,omitempty"`
	// Columns are those of a CSV: the header stands in the first object.
	Columns []string `json:"columns,omitempty"`
	// Objects are what it consists of, one after the other: one, or the pieces into which it was
	// unpacked.
	Objects []Object `json:"objects"`
}

// Object is a stretch of prompts from the beginning of an object of a store. It begins with a
// line, of a CSV with a row.
type Object struct {
	Store string `json:"store,omitempty"` // the address of its store; "" is the job's own
	Name  string `json:"name"`
	// Identity is what it was when it was submitted, in its store's own word.
	Identity string `json:"identity"`
	Bytes    int64  `json:"bytes"` // of it that are read: all, unless only the first items are wanted
}

// Asking says who is asked, and how.
type Asking struct {
	Provider string `json:"provider"`
	BaseURL  string `json:"base_url,omitempty"`
	// Settings are further flags of the command by their names. None is a secret.
	Settings map[string]string `json:"settings,omitempty"`
}

// Told is what a user knows of a limit: each a minute, 0 unknown; and how many calls may be in
// flight in all.
type Told struct {
	RPM         int64 `json:"rpm,omitempty"`
	TPM         int64 `json:"tpm,omitempty"`
	InputTPM    int64 `json:"input_tpm,omitempty"`
	OutputTPM   int64 `json:"output_tpm,omitempty"`
	Concurrency int   `json:"concurrency,omitempty"`
}

// check says what keeps a record from being written.
func (r *Record) check() error {
	switch {
	case len(r.Inputs) > MaxInputs:
		return fmt.Errorf("%d inputs, %d are the most", len(r.Inputs), MaxInputs)
	case r.Weight < 0 || math.IsNaN(r.Weight) || math.IsInf(r.Weight, 0):
		return fmt.Errorf("a weight of %v", r.Weight)
	}
	if u, err := url.Parse(r.Asking.BaseURL); err != nil || u.User != nil {
		return errors.New("an address that cannot be read, or has a password in it")
	}
	for _, in := range r.Inputs {
		if _, err := in.format(); err != nil {
			return err
		}
	}
	_, err := r.Reading.Config()
	return err
}

// parseRecord reads what marshal wrote. Of a newer record no more is looked at than its format.
func parseRecord(text []byte) (Record, error) {
	var known struct {
		Format int `json:"format"`
	}
	var r Record
	switch err := json.Unmarshal(text, &known); {
	case err != nil || known.Format < 1:
		return r, ErrRecord
	case known.Format > RecordFormat:
		return r, fmt.Errorf("%w: it has format %d; this version reads up to %d", ErrNewer, known.Format, RecordFormat)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return r, nil
}

func (r *Record) marshal() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil && len(text) > MaxRecord {
		err = fmt.Errorf("a record of %d bytes, %d are the most", len(text), MaxRecord)
	}
	return text, err
}
