package run

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/price"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// A display shows a run: on the console, in its timeline, and to a user who asks by a signal.
type display struct {
	*verdict.Facts
	verdict *verdict.Verdict
	log     *runLog
	console *progress.Console
	every   time.Duration // the period in which it shows how the run stands

	recorder   *observe.Recorder
	watched    chan struct{}          // closed when there is a recorder
	timeline   *timeline.Writer       // nil: there is none
	timelineAt string                 // its path; "": none
	scene      *scene                 // for the live page; nil: there is none
	shown      time.Time              // when the console last showed how the run stands; the observer's
	latestStep atomic.Pointer[string] // the latest transition, in words; nil: there was none

	datedOnce atomic.Bool  // a price of the built-in list has been used
	skipped   atomic.Int64 // bad lines of the input
	unwritten atomic.Int64 // lines that the operating system does not have yet; briefly it may be below zero
	troubles  troubles
	warned    bool            // of the budget; the observer's
	narrow    map[string]bool // lanes whose window was said to be too small; likewise
}

// manner returns how the run is shown. Where no flag says it, a terminal has the panel;
// anything else gets lines, as a panel needs a terminal.
func (d *display) manner() progress.Manner {
	switch d.Flags.Progress {
	case settings.ProgressNone:
		return progress.Silent(d.Stderr)
	case settings.ProgressJSON:
		return progress.JSON(d.Stderr, d.startOf(nil))
	case settings.ProgressBar:
		return progress.Live(d.Screen, d.Width, d.Flags.Style(d.Env))
	case settings.ProgressAuto, settings.ProgressPanel:
		if d.Terminal.Size != nil {
			return progress.Panel(d.NewScreen(d.Flags.Style(d.Env)), d.speeds)
		}
	}
	return progress.Plain(d.Stderr)
}

// speeds returns the most recent speeds, once there is a run.
func (d *display) speeds(n int) (perSecond []float64, span time.Duration) {
	if d.recorder == nil {
		return nil, 0
	}
	return d.recorder.Speeds(n)
}

// spentOn returns what a run has used and cost, by the lines of its files.
func spentOn(s *promptfile.Sums) event.Spent {
	spent := event.Spent{
		InputTokens: s.Usage.InputTokens, OutputTokens: s.Usage.OutputTokens, CachedTokens: s.Usage.CachedTokens, Unpriced: s.Unpriced,
		Doubtful: event.DoubtfulOf(s.Doubtful), Budget: event.BudgetOf(s.Money),
	}
	if s.Priced > 0 {
		spent.USD = &s.CostUSD
	}
	return spent
}

// reportOf returns the report of a run that is over.
func (r *runner) reportOf(s *promptfile.Sums, plan *promptfile.Plan) *progress.Report {
	rep := &progress.Report{
		Summary: s.Summary, Spent: spentOn(s), FailedUSD: s.FailedUSD, Truncated: s.Truncated, Kinds: s.Kinds,
		Before: s.EarlierDone + s.EarlierFailed, BeforeUnknown: s.EarlierUnknown, ErrorsFile: r.Flags.ErrorsPath(), Unsaved: s.Unsaved, Skipped: s.Skipped, Untranslatable: s.Untranslatable, Renamed: s.Renamed,
		Verbose: r.Flags.Verbose, BreakerOpened: r.show.troubles.opened, Broke: r.show.troubles.why, Stopped: r.Redact(verdict.ReasonOf(s.Stopped)), Stops: r.show.troubles.stops,
	}
	if s.Succeeded+s.EarlierDone > 0 && !r.Flags.ToStdout() && !settings.IsNoFile(r.Flags.Output) {
		rep.Results = r.Flags.Output
		rep.Reading = r.answered.reading(r.Flags.Output, r.Flags.WritesText())
	}
	rep.Left = rep.NotRun
	if plan != nil && !errors.Is(s.Err(), promptfile.ErrChanged) { // otherwise the plan is of another input
		rep.Left, rep.Of = max(rep.Left, plan.Left()-rep.Succeeded-rep.Failed), plan.Items
	}
	if r.Account.Books != nil {
		books := r.Account.Books()
		rep.Books = &books
	}
	r.show.account(rep)
	return rep
}

