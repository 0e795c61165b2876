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
	"github.com/headrace/headrace/provider/wire"
)

// runFlags are the flags of run, by name. The names are a promise.
type runFlags struct {
	inputFlags
	networkFlags
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
	fewInFlight    bool // concurrency is the vendor's, as the user set none
	rpm, tpm       float64
	inputTPM       float64
	outputTPM      float64
	burst          time.Duration
	maxAttempts    int
	maxBodies      int // MiB
	latencyTarget  time.Duration
	timeout        time.Duration
	stream         string
	streamIdle     time.Duration
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
	planned        func() error  // what plan checks in addition, as it calls nobody; nil: of another command
	configBaseURL  bool          // the config file gives the base URL
	lanes          *laneSettings // in the config file; nil: there is no such file
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
	all            *pflag.FlagSet  // every flag of run; a command may have only some of them
	given          []event.Setting // values that are not the default, and where they came from
}

// mebibyte is the unit of --max-bodies, in bytes, and mostBodies its largest sensible value:
// a tebibyte.
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

// Values of --stream.
const (
	streamAuto   = "auto"
	streamAlways = "always"
	streamNever  = "never"
)

// Values of --text.
const (
	textAuto   = "auto"
	textAlways = "always"
	textNever  = "never"
)

func (f *runFlags) register(fs *pflag.FlagSet) {
	f.all, fs.SortFlags = fs, false
	fs.StringVarP(&f.output, "output", "o", "", "results file (required); - is standard output")
	fs.StringVar(&f.errors, "errors", "", "file for failed items (default: OUTPUT with .errors before its ending)")
	fs.StringVar(&f.timeline, "timeline", "", "record of the run, one line a second, read by headrace status --watch (default: OUTPUT with .run.jsonl for .jsonl); none turns it off")
	fs.StringVar(&f.provider, "provider", providerOpenAI, "provider to call: openai, anthropic, gemini, azure, bedrock, groq, … (see headrace help providers); sim is simulated and needs no key")
	fs.StringVar(&f.baseURL, "base-url", "", "another server that speaks the provider's dialect, such as http://127.0.0.1:8080/v1")
	fs.BoolVar(&f.insecureHTTP, "insecure-http", false, "let a --base-url with http:// send the provider's usual key unencrypted to the provider's own hosts")
	f.registerWhom(fs)
	registerPreset(fs, &f.preset)
	registerLaw(fs, &f.law)
	fs.StringVar(&f.keyEnv, "api-key-env", "", "environment variable that holds the key (default: the provider's own, such as OPENAI_API_KEY); none: send no key")
	fs.StringVar(&f.keyFile, "api-key-file", "", "file that holds the key, instead of a variable; read again when it changes")
	f.registerNetwork(fs)
	fs.StringVar(&f.text, "text", textAuto, "add the answer's text to result lines, as headrace.text: always, never, or auto (if answers are not in OpenAI's shape)")
	f.registerInput(fs, "fail (nothing is called) or skip (bad lines go to the errors file)")
	f.registerPrices(fs)
	fs.IntVarP(&f.concurrency, "concurrency", "c", batch.DefaultConcurrency, "most calls in flight")
	fs.Float64Var(&f.rpm, "rpm", 0, "requests a minute allowed for each model; 0: learn it")
	fs.Float64Var(&f.tpm, "tpm", 0, "tokens a minute allowed for each model; 0: learn it")
	fs.Float64Var(&f.inputTPM, "input-tpm", 0, "input tokens a minute allowed for each model, where they have a limit of their own; 0: learn it")
	fs.Float64Var(&f.outputTPM, "output-tpm", 0, "output tokens a minute allowed for each model, where they have a limit of their own; 0: learn it")
	fs.DurationVar(&f.burst, "burst", 0, "how much of --rpm/--tpm may be spent at once; 1m if a whole minute is available up front (default 200ms, spent within half a minute; with --law plain 1s, spent at once)")
	fs.DurationVar(&f.latencyTarget, "latency-target", 0, "keep the mean latency below this, with fewer calls in flight if needed; 0: no target")
	fs.IntVar(&f.maxAttempts, "max-attempts", batch.DefaultMaxAttempts, "attempts per item; rate-limit refusals do not count")
	fs.IntVar(&f.maxBodies, "max-bodies", openai.DefaultMaxBodies/mebibyte, "MiB of long answers held in memory, all calls together; further ones wait (the first 64 KiB of each do not count)")
	fs.DurationVar(&f.timeout, "timeout", batch.DefaultAttemptTimeout, "time limit of one call; waiting to be sent does not count; 0: none")
	fs.StringVar(&f.stream, "stream", streamAuto, "take answers as streams, so that --timeout bounds only the wait for their first byte: always, never, or auto (where the provider wants streams for long answers)")
	fs.DurationVar(&f.streamIdle, "stream-idle", wire.DefaultStreamIdle, "longest silence of a stream after its first byte; 0: no limit")
	fs.DurationVar(&f.firstAnswer, "first-answer", batch.DefaultFirstAnswer, "give up (exit 3) if every call failed alike for this long and none was answered; 0: never")
	fs.DurationVar(&f.outagePatience, "outage-patience", batch.DefaultOutagePatience, "give up (exit 3) if a model that answered before has answered nothing for this long; 0: never")
	fs.BoolVar(&f.keepGoing, "keep-going", false, "never stop because items fail alike; in an outage, good items then fail, too")
	fs.Var(&f.maxFailures, "max-failures", "stop (exit 4) when this many items have failed in this run, or this share of them, as in 5% (after the first 100); 0: never")
	fs.DurationVar(&f.itemTimeout, "item-timeout", 0, "time limit of one item, all attempts together, from its first call; 0: none")
	fs.DurationVar(&f.deadline, "deadline", 0, "time limit of the run, which then stops as at Ctrl-C (exit 4); 0: none")
	fs.DurationVar(&f.longWait, "long-wait", batch.DefaultLongWait, "warn when a model or item has waited longer than this; 0: never")
	fs.StringVar(&f.filtered, "filtered", filteredKeep, "answers that a content filter cut short or emptied: keep (they are results, and counted) or fail (they go to the errors file)")
	fs.StringVar(&f.order, "order", orderCompletion, "order of results: completion (as they come) or input (finished answers are held, and lost if killed, until earlier ones are done; a resumed run sorts its file at the end)")
	fs.BoolVar(&f.retryFailed, "retry-failed", false, "also retry items that failed for good in an earlier run")
	fs.BoolVar(&f.fresh, "fresh", false, "start over: the old output is kept as OUTPUT.bak")
	fs.BoolVar(&f.forget, "forget", false, "ignore limits learned by earlier runs (OUTPUT with .state.json for .jsonl has them)")
	fs.StringVar(&f.durable, "durable", durableSync, "sync: safe from power loss within 10 ms; os: safe from a crash of headrace only")
	fs.StringVar(&f.progress, "progress", progressAuto, "what standard error shows: auto, panel, bar, plain, json or none; auto is the panel on a terminal, else plain")
	fs.BoolVar(&f.verbose, "verbose", false, "show more at the end: cooldowns, probes, redistributed items, where the time went, and the proof that nothing was lost")
	fs.StringVar(&f.color, "color", colorAuto, "auto, always or never; auto colors the panel of a terminal unless NO_COLOR is set")
	fs.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
	fs.StringVar(&f.logFormat, "log-format", logAuto, "text, json or auto (json with --progress json, else text)")
	fs.StringVar(&f.logFile, "log-file", "", "append the log to this file (default: standard error)")
	fs.Uint64Var(&f.seed, "seed", 0, "makes jitter and simulation reproducible (default: a new one each time)")
	fs.StringVar(&f.simProfile, "sim-profile", profileDemo, "what --provider sim is like: demo (its headers say what its limit is), silent (only refusals show it) or fast (no limit)")
	fs.StringVar(&f.config, "config", "", "YAML file of flags, one a line as in \"rpm: 600\", and of settings that have no flag (ramp, breaker, …: see headrace help config)")
	fs.StringVar(&f.cluster, "cluster", "", "run on many machines (the full command only): in the cluster at an address, as in --cluster=nats://…; without an address, in a trial cluster in this process")
	fs.Lookup("cluster").NoOptDefVal = ClusterTrial
	nameValues(fs, map[string]string{
		"cluster": "ADDRESS",
		"output":  "FILE", "errors": "FILE", "timeline": "FILE", "api-key-env": "NAME", "api-key-file": "FILE", "text": "WHEN",
		"order": "MODE", "concurrency": "N", "rpm": "N", "tpm": "N", "input-tpm": "N", "output-tpm": "N", "burst": "D", "latency-target": "D", "max-attempts": "N", "max-bodies": "N",
		"timeout": "D", "stream": "WHEN", "stream-idle": "D", "item-timeout": "D", "deadline": "D", "long-wait": "D", "first-answer": "D", "outage-patience": "D", "max-failures": "N|P%", "filtered": "MODE", "sim-profile": "NAME", "config": "FILE",
		"durable": "MODE", "progress": "MODE", "color": "WHEN", "log-level": "LEVEL", "log-format": "FORMAT", "log-file": "FILE", "seed": "N",
	})
}

