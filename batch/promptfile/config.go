package promptfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
)

// Config says what is run and where it goes. Input and Output, or Stdout, are needed; the
// zero value of the rest is usable.
type Config struct {
	Input  Input
	Output string    // the file for results
	Stdout io.Writer // takes results if Output is empty: nothing is left out, as nothing is known
	Errors string    // the file for failed items; empty means journal.ErrorsPath(Output)

	// Reader says how lines are read. Its Name, Checked, Passing and NoKeys are the job's. Its
	// Takes is asked once of each request that no earlier run has ended, and once more of one
	// that it does not take; of a stream, in the goroutine that reads.
	Reader prompts.Config

	SkipBad bool // bad lines go to the errors file; else nothing is called if there is one
	// SkipUntranslatable does the same for lines that are good and that Reader.Takes cannot
	// have translated. In the errors file they have the key of their request: where it can be
	// asked, it is tried again if RetryFailed says so.
	SkipUntranslatable bool

	// MaxTokens bounds the output, in tokens, of a request that says no bound itself where the
	// provider demands one, and MaxTokensOfPrompts that of one that is made of a prompt. 0:
	// there is none, and such a request is refused there.
	MaxTokens, MaxTokensOfPrompts int

	// FilteredFails puts an answer that a content filter has cut short or emptied into the
	// errors file. Without it such an answer is a result, marked in its line.
	FilteredFails bool

	RetryFailed bool // what failed for good in an earlier run is tried again
	Fresh       bool // start over: old files are kept under names that end in .bak
	// InputOrder makes results stand as the prompts do. Those that wait for their turn are
	// not saved yet. A run that goes on with an output brings all of it into order at its
	// end, for which it needs as much room on the disk again.
	InputOrder bool
	Durability saver.Durability

	// Concurrency bounds the calls in flight, those included whose answers are not written
	// yet; 0 means batch.DefaultConcurrency.
	Concurrency int
	// Drain, once closed, ends the run softly: nothing more is taken, what is in flight
	// finishes and is saved.
	Drain <-chan struct{}
	// Control steers the run from outside; nil for none.
	Control *batch.Control

	// Lane names the quota that a call of a model draws on; nil means the model's name.
	Lane func(model string) string
	// Cost estimates what a call draws. Nil means one request, the tokens of the prompt, and
	// the bound on output, and that lanes charge the greater of them, as OpenAI does, unless
	// an option says otherwise: batch.WithCharge, or a lane's own config. Lanes of a
	// batch.Shared charge as that was told.
	Cost func(*prompts.Request) batch.Cost
	// Price says what a model's tokens cost, in USD; false: that is not known, which is
	// never 0, and neither is a cost that is not in 0..provider.MostCost. It is asked in the goroutine of Run, of what all calls of an item used
	// together, unless it failed and used nothing. Nil knows no price.
	Price func(model string, u provider.Usage) (usd float64, ok bool)
	// Simulated says that answers are made up: each line says so too. Files that hold
	// answers of the other sort are refused.
	Simulated bool
	// Fields says what lines tell of an answer's origin, and of its text.
	Fields Fields
	// Checked says that answers are known to be valid JSON, as those of provider/openai
	// are: they are not parsed once more.
	Checked bool
	// Redact takes secrets out of the message of a failed item; nil leaves it as it is.
	Redact func(string) string

	Watch Watch

	estimates bool   // Cost is our own
	named     string // the output in lines of the errors file; "": there is none
}

// Fields are what the lines of a run tell that is not all of one shape. The zero value tells
// nothing: then all lines are to the byte as those of OpenAI-shaped runs.
type Fields struct {
	// Provider is what the run's provider is called. If it is "", a line names neither
	// provider nor dialect, nor the model that was asked instead of its own, nor whether the
	// request was translated, nor the answer's end, nor tokens of reasoning.
	Provider string
	// Text says that a line has the text of its answer, where the client has read it.
	Text bool
}

// Watch is told at once what happens. A nil function is told nothing; none may block.
type Watch struct {
	Checked func(items int)          // of Plan, every million items
	Ended   func(*Result)            // an item that ended, in the goroutine of Run, before its line is saved; it is not to be kept
	Skipped func(*prompts.LineError) // a bad or untranslatable line that goes to the errors file, in the goroutine that reads
	// Renamed is told an item whose id bears another question's result in the output, in
	// the goroutine that reads: it has another by now, and was the old one.
	Renamed func(req *prompts.Request, was string)
	// Written is told how many lines more of the two files the operating system has, in a
	// goroutine of its own for each; it must not wait.
	Written func(lines int)
	Broke   func(error) // why no further line is taken, in the goroutine that reads
	Fault   func(error) // the first failure to save of each file, in a goroutine of its own
}

func (c Config) withDefaults() Config {
	if c.Errors == "" {
		c.Errors = journal.ErrorsPath(c.Output)
	}
	if c.Output != "" || c.Stdout != nil {
		c.named = journal.OutputName(c.Errors, c.Output)
	}
	c.Concurrency = cmp.Or(c.Concurrency, batch.DefaultConcurrency)
	c.Reader.Name = c.Input.Name
	if c.Lane == nil {
		c.Lane = func(model string) string { return model }
	}
	if c.Cost == nil {
		c.Cost, c.estimates = costOf, true
	}
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	if c.Price == nil {
		c.Price = func(string, provider.Usage) (float64, bool) { return 0, false }
	}
	if c.Control == nil {
		c.Control = batch.NewControl()
	}
	return c
}

// costOf is what a request may cost, as its lane's rule wants to know it.
func costOf(r *prompts.Request) batch.Cost {
	input, output := estimate.For(r.Endpoint, r.Body)
	return batch.Cost{Requests: 1, Input: input, Output: output}
}

// resultFile is a file that a job writes to, and the ones that it must not be.
type resultFile struct {
	path   string
	others []string
}

// files are those that a job writes to, the output first.
func (c *Config) files() []resultFile {
	inputs := c.Input.Files()
	failed := resultFile{c.Errors, append(inputs[:len(inputs):len(inputs)], c.Output)}
	if c.Output == "" {
		return []resultFile{failed}
	}
	return []resultFile{{c.Output, inputs}, failed}
}

// ErrPacked says that a result file has a name by which it would be taken for a packed
// one. errors.Is finds it in what Open returns.
var ErrPacked = errors.New("results are written as plain text, which any crash leaves usable: remove the ending, and compress the file after the run")

// packedEndings are those of files that other programs would try to unpack.
var packedEndings = []string{".gz", ".zst", ".bz2", ".xz", ".zip"}

// ErrReserved says that a result file has a name that the next rewrite of another one may
// remove. errors.Is finds it in what Open returns.
var ErrReserved = errors.New("names that end in " + disk.NextSuffix + " are for files that headrace rewrites: choose another")

func (c *Config) checkNames() error {
	for _, f := range c.files() {
		if strings.HasSuffix(f.path, disk.NextSuffix) {
			return fmt.Errorf("promptfile: open %s: %w", f.path, ErrReserved)
		}
		if slices.Contains(packedEndings, strings.ToLower(filepath.Ext(f.path))) {
			return fmt.Errorf("promptfile: open %s: %w", f.path, ErrPacked)
		}
	}
	return nil
}

// folder is where the files of a run lie.
func (c *Config) folder() string { return filepath.Dir(cmp.Or(c.Output, c.Errors)) }

// reader says how the input is read. Its ids are checked each time: a file may change.
func (c *Config) reader() prompts.Config {
	r := c.Reader
	r.Checked, r.Passing, r.NoKeys = false, false, false
	return r
}
