package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider"
)

// openLog opens the log. Without --log-file its lines go to the console.
func (r *runner) openLog() (closed func(), err error) {
	if r.Flags.LogFile == "" {
		r.log = slog.New(r.logHandler(r.console))
		return func() {}, nil
	}
	if err := r.checkLogFile(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(r.Flags.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, exit.Refuse("--log-file: %s: %v: choose another, or check the permissions", r.Flags.LogFile, disk.Bare(err))
	}
	r.log = slog.New(r.logHandler(logWriter{file, r.Flags.LogsJSON()})).With("run", r.runID())
	return func() { _ = file.Close() }, nil // a log that cannot be written is lost
}

// checkLogFile refuses a log that would be written into another file of the run.
func (r *runner) checkLogFile() error {
	path := r.Flags.LogFile
	if settings.IsNoFile(path) {
		return nil
	}
	for _, other := range append(r.files(), namedFile{"timeline", r.Flags.TimelinePath()}) {
		if journal.SameFile(path, other.name) {
			return exit.Refuse("--log-file: %s is the %s: choose another file", path, other.what)
		}
	}
	return nil
}

// logWriter writes lines of a log that steer no terminal, even when they are read later.
type logWriter struct {
	out  io.Writer
	json bool
}

// Write writes a whole line.
func (w logWriter) Write(line []byte) (int, error) {
	if !w.json {
		return printable.Writer{Out: w.out}.Write(line)
	}
	if _, err := w.out.Write(printable.JSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// logHandler returns the handler that formats the log.
func (r *runner) logHandler(to io.Writer) slog.Handler {
	level, _ := r.Flags.Level() // checked with the flags
	options := &slog.HandlerOptions{Level: level}
	if r.Flags.LogsJSON() {
		return slog.NewJSONHandler(to, options)
	}
	return slog.NewTextHandler(to, options)
}

// longCooldown is the shortest cooldown that the log warns about.
const longCooldown = 10 * time.Second

// logStart logs the settings of the run.
func (r *runner) logStart(plan *promptfile.Plan) {
	var attrs []any
	if r.Flags.LogFile == "" { // in a log file each line names its run
		attrs = append(attrs, "run", r.runID())
	}
	attrs = append(attrs, "input", r.inputName(), "output", r.Flags.OutputName(), "concurrency", r.Flags.Concurrency)
	if plan != nil {
		attrs = append(attrs, "items", plan.Items, "before", plan.Done+plan.Failed)
	}
	r.log.Info("run started", attrs...)
	if plan != nil && plan.Done+plan.Failed > 0 {
		r.log.Info("resumed", "done", plan.Done, "failed", plan.Failed, "left", plan.Left())
	}
}

// logEvent logs what a run reports about its lanes.
func (r *runner) logEvent(e batch.Event) {
	switch {
	case e.LongWait != nil:
		r.log.Warn("long wait", event.LogAttrs(e.LongWait)...)
	case e.Transition != nil:
		r.logTransition(e.Transition)
	case e.Summary != nil && e.Summary.Dropped > 0:
		r.log.Warn("observer was too slow", "dropped", e.Summary.Dropped)
	}
}

func (r *runner) logTransition(t *batch.Transition) {
	attrs := []any{"lane", t.Lane, "epoch", t.Epoch, "reason", t.Reason.String()}
	if t.Cause != nil {
		attrs = append(attrs, "error", t.Cause.Error())
	}
	if wait := t.Until.Sub(t.At); wait > 0 {
		attrs = append(attrs, "wait_ms", wait.Milliseconds())
	}
	switch {
	case t.Reason == machine.ByErrors:
		r.log.Warn("lane slowed down", append(attrs, "error_rate", t.Errors)...)
	case t.Reason == machine.ByAnswers:
		r.log.Info("lane as fast as before", attrs...)
	case t.To == machine.Stopped:
		r.log.Warn("lane stopped", attrs...)
	case t.To == machine.Cooling && t.Reason == machine.ByBreaker && t.From == machine.Probing: // the same outage: one warning is enough
		r.log.Info("breaker opened", attrs...)
	case t.To == machine.Cooling && t.Reason == machine.ByBreaker:
		r.log.Warn("breaker opened", attrs...)
	case t.To == machine.Cooling && t.Until.Sub(t.At) > longCooldown:
		r.log.Warn("cooldown", attrs...)
	case t.To == machine.Cooling:
		r.log.Info("cooldown", attrs...)
	default:
		r.log.Info("lane changed", append(attrs, "from", t.From.String(), "to", t.To.String())...)
	}
}

// logCall logs the outcome of one call. The server's names for it may hold anything.
func (r *runner) logCall(ctx context.Context, it *promptfile.Item, reply *provider.Reply, took time.Duration, err error) {
	attrs := append(whereIs(it), "lane", it.Pool(), "attempt", batch.CallFrom(ctx), "status", reply.Status, "request_id", r.Redact(reply.RequestID), "latency_ms", took.Milliseconds())
	if e := verdict.FaultOf(err); e != nil {
		attrs = append(attrs, "kind", e.Kind.String())
	}
	r.log.Debug("call", append(attrs, "error", r.RedactError(err))...)
}

// whereIs names an item and its line, and the file where the input has several.
func whereIs(it *promptfile.Item) []any {
	if it.File == "" {
		return []any{"id", it.ID, "line", it.Line}
	}
	return []any{"id", it.ID, "line", it.Line, "file", it.File, "file_line", it.FileLine}
}

// logRetry logs that the wait of an item is over and that it goes again. After a refusal the
// lane has redistributed it, perhaps to another lane.
func (r *runner) logRetry(again batch.Retry) {
	it := again.Item.(*promptfile.Item)
	what, kind := "tried again", ""
	if errors.Is(again.Err, batch.Throttled) || errors.Is(again.Err, batch.Overloaded) {
		what = "redistributed"
	}
	if e := verdict.FaultOf(again.Err); e != nil {
		kind = e.Kind.String()
	}
	r.log.Debug(what, append(whereIs(it), "lane", again.Lane, "attempt", again.Calls+1, "waited_ms", again.Waited.Milliseconds(), "kind", kind)...)
}

// logItem logs why an item failed.
func (r *runner) logItem(res *promptfile.Result) {
	kind, _ := r.FailureCode(res.Err)
	r.log.Info("item failed", append(whereIs(res.Item), "lane", res.Lane, "kind", kind, "attempt", res.Attempts,
		"wait_ms", res.Waited.Milliseconds(), "latency_ms", res.Latency.Milliseconds(), "error", r.RedactError(res.Err))...)
	r.logPanic(res.Err, "id", res.Item.ID)
}

// logPanic logs where a function has panicked, which its error's text does not say.
func (r *runner) logPanic(err error, attrs ...any) {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		r.log.Error("panic", append(attrs, "value", r.Redact(fmt.Sprint(panicked.Value)), "stack", string(panicked.Stack))...)
	}
}

// logEnd logs the outcome of a run.
func (r *runner) logEnd(s *promptfile.Sums) {
	if s.FilesErr != nil && !verdict.IsClosedPipe(s.FilesErr) {
		r.log.Error("result not kept", "unsaved", s.Unsaved, "error", r.RedactError(s.FilesErr))
	}
	r.logPanic(s.RunErr)
	if s.RunErr == nil && !s.Proves() {
		r.log.Error("proof broken", "offered", s.Counters.Offered, "settled", s.Counters.Settled, "released", s.Counters.Released, "calls", s.Counters.Calls)
	}
	attrs := []any{
		"succeeded", s.Succeeded, "failed", s.Failed, "not_run", s.NotRun, "calls", s.Counters.Calls,
		"elapsed_ms", s.Elapsed.Milliseconds(), "input_tokens", s.Usage.InputTokens, "output_tokens", s.Usage.OutputTokens,
	}
	if s.Doubtful.Calls > 0 {
		attrs = append(attrs, "doubtful_calls", s.Doubtful.Calls)
	}
	r.log.Info("run ended", attrs...)
}
