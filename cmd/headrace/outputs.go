package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/saver"
)

// stdoutErrors is where failed items of a run to standard output go.
const stdoutErrors = "headrace.errors.jsonl"

// past is what earlier runs to the same output have ended.
type past struct {
	results, errors *journal.Journal
	retry           bool // what failed is to be tried again
}

// What an earlier run has made of an item.
type endedHow int

const (
	notEnded   endedHow = iota
	endedWell           // it is in the output
	endedBadly          // it is in the errors file: it failed for good
)

// empty reports that nothing has ended yet.
func (p *past) empty() bool {
	return p.results == nil || p.results.Keys.Len() == 0 && (p.retry || p.errors.Keys.Len() == 0)
}

// of says what was made of the item with that key.
func (p *past) of(key string) endedHow {
	switch {
	case p.results == nil: // standard output keeps no record, so nothing is left out
		return notEnded
	case p.results.Keys.Has(key):
		return endedWell
	case !p.retry && p.errors.Keys.Has(key):
		return endedBadly
	}
	return notEnded
}

func (f *runFlags) toStdout() bool { return f.output == "-" }

// errorsPath is the name of the errors file.
func (f *runFlags) errorsPath() string {
	switch {
	case f.errors != "":
		return f.errors
	case f.toStdout():
		return stdoutErrors
	}
	return journal.ErrorsPath(f.output)
}

// lock keeps other processes from the output, until the returned function is called.
// What is no file, such as a pipe, is nobody's alone.
func (r *runner) lock() (unlock func(), err error) {
	if info, err := os.Stat(r.flags.output); r.flags.toStdout() || err == nil && !info.Mode().IsRegular() {
		return func() {}, nil
	}
	l, err := journal.LockOutput(r.flags.output)
	if err != nil {
		return nil, r.outputFault(err)
	}
	return func() {
		if err := l.Unlock(); err != nil {
			r.log.Warn("the lock is left", "error", err)
		}
	}, nil
}

// startOver puts the old files aside if that is wanted, now that nothing else can
// be refused.
func (r *runner) startOver(p *past) (*past, error) {
	if !r.flags.fresh {
		return p, nil
	}
	for path, others := range map[string][]string{
		r.flags.output:       {r.input},
		r.flags.errorsPath(): {r.input, r.flags.output},
	} {
		if path == "-" {
			continue
		}
		kept, err := journal.StartOver(path, others...)
		if err != nil {
			return nil, r.outputFault(err)
		}
		if kept != "" {
			r.console.notice(fmt.Sprintf("starting over: the old %s is kept as %s", path, kept))
		}
	}
	r.startedOver = true
	return r.journals()
}

// dropSuperseded leaves one line in both files for an item that was tried again.
func (r *runner) dropSuperseded(p *past) error {
	if !r.flags.retryFailed || p.errors.Lines == 0 || p.results == nil {
		return nil
	}
	now, err := journal.ReadJournal(r.flags.output)
	if err == nil {
		_, err = journal.DropSuperseded(r.flags.errorsPath(), &now.Keys)
	}
	return err
}

// folder is where the files of a run lie.
func (f *runFlags) folder() string {
	if f.toStdout() {
		return filepath.Dir(f.errorsPath())
	}
	return filepath.Dir(f.output)
}

// readPast reads both result files and changes neither. To a run that starts over
// nothing is past.
func (r *runner) readPast() (*past, error) {
	if r.flags.fresh {
		return &past{}, nil
	}
	return r.journals()
}

func (r *runner) journals() (*past, error) {
	var (
		p   = past{retry: r.flags.retryFailed}
		err error
	)
	if !r.flags.toStdout() {
		if p.results, err = journal.ReadJournal(r.flags.output, r.input); err != nil {
			return nil, r.outputFault(err)
		}
	}
	if p.errors, err = journal.ReadErrorsJournal(r.flags.errorsPath(), r.input, r.flags.output); err != nil {
		return nil, r.outputFault(err)
	}
	return &p, nil
}

// outputFault is the end of a run whose files cannot be used: by the user's choice
// of them, or because the disk will not have it.
func (r *runner) outputFault(err error) error {
	for _, choice := range []error{
		journal.ErrForeign, journal.ErrDamaged, journal.ErrOtherKind, journal.ErrChanged,
		journal.ErrLocked, journal.ErrDirectory, journal.ErrSameFile, journal.ErrNotEmpty,
	} {
		if errors.Is(err, choice) {
			return refuse("%s", plainText(err))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("%s: make the folder first, or name another", plainText(err))
	}
	return r.failAgain(exitOutput, "%s: see to the disk or the permissions, then run:", plainText(err))
}

// outputs are the two result files, open for writing.
type outputs struct {
	stdout  io.Writer
	results *journal.Tail // nil: standard output
	errors  *journal.Tail
}

// openOutputs cuts torn lines off and opens both files. The errors file is made
// with the first failed item.
func (r *runner) openOutputs(p *past) (*outputs, error) {
	var (
		o   = outputs{stdout: r.stdout}
		err error
	)
	if p.results != nil {
		r.sayTorn(p.results, r.flags.output)
		if o.results, err = p.results.Append(); err != nil {
			return nil, r.outputFault(err)
		}
	}
	r.sayTorn(p.errors, r.flags.errorsPath())
	if o.errors, err = p.errors.AppendLazily(); err != nil {
		return nil, errors.Join(r.outputFault(err), o.close())
	}
	return &o, nil
}

// saver saves results.
func (o *outputs) saver(cfg saver.Config) *saver.Saver {
	if o.results == nil {
		return saver.To(o.stdout, "standard output", cfg)
	}
	return saver.New(o.results, cfg)
}

func (o *outputs) close() error {
	if o.results == nil {
		return nil
	}
	return o.results.Close()
}

func (r *runner) sayTorn(j *journal.Journal, name string) {
	if j.Torn > 0 {
		r.console.notice(fmt.Sprintf("%s ended in a line torn after %d bytes: it is cut off, its item is run again", name, j.Torn))
	}
}
