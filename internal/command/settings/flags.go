package settings

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/wire"
)

// Flags are the flags of run, by name. The names are a promise.
type Flags struct {
	InputFlags
	NetworkFlags
	priceFlags
	Output, Errors string
	Timeline       string
	MetricsAddr    string        // HOST:PORT; "": none
	MetricsFile    string        // "": none
	Report         string        // the file of the report at the end; "": none
	Linger         time.Duration // for which MetricsAddr is served after the end
	Preset         string
	Law            string
	KeyEnv         string
	KeyEnvGiven    bool
	KeyFile        string
	text           string
	Concurrency    int
	FewInFlight    bool // concurrency is the vendor's, as the user set none
	rpm, tpm       float64
	inputTPM       float64
	outputTPM      float64
	burst          time.Duration
	MaxAttempts    int
	MaxBodies      int // MiB
	LatencyTarget  time.Duration
	Timeout        time.Duration
	stream         string
	streamIdle     time.Duration
	ItemTimeout    time.Duration
	Deadline       time.Duration
	LongWait       time.Duration
	FirstAnswer    time.Duration
	OutagePatience time.Duration
	MaxFailures    failureBound
	MaxCost        float64 // USD; 0: none
	KeepGoing      bool
	Filtered       string
	Schema         string
	SchemaRetries  int
	JobSchema      string // the schema that a job has brought to this machine, in place of a file; "": none
	Cluster        string // "": none
	Config         string
	Planned        func() error   // what plan checks in addition, as it calls nobody; nil: of another command
	ConfigBaseURL  bool           // the config file gives the base URL
	Lanes          *laneSettings  // in the config file; nil: there is no such file
	Fleet          *Fleet         // its lanes and pools; nil: the flags describe the only lane
	ManyLanes      bool           // the command can have several lanes
	Looks          bool           // the command runs nothing, and needs no output
	PrintConfig    bool           // the same, of headrace run itself
	InJob          bool           // they go with a job to the workers of a cluster
	lanesText      string         // of the lanes and pools that a job brings; "": those of the config file
	fileLines      map[string]int // of the flags that the file sets
	fileHeaders    []string       // the headers that it sets
	SimProfile     string
	durable        string
	Spill          time.Duration
	Pilot          int // items
	Yes            bool
	ConfirmAbove   float64 // USD
	Fresh          bool
	Forget         bool
	RetryFailed    bool
	Order          string
	Progress       string
	Verbose        bool
	Color          string
	logLevel       string
	level          *slog.LevelVar // of the log as it is; nil: it is not open
	Ctl            string         // whether headrace ctl may change the run
	logFormat      string
	LogFile        string
	Seed           uint64
	Seeded         bool
	All            *pflag.FlagSet  // every flag of run; a command may have only some of them
	Own            *pflag.FlagSet  // flags that the command has in addition, which the file may set, too; nil: none
	Given          []event.Setting // values that are not the default, and where they came from
}

// mebibyte is the unit of --max-bodies, in bytes, and mostBodies its largest sensible value:
// a tebibyte.
const (
	Mebibyte   = 1 << 20
	mostBodies = 1 << 20
)

// Values of --progress.
const (
	ProgressAuto  = "auto"
	ProgressPanel = "panel"
	ProgressBar   = "bar"
	ProgressPlain = "plain"
	ProgressJSON  = "json"
	ProgressNone  = "none"
)

// Values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	colorNever  = "never"
)

// Style returns what the terminal may show, according to --color and the variables of env.
func (f *Flags) Style(env func(string) (string, bool)) panel.Style {
	style := panel.StyleOf(env, runtime.GOOS == "windows")
	switch f.Color {
	case ColorAlways:
		style.Color = true
	case ColorAuto:
		noColor, _ := env("NO_COLOR")
		style.Color = noColor == ""
	}
	return style
}

