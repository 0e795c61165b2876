package command

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/provider/openai"
)

// runFlags are the flags of run, by name. The names are a promise.
type runFlags struct {
	inputFlags
	priceFlags
	output, errors string
	timeline       string
	preset         string
	law            string
	keyEnv         string
	keyEnvGiven    bool
	keyFile        string
	text           string
	concurrency    int
	fewInFlight    bool // concurrency is what the vendor lets be in flight: nobody said another
	rpm, tpm       float64
	inputTPM       float64
	outputTPM      float64
	burst          time.Duration
	maxAttempts    int
	maxBodies      int // MiB
	latencyTarget  time.Duration
	timeout        time.Duration
	itemTimeout    time.Duration
	deadline       time.Duration
	longWait       time.Duration
	firstAnswer    time.Duration
	outagePatience time.Duration
	maxFailures    failureBound
	keepGoing      bool
	filtered       string
	cluster        string // "": none
	config         string
	planned        func() error  // of plan, which calls nobody: what it checks besides; nil: of another command
	configBaseURL  bool          // the config file says whom to call
	lanes          *laneSettings // that the config file has; nil: there is no such file
	simProfile     string
	durable        string
	fresh          bool
	forget         bool
	retryFailed    bool
	order          string
	progress       string
	verbose        bool
	color          string
	logLevel       string
	logFormat      string
	logFile        string
	seed           uint64
	seeded         bool
	all            *pflag.FlagSet  // every flag of run, of which a command may have some
	given          []event.Setting // what has not its default, and where it came from
}

// mebibyte is the unit of --max-bodies, in bytes, and mostBodies the most that can be
// meant: a tebibyte.
const (
	mebibyte   = 1 << 20
	mostBodies = 1 << 20
)

// Values of --progress.
const (
	progressAuto  = "auto"
	progressPanel = "panel"
	progressBar   = "bar"
	progressPlain = "plain"
	progressJSON  = "json"
	progressNone  = "none"
)

// Values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// Values of --on-bad-line, --order and --format.
const (
	badLineFail     = "fail"
	badLineSkip     = "skip"
	orderCompletion = "completion"
	orderInput      = "input"
	formatAuto      = "auto"
	formatJSONL     = "jsonl"
	formatText      = "text"
	formatCSV       = "csv"
)

// Values of --durable.
const (
	durableSync = "sync"
	durableOS   = "os"
)

// Values of --filtered.
const (
	filteredKeep = "keep"
	filteredFail = "fail"
)

// Values of --text.
const (
	textAuto   = "auto"
	textAlways = "always"
	textNever  = "never"
)

