package parts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/headrace/headrace/batch/journal"
)

// ErrOtherResults says that a file holds results of another job, which would be lost.
var ErrOtherResults = errors.New("it holds results that this job does not have: move it away, or choose another file")

// Files makes the files that a run writes with --order input: results at output, and any failures at
// failed. Each file replaces the one of an earlier Files, at once or not at all. Files refuses a file
// that is not ours, or is damaged, as a run does. It also refuses a file with results that are not
// among those that it writes (ErrOtherResults). others are files that output and failed must not be,
// such as the inputs.
func (f *Fetch) Files(ctx context.Context, output, failed string, others ...string) (all Fetched, err error) {
	w := &filing{Fetch: f, ctx: ctx, output: output, failed: failed}
	defer func() {
		for _, l := range w.locks {
			err = errors.Join(err, l.Unlock())
		}
	}()
	if err := w.begin(others); err != nil {
		return all, err
	}
	err = journal.Replace(failed, func(failures *bufio.Writer) error {
		err := journal.Replace(output, func(results *bufio.Writer) (err error) {
			all, err = w.write(results, failures)
			return err
		})
		if err == nil && all.Failed+all.Skipped == 0 && !w.had {
			err = errNoFailures
		}
		return err
	})
	if errors.Is(err, errNoFailures) {
		err = nil
	}
	return all, err
}

// errNoFailures prevents an empty errors file.
var errNoFailures = errors.New("nothing has failed")

// filing is a fetch into files.
type filing struct {
	*Fetch
	ctx            context.Context
	output, failed string
	locks          []*journal.Lock
	had            bool // there is an errors file
}

// begin locks the files, and refuses those that must not be written.
func (w *filing) begin(others []string) error {
	for _, path := range []string{w.output, w.failed} {
		l, err := journal.LockOutput(path, w.locks...)
		if err != nil {
			return err
		}
		w.locks = append(w.locks, l)
	}
	if _, err := journal.ReadJournal(w.output, others...); err != nil {
		return err
	}
	if _, err := journal.ReadErrorsJournal(w.failed, append([]string{w.output}, others...)...); err != nil {
		return err
	}
	_, err := os.Stat(w.failed)
	w.had = err == nil
	return nil
}

// write writes both files, and makes sure that this loses no result.
func (w *filing) write(results, failures *bufio.Writer) (all Fetched, err error) {
	old, done, err := w.old()
	if err != nil {
		return all, err
	}
	defer func() { _ = done() }() // it was only read
	all, err = w.each(w.ctx, func(l *Line) error {
		if l.Failed {
			_, err := failures.Write(l.Text)
			return err
		}
		if err := old.pass(l.Text); err != nil {
			return fmt.Errorf("read %s: %w", w.output, err)
		}
		_, err := results.Write(l.Text)
		return err
	})
	if err == nil && old.line != nil {
		err = fmt.Errorf("parts: fetch %s into %s: %w", w.Job, w.output, ErrOtherResults)
	}
	return all, err
}

// old reads the existing output, if there is one.
func (w *filing) old() (*earlier, func() error, error) {
	file, err := os.Open(w.output)
	if errors.Is(err, fs.ErrNotExist) {
		return &earlier{}, func() error { return nil }, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("parts: fetch %s: %w", w.Job, err)
	}
	old, err := newEarlier(file)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("parts: fetch %s: read %s: %w", w.Job, w.output, err), file.Close())
	}
	return old, file.Close, nil
}