// Values of --on-bad-line, --order and --format.
const (
	badLineFail     = "fail"
	badLineSkip     = "skip"
	goElsewhere     = "elsewhere"
	orderCompletion = "completion"
	OrderInput      = "input"
	FormatAuto      = "auto"
	FormatJSONL     = "jsonl"
	FormatText      = "text"
	FormatCSV       = "csv"
)

// Values of --durable.
const (
	durableSync = "sync"
	durableOS   = "os"
)

// Values of --filtered.
const (
	filteredKeep = "keep"
	FilteredFail = "fail"
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

// Register adds the flags of run, in the order of the help.
func (f *Flags) Register(fs *pflag.FlagSet) {
	f.All, fs.SortFlags = fs, false
	fs.StringVarP(&f.Output, "output", "o", "", "results file (required); - is standard output")
	fs.StringVar(&f.Errors, "errors", "", "file for failed items (default: OUTPUT with .errors before its ending)")
	fs.StringVar(&f.Timeline, "timeline", "", "record of the run, one line a second, read by headrace status --watch (default: OUTPUT with .run.jsonl for .jsonl); none turns it off")
	fs.StringVar(&f.Report, "report", "", "write a report of the run to this file at its end: FILE.html, .md or .json, as headrace report does")
	fs.StringVar(&f.MetricsFile, "metrics-file", "", "write metrics for Prometheus to this file, every 15 s and at the end, for node_exporter's textfile collector")
	fs.StringVar(&f.Provider, "provider", ProviderOpenAI, "provider to call: openai, anthropic, gemini, azure, bedrock, groq, … (see headrace help providers); sim is simulated and needs no key")
	fs.StringVar(&f.BaseURL, "base-url", "", "another server that speaks the provider's dialect, such as http://127.0.0.1:8080/v1")
	fs.BoolVar(&f.insecureHTTP, "insecure-http", false, "let a --base-url with http:// send the provider's usual key unencrypted to the provider's own hosts")
	f.registerVendor(fs)
	registerPreset(fs, &f.Preset)
	registerLaw(fs, &f.Law)
	fs.StringVar(&f.KeyEnv, "api-key-env", "", "environment variable that holds the key (default: the provider's own, such as OPENAI_API_KEY); none: send no key")
	fs.StringVar(&f.KeyFile, "api-key-file", "", "file that holds the key, instead of a variable; read again when it changes")
	f.registerNetwork(fs)
	fs.StringVar(&f.text, "text", textAuto, "add the answer's text to result lines, as headrace.text: always, never, or auto (if answers are not in OpenAI's shape)")
	f.registerInput(fs, "fail (nothing is called) or skip (bad lines go to the errors file)")
	f.registerPrices(fs)
	fs.DurationVar(&f.Spill, "spill", usualSpill, "with --service-tier auto, for how long the flex tier must have had no room before lines are sent to the standard one")
	fs.IntVar(&f.Pilot, "pilot", 0, "first run N items, spread over the input, and plan the rest from what they show; then ask whether to continue, or stop if nobody can answer (exit 4); --yes continues; 0: no pilot")
	fs.BoolVarP(&f.Yes, "yes", "y", false, "ask nothing: run whatever it may cost")
	fs.Float64Var(&f.ConfirmAbove, "confirm-above", usualConfirm, "on a terminal, ask before the first call if the run may cost more than this, in USD; no script is ever asked")
	fs.IntVarP(&f.Concurrency, "concurrency", "c", batch.DefaultConcurrency, "most calls in flight")
	fs.Float64Var(&f.rpm, "rpm", 0, "requests a minute allowed for each model; 0: learn it")
	fs.Float64Var(&f.tpm, "tpm", 0, "tokens a minute allowed for each model; 0: learn it")
	fs.Float64Var(&f.inputTPM, "input-tpm", 0, "input tokens a minute allowed for each model, where they have a limit of their own; 0: learn it")
	fs.Float64Var(&f.outputTPM, "output-tpm", 0, "output tokens a minute allowed for each model, where they have a limit of their own; 0: learn it")
	fs.DurationVar(&f.burst, "burst", 0, "how much of --rpm/--tpm may be spent at once; 1m if a whole minute is available up front (default 200ms, spent within half a minute; with --law plain 1s, spent at once)")
	fs.DurationVar(&f.LatencyTarget, "latency-target", 0, "keep the mean latency below this, with fewer calls in flight if needed; 0: no target")
	fs.IntVar(&f.MaxAttempts, "max-attempts", batch.DefaultMaxAttempts, "attempts per item; rate-limit refusals do not count")
	fs.IntVar(&f.MaxBodies, "max-bodies", openai.DefaultMaxBodies/Mebibyte, "MiB of long answers held in memory, all calls together; further ones wait (the first 64 KiB of each do not count)")
	fs.DurationVar(&f.Timeout, "timeout", batch.DefaultAttemptTimeout, "time limit of one call; waiting to be sent does not count; 0: none")
	fs.StringVar(&f.stream, "stream", streamAuto, "take answers as streams, so that --timeout bounds only the wait for their first byte: always, never, or auto (where the provider wants streams for long answers)")
	fs.DurationVar(&f.streamIdle, "stream-idle", wire.DefaultStreamIdle, "longest silence of a stream after its first byte; 0: no limit")
	fs.DurationVar(&f.FirstAnswer, "first-answer", batch.DefaultFirstAnswer, "give up (exit 3) if every call failed alike for this long and none was answered; 0: never")
	fs.DurationVar(&f.OutagePatience, "outage-patience", batch.DefaultOutagePatience, "give up (exit 3) if a model that answered before has answered nothing for this long; 0: never")
	fs.BoolVar(&f.KeepGoing, "keep-going", false, "never stop because items fail alike; in an outage, good items then fail, too")
	fs.Var(&f.MaxFailures, "max-failures", "stop (exit 4) when this many items have failed in this run, or this share of them, as in 5% (after the first 100); 0: never")
	fs.Float64Var(&f.MaxCost, "max-cost", 0, "never spend more, in USD (exit 4): estimates of calls in flight are reserved; what earlier runs to the same output cost counts")
	fs.DurationVar(&f.ItemTimeout, "item-timeout", 0, "time limit of one item, all attempts together, from its first call; 0: none")
	fs.DurationVar(&f.Deadline, "deadline", 0, "time limit of the run, which then stops as at Ctrl-C (exit 4); 0: none")
	fs.DurationVar(&f.LongWait, "long-wait", batch.DefaultLongWait, "warn when a model or item has waited longer than this; 0: never")
	fs.StringVar(&f.Filtered, "filtered", filteredKeep, "answers that a content filter cut short or emptied: keep (they are results, and counted) or fail (they go to the errors file)")
	fs.StringVar(&f.Schema, "schema", "", "file with a JSON Schema that each answer must fit, as JSON; items whose answers do not are asked again, or fail (see headrace run --help)")
	fs.IntVar(&f.SchemaRetries, "schema-retries", 2, "with --schema, how often an item is asked again; in all, never more than a tenth of the items")
	fs.StringVar(&f.Order, "order", orderCompletion, "order of results: completion (as they come) or input (finished answers are held, and lost if killed, until earlier ones are done; a resumed run sorts its file at the end)")
	fs.BoolVar(&f.RetryFailed, "retry-failed", false, "also retry items that failed for good in an earlier run")
	fs.BoolVar(&f.Fresh, "fresh", false, "start over: the old output is kept as OUTPUT.bak")
	fs.BoolVar(&f.Forget, "forget", false, "ignore limits learned by earlier runs (OUTPUT with .state.json for .jsonl has them)")
	fs.StringVar(&f.durable, "durable", durableSync, "sync: safe from power loss within 10 ms; os: safe from a crash of headrace only")
	fs.StringVar(&f.Progress, "progress", ProgressAuto, "what standard error shows: auto, panel, bar, plain, json or none; auto is the panel on a terminal, else plain")
	fs.BoolVar(&f.Verbose, "verbose", false, "show more at the end: cooldowns, probes, redistributed items, where the time went, and the proof that nothing was lost")
	fs.StringVar(&f.Color, "color", ColorAuto, "auto, always or never; auto colors the panel of a terminal unless NO_COLOR is set")
	fs.StringVar(&f.MetricsAddr, "metrics-addr", "", "show the run at this address while it goes on, as in 127.0.0.1:9500 (without a host, this machine only): / is a page with plots, /metrics is for Prometheus, /status is one event of --progress json, and /timeline.jsonl is the timeline")
	fs.DurationVar(&f.Linger, "linger", 0, "keep serving --metrics-addr for this long after the end, so that a last scrape sees it; Ctrl-C ends the wait")
	fs.StringVar(&f.Ctl, "ctl", CtlOn, "on, or off: headrace ctl cannot find the run")
	fs.StringVar(&f.logLevel, "log-level", "warn", "debug, info, warn or error")
	fs.StringVar(&f.logFormat, "log-format", logAuto, "text, json or auto (json with --progress json, else text)")
	fs.StringVar(&f.LogFile, "log-file", "", "append the log to this file (default: standard error)")
	fs.Uint64Var(&f.Seed, "seed", 0, "makes jitter and simulation reproducible (default: a new one each time)")
	fs.StringVar(&f.SimProfile, "sim-profile", ProfileDemo, "what --provider sim is like: demo (its headers say what its limit is), silent (only refusals show it) or fast (no limit)")
	fs.StringVar(&f.Config, "config", "", "YAML file of flags, one a line as in \"rpm: 600\", and of settings that have no flag (ramp, breaker, …: see headrace help config)")
	fs.BoolVar(&f.PrintConfig, "print-config", false, "run nothing: print the settings that hold, and where each comes from, as a file for --config; no secret is shown")
	fs.StringVar(&f.Cluster, "cluster", "", "run on many machines (the full command only): in the cluster at an address, as in --cluster=nats://…; without an address, in a trial cluster in this process")
	fs.Lookup("cluster").NoOptDefVal = ClusterTrial
	NameValues(fs, map[string]string{
		"cluster": "ADDRESS", "ctl": "WHEN", "metrics-addr": "ADDRESS", "metrics-file": "FILE", "report": "FILE", "linger": "D", "confirm-above": "USD", "pilot": "N", "spill": "D",
		"output": "FILE", "errors": "FILE", "timeline": "FILE", "api-key-env": "NAME", "api-key-file": "FILE", "text": "WHEN",
		"order": "MODE", "concurrency": "N", "rpm": "N", "tpm": "N", "input-tpm": "N", "output-tpm": "N", "burst": "D", "latency-target": "D", "max-attempts": "N", "max-bodies": "N",
		"timeout": "D", "stream": "WHEN", "stream-idle": "D", "item-timeout": "D", "deadline": "D", "long-wait": "D", "first-answer": "D", "outage-patience": "D", "max-failures": "N|P%", "max-cost": "USD", "filtered": "MODE", "schema": "FILE", "schema-retries": "N", "sim-profile": "NAME", "config": "FILE",
		"durable": "MODE", "progress": "MODE", "color": "WHEN", "log-level": "LEVEL", "log-format": "FORMAT", "log-file": "FILE", "seed": "N",
	})
}

// Complete sets missing flags from the environment, then from the file of --config. It checks all that needs
// no open file and no call. If a command has only some of the flags, fs holds those. The file may also set
// the others, which have no meaning there, so that one file serves all commands.
func (f *Flags) Complete(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	from, hasOutput := origins{}, fs.Lookup("output") != nil
	needsOutput := hasOutput && !f.Looks && !f.PrintConfig
	from.note(fs, "flag")
	if err := fromEnvironment(fs, env); err != nil {
		return err
	}
	from.note(fs, "environment")
	if err := f.fromFile(); err != nil {
		return err
	}
	from.note(fs, "file")
	f.Given = append(from.settings(fs), f.Lanes.settings()...)
	fs = f.All
	f.Seeded, f.KeyEnvGiven = fs.Changed("seed"), fs.Changed("api-key-env")
	through := f.goThrough()
	f.Lanes.useLaw(f.Law)
	fault := f.Resolve(fs, env)
	if fault == nil && f.Planned == nil && f.Through == "" {
		fault = f.locate(env)
	}
	f.useVendor(fs, env)
	fleetFault := f.completeFleet(from, env)
	return Usage(append(f.Lanes.check(f.Law),
		through,
		fleetFault,
		f.checkOutput(needsOutput),
		f.checkCluster(),
		f.checkTimeline(),
		fault,
		f.checkKeyEnv(env),
		f.checkInClear(),
		f.checkHeaders(),
		f.checkNetwork(),
		OneOf("text", f.text, textAuto, textAlways, textNever),
		f.checkUntranslatable(),
		checkPreset(f.Preset),
		f.checkLaw(!hasOutput && f.Planned == nil && !f.ManyLanes || f.Cluster != ""), // other commands without an output belong to a cluster
		f.checkEndpoint(),
		f.checkTier(),
		f.checkSpill(),
		f.checkConfirm(),
		f.checkPilot(),
		f.checkMaxCost(),
		f.checkLimits(),
		AtLeast("concurrency", f.Concurrency, 1),
		atMost("concurrency", f.Concurrency, machine.MaxConcurrency),
		AtLeast("max-attempts", f.MaxAttempts, 1),
		AtLeast("max-bodies", f.MaxBodies, 1),
		atMost("max-bodies", f.MaxBodies, mostBodies),
		AtLeast("limit", f.limit, 0),
		AtLeast("latency-target", f.LatencyTarget, 0),
		AtLeast("timeout", f.Timeout, 0),
		OneOf("stream", f.stream, streamAuto, streamAlways, streamNever),
		AtLeast("stream-idle", f.streamIdle, 0),
		AtLeast("item-timeout", f.ItemTimeout, 0),
		AtLeast("deadline", f.Deadline, 0),
		AtLeast("long-wait", f.LongWait, 0),
		f.checkMeters(),
		AtLeast("first-answer", f.FirstAnswer, 0),
		AtLeast("outage-patience", f.OutagePatience, 0),
		OneOf("filtered", f.Filtered, filteredKeep, FilteredFail),
		f.checkSchema(),
		OneOf("sim-profile", f.SimProfile, ProfileDemo, ProfileSilent, profileFast),
		OneOf("order", f.Order, orderCompletion, OrderInput),
		OneOf("format", f.Format, FormatAuto, FormatJSONL, FormatText, FormatCSV),
		OneOf("on-bad-line", f.onBadLine, badLineFail, badLineSkip),
		f.parseTemplate(),
		f.parseParams(),
		OneOf("durable", f.durable, durableSync, durableOS),
		OneOf("ctl", f.Ctl, CtlOn, CtlOff),
		OneOf("progress", f.Progress, ProgressAuto, ProgressPanel, ProgressBar, ProgressPlain, ProgressJSON, ProgressNone),
		OneOf("color", f.Color, ColorAuto, ColorAlways, colorNever),
		f.checkLevel(),
		f.readPrices(&f.InputFlags, f.Preset),
		f.checkLog(),
		f.checkPlanned(),
	)...)
}

// checkOutput refuses a run without an output, where the command needs one, and an errors file on standard
// output.
func (f *Flags) checkOutput(needed bool) error {
	if needed && f.Output == "" {
		return fmt.Errorf("no output: name a file with -o %s, or standard output with -o -", ResultsName)
	}
	if f.Errors == "-" {
		return errors.New(`--errors "-": standard output carries results only: name a file`)
	}
	return nil
}

// checkCluster refuses an empty address, which an unset variable gives: the command would run on this machine alone.
func (f *Flags) checkCluster() error {
	if f.Cluster == "" && f.All.Changed("cluster") {
		return errors.New("--cluster= has no address: give the line that headrace hub prints, or write --cluster alone for a trial in this process")
	}
	return nil
}

// variableName matches the names that shells allow for a variable. A key does not match, and
// so no error repeats it.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkKeyEnv refuses a text that cannot be a variable's name. It also refuses one that names no variable and
// looks like a key. The error repeats neither.
func (f *Flags) checkKeyEnv(env func(string) (string, bool)) error {
	_, set := env(f.KeyEnv)
	if f.SendsNoKey() && f.KeyFile != "" {
		return errors.New("--api-key-env none sends no key, and --api-key-file names one: remove one of the two")
	}
	if !variableName.MatchString(f.KeyEnv) || !set && exit.LooksLikeKey(f.KeyEnv) {
		return errors.New("--api-key-env takes the name of a variable, not a key: put the key into a variable and give its name")
	}
	return nil
}

// keyEnvNone is the value of --api-key-env with which no key is sent: it then does not displace
// a header of the user's.
const keyEnvNone = "none"

// SendsNoKey reports whether the user wants calls without a key.
func (f *Flags) SendsNoKey() bool { return f.KeyEnvGiven && f.KeyEnv == keyEnvNone }

// checkInClear refuses to send, unencrypted to the vendor's own hosts, a key that the user has
// not named. It also applies where others have the key, as workers do.
func (f *Flags) checkInClear() error {
	if f.Planned != nil || f.KeyEnvGiven || f.KeyFile != "" || !f.IsInClear() {
		return nil
	}
	return f.InClear("what proves who calls")
}

// IsInClear reports whether calls go unencrypted to the vendor's own hosts without the user's
// permission.
func (f *Flags) IsInClear() bool {
	u, err := url.Parse(f.BaseURL)
	return err == nil && u.Scheme == "http" && !f.insecureHTTP && f.Vendor.Answers(f.BaseURL)
}

// InClear returns the error for an address to which a secret would go unencrypted.
func (f *Flags) InClear(what string) error {
	u, err := url.Parse(f.BaseURL)
	if err != nil {
		return err
	}
	safe := url.URL{Scheme: "https", Host: strings.TrimSuffix(u.Host, ":80"), Path: u.Path}
	return fmt.Errorf("%s: it says http, so %s would be sent unencrypted to %s: try %s, or add --insecure-http to allow that",
		cmp.Or(f.MadeOf, "--base-url"), what, u.Hostname(), exit.WithoutKeys(safe.String()))
}

func (f *InputFlags) checkEndpoint() error {
	return OneOf("endpoint", f.endpoint, prompts.Endpoints()...)
}

// Limits returns the limits that the user gives.
func (f *Flags) Limits() limiter.Limits {
	return limiter.Limits{RPM: f.rpm, TPM: f.tpm, InputTPM: f.inputTPM, OutputTPM: f.outputTPM, Burst: f.burst}
}

func (f *Flags) checkLimits() error {
	if f.Planned != nil {
		return checkLimits(f.Limits(), "means not known")
	}
	return checkLimits(f.Limits(), "learns it")
}

func (f *Flags) checkPlanned() error {
	if f.Planned == nil {
		return nil
	}
	return f.Planned()
}

// checkLimits returns an error for each invalid limit. The text zero explains what 0 means, which differs
// between commands.
func checkLimits(limits limiter.Limits, zero string) error {
	faults := []error{AtLeast("burst", limits.Burst, 0)}
	if limits.Burst > limiter.MaxBurst {
		faults = append(faults, fmt.Errorf("--burst: %v is too large: at most %v", limits.Burst, limiter.MaxBurst))
	}
	for _, limit := range []struct {
		flag  string
		value float64
	}{{"rpm", limits.RPM}, {"tpm", limits.TPM}, {"input-tpm", limits.InputTPM}, {"output-tpm", limits.OutputTPM}} {
		if (limiter.Limits{RPM: limit.value}).Validate() != nil {
			faults = append(faults, fmt.Errorf("--%s: %v is not a limit: want a number of 0 or more; 0 %s", limit.flag, limit.value, zero))
		}
	}
	return errors.Join(faults...)
}

func (f *Flags) checkLevel() error {
	if _, err := f.Level(); err != nil {
		return OneOf("log-level", f.logLevel, "debug", "info", "warn", "error")
	}
	return nil
}

// Level returns the lowest level of the log.
func (f *Flags) Level() (slog.Level, error) {
	var l slog.Level
	err := l.UnmarshalText([]byte(f.logLevel))
	return l, err
}

// Leveler returns the level of the log. It can be changed while the log is written.
func (f *Flags) Leveler() *slog.LevelVar {
	if f.level == nil {
		f.level = new(slog.LevelVar)
		level, _ := f.Level() // checked with the flags
		f.level.Set(level)
	}
	return f.level
}

// Values of --ctl.
const (
	CtlOn  = "on"
	CtlOff = "off"
)

// mostRaised is the number of calls in flight to which headrace ctl raises fewer: many more at once than most
// accounts let through.
const mostRaised = 1024

// MostConcurrency returns to how many calls in flight headrace ctl may raise the run's, before files run out.
func (f *Flags) MostConcurrency() int {
	if f.Ctl == CtlOff {
		return f.Concurrency
	}
	return max(f.Concurrency, min(4*f.Concurrency, mostRaised))
}

// parseTemplate parses the value of --template, if it is set.
func (f *InputFlags) parseTemplate() (err error) {
	if f.template == "" {
		return nil
	}
	if f.parsed, err = prompts.ParseTemplate(f.template); err != nil {
		return fmt.Errorf("--template: %s: write fields as in {{.text}}", exit.PlainText(err))
	}
	return nil
}

// FormatOf returns the format of the input of that name. It ignores the ending of a packed file, such as .gz.
func (f *InputFlags) FormatOf(name string) prompts.Format {
	format := f.Format
	if format == FormatAuto {
		name = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".gz"), ".zst")
		if strings.HasSuffix(name, ".csv") {
			format = FormatCSV
		}
	}
	switch format {
	case FormatText:
		return prompts.FormatText
	case FormatCSV:
		return prompts.FormatCSV
	}
	return prompts.FormatJSONL
}

