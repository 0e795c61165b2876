package promptfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/saver"
)

// Job is a prompt file and its result files, from Open to Close. It belongs to one
// goroutine.
type Job struct {
	cfg   Config
	locks []*journal.Lock // of the files that others must not use
	past  *past
	maker *Maker

	earlierSpending spending // if there is a budget or was one

	plan         Plan
	planned      bool
	checked      checked   // the input as Plan has read it
	refusedLines lines.Set // the lines of a file that Reader.Takes refused during Plan
	files        *outputs  // nil until Begin

	places     chan struct{} // of the sink
	callPlaces int           // places that calls may take: the job has taken the others
}

// Open locks the output and the errors file, and reads what earlier runs have left there;
// it changes neither. It returns journal.ErrSameFile if two of the run's files are one, and
// the errors of journal.LockOutput and journal.ReadJournal. A name that ends like that of a
// packed file is ErrPacked. ErrSimulated or ErrReal says that answers that are made up
// would mix with real ones. The caller must close the job.
func Open(cfg Config) (*Job, error) {
	j := &Job{cfg: cfg.withDefaults()}
	j.callPlaces, j.places = j.cfg.Concurrency, make(chan struct{}, max(j.cfg.Concurrency, j.cfg.MostConcurrency))
	for range cap(j.places) - j.callPlaces {
		j.places <- struct{}{}
	}
	j.maker = &Maker{cfg: &j.cfg}
	err := j.cfg.checkNames()
	if err == nil {
		err = j.cfg.checkDistinct()
	}
	if err == nil {
		err = j.lock()
	}
	if err == nil {
		j.past, err = j.cfg.readPast()
	}
	if err == nil && (j.cfg.MaxCost > 0 || j.cfg.Stood != Stood{}) {
		j.earlierSpending, err = j.cfg.readSpending()
	}
	if err == nil && j.past.retry && j.past.errors != nil && j.past.errors.Lines > 0 {
		j.maker.spent, err = j.past.errors.Costs()
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if usd := j.earlierSpending.unseen; usd > 0 {
		j.maker.unseen = &journal.Earlier{Doubtful: journal.Doubtful{Calls: int64(max(1, j.cfg.Stood.InFlight)), USD: usd}}
	}
	return j, nil
}

// lock keeps other processes from the files, the output first. Anything but a regular file,
// such as a pipe, is not locked. A folder that cannot be written to shows here.
func (j *Job) lock() error {
	for _, path := range []string{j.cfg.Output, j.cfg.Errors} {
		if info, err := os.Stat(path); path == "" || err == nil && !info.Mode().IsRegular() {
			continue
		}
		l, err := journal.LockOutput(path, j.locks...)
		if err != nil {
			return err
		}
		j.locks = append(j.locks, l)
	}
	return nil
}

// SetConcurrency sets how many calls may be in flight from now on, once the job runs, by
// [batch.Control.SetConcurrency]. More answers may then wait to be written, too. Unlike the other methods,
// another goroutine may call it, one at a time.
func (j *Job) SetConcurrency(ctx context.Context, n int) error {
	if err := j.cfg.Control.SetConcurrency(ctx, n); err != nil {
		return err
	}
	for ; j.callPlaces < n; j.callPlaces++ {
		select {
		case <-j.places: // one of those that were taken from the start
		default: // after a fault, answers without a place have given it back
		}
	}
	return nil
}

// Close releases the files.
func (j *Job) Close() error {
	var err error
	if j.files != nil {
		err = j.files.close()
	}
	for _, l := range j.locks {
		err = errors.Join(err, l.Unlock())
	}
	j.locks = nil
	return err
}

// Begun reports what Begin has done to the files.
type Begun struct {
	Fresh   bool   // old files are put aside, to start over
	Kept    []Kept // their new names
	Torn    []Torn // the lines cut off
	Results int    // lines already in the output
	// UnseenUSD is the most that calls of earlier runs may have cost which no line is about. The
	// first line of this run has it.
	UnseenUSD float64
}

// Kept is a file that was put aside under another name.
type Kept struct{ Name, As string }

// Torn is a last line that an earlier run did not finish writing: its item is run again.
type Torn struct {
	Name  string
	Bytes int64
}

// Begin puts old files aside if Config.Fresh says so, cuts torn lines off, and opens the
// files. The first failed item makes the errors file. Run calls Begin if the caller did
// not. The errors are those of journal.StartOver and of Journal.Append, and ErrHalted.
func (j *Job) Begin() (b Begun, err error) {
	if j.cfg.Fresh {
		if b.Kept, err = j.startOver(); err != nil {
			return b, err
		}
		b.Fresh = true
		if j.past, err = j.cfg.readJournals(); err != nil {
			return b, err
		}
	}
	b.UnseenUSD = j.earlierSpending.unseen
	if j.past.results != nil {
		b.Results = j.past.results.Lines
		b.addTorn(j.past.results, j.cfg.Output)
	}
	b.addTorn(j.past.errors, j.cfg.Errors)
	j.files, err = j.open()
	return b, err
}

// startOver puts all old files aside, or none.
func (j *Job) startOver() (all []Kept, err error) {
	for _, f := range j.cfg.resultFiles() {
		as, err := journal.StartOver(f.path, f.others...)
		if err != nil {
			for _, k := range all {
				err = errors.Join(err, journal.PutBack(k.As, k.Name))
			}
			return nil, err
		}
		if as != "" {
			all = append(all, Kept{f.path, as})
		}
	}
	return all, nil
}

// addTorn notes the torn last line of a file, if it has one.
func (b *Begun) addTorn(file *journal.Journal, name string) {
	if file.Torn > 0 {
		b.Torn = append(b.Torn, Torn{name, file.Torn})
	}
}

// outputs holds the two result files, open for writing.
type outputs struct{ results, errors *journal.Tail } // results is nil for standard output

// open opens both result files, or neither. A missing errors file is made with its first line.
func (j *Job) open() (*outputs, error) {
	var (
		o   outputs
		err error
	)
	if j.past.results != nil {
		if o.results, err = j.openNamed(j.cfg.Output, j.past.results, j.past.results.Append); err != nil {
			return nil, err
		}
	}
	if o.errors, err = j.openNamed(j.cfg.Errors, j.past.errors, j.past.errors.AppendLazily); err != nil {
		return nil, errors.Join(err, o.close())
	}
	return &o, nil
}

// openNamed opens a result file. To open a pipe takes until somebody reads it. So this is
// done before the first call, and Config.Drain ends that wait (ErrHalted).
func (j *Job) openNamed(path string, of *journal.Journal, open func() (*journal.Tail, error)) (tail *journal.Tail, err error) {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return open()
	}
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		tail, err = of.Append()
	}()
	select {
	case <-opened:
		return tail, err
	case <-j.cfg.Drain:
	}
	reader, fault := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // ends the wait
	if fault != nil {
		return nil, ErrHalted // the pipe cannot be reached any more: the goroutine is left waiting
	}
	<-opened
	if err == nil {
		fault = tail.Close()
	}
	return nil, errors.Join(ErrHalted, fault, reader.Close())
}

