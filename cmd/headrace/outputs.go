package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/headrace/headrace/batch/jsonl"
)

// stdoutErrors is where failed items of a run to standard output go.
const stdoutErrors = "headrace.errors.jsonl"

// past is what earlier runs to the same output have ended.
type past struct{ results, errors *jsonl.Journal }

// What an earlier run has made of an item.
type endedHow int

const (
	notEnded   endedHow = iota
	endedWell           // it is in the output
	endedBadly          // it is in the errors file: it failed for good
)

func (p *past) of(key string) endedHow {
	switch {
	case p.results == nil: // standard output keeps no record, so nothing is left out
		return notEnded
	case p.results.Keys.Has(key):
		return endedWell
	case p.errors.Keys.Has(key):
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
	return jsonl.ErrorsPath(f.output)
}

// readPast reads both result files and changes neither.
func (r *runner) readPast() (*past, error) {
	var (
		p   past
		err error
	)
	if !r.flags.toStdout() {
		if p.results, err = jsonl.ReadJournal(r.flags.output, r.input); err != nil {
			return nil, r.outputFault(err)
		}
	}
	if p.errors, err = jsonl.ReadErrorsJournal(r.flags.errorsPath(), r.input, r.flags.output); err != nil {
		return nil, r.outputFault(err)
	}
	return &p, nil
}

// outputFault is the end of a run whose files cannot be used: by the user's choice
// of them, or because the disk will not have it.
func (r *runner) outputFault(err error) error {
	for _, choice := range []error{
		jsonl.ErrForeign, jsonl.ErrDamaged, jsonl.ErrOtherKind, jsonl.ErrChanged,
		jsonl.ErrDirectory, jsonl.ErrSameFile, jsonl.ErrNotEmpty,
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
type outputs struct{ results, errors *jsonl.Writer }

// openOutputs cuts torn lines off and opens both files. The errors file is made
// with the first failed item.
func (r *runner) openOutputs(p *past) (*outputs, error) {
	o := &outputs{results: jsonl.NewWriter(r.stdout, "standard output")}
	var err error
	if p.results != nil {
		r.sayTorn(p.results, r.flags.output)
		if o.results, err = p.results.Append(); err != nil {
			return nil, r.outputFault(err)
		}
	}
	r.sayTorn(p.errors, r.flags.errorsPath())
	if o.errors, err = p.errors.AppendLazily(); err != nil {
		return nil, errors.Join(r.outputFault(err), o.results.Close())
	}
	return o, nil
}

func (r *runner) sayTorn(j *jsonl.Journal, name string) {
	if j.Torn > 0 {
		r.console.notice(fmt.Sprintf("%s ended in a line torn after %d bytes: it is cut off, its item is run again", name, j.Torn))
	}
}