func (f *runFlags) register(fs *pflag.FlagSet) {
	f.all, fs.SortFlags = fs, false
	fs.StringVarP(&f.output, "output", "o", "", "where results go (required); - is standard output")
	fs.StringVar(&f.errors, "errors", "", "where failed items go (default: OUTPUT with .errors before its ending)")
	fs.StringVar(&f.timeline, "timeline", "", "where how the run goes is written, a line a second, for headrace status --watch (default: OUTPUT with .run.jsonl for .jsonl); none writes it nowhere")
	fs.StringVar(&f.provider, "provider", providerOpenAI, "whom to call: openai, anthropic, gemini, azure, bedrock, groq, … (see headrace help providers), or sim, which is simulated and needs no key")
	fs.StringVar(&f.baseURL, "base-url", "", "another server that speaks the provider's dialect, such as http://127.0.0.1:8080/v1")
	f.registerWhom(fs)
	registerPreset(fs, &f.preset)
	registerLaw(fs, &f.law)
	fs.StringVar(&f.keyEnv, "api-key-env", "", "environment variable that holds the key (default: the provider's own, such as OPENAI_API_KEY)")
	fs.StringVar(&f.keyFile, "api-key-file", "", "file that holds the key, in place of a variable; it is read again when it changes")
	fs.StringVar(&f.text, "text", textAuto, "whether result lines have the answer's words by themselves, as headrace.text: always, never, or auto (where answers are not in OpenAI's shape)")
	f.registerInput(fs, "fail (nothing is called) or skip (bad lines go to the errors file)")
	f.registerPrices(fs)
	fs.IntVarP(&f.concurrency, "concurrency", "c", batch.DefaultConcurrency, "most calls in flight")
	fs.Float64Var(&f.rpm, "rpm", 0, "requests a minute that each model is allowed; 0 learns it")
	fs.Float64Var(&f.tpm, "tpm", 0, "tokens a minute that each model is allowed; 0 learns it")
	fs.Float64Var(&f.inputTPM, "input-tpm", 0, "input tokens a minute that each model is allowed, where they are counted apart")
	fs.Float64Var(&f.outputTPM, "output-tpm", 0, "output tokens a minute that each model is allowed, likewise")
	fs.DurationVar(&f.burst, "burst", 0, "how much of a told limit is there from the start and may be saved up, in time: 1m is a minute's worth (default 200ms, spent within half a minute; with --law plain 1s, spent at once)")
	fs.DurationVar(&f.latencyTarget, "latency-target", 0, "mean latency to keep, by fewer calls in flight where it would be longer; 0 lets answers take as long as they take")
	fs.IntVar(&f.maxAttempts, "max-attempts", batch.DefaultMaxAttempts, "tries at an item; being throttled is none")
	fs.IntVar(&f.maxBodies, "max-bodies", openai.DefaultMaxBodies/mebibyte, "MiB of long answers that are read or not yet written, all calls together; more of them wait (the first 64 KiB of each do not count)")
	fs.DurationVar(&f.timeout, "timeout", batch.DefaultAttemptTimeout, "longest call; waiting to be sent does not count, 0 is no bound")
	fs.DurationVar(&f.firstAnswer, "first-answer", batch.DefaultFirstAnswer, "stop, with exit code 3, if no call of a model was ever answered and all have broken in one way for so long; 0 waits for ever")
	fs.DurationVar(&f.outagePatience, "outage-patience", batch.DefaultOutagePatience, "stop, with exit code 3, if a model was answered before and nothing has been for so long; 0 waits for ever")
	fs.BoolVar(&f.keepGoing, "keep-going", false, "never stop because items fail alike, and end each item where items that always fail cannot be told from an outage: in an outage good ones fail, too")
	fs.Var(&f.maxFailures, "max-failures", "stop, with exit code 4, when so many items have failed in this run, or as in 5% more than that share of the items that have ended (after the first 100); 0 is no bound")
	fs.DurationVar(&f.itemTimeout, "item-timeout", 0, "longest time for one item in all, from its first call; 0 is no bound")
	fs.DurationVar(&f.deadline, "deadline", 0, "longest time for the run in all: it then stops as at Ctrl-C, with exit code 4; 0 is no bound")
	fs.DurationVar(&f.longWait, "long-wait", batch.DefaultLongWait, "warn of a model or an item that waits for longer; 0 warns of none")
	fs.StringVar(&f.filtered, "filtered", filteredKeep, "answers that a content filter has cut short or emptied: keep (they are results, and counted) or fail (they go to the errors file)")
	fs.StringVar(&f.order, "order", orderCompletion, "how results stand in the output: completion (as they come) or input (as in the input; those that wait for their turn are not saved yet, and a run that goes on with a file brings it into order at its end)")
	fs.BoolVar(&f.retryFailed, "retry-failed", false, "also try again what failed for good in an earlier run")
	fs.BoolVar(&f.fresh, "fresh", false, "start over: the old output is kept as OUTPUT.bak")
	fs.BoolVar(&f.forget, "forget", false, "begin as if nothing were known of the provider: what an earlier run learned is in OUTPUT with .state.json for .jsonl")
	fs.StringVar(&f.durable, "durable", durableSync, "when a result is saved: sync (10 ms later it survives the loss of power) or os (it survives the end of this process)")
	fs.StringVar(&f.progress, "progress", progressAuto, "auto, panel, bar, plain, json or none, on standard error: auto is the panel on a terminal, and plain elsewhere")
	fs.BoolVar(&f.verbose, "verbose", false, "show more at the end: cooldowns, probes, redistributed items, where the time went, and the proof that nothing was lost")
	fs.StringVar(&f.color, "color", colorAuto, "auto, always or never: auto is a terminal's panel, unless NO_COLOR is set")
	fs.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
	fs.StringVar(&f.logFormat, "log-format", logAuto, "text, json, or auto (json beside --progress json, else text)")
	fs.StringVar(&f.logFile, "log-file", "", "file that the log goes to, behind what is in it; without it the log is on standard error")
	fs.Uint64Var(&f.seed, "seed", 0, "makes jitter and simulation reproducible (default: another one each time)")
	fs.StringVar(&f.simProfile, "sim-profile", profileDemo, "what --provider sim is like: demo (its headers say what its limit is), silent (only refusals show it) or fast (no limit)")
	fs.StringVar(&f.config, "config", "", "YAML file of flags, one a line as in \"rpm: 600\", and of what has no flag (ramp, breaker, …: see headrace help config)")
	fs.StringVar(&f.cluster, "cluster", "", "run over many machines, as the full command does: in the cluster at an address, as in --cluster=nats://…, or, without one, in one that this process makes for a trial")
	fs.Lookup("cluster").NoOptDefVal = ClusterTrial
	nameValues(fs, map[string]string{
		"cluster": "ADDRESS",
		"output":  "FILE", "errors": "FILE", "timeline": "FILE", "api-key-env": "NAME", "api-key-file": "FILE", "text": "WHEN",
		"order": "MODE", "concurrency": "N", "rpm": "N", "tpm": "N", "input-tpm": "N", "output-tpm": "N", "burst": "D", "latency-target": "D", "max-attempts": "N", "max-bodies": "N",
		"timeout": "D", "item-timeout": "D", "deadline": "D", "long-wait": "D", "first-answer": "D", "outage-patience": "D", "max-failures": "N|P%", "filtered": "MODE", "sim-profile": "NAME", "config": "FILE",
		"durable": "MODE", "progress": "MODE", "color": "WHEN", "log-level": "LEVEL", "log-format": "FORMAT", "log-file": "FILE", "seed": "N",
	})
}

