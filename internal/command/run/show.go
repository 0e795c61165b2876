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

	datedOnce      atomic.Bool  // a price of the built-in list has been used
	skipped        atomic.Int64 // bad lines of the input
	unwritten      atomic.Int64 // lines that the operating system does not have yet; briefly it may be below zero
	troubles       troubles
	budgetReported bool            // of the budget; the observer's
	narrowReported map[string]bool // lanes whose window was said to be too small; likewise
}

// manner returns how the run is shown. Without a flag, a terminal gets the panel and anything else gets
// lines.
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

// spentOn returns the tokens and the cost of a run, from the lines of its files.
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

// reportOf returns the report of a run that has ended.
func (r *runner) reportOf(sums *promptfile.Sums, plan *promptfile.Plan) *progress.Report {
	rep := &progress.Report{
		Summary: sums.Summary, Spent: spentOn(sums), FailedUSD: sums.FailedUSD, Truncated: sums.Truncated, Kinds: sums.Kinds,
		Before: sums.EarlierDone + sums.EarlierFailed, BeforeUnknown: sums.EarlierUnknown, ErrorsFile: r.Flags.ErrorsPath(), Unsaved: sums.Unsaved, Skipped: sums.Skipped, Untranslatable: sums.Untranslatable, Renamed: sums.Renamed,
		Verbose: r.Flags.Verbose, BreakerOpened: r.show.troubles.opened, Broke: r.show.troubles.why, Stopped: r.Redact(verdict.ReasonOf(sums.Stopped)), Stops: r.show.troubles.stops,
	}
	if sums.Succeeded+sums.EarlierDone > 0 && !r.Flags.ToStdout() && !settings.IsNoFile(r.Flags.Output) {
		rep.Results = r.Flags.Output
		rep.Reading = r.answered.readCommand(r.Flags.Output, r.Flags.WritesText())
	}
	rep.Left = rep.NotRun
	if plan != nil && !errors.Is(sums.Err(), promptfile.ErrChanged) { // otherwise the plan is of another input
		rep.Left, rep.Of = max(rep.Left, plan.Left()-rep.Succeeded-rep.Failed), plan.Items
	}
	if r.Account.Books != nil {
		books := r.Account.Books()
		rep.Books = &books
	}
	r.show.addFigures(rep)
	return rep
}

// record creates the recorder of the run, from which all displays read.
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

// priceOf returns the cost of an item, as its line has it.
func (d *display) priceOf(in any, lane string, u provider.Usage) (usd float64, ok bool) {
	it := itemOf(in)
	if it == nil {
		return 0, false
	}
	bill := d.bill(lane, it.Model, u)
	return bill.USD, bill.Known
}

// priceOfModel returns the cost of a model's tokens. Workers ask it where the run has a budget.
func (d *display) priceOfModel(model string, u provider.Usage) (usd float64, ok bool) {
	b := d.bill("", model, u)
	return b.USD, b.Known
}

// bill returns the cost of a model's tokens on a lane, and the source of the price.
func (d *display) bill(lane, model string, u provider.Usage) promptfile.Bill {
	if d.Flags.Fleet == nil {
		cost, source, known := d.Flags.Known.Cost(model, u, d.Clock.Now())
		return promptfile.Bill{USD: cost.USD(), Source: source, Known: known}
	}
	cost, source, known := d.Account.Bill(&d.Flags.Known, lane, model, u, d.Clock.Now())
	return promptfile.Bill{USD: cost.USD(), Source: source, Known: known}
}

// billItem returns the cost of an item for its line. It shows a notice, once, if the price comes from an old
// list.
func (d *display) billItem(lane, model string, u provider.Usage) promptfile.Bill {
	bill := d.bill(lane, model, u)
	if bill.Known && bill.Source == price.FromTable() && !d.datedOnce.Load() && d.datedOnce.CompareAndSwap(false, true) {
		if text := price.Old(d.Clock.Now()); text != "" {
			d.console.Notice(event.OldPrices, text)
		}
	}
	return bill
}

// describe names an item as the input does.
func describe(in any) (id string, line int) {
	if item := itemOf(in); item != nil {
		return item.ID, item.Line
	}
	return "", 0
}

// progressNow returns the current progress of the run.
func (d *display) progressNow() *event.Progress { return d.progressFor(false) }

