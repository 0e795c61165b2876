package command

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// record makes the recorder of a run, which every display of the run asks.
func (r *runner) record(plan *promptfile.Plan) {
	cfg := observe.Config{
		Describe: describe, Code: r.failureCode, Redact: func(text string) string { return withoutPackages(r.redact(text)) },
		Observer: r.observe, OnSample: r.onSample, Every: min(r.every, observe.DefaultEvery),
	}
	cfg.Size, cfg.Price = sizeOf, r.priceOf
	if plan != nil {
		cfg.Total, cfg.Before = plan.Items, plan.Done+plan.Failed
		for _, w := range plan.Work {
			cfg.Work = append(cfg.Work, observe.Work(w))
		}
	}
	r.recorder = observe.New(cfg)
}

// itemOf returns the item that a recorder asks about; nil if there is none.
func itemOf(in any) *promptfile.Item {
	if it, ok := in.(**promptfile.Item); ok {
		return *it
	}
	return nil
}

// sizeOf returns the length of an item's body, as the plan counts it.
func sizeOf(in any) int64 {
	if it := itemOf(in); it != nil {
		return int64(len(it.Body))
	}
	return 0
}

// priceOf returns the cost of an item, as its line says.
func (r *runner) priceOf(in any, u provider.Usage) (usd float64, ok bool) {
	it := itemOf(in)
	if it == nil {
		return 0, false
	}
	return r.flags.known.Cost(it.Model, u)
}

// describe names an item as the input does.
func describe(in any) (id string, line int) {
	if it := itemOf(in); it != nil {
		return it.ID, it.Line
	}
	return "", 0
}

// failureCode returns the name of a failure. That is its kind as in the errors file, and the
// HTTP status or else the provider's own code, which may hold anything.
func (r *runner) failureCode(err error) (kind, code string) {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return "panic", ""
	}
	e := faultOf(err)
	switch {
	case e == nil:
		return provider.Unknown.String(), ""
	case e.Code != "":
		code = r.redact(e.Code)
	case e.Status > 0:
		code = strconv.Itoa(e.Status)
	}
	return e.Kind.String(), code
}

// stands returns the progress of the run.
func (r *runner) stands() *event.Progress {
	p := r.recorder.Snapshot(r.clock.Now())
	for i := range p.Lanes {
		p.Lanes[i].Cause = r.reason(p.Lanes[i].Cause)
	}
	e := event.Of(&p, event.Context{
		Input: r.inputName(), Output: r.outputName(), Provider: r.backend.name, Simulated: r.backend.books != nil,
		Timeout: r.flags.timeout, Stdout: r.flags.toStdout(), Stream: r.input == "-", Resumable: !r.flags.toStdout() && r.input != "-",
		Skipped: int(r.skipped.Load()), Unwritten: int(max(0, r.unwritten.Load())), Draining: r.halt.reason(), Latest: r.newest(), Zone: time.Local,
	})
	return &e
}

func (r *runner) inputName() string {
	if r.input == "-" {
		return "standard input"
	}
	return r.input
}

func (r *runner) outputName() string {
	if r.flags.toStdout() {
		return "standard output"
	}
	return r.flags.output
}

// newest returns the latest transition, in words; "" if there was none.
func (r *runner) newest() string {
	if text := r.latestStep.Load(); text != nil {
		return *text
	}
	return ""
}

// observe passes on the run's events: those worth a line to the log, and all to the console.
func (r *runner) observe(e batch.Event) {
	e = r.hear(e)
	r.logEvent(e)
	if t := e.Transition; t != nil {
		text := t.At.Format(time.TimeOnly) + " " + event.Story(t)
		r.latestStep.Store(&text)
	}
	r.console.Observe(e)
	if e.Status != nil && r.due(e.Status.At) {
		r.console.Show(r.stands())
	}
}

// answerAsks reports how the run stands to a user who asks by a signal, until the run is
// over; the channel that it returns is then closed.
func (r *runner) answerAsks() (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-r.asks:
				r.answerAsk()
			case <-r.halt.over:
				return
			}
		}
	}()
	return done
}

func (r *runner) answerAsk() {
	select {
	case <-r.watched:
		r.console.ShowAll(r.stands())
	default:
		r.console.Notice(event.Asked, "no call has been made yet")
	}
}

// due reports whether it is time to show how the run stands. Pictures come more often than
// some manners show them, and never quite on time.
func (r *runner) due(at time.Time) bool {
	if at.Sub(r.shown) < r.every-observe.DefaultEvery/10 {
		return false
	}
	r.shown = at
	return true
}

// startOf returns the first event. A stream has no counts of items and of those done; nor
// has an input that is not yet read.
func (r *runner) startOf(plan *promptfile.Plan) event.Start {
	s := event.Start{
		Event: "start", Format: event.Format, Headrace: version(), Run: r.runID(), At: event.Stamp(r.began),
		Input: r.inputName(), Output: r.outputName(), Errors: r.flags.errorsPath(),
		Concurrency: r.flags.concurrency, Settings: r.flags.given,
	}
	if plan != nil {
		before := plan.Done + plan.Failed
		s.Items, s.Before = &plan.Items, &before
	}
	if r.timelineAt != "" {
		s.Timeline = &r.timelineAt
	}
	return s
}

// runID names a run, by its start and a random number.
func (r *runner) runID() string {
	return fmt.Sprintf("%s-%04x", r.began.UTC().Format("20060102T150405"), r.chance&0xffff)
}

// account adds the recorder's figures to a run's report.
func (r *runner) account(rep *progress.Report) {
	p := r.recorder.Snapshot(r.clock.Now())
	rep.At, rep.Bounds = p.At, p.Ledger
	e := event.Of(&p, event.Context{})
	rep.Efficiency = e.Efficiency // Spent is summed up from the lines
}
