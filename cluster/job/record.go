package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/limiter"
)

// RecordFormat is the latest version of the form of Records, indexes and parts. It rises when a change would make
// an older program do something wrong. Jobs with a cap on their cost have it: an older worker would not heed that.
const RecordFormat = 2

// plainFormat is the version that all other jobs have: older programs work on them, too.
const plainFormat = 1

// FormatOf returns the format for all objects of a job: that of its record. Programs of the time of its
// submission, which may work on it too, can then read them. 0 is that of a job without a cap.
func FormatOf(record int) int { return cmp.Or(record, plainFormat) }

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
	Format  int    `json:"format"` // the oldest version that has all that the job needs
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
	Limit  string      `json:"limit"`
	Weight float64     `json:"weight"`
	Known  KnownLimits `json:"told"` // of the limit, by the user

	Bounds Bounds `json:"bounds,omitzero"`
	// Caps are the most that its calls may cost in all: the first, and each to which the user raised it. Nil: nothing
	// bounds that.
	Caps []limiter.Money `json:"caps,omitempty"`
	// Lowered is the cap that holds, if that is less than the latest of Caps; 0: it is not.
	Lowered limiter.Money `json:"lowered,omitempty"`

	State State  `json:"state"`
	Why   string `json:"why,omitempty"`   // of Stopped and Refused
	Bound bool   `json:"bound,omitempty"` // of Stopped: by one of Bounds, or by the latest of Caps
	Round int    `json:"round"`           // 0; one more with each retry of failed items
	// Paused says that no call may leave until the user resumes the job. It counts for a job under way.
	Paused bool `json:"paused,omitempty"`

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

// KnownLimits holds a user's knowledge of a limit. Rates are per minute, and 0 means unknown. Concurrency bounds all
// calls in flight.
type KnownLimits struct {
	RPM         int64 `json:"rpm,omitempty"`
	TPM         int64 `json:"tpm,omitempty"`
	InputTPM    int64 `json:"input_tpm,omitempty"`
	OutputTPM   int64 `json:"output_tpm,omitempty"`
	Concurrency int   `json:"concurrency,omitempty"`
}

// GoesOn reports whether the job is under way, paused or not.
func (r *Record) GoesOn() bool { return r.State == Indexing || r.State == Running }

// IsPaused reports whether the job is under way and paused.
func (r *Record) IsPaused() bool { return r.Paused && r.GoesOn() }

// Cap returns the most that the calls of the job may cost in all; 0: nothing bounds that.
func (r *Record) Cap() limiter.Money {
	if r.Lowered > 0 || len(r.Caps) == 0 {
		return r.Lowered
	}
	return r.Caps[len(r.Caps)-1]
}

// SetCap changes the cap of a job that has one. A lower one leaves Caps as they are, as notes that were drawn are cut from them.
func (r *Record) SetCap(most limiter.Money) {
	r.Lowered = 0
	switch latest := r.Caps[len(r.Caps)-1]; {
	case most > latest:
		r.Caps = append(r.Caps, most)
	case most < latest:
		r.Lowered = most
	}
}

