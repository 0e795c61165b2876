package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/lanes"
	"github.com/headrace/headrace/internal/command/logs"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/provider"
)

// A runLog is the log of a run.
type runLog struct {
	*verdict.Facts
	*slog.Logger // nil until it is open
}

// open opens the log, and returns a function that closes it. Without --log-file its lines go to the console.
func (l *runLog) open(console io.Writer) (closed func(), err error) {
	if l.Flags.LogFile != "" {
		if err := l.checkFile(); err != nil {
			return nil, err
		}
	}
	l.Logger, closed, err = logs.Open(l.Flags, console, "run", runID(l.Facts))
	return closed, err
}

// checkFile refuses a log file that is another file of the run.
func (l *runLog) checkFile() error {
	path := l.Flags.LogFile
	if settings.IsNoFile(path) {
		return nil
	}
	for _, other := range append(ownFiles(l.Facts), namedFile{"timeline", l.Flags.TimelinePath()}) {
		if journal.SameFile(path, other.name) {
			return exit.Refuse("--log-file: %s is the %s: choose another file", path, other.what)
		}
	}
	return nil
}

// longCooldown is the shortest cooldown that the log warns about.
const longCooldown = 10 * time.Second

// logStart logs the start of the run, its lanes, and how much was done before.
func (l *runLog) logStart(plan *promptfile.Plan) {
	var attrs []any
	if l.Flags.LogFile == "" { // in a log file each line names its run
		attrs = append(attrs, "run", runID(l.Facts))
	}
	attrs = append(attrs, "input", inputName(l.Facts), "output", l.Flags.OutputName(), "concurrency", l.Flags.Concurrency)
	if plan != nil {
		attrs = append(attrs, "items", plan.Items, "before", plan.Done+plan.Failed)
	}
	l.Logger.Info("run started", attrs...)
	if fleet := l.Flags.Fleet; fleet != nil && l.Enabled(context.Background(), slog.LevelDebug) {
		for i := range fleet.Lanes {
			l.Logger.Debug("lane", lanes.LogAttrs(l.World, l.Flags, &fleet.Lanes[i])...)
		}
	}
	if plan != nil && plan.Done+plan.Failed > 0 {
		l.Logger.Info("resumed", "done", plan.Done, "failed", plan.Failed, "left", plan.Left())
	}
}

// logEvent logs an event about the run's lanes.
func (l *runLog) logEvent(e batch.Event) {
	switch {
	case e.LongWait != nil:
		l.Logger.Warn("long wait", event.LogAttrs(e.LongWait)...)
	case e.Transition != nil:
		l.logTransition(e.Transition)
	case e.Summary != nil && e.Summary.Dropped > 0:
		l.Logger.Warn("observer was too slow", "dropped", e.Summary.Dropped)
	}
}

// logTransition logs a transition of a lane. It warns of those that may cost much time; short cooldowns and
// steps of recovery are information.
func (l *runLog) logTransition(transition *batch.Transition) {
	attrs := []any{"lane", transition.Lane, "epoch", transition.Epoch, "reason", transition.Reason.String()}
	if transition.Cause != nil {
		attrs = append(attrs, "error", transition.Cause.Error())
	}
	if wait := transition.Until.Sub(transition.At); wait > 0 {
		attrs = append(attrs, "wait_ms", wait.Milliseconds())
	}
	switch {
	case transition.Reason == machine.ByErrors:
		l.Logger.Warn("lane slowed down", append(attrs, "error_rate", transition.Errors)...)
	case transition.Reason == machine.ByAnswers:
		l.Logger.Info("lane as fast as before", attrs...)
	case transition.To == machine.Stopped:
		l.Logger.Warn("lane stopped", attrs...)
	case transition.To == machine.Cooling && transition.Reason == machine.ByBreaker && transition.From == machine.Probing: // the same outage: one warning is enough
		l.Logger.Info("breaker opened", attrs...)
	case transition.To == machine.Cooling && transition.Reason == machine.ByBreaker:
		l.Logger.Warn("breaker opened", attrs...)
	case transition.To == machine.Cooling && transition.Until.Sub(transition.At) > longCooldown:
		l.Logger.Warn("cooldown", attrs...)
	case transition.To == machine.Cooling:
		l.Logger.Info("cooldown", attrs...)
	default:
		l.Logger.Info("lane changed", append(attrs, "from", transition.From.String(), "to", transition.To.String())...)
	}
}