// SkipsBadLines reports whether bad lines are left out.
func (f *InputFlags) SkipsBadLines() bool { return f.onBadLine == badLineSkip }

// SkipsUntranslatable reports whether lines that the provider cannot take are left out.
func (f *InputFlags) SkipsUntranslatable() bool { return f.onUntranslatable == badLineSkip }

// GoesElsewhere reports whether a line that some lanes cannot take goes to the others.
func (f *InputFlags) GoesElsewhere() bool { return f.onUntranslatable == goElsewhere }

// checkUntranslatable refuses a mode that needs several lanes where there is one.
func (f *Flags) checkUntranslatable() error {
	if f.GoesElsewhere() && f.Fleet == nil {
		return errors.New("--on-untranslatable elsewhere needs several lanes: write them into the file of --config, or use fail or skip")
	}
	return OneOf("on-untranslatable", f.onUntranslatable, badLineFail, badLineSkip, goElsewhere)
}

// Durability returns how safe a result is before it counts as saved.
func (f *Flags) Durability() saver.Durability {
	if f.durable == durableOS {
		return saver.OS
	}
	return saver.Sync
}

// The laws of admission that --law chooses from.
const (
	lawModel = "model"
	LawPlain = "plain"
	LawNone  = "none"
)

func registerLaw(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "law", lawModel, "how calls are paced: model (follows the provider's own limits), plain (given limits, trial and a ramp) or none (only -c limits calls)")
	NameValues(fs, map[string]string{"law": "NAME"})
}