// progressFor returns the progress of the run. With hideQuotes it leaves out the provider's words, which may
// quote prompts; messages of failures still have them.
func (d *display) progressFor(hideQuotes bool) *event.Progress {
	snapshot := d.recorder.Snapshot(d.Clock.Now())
	causes, newest := make([]error, len(snapshot.Lanes)), d.latestStepText()
	for i := range snapshot.Lanes {
		causes[i] = d.Reason(snapshot.Lanes[i].Cause)
		snapshot.Lanes[i].Cause = causes[i]
		d.nameAccount(&snapshot.Lanes[i])
	}
	if hideQuotes {
		newest = ""
		for i := range snapshot.Lanes {
			snapshot.Lanes[i].Cause = event.Unquoted(snapshot.Lanes[i].Cause)
		}
	}
	e := event.Of(&snapshot, event.Context{
		Input: inputName(d.Facts), Output: d.Flags.OutputName(), Provider: d.Account.Name, Simulated: d.Account.Books != nil,
		Timeout: d.Flags.Timeout, Stdout: d.Flags.ToStdout(), Stream: d.Input == "-", Resumable: !d.Flags.ToStdout() && d.Input != "-",
		Skipped: int(d.skipped.Load()), Unwritten: int(max(0, d.unwritten.Load())), Draining: d.Halt.Reason(), Latest: newest, Zone: time.Local, InLine: d.Account.InLine(),
	})
	for i := range snapshot.Lanes {
		if l := &snapshot.Lanes[i]; l.Phase == machine.Stopped && d.Flags.Fleet != nil {
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

// latestStepText returns the latest transition, in words; "" if there was none.
func (d *display) latestStepText() string {
	if text := d.latestStep.Load(); text != nil {
		return *text
	}
	return ""
}

// observe passes events of the run to the console, and those worth a line to the log.
func (d *display) observe(e batch.Event) {
	e = d.explainCauses(e)
	d.log.logEvent(e)
	if transition := e.Transition; transition != nil {
		text := transition.At.Format(time.TimeOnly) + " " + event.Story(transition)
		d.latestStep.Store(&text)
	}
	d.console.Observe(e)
	if e.Status != nil {
		d.warnOfBudget(e.Status.Run.Money)
		d.suggestWindows(e.Status)
	}
	if e.Status != nil && d.isDueToShow(e.Status.At) {
		d.console.Show(d.progressNow())
	}
}

// answerSignals shows the run's progress whenever a user asks by a signal. The returned channel is closed
// once the run is over and no answer is under way.
func (d *display) answerSignals() (over <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-d.Asks:
				d.showNow()
			case <-d.Halt.Over:
				return
			}
		}
	}()
	return done
}

// showNow shows the run's progress, or that no call has been made yet.
func (d *display) showNow() {
	select {
	case <-d.watched:
		d.console.ShowAll(d.progressNow())
	default:
		d.console.Notice(event.Asked, "no call has been made yet")
	}
}

// isDueToShow reports whether it is time to show how the run stands. Pictures come more often than
// some manners show them, and never quite on time.
func (d *display) isDueToShow(at time.Time) bool {
	if at.Sub(d.shown) < d.every-observe.DefaultEvery/10 {
		return false
	}
	d.shown = at
	return true
}

// startOf returns the first event of a run. Counts of items are missing for a stream, and for an input that
// is not yet read.
func (d *display) startOf(plan *promptfile.Plan) event.Start {
	start := event.Start{
		Event: "start", Format: event.Format, Headrace: account.Version(), Run: runID(d.Facts), At: event.Stamp(d.Began),
		Input: inputName(d.Facts), Output: d.Flags.OutputName(), Errors: d.Flags.ErrorsPath(),
		Concurrency: d.Flags.Concurrency, Settings: d.Flags.Given,
	}
	if plan != nil {
		before := plan.Done + plan.Failed
		start.Items, start.Before = &plan.Items, &before
	}
	if d.timelineAt != "" {
		start.Timeline = &d.timelineAt
	}
	return start
}

// runID names a run, by its start and a random number.
func runID(f *verdict.Facts) string {
	return fmt.Sprintf("%s-%04x", f.Began.UTC().Format("20060102T150405"), f.Chance&0xffff)
}

// addFigures adds the recorder's figures to the report of a run.
func (d *display) addFigures(rep *progress.Report) {
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

// placeTimeline decides the path of the timeline. It refuses a path that is another file of the run.
func (d *display) placeTimeline() error {
	path := d.Flags.TimelinePath()
	for _, other := range ownFiles(d.Facts) {
		switch {
		case !journal.SameFile(path, other.name):
		case d.Flags.Timeline != "":
			return exit.Refuse("the timeline, %s, is the %s, %s: choose another file", path, other.what, other.name)
		default:
			d.noteTimeline(fmt.Sprintf("no timeline is written: %s is the %s; choose another file with --timeline", path, other.what))
			return nil
		}
	}
	d.timelineAt = path
	return nil
}

// openTimeline starts the timeline of the run. The run also works without one, so faults are notices.
func (d *display) openTimeline(s event.Start) {
	if d.timelineAt == "" {
		return
	}
	err := d.putTimelineAside()
	if err == nil {
		d.timeline, err = timeline.Open(timeline.Config{
			Path: d.timelineAt, At: d.Began, Start: s, Progress: d.progressNow, Notice: d.noteTimeline,
			Failures: func() []observe.Failure { return d.recorder.Snapshot(d.Clock.Now()).Failures },
		})
	}
	if err != nil {
		d.noteTimeline(fmt.Sprintf("no timeline is written to %s: %s", d.timelineAt, exit.PlainText(err)))
	}
}

// putTimelineAside renames the old timeline if the output starts over.
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

func (d *display) noteTimeline(text string) { d.console.Notice(event.Timeline, text) }

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

// summaryOf returns the last event of a timeline: the report's summary, or only the end of the run if there
// is no report.
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

// readCommand returns a command that prints the results of a file, one id and answer a line. It uses the
// field with the answer's text where lines have one, except for a model that only reads.
func (e *endpoints) readCommand(file string, hasText bool) string {
	if hasText && (e.several || !provider.OnlyReads(e.first)) {
		return "jq -c '[.custom_id, .headrace.text]' " + settings.ShellQuote(file)
	}
	path := ""
	if !e.several {
		path = answerAt[e.first]
	}
	body := ".response.body" + path
	if strings.Contains(path, "|") {
		body = "(" + body + ")"
	}
	return fmt.Sprintf("jq -c '[.custom_id, %s]' %s", body, settings.ShellQuote(file))
}
