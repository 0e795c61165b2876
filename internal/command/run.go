package command

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

const runLong = `Run the items of a prompt file against a provider, each exactly once. Calls that were in
flight when the process was killed are asked again.

INPUT is JSONL, or text or a table with --format ("-" reads standard input). Several files, or
a pattern such as 'part-*.jsonl', make one run. Each line of JSONL has one of these forms, in
any mix:

  {"prompt":"Name three rivers.","id":"rivers","max_tokens":50}
  {"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}],"metadata":{"row":7}}
  {"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{…}}

or is a batch line of the provider: {"custom_id","params"} of Anthropic, {"key","request"}
of Gemini, {"recordId","modelInput"} of Bedrock. headrace help input explains every field,
headrace help providers lists the providers.

Results are lines in the form of OpenAI's offline batches. Items that failed for good are
in the errors file. After an interruption, run the same command again: it continues where it
stopped, and nothing that was saved is bought again. For results.jsonl, results.state.json
keeps what was learned about the provider, and how long it asked to wait.

Each line has its cost in cost_usd if the price of its model is known: from the built-in
list, from --prices or from --price. The list has the prices of all providers, from the data
of genai-prices, on the day that headrace plan names: with cache reads and writes, and steps
by the length of the prompt. Calls that were sent and whose answer was cut off may be billed as
well: they are counted apart, in doubtful, with the tokens that the answer had told, and are no
part of any cost.

The key comes from the provider's usual variable, or from a file. Every flag can be set in
the environment, --base-url as HEADRACE_BASE_URL, and in the YAML file of --config, as in
"base-url: http://…". A flag beats the environment, which beats the file. Two runs of yours on
one machine with the same key say so: they find each other in $XDG_RUNTIME_DIR/headrace, by a
short hash of the key.

Ctrl-C finishes the calls in flight; a second one abandons them. Files are whole either way.

The last lines say what was answered, what failed, time, cost, and how to read the results.
--verbose adds the proof that nothing was lost, and where the time went (headrace help time).

Exit codes:
  0    every item succeeded
  1    some items failed, a bad line came after calls (standard input), or the input changed
  2    usage, configuration or input is wrong, and nothing was called
  3    stopped by the provider (quota, balance, key, no answer at all, a long outage), or by a
       mistake in every line
  4    stopped by a limit of yours (--deadline, --max-failures)
  5    the output cannot be written, or could not for a while
  130  interrupted
  141  the reader of standard output has gone, as in | head`

func newRunCommand(w *World) *cobra.Command {
	flags := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run INPUT... -o OUTPUT [flags]",
		Short: "Run a prompt file, or several, or resume it",
		Long:  runLong,
		Example: `  headrace run examples/prompts.jsonl -o results.jsonl --provider sim
  headrace run prompts.jsonl -o results.jsonl --model gpt-4o-mini
  headrace run prompts.jsonl -o results.jsonl --provider anthropic --model claude-haiku-4-5
  headrace run prompts.jsonl -o results.jsonl --base-url http://127.0.0.1:8080/v1 --rpm 600
  headrace run part-*.jsonl -o results.jsonl --model gpt-4o-mini
  cat prompts.jsonl | headrace run - -o - --model gpt-4o-mini | jq -r '.response.body.choices[0].message.content'`,
		Args: someInputs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.complete(cmd.Flags(), w.env); err != nil {
				return err
			}
			inputs, err := matching(args)
			switch {
			case err != nil:
				return err
			case flags.cluster != "":
				return w.runOnCluster(cmd.Context(), flags, inputs)
			}
			return w.runFiles(cmd.Context(), flags, inputs)
		},
	}
	flags.register(cmd.Flags())
	completeProvider(cmd)
	groupFlags(cmd, runGroups)
	return cmd
}

func someInputs(cmd *cobra.Command, args []string) error {
	f := cmd.Flags().Lookup("cluster")
	switch {
	case len(args) == 0:
		return refuse("no input: name a prompt file, or \"-\" for standard input: see %s --help", cmd.CommandPath())
	case len(args) > 1 && f != nil && f.Changed && f.Value.String() == f.NoOptDefVal:
		return refuse("%d inputs, and only one can be run in a cluster: is one of them the address of --cluster? write it as in --cluster=nats://…", len(args))
	}
	return nil
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return refuse("unexpected argument %q: %s takes none", args[0], cmd.CommandPath())
}

