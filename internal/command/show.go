package command

import (
	"errors"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/progress"
)

// manner returns how the run is shown. Where no flag says it, a terminal has the panel;
// anything else gets lines, as a panel needs a terminal.
func (r *runner) manner() progress.Manner {
	switch r.flags.progress {
	case progressNone:
		return progress.Silent(r.stderr)
	case progressJSON:
		return progress.JSON(r.stderr, r.startOf(nil))
	case progressBar:
		return progress.Live(r.screen, r.width, r.style())
	case progressAuto, progressPanel:
		if r.terminal.size != nil {
			return progress.Panel(r.newScreen(), r.speeds)
		}
	}
	return progress.Plain(r.stderr)
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
		Before: s.EarlierDone + s.EarlierFailed, ErrorsFile: r.flags.errorsPath(), Unsaved: s.Unsaved, Skipped: s.Skipped, Untranslatable: s.Untranslatable, Renamed: s.Renamed,
		Verbose: r.flags.verbose, BreakerOpened: r.troubles.opened, Broke: r.troubles.why, Stopped: r.redact(reasonOf(s.Stopped)),
	}
	if s.Succeeded+s.EarlierDone > 0 && !r.flags.toStdout() && !isNoFile(r.flags.output) {
		rep.Results = r.flags.output
		rep.Reading = r.answered.reading(r.flags.output, r.flags.writesText())
	}
	rep.Left = rep.NotRun
	if plan != nil && !errors.Is(s.Err(), promptfile.ErrChanged) { // otherwise the plan is of another input
		rep.Left, rep.Of = max(rep.Left, plan.Left()-rep.Succeeded-rep.Failed), plan.Items
	}
	if r.backend.books != nil {
		books := r.backend.books()
		rep.Books = &books
	}
	r.account(rep)
	return rep
}