// record makes the recorder of a run, which every display of the run asks.
func (d *display) record(plan *promptfile.Plan) {
	cfg := observe.Config{
		Describe: describe, Code: d.FailureCode, Redact: func(text string) string { return exit.WithoutPackages(d.Redact(text)) },
		Observer: d.observe, OnSample: d.onSample, Every: min(d.every, observe.DefaultEvery),
	}
	cfg.Size, cfg.Price = sizeOf, d.priceOf
	if plan != nil {
		cfg.Total, cfg.Before = plan.Items, plan.Done+plan.Failed
		for _, w := range plan.Work {
			if d.Flags.Fleet != nil {
				break // which lane does what is decided call by call
			}
			cfg.Work = append(cfg.Work, observe.Work(w))
		}
	}
	d.recorder = observe.New(cfg)
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
func (d *display) priceOf(in any, lane string, u provider.Usage) (usd float64, ok bool) {
	it := itemOf(in)
	if it == nil {
		return 0, false
	}
	b := d.bill(lane, it.Model, u)
	return b.USD, b.Known
}

// priceOfModel returns the cost of a model's tokens. Workers ask it where the run has a budget.
func (d *display) priceOfModel(model string, u provider.Usage) (usd float64, ok bool) {
	b := d.bill("", model, u)
	return b.USD, b.Known
}

// bill returns the cost of a model's tokens on a lane, and its source.
func (d *display) bill(lane, model string, u provider.Usage) promptfile.Bill {
	if d.Flags.Fleet == nil {
		cost, source, known := d.Flags.Known.Cost(model, u, d.Clock.Now())
		return promptfile.Bill{USD: cost.USD(), Source: source, Known: known}
	}
	cost, source, known := d.Account.Bill(&d.Flags.Known, lane, model, u, d.Clock.Now())
	return promptfile.Bill{USD: cost.USD(), Source: source, Known: known}
}

// billed returns the cost of an item for its line. The first that comes from an old list says
// so.
func (d *display) billed(lane, model string, u provider.Usage) promptfile.Bill {
	b := d.bill(lane, model, u)
	if b.Known && b.Source == price.FromTable() && !d.datedOnce.Load() && d.datedOnce.CompareAndSwap(false, true) {
		if text := price.Old(d.Clock.Now()); text != "" {
			d.console.Notice(event.OldPrices, text)
		}
	}
	return b
}

// describe names an item as the input does.
func describe(in any) (id string, line int) {
	if it := itemOf(in); it != nil {
		return it.ID, it.Line
	}
	return "", 0
}

// stands returns the progress of the run.
func (d *display) stands() *event.Progress { return d.standsFor(false) }

// standsFor returns the progress of the run. bare: without the words of the provider, which may quote prompts; the messages
// of failures have them still.
func (d *display) standsFor(bare bool) *event.Progress {
	p := d.recorder.Snapshot(d.Clock.Now())
	causes, newest := make([]error, len(p.Lanes)), d.newest()
	for i := range p.Lanes {
		causes[i] = d.Reason(p.Lanes[i].Cause)
		p.Lanes[i].Cause = causes[i]
		d.nameAccount(&p.Lanes[i])
	}
	if bare {
		newest = ""
		for i := range p.Lanes {
			p.Lanes[i].Cause = event.Unquoted(p.Lanes[i].Cause)
		}
	}
	e := event.Of(&p, event.Context{
		Input: inputName(d.Facts), Output: d.Flags.OutputName(), Provider: d.Account.Name, Simulated: d.Account.Books != nil,
		Timeout: d.Flags.Timeout, Stdout: d.Flags.ToStdout(), Stream: d.Input == "-", Resumable: !d.Flags.ToStdout() && d.Input != "-",
		Skipped: int(d.skipped.Load()), Unwritten: int(max(0, d.unwritten.Load())), Draining: d.Halt.Reason(), Latest: newest, Zone: time.Local, InLine: d.Account.InLine(),
	})
	for i := range p.Lanes {
		if l := &p.Lanes[i]; l.Phase == machine.Stopped && d.Flags.Fleet != nil {
			e.Lanes[i].Advice = d.verdict.LaneAdvice(l.Name, causes[i])
		}
	}
	return &e
}

func inputName(f *verdict.Facts) string {
	if f.Input == "-" {
		return "standard input"
	}
	return f.Input
}

// newest returns the latest transition, in words; "" if there was none.
func (d *display) newest() string {
	if text := d.latestStep.Load(); text != nil {
		return *text
	}
	return ""
}

// observe passes on the run's events: those worth a line to the log, and all to the console.
func (d *display) observe(e batch.Event) {
	e = d.inWords(e)
	d.log.event(e)
	if t := e.Transition; t != nil {
		text := t.At.Format(time.TimeOnly) + " " + event.Story(t)
		d.latestStep.Store(&text)
	}
	d.console.Observe(e)
	if e.Status != nil {
		d.sayBudget(e.Status.Run.Money)
		d.sayNarrow(e.Status)
	}
	if e.Status != nil && d.due(e.Status.At) {
		d.console.Show(d.stands())
	}
}

// answerAsks reports how the run stands to a user who asks by a signal, until the run is
// over; the channel that it returns is then closed.
func (d *display) answerAsks() (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-d.Asks:
				d.answerAsk()
			case <-d.Halt.Over:
				return
			}
		}
	}()
	return done
}

