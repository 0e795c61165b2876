package run

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// manner returns how the run is shown. Where no flag says it, a terminal has the panel;
// anything else gets lines, as a panel needs a terminal.
func (r *runner) manner() progress.Manner {
	switch r.Flags.Progress {
	case settings.ProgressNone:
		return progress.Silent(r.Stderr)
	case settings.ProgressJSON:
		return progress.JSON(r.Stderr, r.startOf(nil))
	case settings.ProgressBar:
		return progress.Live(r.Screen, r.Width, r.style())
	case settings.ProgressAuto, settings.ProgressPanel:
		if r.Terminal.Size != nil {
			return progress.Panel(r.newScreen(), r.speeds)
		}
	}
	return progress.Plain(r.Stderr)
}

// speeds returns the most recent speeds, once there is a run.
func (r *runner) speeds(n int) (perSecond []float64, span time.Duration) {
	if r.recorder == nil {
		return nil, 0
	}
	return r.recorder.Speeds(n)
}

// spentOn returns what a run has used and cost, by the lines of its files.
func spentOn(s *promptfile.Sums) event.Spent {
	spent := event.Spent{
		InputTokens: s.Usage.InputTokens, OutputTokens: s.Usage.OutputTokens, CachedTokens: s.Usage.CachedTokens, Unpriced: s.Unpriced,
		Doubtful: event.DoubtfulOf(s.Doubtful),
	}
	if s.Priced > 0 {
		spent.USD = &s.CostUSD
	}
	return spent
}

// reportOf returns the report of a run that is over.
func (r *runner) reportOf(s *promptfile.Sums, plan *promptfile.Plan) *progress.Report {
	rep := &progress.Report{
		Summary: s.Summary, Spent: spentOn(s), Truncated: s.Truncated, Kinds: s.Kinds,
		Before: s.EarlierDone + s.EarlierFailed, ErrorsFile: r.Flags.ErrorsPath(), Unsaved: s.Unsaved, Skipped: s.Skipped, Untranslatable: s.Untranslatable, Renamed: s.Renamed,
		Verbose: r.Flags.Verbose, BreakerOpened: r.troubles.opened, Broke: r.troubles.why, Stopped: r.Redact(verdict.ReasonOf(s.Stopped)),
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
	r.account(rep)
	return rep
}

// record makes the recorder of a run, which every display of the run asks.
func (r *runner) record(plan *promptfile.Plan) {
	cfg := observe.Config{
		Describe: describe, Code: r.FailureCode, Redact: func(text string) string { return exit.WithoutPackages(r.Redact(text)) },
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
	return r.Flags.Known.Cost(it.Model, u)
}

// describe names an item as the input does.
func describe(in any) (id string, line int) {
	if it := itemOf(in); it != nil {
		return it.ID, it.Line
	}
	return "", 0
}

// stands returns the progress of the run.
func (r *runner) stands() *event.Progress {
	p := r.recorder.Snapshot(r.Clock.Now())
	for i := range p.Lanes {
		p.Lanes[i].Cause = r.Reason(p.Lanes[i].Cause)
	}
	e := event.Of(&p, event.Context{
		Input: r.inputName(), Output: r.Flags.OutputName(), Provider: r.Account.Name, Simulated: r.Account.Books != nil,
		Timeout: r.Flags.Timeout, Stdout: r.Flags.ToStdout(), Stream: r.Input == "-", Resumable: !r.Flags.ToStdout() && r.Input != "-",
		Skipped: int(r.skipped.Load()), Unwritten: int(max(0, r.unwritten.Load())), Draining: r.Halt.Reason(), Latest: r.newest(), Zone: time.Local,
	})
	return &e
}

func (r *runner) inputName() string {
	if r.Input == "-" {
		return "standard input"
	}
	return r.Input
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
	e = r.plain(e)
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
			case <-r.Asks:
				r.answerAsk()
			case <-r.Halt.Over:
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
		Event: "start", Format: event.Format, Headrace: account.Version(), Run: r.runID(), At: event.Stamp(r.Began),
		Input: r.inputName(), Output: r.Flags.OutputName(), Errors: r.Flags.ErrorsPath(),
		Concurrency: r.Flags.Concurrency, Settings: r.Flags.Given,
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
	return fmt.Sprintf("%s-%04x", r.Began.UTC().Format("20060102T150405"), r.Chance&0xffff)
}

// account adds the recorder's figures to a run's report.
func (r *runner) account(rep *progress.Report) {
	p := r.recorder.Snapshot(r.Clock.Now())
	rep.At, rep.Bounds = p.At, p.Ledger
	e := event.Of(&p, event.Context{})
	rep.Efficiency = e.Efficiency // Spent is summed up from the lines
}

// placeTimeline finds the path of the timeline, and refuses that of another file of the run.
func (r *runner) placeTimeline() error {
	path := r.Flags.TimelinePath()
	for _, other := range r.files() {
		switch {
		case !journal.SameFile(path, other.name):
		case r.Flags.Timeline != "":
			return exit.Refuse("the timeline, %s, is the %s, %s: choose another file", path, other.what, other.name)
		default:
			r.sayTimeline(fmt.Sprintf("no timeline is written: %s is the %s; choose another file with --timeline", path, other.what))
			return nil
		}
	}
	r.timelineAt = path
	return nil
}

// openTimeline begins the timeline of the run. The run also works without one, so faults are
// notices, not errors.
func (r *runner) openTimeline(s event.Start) {
	if r.timelineAt == "" {
		return
	}
	err := r.putTimelineAside()
	if err == nil {
		r.timeline, err = timeline.Open(timeline.Config{
			Path: r.timelineAt, At: r.Began, Start: s, Progress: r.stands, Notice: r.sayTimeline,
			Failures: func() []observe.Failure { return r.recorder.Snapshot(r.Clock.Now()).Failures },
		})
	}
	if err != nil {
		r.sayTimeline(fmt.Sprintf("no timeline is written to %s: %s", r.timelineAt, exit.PlainText(err)))
	}
}

// putTimelineAside keeps the old timeline of an output that starts over.
func (r *runner) putTimelineAside() error {
	if !r.verdict.StartedOver {
		return nil
	}
	as, err := timeline.PutAside(r.timelineAt)
	if as != "" {
		r.console.Notice(event.StartingOver, fmt.Sprintf("starting over: the old %s is kept as %s", r.timelineAt, as))
	}
	return err
}

func (r *runner) sayTimeline(text string) { r.console.Notice(event.Timeline, text) }

func (r *runner) onSample(s observe.Sample) { r.timeline.Sample(s) }

// closeTimeline writes the outcome of the run. If the reader of the output has gone, it
// writes only that the run has ended.
func (r *runner) closeTimeline() {
	if r.timeline == nil {
		return
	}
	r.timeline.Close(summaryOf(r.verdict.Report, event.Stamp(r.Clock.Now())))
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

// newScreen returns a screen on the terminal, which must exist.
func (r *runner) newScreen() *panel.Screen {
	screen := panel.NewScreen(r.Screen, r.Terminal.Size, r.style())
	screen.Clock, screen.Foreground, screen.Continued = r.Clock, r.Terminal.Foreground, r.Terminal.Continued
	screen.Reflows = panel.Reflows(r.Env)
	return screen
}

// style returns what the terminal may show.
func (r *runner) style() panel.Style {
	style := panel.StyleOf(r.Env, runtime.GOOS == "windows")
	switch r.Flags.Color {
	case settings.ColorAlways:
		style.Color = true
	case settings.ColorAuto:
		no, _ := r.Env("NO_COLOR")
		style.Color = no == ""
	}
	return style
}
