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
	"github.com/headrace/headrace/provider"
)

// Config says what is run and where it goes. Input and Output, or Stdout, are needed; the
// zero value of the rest is usable.
type Config struct {
	Input  Input
	Output string    // the file for results
	Stdout io.Writer // takes results if Output is empty: nothing is left out, as nothing is known
	Errors string    // the file for failed items; empty means journal.ErrorsPath(Output)

	// Reader says how lines are read. Its Name, Checked, Passing and NoKeys are the job's.
	Reader prompts.Config

	SkipBad     bool // bad lines go to the errors file; else nothing is called if there is one
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
	// Cost estimates what a call draws; nil means one request and tokens as OpenAI counts them.
	Cost func(*prompts.Request) batch.Cost
	// Price says what a model's tokens cost, in USD; false: that is not known, which is
	// never 0. It is asked in the goroutine of Run, of what all calls of an item used
	// together, unless it failed and used nothing. Nil knows no price.
	Price func(model string, u provider.Usage) (usd float64, ok bool)
	// Simulated says that answers are made up: each line says so too. Files that hold
	// answers of the other sort are refused.
	Simulated bool
	// Checked says that answers are known to be valid JSON, as those of provider/openai
	// are: they are not parsed once more.
	Checked bool
	// Redact takes secrets out of the message of a failed item; nil leaves it as it is.
	Redact func(string) string

	Watch Watch
}

// Watch is told at once what happens. A nil function is told nothing; none may block.
type Watch struct {
	Checked func(items int)          // of Plan, every million items
	Ended   func(*Result)            // an item that ended, in the goroutine of Run, before its line is saved
	Skipped func(*prompts.LineError) // a bad line that goes to the errors file, in the goroutine that reads
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
	c.Concurrency = cmp.Or(c.Concurrency, batch.DefaultConcurrency)
	c.Reader.Name = c.Input.Name
	if c.Lane == nil {
		c.Lane = func(model string) string { return model }
	}
	if c.Cost == nil {
		c.Cost = openAICost
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

func openAICost(r *prompts.Request) batch.Cost {
	input, output := provider.PresetFor("", "").Charge(r.Body)
	return batch.Cost{Requests: 1, Input: input, Output: output}
}

// resultFile is a file that a job writes to, and the ones that it must not be.
type resultFile struct {
	path   string
	others []string
}

// files are those that a job writes to, the output first.
func (c *Config) files() []resultFile {
	failed := resultFile{c.Errors, []string{c.Input.Name, c.Output}}
	if c.Output == "" {
		return []resultFile{failed}
	}
	return []resultFile{{c.Output, []string{c.Input.Name}}, failed}
}

// ErrPacked says that a result file has a name by which it would be taken for a packed
// one. errors.Is finds it in what Open returns.
var ErrPacked = errors.New("results are written as plain text, which a run can go on with after any crash: leave the ending away, and pack the file when the run is over")

// packedEndings are those of files that other programs would try to unpack.
var packedEndings = []string{".gz", ".zst", ".bz2", ".xz", ".zip"}

func (c *Config) checkNames() error {
	for _, f := range c.files() {
		if slices.Contains(packedEndings, strings.ToLower(filepath.Ext(f.path))) {
			return fmt.Errorf("promptfile: open %s: %w", f.path, ErrPacked)
		}
	}
	return nil
}

// folder is where the files of a run lie.
func (c *Config) folder() string { return filepath.Dir(cmp.Or(c.Output, c.Errors)) }

// reader says how the input is read.
func (c *Config) reader(checked bool) prompts.Config {
	r := c.Reader
	r.Checked, r.Passing, r.NoKeys = checked, false, false
	return r
}