// saver starts the saver of results.
func (j *Job) saver(cfg saver.Config) *saver.Saver {
	if j.files.results == nil {
		return saver.To(j.cfg.Stdout, "standard output", cfg)
	}
	return saver.New(j.files.results, cfg)
}

// close closes the files that no saver has taken over.
func (o *outputs) close() error {
	var faults []error
	for _, t := range []*journal.Tail{o.results, o.errors} {
		if t != nil {
			faults = append(faults, t.Close())
		}
	}
	return errors.Join(faults...)
}

// Why a run does not continue the files of an earlier one; errors.Is finds them in the
// errors of Open and Begin. The files are as they were.
var (
	ErrSimulated = errors.New("its answers are simulated, but this run's are not: start over with --fresh, which keeps the old file, or choose another")
	ErrReal      = errors.New("its answers are not simulated, but this run's are: start over with --fresh, which keeps the old file, or choose another")
)

// past knows the items that earlier runs to the same output have ended.
type past struct {
	results, errors *journal.Journal // nil: nothing is known
	retry           bool             // failed items are tried again
	notRetried      map[string]bool  // but not those of these keys
}

// endedHow says how an earlier run has ended an item.
type endedHow int

const (
	notEnded   endedHow = iota
	endedWell           // it is in the output
	endedBadly          // it is in the errors file: it failed for good
)