func (d *display) answerAsk() {
	select {
	case <-d.watched:
		d.console.ShowAll(d.stands())
	default:
		d.console.Notice(event.Asked, "no call has been made yet")
	}
}

// due reports whether it is time to show how the run stands. Pictures come more often than
// some manners show them, and never quite on time.
func (d *display) due(at time.Time) bool {
	if at.Sub(d.shown) < d.every-observe.DefaultEvery/10 {
		return false
	}
	d.shown = at
	return true
}

// startOf returns the first event. A stream has no counts of items and of those done; nor
// has an input that is not yet read.
func (d *display) startOf(plan *promptfile.Plan) event.Start {
	s := event.Start{
		Event: "start", Format: event.Format, Headrace: account.Version(), Run: runID(d.Facts), At: event.Stamp(d.Began),
		Input: inputName(d.Facts), Output: d.Flags.OutputName(), Errors: d.Flags.ErrorsPath(),
		Concurrency: d.Flags.Concurrency, Settings: d.Flags.Given,
	}
	if plan != nil {
		before := plan.Done + plan.Failed
		s.Items, s.Before = &plan.Items, &before
	}
	if d.timelineAt != "" {
		s.Timeline = &d.timelineAt
	}
	return s
}

// runID names a run, by its start and a random number.
func runID(f *verdict.Facts) string {
	return fmt.Sprintf("%s-%04x", f.Began.UTC().Format("20060102T150405"), f.Chance&0xffff)
}

// account adds the recorder's figures to a run's report.
func (d *display) account(rep *progress.Report) {
	p := d.recorder.Snapshot(d.Clock.Now())
	rep.At, rep.Bounds, rep.Lanes = p.At, p.Ledger, p.Lanes
	for i := range rep.Lanes {
		d.nameAccount(&rep.Lanes[i])
	}
	e := event.Of(&p, event.Context{})
	rep.Efficiency = e.Efficiency // Spent is summed up from the lines
}

// nameAccount names the account of a lane of the file: a short run has no status of its lanes.
func (d *display) nameAccount(l *observe.Lane) {
	if of := d.Account.LaneNamed(l.Name); of != nil {
		l.Account = of.Spec.Fate
	}
}

