package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// source is the prompt file. What can be read only once (standard input, a pipe)
// is a stream: its lines are checked as they come.
type source struct {
	name   string
	stream bool
	open   func() (io.ReadCloser, error)
}

func (w *world) source(path string) (source, error) {
	if path == "-" {
		return source{"standard input", true, func() (io.ReadCloser, error) { return io.NopCloser(w.stdin), nil }}, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return source{}, refuse("%s: there is no such file: check the name of the input", path)
	case err != nil:
		return source{}, refuse("%v: the input cannot be read", err)
	case info.IsDir():
		return source{}, refuse("%s: it is a directory: name a prompt file in it", path)
	}
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	return source{path, !info.Mode().IsRegular(), open}, nil
}

// survey is what the check of a file has found, before any call.
type survey struct {
	items  int                  // of the whole input, or of its first --limit
	done   int                  // of these, in the output already
	failed int                  // of these, in the errors file already
	bad    []*prompts.LineError // the first of them
	badAll int
}

func (s survey) left() int { return s.items - s.done - s.failed }

// stillChecking is how many items are checked before a word is said about it: a
// few seconds' worth.
const stillChecking = 1_000_000

// survey reads a file to its end, or to its limit.
func (r *runner) survey(src source, past *past) (survey, error) {
	var s survey
	file, err := src.open()
	if err != nil {
		return s, refuse("%v: the input cannot be read", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	cfg := r.readerConfig(src.name, false)
	cfg.Passing, cfg.NoKeys = true, past.empty()
	for req, err := range prompts.NewReader(file, cfg).All() {
		if r.halt.called() {
			return s, r.haltedEarly()
		}
		if err := s.note(req, err, past); err != nil {
			return s, refuse("%s", plainText(err))
		}
		if err == nil && s.items%stillChecking == 0 {
			r.console.notice(fmt.Sprintf("checking %s before any call: %d items so far", src.name, s.items))
		}
		if s.items == r.flags.limit && r.flags.limit > 0 {
			break
		}
	}
	return s, r.nameFirst(src, s.bad)
}

// nameFirst completes complaints about ids used twice: of most ids the reader
// remembers only that they were used, not where.
func (r *runner) nameFirst(src source, bad []*prompts.LineError) error {
	if len(bad) == 0 {
		return nil
	}
	file, err := src.open()
	if err != nil {
		return refuse("%v: the input cannot be read", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	if err := prompts.FirstLines(file, r.readerConfig(src.name, true), bad); err != nil {
		return refuse("%s", plainText(err))
	}
	return nil
}

// note counts one line. The error is one that ends the reading.
func (s *survey) note(req prompts.Request, err error, past *past) error {
	if err != nil {
		return s.noteBad(err)
	}
	s.items++
	switch past.of(req.Key) {
	case endedWell:
		s.done++
	case endedBadly:
		s.failed++
	}
	return nil
}

func (s *survey) noteBad(err error) error {
	var bad *prompts.LineError
	if !errors.As(err, &bad) {
		return err
	}
	if s.badAll++; len(s.bad) < prompts.MaxComplaints {
		s.bad = append(s.bad, bad)
	}
	return nil
}

func (r *runner) readerConfig(name string, checked bool) prompts.Config {
	return prompts.Config{
		Name: name, DefaultModel: r.backend.model, DefaultEndpoint: r.flags.endpoint, Checked: checked,
		System: r.flags.system, Serves: r.backend.serves(r.flags.baseURL),
		Format: r.flags.formatOf(name), Template: r.flags.parsed, Limit: r.flags.limit,
	}
}

// intake is the input as a run takes it. It is the run's reader that writes to
// it; it may be read when the run is over.
type intake struct {
	*runner
	src    source
	past   *past
	halted chan struct{} // closed when a stream is not to be waited for any more

	preset             provider.Preset
	put                func(output) // takes the lines of bad lines
	latest             struct{ model, lane string }
	seen, done, failed int
	skipped            int   // bad lines that this run has put into the errors file
	err                error // why it ended early
	left               bool  // a stream was left before its end
}

// items yields what is left to do.
func (in *intake) items() iter.Seq[*item] {
	in.preset = in.flags.providerPreset()
	return func(yield func(*item) bool) {
		for req, err := range in.lines() {
			if err != nil && !in.skip(err) {
				in.fail(err)
				return
			}
			if err != nil {
				continue
			}
			if it := in.take(req); it != nil && !yield(it) {
				return
			}
			if in.flags.limit > 0 && in.seen == in.flags.limit {
				return
			}
		}
	}
}

// take gives the item of a request, nil if it has ended in an earlier run.
func (in *intake) take(req prompts.Request) *item {
	in.seen++
	switch in.past.of(req.Key) {
	case endedWell:
		in.done++
		return nil
	case endedBadly:
		in.failed++
		return nil
	}
	return &item{Request: req, lane: in.lane(req.Model), cost: costOf(in.preset, req.Body)}
}

// lane is the lane of a model. Most files name one: it is joined once.
func (in *intake) lane(model string) string {
	if in.latest.lane == "" || in.latest.model != model {
		in.latest.model, in.latest.lane = model, in.backend.lane(model)
	}
	return in.latest.lane
}

// skip puts a bad line into the errors file, if bad lines are to be skipped.
func (in *intake) skip(err error) bool {
	if !in.flags.skipsBadLines() {
		return false
	}
	var bad *prompts.LineError
	if !errors.As(err, &bad) {
		return false
	}
	if in.past.of(bad.Key()) == endedBadly {
		in.failed++
		return true
	}
	in.skipped++
	in.put(output{line: promptfile.FailedLine(bad), failed: true})
	return true
}

// fail ends the input. What came before it is still run.
func (in *intake) fail(err error) {
	in.err = err
	in.console.notice(plainText(err) + " (no further line is taken; the items before it are finished)")
}

// lines reads a file as it stands, and a stream so that it can be left.
func (in *intake) lines() iter.Seq2[prompts.Request, error] {
	if in.src.stream {
		return newStream(in).all
	}
	return func(yield func(prompts.Request, error) bool) {
		file, err := in.src.open()
		if err != nil {
			yield(prompts.Request{}, err)
			return
		}
		defer func() { _ = file.Close() }() // it was only read
		prompts.NewReader(file, in.readerConfig(in.src.name, !in.flags.skipsBadLines())).All()(yield)
	}
}
