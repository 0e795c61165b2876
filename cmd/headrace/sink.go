package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/provider"
)

type result = batch.Result[*item, provider.Reply]

// sink is where result lines go: each of the two files has a saver, which commits
// in groups what comes while the disk works.
type sink struct {
	results, errors *saver.Saver
	failed          atomic.Int64 // items that went to the errors file
	unsaved         int          // lines that could not be kept; to be read after close
	turns           *turns       // nil where results stand as they come

	// room has as many places as calls may be in flight. A call takes one before it
	// is made, and leaves it when its answer is written: until then it counts as in
	// flight. So a process that is killed never loses more than it was allowed to
	// have in flight, and a disk that is slow slows the calls down. What a loss of power
	// takes beside that is bounded by the saver: what it has written and not synced, 511
	// lines and those of one write.
	room    chan struct{}
	faulted chan struct{} // closed by the first failure: nothing waits for room any more
}

type output struct {
	line   journal.Line
	failed bool
}

// newSink takes the files over. fault is told the first failure of each.
func newSink(o *outputs, flags *runFlags, fault func(error)) *sink {
	s := &sink{room: make(chan struct{}, flags.concurrency), faulted: make(chan struct{})}
	first := make(chan struct{}, 1)
	first <- struct{}{}
	cfg := saver.Config{Durability: flags.durability(), Fault: func(err error) {
		select {
		case <-first:
			close(s.faulted)
		default: // of the other file
		}
		fault(err)
	}}
	if flags.order == orderInput {
		s.turns = newTurns(flags.folder(), s.save, fault)
	}
	s.errors = saver.New(o.errors, cfg)
	cfg.Written = s.leave
	s.results = o.saver(cfg)
	return s
}

// end takes the line of the item of that index, nil for one that was not run.
func (s *sink) end(index int, o *output) {
	if s.turns != nil {
		var line *journal.Line
		if o != nil && !o.failed {
			line = &o.line
		}
		s.turns.take(index, line)
	}
	if o != nil && (s.turns == nil || o.failed) {
		s.put(*o)
	}
}

func (s *sink) save(l journal.Line) { s.put(output{line: l}) }

// put hands over one line. Many goroutines may call it.
func (s *sink) put(o output) {
	if !o.failed {
		s.results.Save(o.line, nil)
		return
	}
	s.failed.Add(1)
	s.errors.Save(o.line, nil)
}

// enter waits until there is room for one more call. Where answers wait for their
// turn it is not asked for: the one whose turn it is could not come in.
func (s *sink) enter(ctx context.Context) {
	if s.turns != nil {
		return
	}
	select { // there is room nearly always, and to ask for that alone is cheap
	case s.room <- struct{}{}:
		return
	default:
	}
	select {
	case s.room <- struct{}{}:
	case <-s.faulted:
	case <-ctx.Done():
	}
}

// leave gives places back; after a fault an answer may have come in without one.
func (s *sink) leave(places int) {
	for range places {
		select {
		case <-s.room:
		default:
		}
	}
}

// close waits until everything is saved, or known not to be.
func (s *sink) close() error {
	var faults []error
	if s.turns != nil {
		faults = append(faults, s.turns.close())
		s.unsaved = s.turns.lost
	}
	faults = append(faults, s.results.Close(), s.errors.Close())
	for _, err := range faults {
		var unsaved *saver.Error
		if errors.As(err, &unsaved) {
			s.unsaved += unsaved.Lines
		}
	}
	return errors.Join(faults...)
}

// roomMayReturn tells a disk that is full from one that is broken.
func roomMayReturn(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// isClosedPipe tells a reader that has gone (| head) from a fault.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// lineOf is the output line of a result.
func lineOf(r *result, redact func(string) string) output {
	it := r.Item
	l := promptfile.LineFor(&it.Request)
	l.Headrace.Attempts, l.Headrace.Lane = r.Attempts, r.Lane
	l.Headrace.Usage = journal.Usage{
		InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens, CachedTokens: r.Usage.CachedTokens,
	}
	l.Headrace.QueuedMS, l.Headrace.WaitedMS, l.Headrace.LatencyMS = r.Queued.Milliseconds(), r.Waited.Milliseconds(), r.Latency.Milliseconds()
	if r.Err == nil {
		// The client lets nothing through as an answer but valid JSON.
		l.Response = &journal.Response{StatusCode: r.Value.Status, RequestID: r.Value.RequestID, Body: r.Value.Body, Checked: true}
		return output{line: l}
	}
	l.Error = &journal.Failure{Code: codeOf(r.Err), Message: redact(messageOf(r.Err))}
	if e := faultOf(r.Err); e != nil && e.Status != 0 {
		l.Response = &journal.Response{StatusCode: e.Status, RequestID: e.RequestID, Body: e.Body}
	}
	return output{line: l, failed: true}
}

// faultOf is what the provider package made of an error; nil if it was not asked.
func faultOf(err error) *provider.Error {
	var e *provider.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// codeOf is the word for a failure in result files.
func codeOf(err error) string {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return "panic"
	}
	if e := faultOf(err); e != nil {
		return e.Kind.String()
	}
	return provider.Unknown.String()
}

// messageOf is one line about a failure. The stack of a panic is for the log.
func messageOf(err error) string {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return fmt.Sprintf("panic: %v", panicked.Value)
	}
	return err.Error()
}