// placeTimeline finds the path of the timeline, and refuses that of another file of the run.
func (d *display) placeTimeline() error {
	path := d.Flags.TimelinePath()
	for _, other := range files(d.Facts) {
		switch {
		case !journal.SameFile(path, other.name):
		case d.Flags.Timeline != "":
			return exit.Refuse("the timeline, %s, is the %s, %s: choose another file", path, other.what, other.name)
		default:
			d.sayTimeline(fmt.Sprintf("no timeline is written: %s is the %s; choose another file with --timeline", path, other.what))
			return nil
		}
	}
	d.timelineAt = path
	return nil
}

// openTimeline begins the timeline of the run. The run also works without one, so faults are
// notices, not errors.
func (d *display) openTimeline(s event.Start) {
	if d.timelineAt == "" {
		return
	}
	err := d.putTimelineAside()
	if err == nil {
		d.timeline, err = timeline.Open(timeline.Config{
			Path: d.timelineAt, At: d.Began, Start: s, Progress: d.stands, Notice: d.sayTimeline,
			Failures: func() []observe.Failure { return d.recorder.Snapshot(d.Clock.Now()).Failures },
		})
	}
	if err != nil {
		d.sayTimeline(fmt.Sprintf("no timeline is written to %s: %s", d.timelineAt, exit.PlainText(err)))
	}
}

// putTimelineAside keeps the old timeline of an output that starts over.
func (d *display) putTimelineAside() error {
	if !d.verdict.StartedOver {
		return nil
	}
	as, err := timeline.PutAside(d.timelineAt)
	if as != "" {
		d.console.Notice(event.StartingOver, fmt.Sprintf("starting over: the old %s is kept as %s", d.timelineAt, as))
	}
	return err
}

func (d *display) sayTimeline(text string) { d.console.Notice(event.Timeline, text) }

func (d *display) onSample(s observe.Sample) {
	d.timeline.Sample(s)
	if d.scene != nil {
		d.scene.add(s)
	}
}

// closeTimeline writes the outcome of the run. If the reader of the output has gone, it
// writes only that the run has ended.
func (d *display) closeTimeline() {
	if d.timeline == nil {
		return
	}
	d.timeline.Close(summaryOf(d.verdict.Report, event.Stamp(d.Clock.Now())))
}

func summaryOf(report *progress.Report, at string) any {
	if report != nil {
		return report.Event()
	}
	return struct {
		Event string `json:"event"`
		At    string `json:"at"`
	}{"summary", at}
}

// endpoints records the endpoints of a run's results. It belongs to the goroutine that takes
// the results.
type endpoints struct {
	first   string // "" before the first result
	several bool
}

func (e *endpoints) note(endpoint string) {
	if e.first == "" {
		e.first = endpoint
	}
	e.several = e.several || endpoint != e.first
}

// answerAt holds, for each endpoint, the jq path of the answer in a response body.
var answerAt = map[string]string{
	prompts.ChatCompletions: ".choices[0].message.content",
	prompts.Completions:     ".choices[0].text",
	prompts.Responses:       ".output[-1].content[0].text",
	prompts.Embeddings:      ".data[0].embedding",
	prompts.Moderations:     ".results[0].flagged",
	prompts.Rerank:          ".results",
	prompts.Messages:        ".content[0].text",
	prompts.GenerateContent: ".candidates[0].content.parts[0].text",
	prompts.Converse:        ".output.message.content[0].text",
	provider.EmbedContent:   " | .embedding // .embeddings",
}

// reading returns a command that shows the results in a file, an id and its answer a line.
// It shows the answer's own text field where lines have one, except for a model that only
// reads.
func (e *endpoints) reading(file string, text bool) string {
	if text && (e.several || !provider.OnlyReads(e.first)) {
		return "jq -c '[.custom_id, .headrace.text]' " + settings.ShellQuote(file)
	}
	at := ""
	if !e.several {
		at = answerAt[e.first]
	}
	body := ".response.body" + at
	if strings.Contains(at, "|") {
		body = "(" + body + ")"
	}
	return fmt.Sprintf("jq -c '[.custom_id, %s]' %s", body, settings.ShellQuote(file))
}
