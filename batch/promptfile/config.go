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

// Config says what to run and where the results go. Input and Output, or Stdout, are
// needed; the zero value of the rest is usable.
type Config struct {
	Input  Input
	Output string    // the file for results
	Stdout io.Writer // takes results if Output is empty: no item is left out, as nothing is known of earlier runs
	Errors string    // the file for failed items; empty means journal.ErrorsPath(Output)

	// Reader says how lines are read. The job sets its Name, Checked, Passing and NoKeys.
	// The job calls its Takes once for each request that no earlier run has ended, and once
	// more for one that it refuses. For a stream, the goroutine that reads calls it.
	Reader prompts.Config

	SkipBad bool // bad lines go to the errors file; else nothing is called if there is one
	// SkipUntranslatable does the same for good lines whose translation Reader.Takes
	// refuses. In the errors file they have the key of their request. Once such a line can
	// be asked, RetryFailed makes a later run try it again.
	SkipUntranslatable bool

	// MaxTokens bounds the output, in tokens, of a request without a bound of its own,
	// where the provider demands one. MaxTokensOfPrompts does so for requests made from a
	// prompt. 0 means no bound: such a request is then refused.
	MaxTokens, MaxTokensOfPrompts int

	// FilteredFails puts an answer that a content filter has cut short or emptied into the
	// errors file. Without it such an answer is a result, marked in its line.
	FilteredFails bool

	// Check says what is wrong with an answer, nil if it has the form that the caller needs. An
	// item is asked again up to CheckRetries times, as batch.WithMisfitRetries says; all together
	// are a tenth of the items that are left. Then it fails with kind Misfit, and its line in the
	// errors file has the answer. Workers call Check, many at once. Nil takes every answer.
	Check        func(*Item, *provider.Reply) error
	CheckRetries int

	RetryFailed bool // items that failed for good in an earlier run are tried again
	// JustFailed holds the keys of items that RetryFailed leaves out: the run that this one continues has tried them. Nil: none.
	JustFailed map[string]bool
	Fresh      bool // start over: old files are kept under names that end in .bak
	// InputOrder puts results in the order of the prompts. Results that wait for their turn
	// are not saved yet. A run that continues an output brings all of it into order at its
	// end, for which it needs as much room on the disk again.
	InputOrder bool
	Durability saver.Durability

	// Concurrency bounds the calls in flight, including calls whose answers are not written
	// yet; 0 means batch.DefaultConcurrency.
	Concurrency int
	// MostConcurrency bounds what Job.SetConcurrency may set; 0: Concurrency.
	MostConcurrency int
	// Drain, once closed, ends the run softly: it takes no more items, and calls in flight
	// finish and are saved.
	Drain <-chan struct{}
	// Control steers the run from outside; nil for none.
	Control *batch.Control

	// Sample makes Run ask only so many of the items that are left, spread evenly over all of them:
	// the others are left to another run. 0 means all; a stream has no samples.
	Sample int

	// Lane names the quota that a call of a model draws on; nil means the model's name.
	Lane func(model string) string
	// Pool names the pool in which a request waits, for runs over several lanes. Nil means the
	// pool of the Lane of its model. The pools are in the options of Run. The goroutine that
	// reads calls it, for requests that Reader.Takes has let pass.
	Pool func(*prompts.Request) string
	// Origin says what the line of an item tells of the lane that ended it, by the item's pool
	// and that lane; nil: what Fields says, for a run of one provider.
	Origin func(pool, lane string) Origin
	// Cost estimates what a call draws. Nil means one request, the tokens of the prompt,
	// and the bound on output; lanes then charge the greater of prompt and output, as
	// OpenAI does. An option overrides that: batch.WithCharge, or a lane's own config.
	// Lanes of a batch.Shared charge as that Shared says.
	Cost func(*prompts.Request) batch.Cost
	// Price returns the cost of a model's tokens, in USD; false means unknown. An unknown
	// cost is never 0. A cost outside 0..provider.MostCost counts as unknown. The goroutine
	// of Run calls Price with the usage of all calls of an item together, unless the item
	// failed and used nothing. Nil knows no price.
	Price func(model string, u provider.Usage) (usd float64, ok bool)
	// MaxCost bounds what all runs to the same output cost, in USD, by batch.WithMaxCost; 0:
	// nothing does. It needs Reserve, which returns what so many tokens of a model cost; false
	// means unknown, and such a model is never called. Workers then ask Price too, many at once.
	MaxCost float64
	Reserve func(model string, input, output float64) (usd float64, ok bool)
	// Stood says how the money of the latest run to the output stood when it was last seen, which
	// may be more than its lines say. The zero value says nothing.
	Stood Stood
	// Bill is asked instead of Price if there is one, for prices that depend on the lane. It also
	// says where a cost is from, for the line. Workers ask it, too, where the run has a budget.
	Bill func(lane, model string, u provider.Usage) Bill
	// Simulated says that answers are made up; each line says so too. Files that hold
	// answers of the other sort are refused.
	Simulated bool
	// Fields says what lines tell of an answer's origin and text.
	Fields Fields
	// Checked says that answers are known to be valid JSON, as those of provider/openai
	// are: they are not parsed again.
	Checked bool
	// Redact removes secrets from the message of a failed item; nil leaves it as it is.
	Redact func(string) string

	Watch Watch

	estimates  bool   // Cost is our own
	outputName string // the output in lines of the errors file; "": none
}

