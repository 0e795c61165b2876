package promptfile

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// The codes of lines that were never asked, in an errors file.
const (
	CodeInvalidLine    = journal.CodeInvalidLine    // it is not a request
	CodeUntranslatable = journal.CodeUntranslatable // it cannot be translated for the provider
)

// lineFor begins the output line of a request, with what the request knows.
func lineFor(req *prompts.Request) journal.Line {
	return journal.LineOf(req.ID, journal.Headrace{
		Line: req.Line, File: req.File, FileLine: req.FileLine, Key: req.Key, Model: req.Model, Metadata: req.Metadata,
	})
}

// badLine returns the errors-file line for a line that is not asked.
func badLine(e *prompts.LineError) journal.Line {
	if e.Request != nil {
		l := lineFor(e.Request)
		l.Error = &journal.Failure{Code: CodeUntranslatable, Message: e.Error()}
		return l
	}
	l := lineFor(&prompts.Request{Line: e.Line, ID: cmp.Or(e.ID, prompts.LineID(e.Line)), Key: e.Key()})
	l.Error = &journal.Failure{Code: CodeInvalidLine, Message: e.Error()}
	return l
}

// lineOf returns the output line of an item that ended: one with an Error is for the errors
// file. An item that was not run has none.
func (c *Config) lineOf(r *Result) (l journal.Line, ended bool) {
	if errors.Is(r.Err, batch.ErrNotRun) {
		return l, false
	}
	l = lineFor(&r.Item.Request)
	l.Headrace.Attempts, l.Headrace.Lane, l.Headrace.Simulated = r.Attempts, r.Lane, c.Simulated
	l.Headrace.Usage = usageOf(r.Usage)
	if doubt := r.Doubtful(); doubt.Calls > 0 {
		l.Headrace.Doubtful = journal.Doubtful{Calls: int64(doubt.Calls), Usage: usageOf(doubt.Usage)}
	}
	c.addOrigin(&l.Headrace, r)
	l.Headrace.QueuedMS, l.Headrace.WaitedMS, l.Headrace.LatencyMS = r.Queued.Milliseconds(), r.Waited.Milliseconds(), r.Latency.Milliseconds()
	if r.Err != nil {
		c.addFailure(&l, r)
		return l, true
	}
	l.Headrace.Filtered = provider.IsFiltered(r.Finish)
	l.Response = &journal.Response{StatusCode: r.Value.Status, RequestID: r.Value.RequestID, Body: r.Value.Body, Checked: c.Checked}
	return l, true
}

// usageOf converts a usage to the form that all lines have. Only lines with an origin count
// reasoning.
func usageOf(u provider.Usage) journal.Usage {
	return journal.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens, CacheWriteTokens: u.CacheWriteTokens,
	}
}

// addOrigin adds where an answer is from, and its text, as far as the run's lines have
// that.
func (c *Config) addOrigin(h *journal.Headrace, r *Result) {
	if c.Fields.Text && r.Value.HasText {
		text := r.Value.Text // alone: the line may live longer than the result
		h.Text = &text
	}
	if c.Fields.Provider == "" {
		return
	}
	h.Provider, h.Dialect, h.Translated = c.Fields.Provider, r.Value.Dialect, r.Value.Translated
	h.Finish = string(provider.EndOf(r.Finish))
	h.Usage.ReasoningTokens, h.Doubtful.ReasoningTokens = r.Usage.ReasoningTokens, r.Doubtful().Usage.ReasoningTokens
	if r.Value.Served != r.Item.Model {
		h.Served = r.Value.Served
	}
}

// addFailure says why an item failed, and how each of its calls ended.
func (c *Config) addFailure(l *journal.Line, r *Result) {
	l.Error = &journal.Failure{Code: codeOf(r.Err), Message: c.Redact(messageOf(r.Err))}
	if e := faultOf(r.Err); e != nil && e.Status != 0 {
		l.Response = &journal.Response{StatusCode: e.Status, RequestID: e.RequestID, Body: e.Body}
		if e.Body == nil && provider.IsFiltered(r.Finish) { // an answer that is kept, although it is not a result
			l.Response.Body = r.Value.Body
		}
	}
	l.Headrace.Output = c.named
	l.Headrace.Calls = r.Calls
	for _, f := range r.Failures {
		l.Headrace.Failures = append(l.Headrace.Failures, journal.CallFailure{
			Kind: f.Kind.String(), Status: f.Status, Message: c.Redact(f.Message), Calls: f.Calls,
		})
	}
}

// faultOf returns the provider package's view of an error, or nil if it has none.
func faultOf(err error) *provider.Error {
	var e *provider.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// codeOf returns the word for a failure in result files.
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

// messageOf returns one line about a failure. The stack of a panic is for the log.
func messageOf(err error) string {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return fmt.Sprintf("panic: %v", panicked.Value)
	}
	return err.Error()
}