// named is a flag's value with a word for it in the help.
type named struct {
	pflag.Value
	word string
}

// Type is what the help shows.
func (n named) Type() string { return n.word }

// nameValues gives flags the words for their values, and shows default times as they would be
// written. A default of no time is not shown: what it means is said.
func nameValues(fs *pflag.FlagSet, words map[string]string) {
	for flag, word := range words {
		f := fs.Lookup(flag)
		f.Value = named{f.Value, word}
		if d, err := time.ParseDuration(f.DefValue); err == nil && strings.HasSuffix(f.DefValue, "s") {
			f.DefValue = span(d.Seconds())
		}
		if f.DefValue == "0s" {
			f.DefValue = "0"
		}
	}
}

// usage makes one refusal of all that is wrong; nil if nothing is.
func usage(faults ...error) error {
	if err := errors.Join(faults...); err != nil {
		return refuse("%v", err)
	}
	return nil
}

// complete takes what was not given from the environment, then from the file of
// --config, and checks everything that can be checked without looking at others. Of a
// command that has some of the flags fs has those: the file may set the others, which have
// no meaning there, so that one file is for all commands.
func (f *runFlags) complete(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	from, hasOutput := origins{}, fs.Lookup("output") != nil
	from.note(fs, "flag")
	if err := fromEnvironment(fs, env); err != nil {
		return err
	}
	from.note(fs, "environment")
	if err := f.fromFile(); err != nil {
		return err
	}
	from.note(fs, "file")
	f.given = append(from.settings(fs), f.lanes.settings()...)
	fs = f.all
	f.seeded, f.keyEnvGiven = fs.Changed("seed"), fs.Changed("api-key-env")
	f.lanes.useLaw(f.law)
	whom := f.resolve(fs, env)
	if whom == nil && f.planned == nil {
		whom = f.locate(env)
	}
	f.useVendor(fs, env)
	return usage(append(f.lanes.check(f.law),
		f.checkOutput(hasOutput),
		f.checkCluster(),
		f.checkTimeline(),
		whom,
		f.checkKeyEnv(env),
		oneOf("text", f.text, textAuto, textAlways, textNever),
		oneOf("on-untranslatable", f.onUntranslatable, badLineFail, badLineSkip),
		checkPreset(f.preset),
		f.checkLaw(!hasOutput && f.planned == nil || f.cluster != ""), // other commands without an output are of a cluster
		f.checkEndpoint(),
		f.checkLimits(),
		atLeast("concurrency", f.concurrency, 1),
		atMost("concurrency", f.concurrency, machine.MaxConcurrency),
		atLeast("max-attempts", f.maxAttempts, 1),
		atLeast("max-bodies", f.maxBodies, 1),
		atMost("max-bodies", f.maxBodies, mostBodies),
		atLeast("limit", f.limit, 0),
		atLeast("latency-target", f.latencyTarget, 0),
		atLeast("timeout", f.timeout, 0),
		atLeast("item-timeout", f.itemTimeout, 0),
		atLeast("deadline", f.deadline, 0),
		atLeast("long-wait", f.longWait, 0),
		atLeast("first-answer", f.firstAnswer, 0),
		atLeast("outage-patience", f.outagePatience, 0),
		oneOf("filtered", f.filtered, filteredKeep, filteredFail),
		oneOf("sim-profile", f.simProfile, profileDemo, profileSilent, profileFast),
		oneOf("order", f.order, orderCompletion, orderInput),
		oneOf("format", f.format, formatAuto, formatJSONL, formatText, formatCSV),
		oneOf("on-bad-line", f.onBadLine, badLineFail, badLineSkip),
		f.parseTemplate(),
		f.parseParams(),
		oneOf("durable", f.durable, durableSync, durableOS),
		oneOf("progress", f.progress, progressAuto, progressPanel, progressBar, progressPlain, progressJSON, progressNone),
		oneOf("color", f.color, colorAuto, colorAlways, colorNever),
		f.checkLevel(),
		f.readPrices(&f.inputFlags, f.preset),
		f.checkLog(),
		f.checkPlanned(),
	)...)
}
