package parts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// ErrUnfinished says that not all parts of a job are there yet.
var ErrUnfinished = errors.New("it is not finished: --partial fetches what is there")

// Fetch makes one output of the parts of a job.
type Fetch struct {
	Store  store.Store
	Job    string
	Chunks int // of the job
	// Partial accepts the parts that exist; otherwise missing parts are ErrUnfinished.
	Partial bool
}

// Fetched describes the fetched results.
type Fetched struct {
	Sums
	Chunks int // that have a part
	// First are the lines of the first items that failed, in the order of the input and without
	// the answers: as many as a sentence names.
	First []journal.Line
}

// firstFailures bounds the lines of First.
const firstFailures = 3

// keepFailure adds the line of a failed item to First, without its answer, until First is full. It passes over
// lines that were never asked.
func (f *Fetched) keepFailure(l *Line) error {
	if !l.Failed || wasSkipped(&l.Entry) || len(f.First) == firstFailures {
		return nil
	}
	var line journal.Line
	if err := json.Unmarshal(l.Text, &line); err != nil {
		return err
	}
	if line.Response != nil {
		line.Response.Body = nil
	}
	f.First = append(f.First, line)
	return nil
}

// visitLines visits the lines that count: the lines that a run writes, in the order of the input. Of a line that several
// rounds have, the last counts. Damage is ErrDamaged, found at the latest when a chunk was visited.
func (f *Fetch) visitLines(ctx context.Context, visit func(*Line) error) (Fetched, error) {
	var all Fetched
	open := inParallel(ctx, parallelRequests, f.groups(ctx), f.openGroup, func(p *openChunk) { p.close() })
	for p, err := range open {
		if err == nil {
			all.Chunks++
			err = p.visitLines(func(l *Line) error {
				all.add(&l.Entry)
				if err := all.keepFailure(l); err != nil {
					return err
				}
				return visit(l)
			})
			p.close()
		}
		if err != nil {
			return all, fmt.Errorf("parts: fetch %s: %w", f.Job, err)
		}
	}
	if all.Chunks < f.Chunks && !f.Partial {
		return all, fmt.Errorf("parts: fetch %s: %d of %d parts: %w", f.Job, all.Chunks, f.Chunks, ErrUnfinished)
	}
	return all, nil
}

// group holds the parts of one chunk: of round 0, and of the rounds that tried it again.
type group struct {
	chunk  int
	rounds []int
}

// groups yields the existing parts of each chunk, in order. The first chunk without any ends it, unless
// the fetch is partial.
func (f *Fetch) groups(ctx context.Context) iter.Seq2[group, error] {
	return func(yield func(group, error) bool) {
		current := group{chunk: -1} // there is none yet
		expected := 0
		yieldGroup := func() (goesOn bool) {
			if current.chunk < 0 {
				return true
			}
			if current.chunk != expected && !f.Partial {
				return false
			}
			expected++
			slices.Sort(current.rounds)
			return yield(current, nil)
		}

		for o, err := range f.Store.List(ctx, job.PartsFolder(f.Job), "") {
			if err != nil {
				yield(current, err)
				return
			}
			chunk, round, ok := job.ParsePart(f.Job, o.Name)
			if !ok || chunk >= f.Chunks {
				continue
			}
			if chunk != current.chunk { // names are listed in order: the group of the last chunk is whole
				if !yieldGroup() {
					return
				}
				current = group{chunk: chunk}
			}
			current.rounds = append(current.rounds, round)
		}
		yieldGroup()
	}
}

// openChunk is a chunk whose parts are open.
type openChunk struct {
	parts []io.ReadCloser
	lines []iter.Seq2[Line, error] // of the latest round first
}

// openGroup opens all parts of a chunk, the latest round first. After an error none of them is open.
func (f *Fetch) openGroup(ctx context.Context, g group) (*openChunk, error) {
	p := &openChunk{}
	for _, round := range slices.Backward(g.rounds) {
		in, err := f.Store.Open(ctx, job.PartName(f.Job, g.chunk, round), 0, -1)
		if err != nil {
			p.close()
			return nil, err
		}
		p.parts = append(p.parts, in)
		p.lines = append(p.lines, lines(in, f.Job, g.chunk, round))
	}
	return p, nil
}

func (p *openChunk) close() {
	for _, in := range p.parts {
		_ = in.Close() // it was only read
	}
}

// visitLines visits the lines of a chunk by line of the input. Of each line it visits the one of the latest round.
func (p *openChunk) visitLines(visit func(*Line) error) error {
	heads := make([]*partHead, len(p.lines))
	for i, lines := range p.lines {
		next, stop := iter.Pull2(lines)
		defer stop()
		heads[i] = &partHead{next: next}
		if err := heads[i].advance(); err != nil {
			return err
		}
	}
	for {
		first := firstHead(heads)
		if first == nil {
			return nil
		}
		line := first.Line
		if err := visit(&line); err != nil {
			return err
		}
		for _, h := range heads {
			if h.hasLine && h.Line.Line == line.Line {
				if err := h.advance(); err != nil {
					return err
				}
			}
		}
	}
}

// partHead holds the next line of a part while parts are merged.
type partHead struct {
	Line
	hasLine bool
	next    func() (Line, error, bool)
}

func (h *partHead) advance() (err error) {
	h.Line, err, h.hasLine = h.next()
	return err
}

