package promptfile

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/headrace/headrace/batch/journal"
)

// Why a run does not go on with the files of an earlier one; errors.Is finds them in
// what Open and Begin return. The files are as they were.
var (
	ErrSimulated = errors.New("its answers are simulated, but this run's are not: start over with --fresh, which keeps the old file, or choose another")
	ErrReal      = errors.New("its answers are not simulated, but this run's are: start over with --fresh, which keeps the old file, or choose another")
)

// past is what earlier runs to the same output have ended.
type past struct {
	results, errors *journal.Journal // nil: nothing is known
	retry           bool             // what failed is to be tried again
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

// freeID is the id, or the first of id-2, id-3, … that stands nowhere in the output yet: to
// look for a result by its id must find one. It counts as taken from then on.
func (p *past) freeID(id string) string {
	if p.results == nil || p.results.IDs.Len() == 0 {
		return id
	}
	free := id
	for n := 2; !p.results.IDs.Add(free); n++ {
		free = id + "-" + strconv.Itoa(n)
	}
	return free
}

// journals reads both result files and changes neither.
func (c *Config) journals() (*past, error) {
	var (
		p   = past{retry: c.RetryFailed}
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
	return &p, p.mixes(c)
}

// mixes refuses to let made-up answers and real ones stand for each other.
func (p *past) mixes(c *Config) error {
	if c.Output == "" {
		return nil // nothing is taken over from an earlier run
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

// readPast is what is past to a run: nothing, to one that starts over. That it can is
// found out all the same.
func (c *Config) readPast() (*past, error) {
	if !c.Fresh {
		return c.journals()
	}
	for _, f := range c.files() {
		if err := journal.MayStartOver(f.path, f.others...); err != nil {
			return nil, err
		}
	}
	return &past{}, nil
}

// dropSuperseded leaves one line in both files for an item that was tried again.
// A run that has read its whole input also clears bad lines that were corrected.
func (c *Config) dropSuperseded(p *past, whole bool) error {
	if !c.RetryFailed || p.errors.Lines == 0 || p.results == nil {
		return nil
	}
	var inputs []string
	if whole && c.Reader.Limit == 0 {
		inputs = c.Input.Files()
	}
	now, err := journal.ReadJournal(c.Output)
	if err == nil {
		_, err = p.errors.DropSuperseded(&now.Keys, inputs...)
	}
	return err
}
