package promptfile

import (
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/headrace/headrace/batch/internal/disk"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
)

// Job is a prompt file and its result files, for programs that have no wishes but
// the usual ones: it locks the output, checks the whole input before any call, knows
// what earlier runs have ended, and saves each line before it counts.
//
//	job, err := promptfile.OpenJob("prompts.jsonl", "results.jsonl", prompts.Config{})
//	for r, err := range batch.Stream(ctx, job.Requests(), call) { … job.Save(line) … }
//	err = job.Close()
//
// The output is the journal: the same program, run again, goes on where it was.
type Job struct {
	input           string
	cfg             prompts.Config
	lock            *journal.Lock
	ended           [2]*journal.KeySet // of the output, of the errors file
	results, failed *saver.Saver
	broke           error // why the input could not be read on
}

// OpenJob opens both; failed items go to ErrorsPath(output). The input is a file
// that can be read twice. If lines of it are no requests, the error names the first
// of them and nothing was made but the lock, which is gone again.
func OpenJob(input, output string, cfg prompts.Config) (*Job, error) {
	if cfg.Name == "" {
		cfg.Name = input
	}
	lock, err := journal.LockOutput(output)
	if err != nil {
		return nil, err
	}
	j := &Job{input: input, cfg: cfg, lock: lock}
	if err = j.check(); err == nil {
		err = j.open(output)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	j.cfg.Checked = true
	return j, nil
}

// check reads the input once, to find every line that is no request.
func (j *Job) check() error {
	var bad []*prompts.LineError
	err := j.read(func(r *prompts.Reader) (err error) { _, bad, err = prompts.Check(r); return err })
	if err != nil || len(bad) == 0 {
		return err
	}
	all := make([]error, len(bad))
	for i, b := range bad {
		all[i] = b
	}
	return errors.Join(all...)
}

func (j *Job) read(visit func(*prompts.Reader) error) error {
	file, err := os.Open(j.input)
	if err != nil {
		return fmt.Errorf("promptfile: open %s: %w", j.input, disk.Bare(err))
	}
	defer func() { _ = file.Close() }() // it was only read
	return visit(prompts.NewReader(file, j.cfg))
}

func (j *Job) open(output string) error {
	results, err := journal.ReadJournal(output, j.input)
	if err != nil {
		return err
	}
	failures, err := journal.ReadErrorsJournal(journal.ErrorsPath(output), j.input, output)
	if err != nil {
		return err
	}
	j.ended = [2]*journal.KeySet{&results.Keys, &failures.Keys}
	out, err := results.Append()
	if err != nil {
		return err
	}
	errs, err := failures.AppendLazily()
	if err != nil {
		return errors.Join(err, out.Close())
	}
	j.results, j.failed = saver.New(out, saver.Config{}), saver.New(errs, saver.Config{})
	return nil
}

// Requests yields what no earlier run has ended. What keeps it from reading on ends
// it, and Close says so.
func (j *Job) Requests() iter.Seq[prompts.Request] {
	return func(yield func(prompts.Request) bool) {
		j.broke = j.read(func(r *prompts.Reader) error {
			for req, err := range r.All() {
				if err != nil {
					return err
				}
				if j.Ended(req.Key) {
					continue
				}
				if !yield(req) {
					return nil
				}
			}
			return nil
		})
	}
}

// Ended reports whether an earlier run has ended the item with this key.
func (j *Job) Ended(key string) bool { return j.ended[0].Has(key) || j.ended[1].Has(key) }

// Save hands over the line of an item, made by LineFor: to the errors file if it
// has an Error. A disk that has failed is told by Close.
func (j *Job) Save(l journal.Line) {
	if l.Error != nil {
		j.failed.Save(l, nil)
		return
	}
	j.results.Save(l, nil)
}

// Close waits until everything is on disk, unlocks the output, and tells whatever
// went wrong with the files. It is called when no request is asked for any more.
func (j *Job) Close() error {
	return errors.Join(j.broke, j.results.Close(), j.failed.Close(), j.lock.Unlock())
}