// checkLaw refuses an unknown law, and flags that the law does not use. In a cluster a keeper enforces the
// limit, so the law cannot be none.
func (f *Flags) checkLaw(inCluster bool) error {
	faults := []error{OneOf("law", f.Law, lawModel, LawPlain, LawNone)}
	if f.Law == LawNone {
		if inCluster {
			faults = append(faults, errors.New("--law none cannot be used in a cluster, which keeps one limit for all: use model or plain"))
		}
		for _, name := range []string{"rpm", "tpm", "input-tpm", "output-tpm", "burst", "latency-target"} {
			if flag := f.All.Lookup(name); flag.Changed && strings.Trim(flag.Value.String(), "0s") != "" {
				faults = append(faults, fmt.Errorf("--%s: %s has no effect with --law none, which limits nothing: remove one of the two", name, flag.Value))
			}
		}
	}
	return errors.Join(faults...)
}

// LawOptions returns the options that pace the lanes. A local server queues instead of refusing, so its
// latency is watched as well as its refusals. The simulated provider refuses wherever it is.
func (f *Flags) LawOptions() []batch.Option {
	opts := []batch.Option{batch.WithLatencyTarget(f.LatencyTarget)}
	switch {
	case f.Law == LawPlain:
		opts = append(opts, batch.WithPlainLaw())
	case f.Law == lawModel && f.Answering(f.Preset).Local:
		opts = append(opts, batch.WithLocalServer(cmp.Or(f.LatencyTarget, limiter.LocalTarget(f.Timeout))))
	}
	return opts
}

