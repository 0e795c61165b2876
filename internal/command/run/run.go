package run

import (
	"context"
	"errors"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/internal/command/schema"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/world"
)

// runner is one run of a file. Each question of a run has a value of its own: what is known of
// it, how it ends, what it logs, how it is shown, what it learns, and how it calls.
type runner struct {
	*verdict.Facts
	verdict *verdict.Verdict
	log     *runLog
	show    *display
	memory  *memory
	calls   *calls
	cost    *question
	meters  *meters
	control *control

	answered endpoints       // of the items that have a result
	pilot    *pilot          // that this run is; nil: it is none
	tried    map[string]bool // keys of the items that failed in the pilot which this run continues
	routes   *route.Table    // of the lanes of the file; nil: there is one lane
	schema   *schema.Schema  // that answers must fit; nil: any answer is a result
}

// newRunner returns a runner whose parts share the same facts.
func newRunner(f *verdict.Facts) *runner {
	v, l := &verdict.Verdict{Facts: f}, &runLog{Facts: f}
	d := &display{Facts: f, verdict: v, log: l, watched: make(chan struct{})}
	m := &memory{Facts: f, show: d}
	mt := &meters{Facts: f, show: d}
	return &runner{
		Facts: f, verdict: v, log: l, show: d, memory: m,
		calls:  &calls{Facts: f, verdict: v, log: l, show: d, memory: m, meters: mt},
		cost:   &question{Facts: f, verdict: v, show: d},
		meters: mt, control: &control{Facts: f, show: d, log: l},
	}
}

// runFiles runs files to their end, and shows everything but the last lines, which belong to the ending. With
// a pilot there are two runs: the second continues the first.
func runFiles(ctx context.Context, w *world.World, flags *settings.Flags, inputs []string) error {
	r := newRunner(&verdict.Facts{World: w, Flags: flags, Inputs: inputs, Input: inputs[0], Began: w.Clock.Now()})
	if flags.Pilot == 0 {
		return r.runToEnd(ctx)
	}
	r.pilot = newPilot(flags.Pilot)
	err := r.runToEnd(ctx)
	if !r.pilotIsOver(err) {
		return err
	}
	args := settings.AfterPilot(w.Args)
	if flags.Fresh {
		args, flags.Fresh = settings.NotAgain(args), false
	}
	rest := newRunner(&verdict.Facts{World: w.Again(args), Flags: flags, Inputs: inputs, Input: inputs[0], Began: w.Clock.Now()})
	rest.cost.pilot, rest.cost.onLane = r.pilotFindings()
	rest.tried = r.pilot.failed
	rest.meters.address, rest.control.pilot = r.meters.address, r.control
	return rest.runToEnd(ctx)
}

// runToEnd runs the files once, with the log and the display open around it.
func (r *runner) runToEnd(ctx context.Context) error {
	manner := r.show.manner()
	r.show.every, r.show.console = manner.Every(), progress.Open(manner, r.Clock.Now)
	closeLog, err := r.log.open(r.show.console)
	if err != nil {
		r.show.console.Close(nil)
		r.meters.close(ctx, true)
		return err
	}
	defer closeLog()
	r.Halt = r.Watch(ctx, r.Flags.Deadline, r.show.console.Notice)
	answered := r.show.answerSignals()
	if err = r.meters.open(); err == nil {
		err = r.run()
	}
	r.meters.finish()
	r.Halt.Close()
	<-answered
	r.conclude(err)
	r.meters.storeOutcome()
	r.show.closeTimeline()
	r.meters.report()
	r.show.console.Close(r.verdict.Report)
	r.meters.close(ctx, r.pilot == nil || !r.pilotIsOver(err))
	return err
}

// conclude adds the exit code and the command that resumes the run to the report. Both are known only at the
// end.
func (r *runner) conclude(err error) {
	if r.verdict.Report == nil {
		return
	}
	var end *exit.Ending
	if errors.As(err, &end) {
		r.verdict.Report.ExitCode, r.verdict.Report.Resume = end.Code, exit.WithoutKeys(end.Resume)
	}
}