// check returns what keeps a record from being written.
func (r *Record) check() error {
	switch {
	case len(r.Inputs) > MaxInputs:
		return fmt.Errorf("%d inputs, %d are the most", len(r.Inputs), MaxInputs)
	case r.Weight < 0 || math.IsNaN(r.Weight) || math.IsInf(r.Weight, 0):
		return fmt.Errorf("a weight of %v", r.Weight)
	}
	for i, c := range r.Caps {
		if c <= 0 || i > 0 && c <= r.Caps[i-1] {
			return fmt.Errorf("caps of %v: each must be more than the one before", r.Caps)
		}
	}
	if r.Lowered < 0 || r.Lowered > 0 && (len(r.Caps) == 0 || r.Lowered >= r.Caps[len(r.Caps)-1]) {
		return fmt.Errorf("a cap of %v that was lowered to %v", r.Caps, r.Lowered)
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

// Bounds are the limits at which a job stops, as its user set them. The zero value has none.
type Bounds struct {
	Deadline time.Time `json:"deadline,omitzero"`  // by the clock of the machine that submitted it
	Failures int       `json:"failures,omitempty"` // items that have failed, in a round
	Share    float64   `json:"share,omitempty"`    // likewise, as a share of the items that have ended
}

// shareFrom is the least number of ended items for a share, as in a run of one process.
const shareFrom = 100

// Counts reports whether the job's failures must be counted.
func (b *Bounds) Counts() bool { return b.Failures > 0 || b.Share > 0 }

// Reached says which bound a job has reached, given its ended and failed items; "" is none.
func (b *Bounds) Reached(now time.Time, ended, failed int) string {
	switch {
	case !b.Deadline.IsZero() && !now.Before(b.Deadline):
		return "its deadline (--deadline) was reached, at " + b.Deadline.UTC().Format(time.RFC3339)
	case b.Failures > 0 && failed >= b.Failures:
		return fmt.Sprintf("%d items have failed, and --max-failures is %d", failed, b.Failures)
	case b.Share > 0 && ended >= shareFrom && float64(failed) >= b.Share*float64(ended):
		return fmt.Sprintf("%d of %d items have failed, and --max-failures is %s%%", failed, ended, strconv.FormatFloat(100*b.Share, 'g', 6, 64)) //nolint:mnd // six digits, as in the command
	}
	return ""
}

// A Chunk is a stretch of consecutive lines of a job's input: the unit of claiming. Its bytes
// begin behind a line feed, or at the beginning of the object. They end with a line feed, or with the
// object. Those of a CSV begin and end between rows. A Chunk holds nothing of the prompts themselves.
type Chunk struct {
	Job    string `json:"job"`
	Number int    `json:"n"`               // from 0, in the order of the input
	Round  int    `json:"round,omitempty"` // 0: the first run; n: the n-th retry of failed items
	Format int    `json:"format"`          // of its job's record; 0 is that of a job without a cap

	Input  int   `json:"input"`           // of Record.Inputs
	Piece  int   `json:"piece,omitempty"` // of Input.Objects
	Offset int64 `json:"offset"`
	Bytes  int64 `json:"bytes"`

	FirstLine int `json:"line"`            // its number in the whole input, from 1
	Lines     int `json:"lines"`           // blank and bad ones included
	Above     int `json:"above,omitempty"` // lines of the files before this one

	// Marks names the object with the marks of its lines, which hold what earlier lines decide about
	// them; "" if there are none. The marks are MarksBytes bytes from MarksOffset on.
	Marks       string `json:"marks,omitempty"`
	MarksOffset int64  `json:"marks_offset,omitempty"`
	MarksBytes  int64  `json:"marks_bytes,omitempty"`
	// Refused says that it may contain lines that the provider does not take: only then its
	// reader checks that again.
	Refused bool `json:"refused,omitempty"`
}

func (c *Chunk) String() string {
	if c.Round == 0 {
		return fmt.Sprintf("%s/%d", c.Job, c.Number)
	}
	return fmt.Sprintf("%s/%d.r%d", c.Job, c.Number, c.Round)
}

// Reading says how the lines of a job are read. The zero value is the command's default.
type Reading struct {
	Template string `json:"template,omitempty"` // see prompts.ParseTemplate; "" for none
	System   string `json:"system,omitempty"`
	Model    string `json:"model,omitempty"`    // of lines that name none
	Endpoint string `json:"endpoint,omitempty"` // likewise
	MaxLine  int    `json:"max_line,omitempty"` // in bytes; 0 means prompts.DefaultMaxLine

	Params []prompts.Param `json:"params,omitempty"` // of lines that do not say them

	// SkipBad and SkipUntranslatable turn such lines into failures; otherwise they end the job
	// before its first call.
	SkipBad            bool `json:"skip_bad,omitempty"`
	SkipUntranslatable bool `json:"skip_untranslatable,omitempty"`

	// MaxTokens and MaxTokensOfPrompts bound outputs, see promptfile.Config.
	MaxTokens          int `json:"max_tokens,omitempty"`
	MaxTokensOfPrompts int `json:"max_tokens_of_prompts,omitempty"`
}

// Config returns the settings for reading a line of any input. The caller, who knows the provider, adds
// what the provider serves and takes.
func (r *Reading) Config() (prompts.Config, error) {
	cfg := prompts.Config{DefaultModel: r.Model, DefaultEndpoint: r.Endpoint, System: r.System, MaxLine: r.MaxLine, Params: r.Params}
	if r.Template == "" {
		return cfg, nil
	}
	var err error
	cfg.Template, err = prompts.ParseTemplate(r.Template)
	return cfg, err
}

// The words for formats.
const (
	JSONL = "jsonl"
	Text  = "text"
	CSV   = "csv"
)

func (in *Input) format() (prompts.Format, error) {
	switch in.Format {
	case JSONL:
		return prompts.FormatJSONL, nil
	case Text:
		return prompts.FormatText, nil
	case CSV:
		return prompts.FormatCSV, nil
	}
	return 0, fmt.Errorf("%s: format %q is invalid: want %s, %s or %s", in.Name, in.Format, JSONL, Text, CSV)
}

// ReaderOf adapts cfg to this input.
func (in *Input) ReaderOf(cfg prompts.Config) (prompts.Config, error) {
	var err error
	cfg.Name = in.Name
	cfg.Format, err = in.format()
	return cfg, err
}

// Cut says how finely a job is cut. A field of zero means its default.
type Cut struct {
	// SegmentBytes is the size in bytes of the stretch of the inputs that one object of the index covers.
	SegmentBytes int64 `json:"segment_bytes,omitempty"`
	// StepLines and StepBytes are the distances between the places that an index records: a chunk
	// begins and ends at one.
	StepLines int   `json:"step_lines,omitempty"`
	StepBytes int64 `json:"step_bytes,omitempty"`
	// ChunkLines and ChunkBytes bound a chunk. ChunkLines is the most; ChunkSize decides the number
	// once the lines are counted.
	ChunkLines int   `json:"chunk_lines,omitempty"`
	ChunkBytes int64 `json:"chunk_bytes,omitempty"`
}

// The defaults of Cut.
const (
	// DefaultSegment is a quarter of a GB: a keeper holds the index of one segment of a job, 100 KB for a million lines.
	DefaultSegment = 250_000_000
	// DefaultStepLines is the least size of a chunk, unless ChunkLines is smaller.
	DefaultStepLines = LeastChunk
	// DefaultStepBytes is an eighth of a chunk, so that chunks of long lines come out even.
	DefaultStepBytes = 1 << 20
	// DefaultChunkLines is the size of a chunk of a large job: at 2.5 calls a second a worker takes
	// seven minutes for one. It is a unit of scheduling, not of loss.
	DefaultChunkLines = 1000
	// LeastChunk is the least lines of a chunk, unless Cut.ChunkLines is less or an input ends: each chunk costs a claim.
	LeastChunk = 50
	// DefaultChunkBytes bounds the input of a chunk, which its reader holds in memory.
	DefaultChunkBytes = 8 << 20
	// perWorker is the number of chunks for each worker, so that the last ones end together.
	perWorker = 8
)

func (c Cut) withDefaults() Cut {
	c.SegmentBytes = cmp.Or(c.SegmentBytes, DefaultSegment)
	c.ChunkLines = cmp.Or(c.ChunkLines, DefaultChunkLines)
	c.StepLines = cmp.Or(c.StepLines, min(DefaultStepLines, c.ChunkLines)) // a chunk is one step at least
	c.StepBytes = cmp.Or(c.StepBytes, DefaultStepBytes)
	c.ChunkBytes = cmp.Or(c.ChunkBytes, DefaultChunkBytes)
	return c
}

// ChunkSize returns the lines of a chunk, for a job of so many lines and so many workers.
func (c Cut) ChunkSize(lines, workers int) int {
	size := lines / (perWorker * max(workers, 1))
	return min(max(size, LeastChunk), c.ChunkLines)
}