// Bill is the cost of an item.
type Bill struct {
	USD    float64
	Source string // for the line, such as "provider"; "": the line does not say
	Known  bool
}

// Fields says which optional fields the lines of a run have. With the zero value there are
// none: all lines are to the byte as those of OpenAI-shaped runs.
type Fields struct {
	// Provider is the name of the run's provider. If it is "", a line does not name the
	// provider, its dialect, or the model that was called instead of its own. It then
	// also leaves out whether the request was translated, the answer's end, and tokens of
	// reasoning.
	Provider string
	// Text says that a line has the text of its answer, if the client has read it.
	Text bool
}

// An Origin says whose answer a line has, in a run over several lanes.
type Origin struct {
	// Provider is the name of the lane's provider; see [Fields]. If it is "", the line names
	// neither that nor the dialect.
	Provider string
	// Fallback says that the pool prefers other lanes.
	Fallback bool
}

// Watch holds functions that a run calls at once when something happens. A nil function is
// not called; none may block.
type Watch struct {
	Checked func(items int)          // by Plan, every million items
	Began   func()                   // by Run, before its first item is read, in the goroutine that reads: methods of Control no longer wait
	Left    func(*prompts.Request)   // by Plan, each item that is left to do; the function must not keep it
	Ended   func(*Result)            // an item that ended, in the goroutine of Run, before its line is saved; the function must not keep it
	Skipped func(*prompts.LineError) // a bad or untranslatable line that goes to the errors file, in the goroutine that reads
	// Renamed gets an item whose id already stands in the output, at another question's
	// result. The item has a new id by now; was is the old one. The goroutine that reads
	// calls it.
	Renamed func(req *prompts.Request, was string)
	// Written gets the number of lines that the operating system has accepted since the
	// last call. Each of the two files calls it in a goroutine of its own; it must not
	// wait.
	Written func(lines int)
	Broke   func(error) // why no further line is read, in the goroutine that reads
	Fault   func(error) // the first failure to save of each file, in a goroutine of its own
}

// withDefaults fills in the fields that the caller left empty, and derives the unexported ones.
func (c Config) withDefaults() Config {
	if c.Errors == "" {
		c.Errors = journal.ErrorsPath(c.Output)
	}
	if c.Output != "" || c.Stdout != nil {
		c.outputName = journal.OutputName(c.Errors, c.Output)
	}
	c.Concurrency = cmp.Or(c.Concurrency, batch.DefaultConcurrency)
	c.Reader.Name = c.Input.Name
	if c.Lane == nil {
		c.Lane = func(model string) string { return model }
	}
	if c.Cost == nil {
		c.Cost, c.estimates = estimatedCost, true
	}
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	if c.Price == nil {
		c.Price = func(string, provider.Usage) (float64, bool) { return 0, false }
	}
	if c.Bill == nil {
		c.Bill = func(_, model string, u provider.Usage) (b Bill) {
			b.USD, b.Known = c.Price(model, u)
			return b
		}
	}
	if c.Control == nil {
		c.Control = batch.NewControl()
	}
	return c
}

