package main

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/jsonl"
	"github.com/headrace/headrace/provider"
)

type result = batch.Result[*item, provider.Reply]

// sinkRoom is how many lines may wait for the disk before results do: enough that
// a write of one block does not stop the calls.
const sinkRoom = 256

// sink writes result lines in a goroutine of its own: many at once while they
// come fast, each at once while they come slowly.
type sink struct {
	*outputs
	lines   chan output
	over    chan struct{}
	abandon func(error)  // told the first fault: what is answered now cannot be kept
	failed  atomic.Int64 // items that went to the errors file
	unsaved int          // lines that were not written, by whatever fault
	err     error        // the first fault; like unsaved, to be read after close
}

type output struct {
	line   jsonl.Line
	failed bool
}

func newSink(o *outputs, abandon func(error)) *sink {
	s := &sink{outputs: o, lines: make(chan output, sinkRoom), over: make(chan struct{}), abandon: abandon}
	go s.run()
	return s
}

// put hands over one line.
func (s *sink) put(o output) { s.lines <- o }

// close waits until everything is written. The error is the first fault.
func (s *sink) close() error {
	close(s.lines)
	<-s.over
	return s.err
}

func (s *sink) run() {
	defer close(s.over)
	for o := range s.lines {
		if s.err != nil {
			s.unsaved++
			continue
		}
		s.note(s.write(o))
	}
	s.note(errors.Join(s.results.Close(), s.errors.Close()))
}

// write adds a line, and flushes when no other waits.
func (s *sink) write(o output) error {
	w := s.results
	if o.failed {
		w = s.errors
		s.failed.Add(1)
	}
	err := w.Write(&o.line)
	if len(s.lines) == 0 {
		err = errors.Join(err, s.results.Flush(), s.errors.Flush())
	}
	return err
}

func (s *sink) note(err error) {
	if err == nil || s.err != nil {
		return
	}
	s.err = err
	s.abandon(err)
}

// isClosedPipe tells a reader that has gone (| head) from a fault.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// lineOf is the output line of a result.
func lineOf(r *result, redact func(string) string) output {
	it := r.Item
	l := jsonl.LineFor(&it.Request)
	l.Headrace.Attempts, l.Headrace.Lane = r.Attempts, r.Lane
	l.Headrace.Usage = jsonl.Usage{
		InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens, CachedTokens: r.Usage.CachedTokens,
	}
	l.Headrace.QueuedMS, l.Headrace.WaitedMS, l.Headrace.LatencyMS = r.Queued.Milliseconds(), r.Waited.Milliseconds(), r.Latency.Milliseconds()
	if r.Err == nil {
		l.Response = &jsonl.Response{StatusCode: r.Value.Status, RequestID: r.Value.RequestID, Body: r.Value.Body}
		return output{line: l}
	}
	l.Error = &jsonl.Failure{Code: codeOf(r.Err), Message: redact(messageOf(r.Err))}
	if e := faultOf(r.Err); e != nil && e.Status != 0 {
		l.Response = &jsonl.Response{StatusCode: e.Status, RequestID: e.RequestID, Body: e.Body}
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