// empty reports whether nothing has ended yet.
func (p *past) empty() bool {
	return p.results == nil || p.results.Keys.Len() == 0 && (p.retry && len(p.notRetried) == 0 || p.errors.Keys.Len() == 0)
}

// stateOf returns how the item with that key has ended. It also lets the line of an item that failed stay in the
// errors file.
func (p *past) stateOf(key string) endedHow {
	switch {
	case p.results == nil: // standard output keeps no record, so nothing is left out
		return notEnded
	case p.results.Keys.Has(key):
		return endedWell
	case p.failed(key):
		p.errors.Still(key)
		return endedBadly
	}
	return notEnded
}

// ended reports whether the item with that key has ended. Unlike stateOf it changes nothing. The goroutine that
// reads a stream calls it while the run calls stateOf.
func (p *past) ended(key string) bool {
	return p.results != nil && (p.results.Keys.Has(key) || p.failed(key))
}

// failed reports whether an item failed for good and is not tried again.
func (p *past) failed(key string) bool {
	return (!p.retry || p.notRetried[key]) && p.errors.Keys.Has(key)
}

// freeID returns the id, or the first of id-2, id-3, … that is not in the output yet. So
// a search for an id finds one result. The id counts as taken from then on.
func (p *past) freeID(id string) string {
	if p.results == nil || p.results.IDs.Len() == 0 {
		return id
	}
	candidate := id
	for n := 2; !p.results.IDs.Add(candidate); n++ {
		candidate = id + "-" + strconv.Itoa(n)
	}
	return candidate
}

// readJournals reads both result files, and changes neither. It refuses files in which made-up and real answers would mix.
func (c *Config) readJournals() (*past, error) {
	var (
		p   = past{retry: c.RetryFailed, notRetried: c.JustFailed}
		err error
	)
	if c.Output != "" {
		if p.results, err = journal.ReadJournal(c.Output, c.Input.Files()...); err != nil {
			return nil, err
		}
	}
	if p.errors, err = journal.ReadErrorsOf(c.Output, c.Errors, append(c.Input.Files(), c.Output)...); err != nil {
		return nil, err
	}
	if err = p.checkMix(c); err != nil {
		return nil, err
	}
	return &p, nil
}

// checkMix returns an error if made-up answers and real ones would mix.
func (p *past) checkMix(c *Config) error {
	if c.Output == "" {
		return nil // nothing is kept from an earlier run
	}
	for _, f := range []struct {
		name string
		j    *journal.Journal
	}{{c.Output, p.results}, {c.Errors, p.errors}} {
		switch {
		case !c.Simulated && f.j.Simulated > 0:
			return fmt.Errorf("promptfile: resume %s: %w", f.name, ErrSimulated)
		case c.Simulated && f.j.Simulated < f.j.Lines-f.j.Others:
			return fmt.Errorf("promptfile: resume %s: %w", f.name, ErrReal)
		}
	}
	return nil
}

// readPast returns the past of a run. It is empty for a run that starts over, but readPast
// still checks that the run can.
func (c *Config) readPast() (*past, error) {
	if !c.Fresh {
		return c.readJournals()
	}
	for _, f := range c.resultFiles() {
		if _, err := journal.MayStartOver(f.path, f.others...); err != nil {
			return nil, err
		}
	}
	return &past{}, nil
}

// dropSuperseded leaves one line in both files together for an item that was tried again. A
// run that has read its whole input also clears bad lines that were corrected.
func (c *Config) dropSuperseded(p *past, whole bool) error {
	if p.results == nil || p.errors.Lines == 0 {
		return nil
	}
	var inputs []string
	if whole && c.Reader.Limit == 0 {
		inputs = c.Input.Files()
	}
	if !c.RetryFailed {
		if len(inputs) == 0 {
			return nil
		}
		_, err := p.errors.DropSuperseded(&journal.KeySet{}, inputs...) // no item with a result was tried again
		return err
	}
	now, err := journal.ReadJournal(c.Output)
	if err == nil {
		_, err = p.errors.DropSuperseded(&now.Keys, inputs...)
	}
	return err
}
