package promptfile

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/headrace/headrace/batch/journal"
)

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
	return p.results == nil || p.results.Keys.Len() == 0 && (p.retry || p.errors.Keys.Len() == 0)
}

// of returns how the item with that key has ended.
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

// freeID returns the id, or the first of id-2, id-3, … that is not in the output yet. So
// a search for an id finds one result. The id counts as taken from then on.
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

// mixes returns an error if made-up answers and real ones would mix.
func (p *past) mixes(c *Config) error {
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
		return c.journals()
	}
	for _, f := range c.files() {
		if err := journal.MayStartOver(f.path, f.others...); err != nil {
			return nil, err
		}
	}
	return &past{}, nil
}

// dropSuperseded leaves one line in both files together for an item that was tried again. A
// run that has read its whole input also clears bad lines that were corrected.
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