// runner is one run of a file.
type runner struct {
	*World
	flags   *runFlags
	inputs  []string // the names of its files
	input   string   // the name of the whole input
	backend *backend
	console *progress.Console
	every   time.Duration // the period in which it shows how the run stands
	log     *slog.Logger
	halt    *halt
	began   time.Time

	recorder   *observe.Recorder
	watched    chan struct{}          // closed when there is a recorder
	timeline   *timeline.Writer       // nil: there is none
	timelineAt string                 // its path; "": none
	shown      time.Time              // when the console last showed how the run stands; the observer's
	latestStep atomic.Pointer[string] // the latest transition, in words; nil: there was none

	answered    endpoints        // of the items that have a result
	skipped     atomic.Int64     // bad lines of the input
	unwritten   atomic.Int64     // lines that the operating system does not have yet; briefly it may be below zero
	startedOver bool             // the old files were put aside: a command that goes on does not start over again
	report      *progress.Report // what the console shows at the end; nil: nothing

	troubles troubles
	failing  failing
	failed   failedItems
	oddOnce  sync.Once                      // whether an implausible wait was reported
	latest   atomic.Pointer[provider.Error] // why the workers' latest call failed; nil: none did

	bounds atomic.Bool // prompts have a bound that the user has not set, and no notice said so yet

	known          batch.Memory // what an earlier run has learned
	state          *stateFile   // keeps what the run learns; nil: nothing does
	answeredBefore bool         // by an earlier run of the same output, at the provider of this one
}

// runFiles runs files to their end, and says everything but the last lines, which belong to
// the ending.
func (w *World) runFiles(ctx context.Context, flags *runFlags, inputs []string) error {
	r := &runner{World: w, flags: flags, inputs: inputs, input: inputs[0], began: w.clock.Now(), watched: make(chan struct{})}
	manner := r.manner()
	r.every, r.console = manner.Every(), progress.Open(manner, w.clock.Now)
	closeLog, err := r.openLog()
	if err != nil {
		r.console.Close(nil)
		return err
	}
	defer closeLog()
	r.halt = w.watch(ctx, flags.deadline, r.console.Notice)
	answered := r.answerAsks()
	err = r.run()
	r.halt.close()
	<-answered
	r.conclude(err)
	r.closeTimeline()
	r.console.Close(r.report)
	return err
}

// conclude adds to the report what is known only at the very end.
func (r *runner) conclude(err error) {
	if r.report == nil {
		return
	}
	var end *ending
	if errors.As(err, &end) {
		r.report.ExitCode, r.report.Resume = end.code, withoutKeys(end.resume)
	}
}

// run does everything in the order in which a fault costs the least. It refuses what it can
// before it touches a file, and handles files before calls.
func (r *runner) run() error {
	var err error
	if r.backend, err = r.connect(); err != nil {
		return err
	}
	defer r.backend.fleet.CloseIdle()
	src, err := r.source(r.inputs, r.flags.formatOf)
	if err != nil {
		return err
	}
	if src.Several() {
		r.input = src.Name
	}
	if err := r.placeTimeline(); err != nil {
		return err
	}
	r.bounds.Store(!r.flags.maxTokensGiven && r.flags.demandsBound())
	lowered := r.lowerConcurrency()
	job, err := promptfile.Open(r.job(src))
	if err != nil {
		return r.outputFault(err)
	}
	defer r.closeJob(job)
	plan, err := r.plan(job, src)
	if err != nil {
		return err
	}
	if r.halt.expire(r.clock.Now()); r.halt.called() {
		return r.haltedEarly()
	}
	begun, err := r.begin(job)
	if err != nil {
		return err
	}
	r.introduce(src, plan, begun, lowered)
	defer r.meetNeighbours()()
	r.recall(begun)
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
		return nil, r.haltedEarly()
	case errors.Is(err, promptfile.ErrInput):
		return nil, inputFault(src.Name, err)
	case err != nil:
		return nil, refuse("%s", plainText(err))
	case src.Stream:
		return nil, nil //nolint:nilnil // there is none
	}
	if fatal := plan.Fatal(r.flags.skipsBadLines(), r.flags.skipsUntranslatable()); fatal != nil {
		return nil, r.badLines(fatal)
	}
	return &plan, nil
}

// process makes the calls.
func (r *runner) process(job *promptfile.Job, plan *promptfile.Plan) error {
	defer tuneGarbage(r.env)()
	began := r.clock.Now()
	r.console.Begin(r.startOf(plan), began)
	r.logStart(plan)
	r.record(plan)
	r.openTimeline(r.startOf(plan))
	r.shown = began
	close(r.watched)
	r.halt.expire(began)
	sums, _ := job.Run(r.halt.ctx, r.call, append(r.options(), r.recorder.Options()...)...) // its error is in the sums
	r.logEnd(&sums)
	r.sayUnsaved(sums.SaveErr)
	r.sayOrder(&sums)
	if plan == nil && sums.Err() == nil && sums.Items()+sums.EarlierDone+sums.EarlierFailed+sums.Skipped+sums.Untranslatable == 0 {
		r.console.Notice(event.EmptyInput, "the input has no items: nothing to do")
	}
	if !isClosedPipe(sums.FilesErr) { // a reader that has gone does not ask how it went
		r.report = r.reportOf(&sums, plan)
	}
	return r.verdict(&sums)
}
