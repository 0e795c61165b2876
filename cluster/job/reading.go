package job

import (
	"cmp"
	"fmt"

	"github.com/headrace/headrace/batch/prompts"
)

// Reading says how the lines of a job are read. The zero value is how the command reads them.
type Reading struct {
	Template string `json:"template,omitempty"` // see prompts.ParseTemplate; "" for none
	System   string `json:"system,omitempty"`
	Model    string `json:"model,omitempty"`    // of lines that name none
	Endpoint string `json:"endpoint,omitempty"` // likewise
	MaxLine  int    `json:"max_line,omitempty"` // in bytes; 0 means prompts.DefaultMaxLine

	Params []prompts.Param `json:"params,omitempty"` // of lines that do not say them

	// SkipBad and SkipUntranslatable make such lines failures; else they are the end of the job
	// before its first call.
	SkipBad            bool `json:"skip_bad,omitempty"`
	SkipUntranslatable bool `json:"skip_untranslatable,omitempty"`

	// MaxTokens and MaxTokensOfPrompts bound outputs, see promptfile.Config.
	MaxTokens          int `json:"max_tokens,omitempty"`
	MaxTokensOfPrompts int `json:"max_tokens_of_prompts,omitempty"`
}

// Config is how a line is read, wherever it stands. What the provider serves and takes is for
// the caller to say, as he knows him.
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

// ReaderOf is cfg as it reads this input.
func (in *Input) ReaderOf(cfg prompts.Config) (prompts.Config, error) {
	var err error
	cfg.Name = in.Name
	cfg.Format, err = in.format()
	return cfg, err
}

// Cut says how finely a job is cut. The zero value of a field is its default.
type Cut struct {
	// SegmentBytes is how many bytes of the inputs one object of the index is about.
	SegmentBytes int64 `json:"segment_bytes,omitempty"`
	// StepLines and StepBytes are how far apart the places are that an index remembers: a chunk
	// begins and ends at one.
	StepLines int   `json:"step_lines,omitempty"`
	StepBytes int64 `json:"step_bytes,omitempty"`
	// ChunkLines and ChunkBytes bound a chunk. ChunkLines is the most; how many they are is
	// decided once the lines are counted, see ChunkSize.
	ChunkLines int   `json:"chunk_lines,omitempty"`
	ChunkBytes int64 `json:"chunk_bytes,omitempty"`
}

// The defaults of Cut.
const (
	// DefaultSegment is a quarter of a GB: a keeper holds the index of one segment of a job, 100 KB for a million lines.
	DefaultSegment = 250_000_000
	// DefaultStepLines is the least that a chunk may have, unless it is to have fewer lines.
	DefaultStepLines = LeastChunk
	// DefaultStepBytes is an eighth of a chunk, so that chunks of long lines come out even.
	DefaultStepBytes = 1 << 20
	// DefaultChunkLines is what a worker has in hand at once of a large job: at 2.5 calls a
	// second seven minutes. It is a unit of scheduling, not of loss.
	DefaultChunkLines = 1000
	// LeastChunk is the least lines of a chunk, unless Cut.ChunkLines says fewer or an input ends: one costs a claim.
	LeastChunk = 50
	// DefaultChunkBytes is what of a chunk's input lies in memory.
	DefaultChunkBytes = 8 << 20
	// perWorker is how many chunks each worker should find, so that the last ones end together.
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

// ChunkSize is how many lines a chunk has of a job that has so many, for so many workers.
func (c Cut) ChunkSize(lines, workers int) int {
	size := lines / (perWorker * max(workers, 1))
	return min(max(size, LeastChunk), c.ChunkLines)
}