// run does all steps in the order in which a fault costs the least. It refuses what it can before it touches
// a file, and handles files before calls.
func (r *runner) run() error {
	var err error
	if r.schema, err = schema.Of(r.Flags); err != nil {
		return err
	}
	if r.Account, err = account.Connect(r.Halt.Ctx, r.World, r.Flags); err != nil {
		return err
	}
	defer r.Account.Fleet.CloseIdle()
	src, err := settings.OpenInputs(r.Stdin, r.Inputs, r.Flags.FormatOf)
	if err != nil {
		return err
	}
	if src.Several() {
		r.Input = src.Name
	}
	if r.Flags.Fleet == nil && r.Flags.ServiceTier == settings.TierAuto && src.Stream {
		return exit.Refuse("--service-tier auto: %s can be read only once, and the models must be known before the first call: save it as a file, or use flex", src.Name)
	}
	if r.pilot != nil && src.Stream {
		return exit.Refuse("--pilot: %s can be read only once, and a pilot is spread over the whole input: save it as a file", src.Name)
	}
	if err := r.show.placeTimeline(); err != nil {
		return err
	}
	r.calls.bounds.Store(!r.Flags.MaxTokensGiven && r.Flags.DemandsBound())
	lowered := r.Account.LowerConcurrency()
	if r.Flags.Fleet != nil {
		r.routes = route.New(r.Flags)
	}
	cfg := r.jobConfig(src)
	cfg.Stood, cfg.Control, cfg.MostConcurrency = r.show.moneyOfLatestRun(), r.control.steering(), r.Account.MostConcurrency()
	switch {
	case r.pilot != nil:
		cfg.Sample = r.pilot.items
	case r.cost.prepare(src, r.routes):
		cfg.Watch.Left = r.cost.addItem
	}
	job, err := promptfile.Open(cfg)
	if err != nil {
		return r.outputFault(err)
	}
	defer r.closeJob(job)
	if err := r.routeStream(src); err != nil {
		return err
	}
	plan, err := r.plan(job, src)
	if err != nil {
		return err
	}
	if err := r.closeRoutes(src); err != nil {
		return err
	}
	if r.Halt.Expire(r.Clock.Now()); r.Halt.Called() {
		return r.verdict.HaltedEarly()
	}
	if err := r.cost.ask(); err != nil {
		return err
	}
	begun, err := r.openFiles(job)
	if err != nil {
		return err
	}
	r.noteBeforeCalls(src, plan, begun, lowered)
	defer r.Account.MeetNeighbours(r.show.console.Notice)()
	r.memory.recall(begun)
	return r.process(job, plan)
}

func (r *runner) closeJob(job *promptfile.Job) {
	if err := job.Close(); err != nil {
		r.log.Warn("the lock file could not be removed", "error", err)
	}
}

// plan checks the input. A stream has a nil plan, as it cannot be read before the run.
func (r *runner) plan(job *promptfile.Job, src promptfile.Input) (*promptfile.Plan, error) {
	plan, err := job.Plan()
	switch {
	case errors.Is(err, promptfile.ErrHalted):
		return nil, r.verdict.HaltedEarly()
	case errors.Is(err, promptfile.ErrInput):
		return nil, settings.InputFault(src.Name, err)
	case err != nil:
		return nil, exit.Refuse("%s", exit.PlainText(err))
	case src.Stream:
		return nil, nil //nolint:nilnil // there is none
	}
	if fatal := plan.Fatal(r.Flags.SkipsBadLines(), r.Flags.SkipsUntranslatable()); fatal != nil {
		return nil, r.verdict.BadLines(fatal)
	}
	if last := len(plan.Work) - 1; last >= 0 && r.Flags.Fleet == nil && r.Flags.ServiceTier == settings.TierAuto && plan.Work[last].Lane == promptfile.OtherLanes {
		return nil, exit.Refuse("--service-tier auto: %s names more than %d models: use flex or standard", src.Name, last)
	}
	if len(plan.Unpriced) > 0 {
		return nil, r.verdict.Unpriced(plan.Unpriced)
	}
	return &plan, nil
}

// process makes the calls, and stores the report of the run.
func (r *runner) process(job *promptfile.Job, plan *promptfile.Plan) error {
	defer tuneGarbage(r.Env)()
	began := r.Clock.Now()
	r.show.console.Begin(r.show.startOf(plan), began)
	r.log.logStart(plan)
	r.show.record(plan)
	r.show.openTimeline(r.show.startOf(plan))
	r.show.shown = began
	close(r.show.watched)
	r.Halt.Expire(began)
	options, err := r.optionsOfRun(plan)
	if err != nil {
		return err
	}
	r.control.open(job)
	sums, _ := job.Run(r.Halt.Ctx, r.calls.call, options...) // its error is in the sums
	r.control.close()
	r.log.logEnd(&sums)
	r.memory.noteUnsaved(sums.SaveErr)
	r.noteOrder(&sums)
	if plan == nil && sums.Err() == nil && sums.Items()+sums.EarlierDone+sums.EarlierFailed+sums.Skipped+sums.Untranslatable == 0 {
		r.show.console.Notice(event.EmptyInput, "the input has no items: nothing to do")
	}
	if !exit.IsClosedPipe(sums.FilesErr) { // a reader that has gone does not ask how it went
		r.verdict.Report = r.reportOf(&sums, plan)
	}
	return r.verdict.Of(&sums)
}