// LaneOptions returns the options of lanes: their limits, and the law that paces them.
func (f *Flags) LaneOptions() []batch.Option {
	answers := f.Answering(f.Preset)
	opts := []batch.Option{batch.WithLimits(f.Limits()), batch.WithCharge(answers.Charge), batch.WithPeriods(answers.Periods)}
	opts = append(opts, f.LawOptions()...)
	return append(opts, f.Lanes.Options(f.Law)...)
}

// Profile returns the simulated provider that a value of --profile names.
func Profile(name string) (sim.Config, error) {
	switch name {
	case ProfileDemo:
		return sim.Demo(), nil
	case ProfileSilent:
		return sim.Silent(), nil
	case profileFast:
		return sim.Fast(), nil
	}
	return sim.Config{}, exit.Refuse("--profile: %q is not known: use demo, silent or fast", name)
}

// Values of --profile, and of --sim-profile.
const (
	ProfileDemo   = "demo"
	ProfileSilent = "silent"
	profileFast   = "fast"
)

// LogsJSON reports whether the log is lines of JSON. With --progress json it is, unless a
// flag says otherwise.
func (f *Flags) LogsJSON() bool {
	return f.logFormat == logJSON || f.logFormat == logAuto && f.LogFile == "" && f.Progress == ProgressJSON
}

// checkLog refuses a log of text lines among lines of JSON.
func (f *Flags) checkLog() error {
	if f.LogFile == "" && f.logFormat == logText && f.Progress == ProgressJSON {
		return errors.New("--log-format text: --progress json writes JSON to standard error: add a --log-file, or remove --log-format")
	}
	return OneOf("log-format", f.logFormat, logAuto, logText, logJSON)
}

// Values of --log-format.
const (
	logAuto = "auto"
	logText = "text"
	logJSON = "json"
)

// ClusterTrial is the value of --cluster without an address: a cluster in this process, for
// a trial.
const ClusterTrial = "trial"
