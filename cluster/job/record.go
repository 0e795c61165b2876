package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
)

// RecordFormat is the version of the form of Records, indexes and parts. It rises when a change would make
// an older program do something wrong.
const RecordFormat = 1

// FormatOf returns the format for all objects of a job: that of its record. Programs of the time of its
// submission, which may work on it too, can then read them. 0 is RecordFormat.
func FormatOf(record int) int { return cmp.Or(record, RecordFormat) }

const (
	// MaxInputs bounds the files of a job. They all stand in its record, with 200 bytes each, and each change
	// writes the record anew.
	MaxInputs = 10_000
	// MaxRecord bounds the bytes of a record.
	MaxRecord = 16 << 20
)

// Why a record cannot be used; errors.Is finds them.
var (
	// ErrNewer: a program newer than this one has written it.
	ErrNewer = errors.New("a newer headrace has written it: update this one")
	// ErrRecord: this program would not have written it.
	ErrRecord = errors.New("it is not a record of a job")
)

// State is a stage in the life of a job.
type State string

// The states.
const (
	Indexing State = "indexing" // its inputs are being read through
	Refused  State = "refused"  // lines of its inputs are bad: nothing was called
	Running  State = "running"
	Canceled State = "canceled" // by its user, who may resume it
	Stopped  State = "stopped"  // for the reason in Why: it may be resumed
	Done     State = "done"     // each item has ended in this round
)

// Record describes one job as it was submitted, and its state. It holds no secret: keys stay where
// calls are made.
type Record struct {
	Format  int    `json:"format"` // RecordFormat of the submitting program
	Job     string `json:"job"`
	Version int    `json:"version"` // from 0; the highest counts

	Inputs []Input `json:"inputs"`
	Open   bool    `json:"open,omitempty"` // more inputs may come: it does not end by itself
	// Output and Errors name the places of the results in the end, as the user gave them; "" for none.
	Output string `json:"output,omitempty"`
	Errors string `json:"errors,omitempty"`

	// Submission identifies the command, so that the same command is the same job; nil: each is another job.
	Submission *Submission `json:"submission,omitempty"`

	Reading Reading `json:"reading"`
	Asking  Asking  `json:"asking"`

	// Limit names the limit that it shares with other jobs. Weight is its share of that, relative to theirs.
	Limit  string  `json:"limit"`
	Weight float64 `json:"weight"`
	Told   Told    `json:"told"` // of the limit, by the user

	Bounds Bounds `json:"bounds,omitzero"`

	State State  `json:"state"`
	Why   string `json:"why,omitempty"`   // of Stopped and Refused
	Bound bool   `json:"bound,omitempty"` // of Stopped: by one of Bounds
	Round int    `json:"round"`           // 0; one more with each retry of failed items

	Cut  Cut    `json:"cut"`
	Plan string `json:"plan,omitempty"` // the object with the cut of its inputs into chunks; "" not yet
}

// Input is one file of prompts.
type Input struct {
	Name   string `json:"name"`   // as the user named it: complaints use it
	Format string `json:"format"` // jsonl, text or csv
	// Added is the number of the submission that it came with: 0 for the job's own, then one more each time.
	Added int `json:"added,omitempty"`
	// Given is the object as submitted: it may have been unpacked into Objects, or only its first items may be read.
	Given *Object `json:"given,omitempty"`
	// Columns are those of a CSV: the header stands in the first object.
	Columns []string `json:"columns,omitempty"`
	// Objects are its contents, one after the other: one object, or the pieces into which it was
	// unpacked.
	Objects []Object `json:"objects"`
}

// Object is a stretch of prompts from the beginning of an object of a store. It begins with a
// line, or in a CSV with a row.
type Object struct {
	Store string `json:"store,omitempty"` // the address of its store; "" is the job's own
	Name  string `json:"name"`
	// Identity identifies its state at submission, in its store's own word.
	Identity string `json:"identity"`
	Bytes    int64  `json:"bytes"` // bytes of it to read: all, unless only the first items are wanted
}

// Asking says which provider is asked, and how.
type Asking struct {
	Provider string `json:"provider"`
	BaseURL  string `json:"base_url,omitempty"`
	// Settings are further flags of the command by their names. None is a secret.
	Settings map[string]string `json:"settings,omitempty"`
}

// Told holds a user's knowledge of a limit. Rates are per minute, and 0 means unknown. Concurrency bounds all
// calls in flight.
type Told struct {
	RPM         int64 `json:"rpm,omitempty"`
	TPM         int64 `json:"tpm,omitempty"`
	InputTPM    int64 `json:"input_tpm,omitempty"`
	OutputTPM   int64 `json:"output_tpm,omitempty"`
	Concurrency int   `json:"concurrency,omitempty"`
}

// check returns what keeps a record from being written.
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

// parseRecord reads what marshal wrote. Of a newer record it reads only the format.
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