// named is a flag's value with a word for it in the help.
type named struct {
	pflag.Value
	word string
}

// Type is part of [pflag.Value]: the help shows it.
func (n named) Type() string { return n.word }

// nameValues gives flags the words for their values, and shows default times as a user would
// write them. A default of no time is not shown, as the help says what it means.
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

// usage makes one refusal of all faults; nil if there are none.
func usage(faults ...error) error {
	if err := errors.Join(faults...); err != nil {
		return refuse("%v", err)
	}
	return nil
}

// complete sets missing flags from the environment, then from the file of --config. It checks
// everything for which it need not open the run's files or call anybody. If a command has only
// some of the flags, fs holds those. The file may set the others, which have no meaning there,
// so that one file serves all commands.
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
		f.checkInClear(),
		f.checkHeaders(),
		f.checkNetwork(),
		oneOf("text", f.text, textAuto, textAlways, textNever),
		oneOf("on-untranslatable", f.onUntranslatable, badLineFail, badLineSkip),
		checkPreset(f.preset),
		f.checkLaw(!hasOutput && f.planned == nil || f.cluster != ""), // other commands without an output belong to a cluster
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
		oneOf("stream", f.stream, streamAuto, streamAlways, streamNever),
		atLeast("stream-idle", f.streamIdle, 0),
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