// logCall logs the outcome of one call. The server's names for it may hold anything.
func (l *runLog) logCall(ctx context.Context, it *promptfile.Item, reply *provider.Reply, took time.Duration, err error) {
	attrs := append(itemAttrs(it), "lane", it.Pool(), "attempt", batch.CallFrom(ctx), "status", reply.Status, "request_id", l.Redact(reply.RequestID), "latency_ms", took.Milliseconds())
	if e := verdict.FaultOf(err); e != nil {
		attrs = append(attrs, "kind", e.Kind.String())
	}
	l.Logger.Debug("call", append(attrs, "error", l.RedactError(err))...)
}

// itemAttrs names an item and its line, and the file where the input has several.
func itemAttrs(it *promptfile.Item) []any {
	if it.File == "" {
		return []any{"id", it.ID, "line", it.Line}
	}
	return []any{"id", it.ID, "line", it.Line, "file", it.File, "file_line", it.FileLine}
}

// logRetry logs that an item goes again after its wait. After a refusal its lane has redistributed it,
// perhaps to another lane.
func (l *runLog) logRetry(again batch.Retry) {
	if !l.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	it := again.Item.(*promptfile.Item)
	what, kind := "tried again", ""
	if errors.Is(again.Err, batch.Throttled) || errors.Is(again.Err, batch.Overloaded) {
		what = "redistributed"
	}
	if e := verdict.FaultOf(again.Err); e != nil {
		kind = e.Kind.String()
	}
	l.Logger.Debug(what, append(itemAttrs(it), "lane", again.Lane, "attempt", again.Calls+1, "waited_ms", again.Waited.Milliseconds(), "kind", kind)...)
}

// logFailedItem logs why an item failed.
func (l *runLog) logFailedItem(res *promptfile.Result) {
	kind, _ := l.FailureCode(res.Err)
	l.Logger.Info("item failed", append(itemAttrs(res.Item), "lane", res.Lane, "kind", kind, "attempt", res.Attempts,
		"wait_ms", res.Waited.Milliseconds(), "latency_ms", res.Latency.Milliseconds(), "error", l.RedactError(res.Err))...)
	l.logPanic(res.Err, "id", res.Item.ID)
}

// logPanic logs where a function has panicked, which its error's text does not say.
func (l *runLog) logPanic(err error, attrs ...any) {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		l.Logger.Error("panic", append(attrs, "value", l.Redact(fmt.Sprint(panicked.Value)), "stack", string(panicked.Stack))...)
	}
}

// logEnd logs the outcome of the run, and errors of its files and of its proof.
func (l *runLog) logEnd(sums *promptfile.Sums) {
	if sums.FilesErr != nil && !exit.IsClosedPipe(sums.FilesErr) {
		l.Logger.Error("result not kept", "unsaved", sums.Unsaved, "error", l.RedactError(sums.FilesErr))
	}
	l.logPanic(sums.RunErr)
	if sums.RunErr == nil && !sums.Proves() {
		l.Logger.Error("proof broken", "offered", sums.Counters.Offered, "settled", sums.Counters.Settled, "released", sums.Counters.Released, "calls", sums.Counters.Calls)
	}
	attrs := []any{
		"succeeded", sums.Succeeded, "failed", sums.Failed, "not_run", sums.NotRun, "calls", sums.Counters.Calls,
		"elapsed_ms", sums.Elapsed.Milliseconds(), "input_tokens", sums.Usage.InputTokens, "output_tokens", sums.Usage.OutputTokens,
	}
	if sums.Doubtful.Calls > 0 {
		attrs = append(attrs, "doubtful_calls", sums.Doubtful.Calls)
	}
	l.Logger.Info("run ended", attrs...)
}