// estimatedCost returns the estimated cost of a request, in the form that its lane's rule needs.
func estimatedCost(r *prompts.Request) batch.Cost {
	input, output := estimate.For(r.Endpoint, r.Body)
	return batch.Cost{Requests: 1, Input: input, Output: output}
}

// resultFile is a file that a job writes to, with the files that it must differ from.
type resultFile struct {
	path   string
	others []string
}

// resultFiles returns the files that a job writes to, the output first.
func (c *Config) resultFiles() []resultFile {
	inputs := c.Input.Files()
	failed := resultFile{c.Errors, append(inputs[:len(inputs):len(inputs)], c.Output)}
	if c.Output == "" {
		return []resultFile{failed}
	}
	return []resultFile{{c.Output, inputs}, failed}
}

// ErrPacked says that the name of a result file looks like that of a packed one. errors.Is
// finds it in the error of Open.
var ErrPacked = errors.New("results are written as plain text, which any crash leaves usable: remove the ending, and compress the file after the run")

// packedEndings are the endings of files that other programs would try to unpack.
var packedEndings = []string{".gz", ".zst", ".bz2", ".xz", ".zip"}

// ErrReserved says that the next rewrite of another file may remove a result file of that
// name. errors.Is finds it in the error of Open.
var ErrReserved = errors.New("names that end in " + disk.NextSuffix + " are for files that headrace rewrites: choose another")

// checkNames refuses names of result files that look packed, or that another file's rewrite may remove.
func (c *Config) checkNames() error {
	for _, f := range c.resultFiles() {
		if strings.HasSuffix(f.path, disk.NextSuffix) {
			return fmt.Errorf("promptfile: open %s: %w", f.path, ErrReserved)
		}
		if slices.Contains(packedEndings, strings.ToLower(filepath.Ext(f.path))) {
			return fmt.Errorf("promptfile: open %s: %w", f.path, ErrPacked)
		}
	}
	return nil
}

// folder returns the folder of the run's files.
func (c *Config) folder() string { return filepath.Dir(cmp.Or(c.Output, c.Errors)) }

// reader returns the settings for reading the input. Its ids are checked each time, as a
// file may change.
func (c *Config) reader() prompts.Config {
	r := c.Reader
	r.Checked, r.Passing, r.NoKeys = false, false, false
	return r
}

// sameFileError says which two of a run's files are one. errors.Is takes it for
// journal.ErrSameFile.
type sameFileError struct{ one, name, other, otherName string }

func (e *sameFileError) Error() string {
	if e.name == e.otherName {
		return fmt.Sprintf("promptfile: the %s is the %s, %s: choose another file", e.one, e.other, e.name)
	}
	return fmt.Sprintf("promptfile: the %s, %s, is the %s, %s: choose another file", e.one, e.name, e.other, e.otherName)
}

// Is makes errors.Is(err, journal.ErrSameFile) true.
func (e *sameFileError) Is(target error) bool { return target == journal.ErrSameFile }

// lockOf returns the name of a file's lock, which is removed at the end; "" without a file.
func lockOf(path string) string {
	if path == "" {
		return ""
	}
	return path + journal.LockSuffix
}

// checkDistinct returns an error if two files of a run are one, by whatever names.
func (c *Config) checkDistinct() error {
	var pairs []sameFileError
	for _, in := range c.Input.Files() {
		pairs = append(pairs,
			sameFileError{"output", c.Output, "input", in},
			sameFileError{"errors file", c.Errors, "input", in},
			sameFileError{"input", in, "lock of the output", lockOf(c.Output)},
			sameFileError{"input", in, "lock of the errors file", lockOf(c.Errors)})
	}
	pairs = append(pairs, sameFileError{"errors file", c.Errors, "output", c.Output})
	for _, e := range pairs {
		if journal.SameFile(e.name, e.otherName) {
			return &e
		}
	}
	return nil
}