// firstHead returns the part whose next line comes first in the input. Of several with that line it is the part of the
// latest round. It returns nil if no part has a line left.
func firstHead(heads []*partHead) (first *partHead) {
	for _, h := range heads {
		if h.hasLine && (first == nil || h.Line.Line < first.Line.Line) {
			first = h
		}
	}
	return first
}

// earlierResults is an existing file of results, during its comparison.
type earlierResults struct {
	in   *bufio.Reader
	line []byte // the next one; nil at the end
}

// newEarlier reads the results of an earlier fetch.
func newEarlier(in io.Reader) (*earlierResults, error) {
	e := &earlierResults{in: bufio.NewReaderSize(in, 64<<10)}
	return e, e.advance()
}

func (e *earlierResults) advance() error {
	line, err := e.in.ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		line, err = nil, nil // a line without a line feed was torn
	}
	e.line = line
	return err
}

// skipIfEqual moves to the next line of the earlier file if its present line equals the one just written.
func (e *earlierResults) skipIfEqual(line []byte) error {
	if !bytes.Equal(e.line, line) {
		return nil
	}
	return e.advance()
}

// ErrOtherResults says that a file holds results of another job, which would be lost.
var ErrOtherResults = errors.New("it holds results that this job does not have: move it away, or choose another file")

// Lines passes to take the lines that Files would write: results and failures, in the order of the input. A text is
// valid until take returns. Lines writes nothing, and needs no more memory for a larger job.
func (f *Fetch) Lines(ctx context.Context, take func(text []byte) error) (Fetched, error) {
	return f.visitLines(ctx, func(l *Line) error { return take(l.Text) })
}

// Files makes the files that a run writes with --order input: results at output, and any failures at
// failed. Each file replaces the one of an earlier Files, at once or not at all. Files refuses a file
// that is not ours, or is damaged, as a run does. It also refuses a file with results that are not
// among those that it writes (ErrOtherResults). others are files that output and failed must not be,
// such as the inputs.
func (f *Fetch) Files(ctx context.Context, output, failed string, others ...string) (all Fetched, err error) {
	w := &fileFetch{Fetch: f, ctx: ctx, output: output, failed: failed}
	defer func() {
		for _, l := range w.locks {
			err = errors.Join(err, l.Unlock())
		}
	}()
	if err := w.lockFiles(others); err != nil {
		return all, err
	}
	err = journal.Replace(failed, func(failures *bufio.Writer) error {
		err := journal.Replace(output, func(results *bufio.Writer) (err error) {
			all, err = w.write(results, failures)
			return err
		})
		if err == nil && all.Failed+all.Skipped == 0 && !w.hadErrorsFile {
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

// fileFetch is a fetch into files.
type fileFetch struct {
	*Fetch
	ctx            context.Context
	output, failed string
	locks          []*journal.Lock
	hadErrorsFile  bool // there was an errors file before
}

// lockFiles locks both files, and refuses one that must not be replaced. Locks that it has taken stay in w.locks, also after
// an error.
func (w *fileFetch) lockFiles(others []string) error {
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
	_, err := os.Stat(w.failed) // any error but absence was ReadErrorsJournal's, too
	w.hadErrorsFile = err == nil
	return nil
}

// write writes both files. It refuses (ErrOtherResults) if the output has a result that would be lost.
func (w *fileFetch) write(results, failures *bufio.Writer) (all Fetched, err error) {
	old, done, err := w.openEarlier()
	if err != nil {
		return all, err
	}
	defer func() { _ = done() }() // it was only read
	all, err = w.visitLines(w.ctx, func(l *Line) error {
		if l.Failed {
			_, err := failures.Write(l.Text)
			return err
		}
		if err := old.skipIfEqual(l.Text); err != nil {
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

// openEarlier opens the existing output, to compare it with what is written. Without one there is nothing to compare. done
// closes it.
func (w *fileFetch) openEarlier() (e *earlierResults, done func() error, err error) {
	file, err := os.Open(w.output)
	if errors.Is(err, fs.ErrNotExist) {
		return &earlierResults{}, func() error { return nil }, nil
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

// parallelRequests is the number of parallel requests for objects: a bucket takes some 20 ms to begin with one, so
// a hundred thousand of them, one after the other, would take half an hour.
const parallelRequests = 16

// outcome is the result of one element.
type outcome[R any] struct {
	result R
	err    error
}

// inParallel runs do for each element, n at a time, and yields the results in the order of the elements. The first
// error ends them. Results that are not yielded, because the caller leaves early, go to drop. Once the sequence
// ends, nothing of it is running.
func inParallel[T, R any](ctx context.Context, n int, all iter.Seq2[T, error], do func(context.Context, T) (R, error), drop func(R)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var pending []chan outcome[R] // of the elements under way, in order
		defer func() {
			cancel()
			for _, c := range pending {
				if d := <-c; d.err == nil {
					drop(d.result)
				}
			}
		}()
		yieldFirst := func() (goesOn bool) {
			d := <-pending[0]
			pending = pending[1:]
			return yield(d.result, d.err) && d.err == nil
		}
		for element, err := range all {
			c := make(chan outcome[R], 1)
			pending = append(pending, c)
			go func() {
				d := outcome[R]{err: err}
				if err == nil {
					d.result, d.err = do(ctx, element)
				}
				c <- d
			}()
			if err != nil || len(pending) == n {
				if !yieldFirst() {
					return
				}
			}
		}
		for len(pending) > 0 {
			if !yieldFirst() {
				return
			}
		}
	}
}
