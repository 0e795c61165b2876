package job

import (
	"cmp"
	"fmt"

	"github.com/headrace/headrace/batch/prompts"
)

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
