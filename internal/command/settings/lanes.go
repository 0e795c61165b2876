package settings

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
)

// laneSettings holds the settings of all lanes that the file of --config has and no flag
// does. Each section is one part of a lane; a setting that a section leaves out has its
// default.
type laneSettings struct {
	fs    *pflag.FlagSet
	file  string
	lines map[string]int // of the settings that were given, and of their sections

	rate     limiter.RateConfig
	ramp     limiter.RampConfig
	cooldown limiter.CooldownConfig
	errors   limiter.ErrorWindowConfig
	breaker  limiter.BreakerConfig
	backoff  limiter.BackoffConfig
	most     int
	idle     time.Duration
}

// laneSetting is one of them: its name, its value and bounds (of a duration in seconds), and
// its meaning.
type laneSetting struct {
	name     string
	target   any // *float64, *int or *time.Duration
	min, max float64
	meaning  string
}

// Bounds of sensible values. A setting beyond them is a slip.
const (
	millisecond = 0.001
	day         = 24 * 3600
	leastRate   = 0.001   // calls per second: one in a quarter of an hour
	mostRate    = 1e6     // as limiter.MaxRate
	mostCalls   = 1000000 // calls that decide something
	mostLanes   = 1000000 // some 3 GB of them
)

// table lists the settings in the order of the documentation.
func (s *laneSettings) table() []laneSetting {
	return []laneSetting{
		{"rate.initial", &s.rate.Initial, leastRate, mostRate, "calls a second at the start; with --law model a first guess"},
		{"rate.min", &s.rate.Floor, leastRate, mostRate, "lowest rate, in calls a second"},
		{"rate.max", &s.rate.Ceiling, leastRate, mostRate, "highest rate, in calls a second"},
		{"rate.increase", &s.rate.Increase, 0.0001, 1, "share of the last refused rate, added each second"},
		{"rate.decrease", &s.rate.Decrease, 0.01, 0.99, "factor for the rate after a refusal"},
		{"ramp.initial", &s.ramp.Initial, leastRate, mostRate, "calls a second at the start of the ramp"},
		{"ramp.target", &s.ramp.Target, leastRate, mostRate, "calls a second at the end of the ramp; no limit after it"},
		{"ramp.duration", &s.ramp.Duration, millisecond, 7 * day, "length of the ramp, which is linear"},
		{"cooldown.base", &s.cooldown.Base, millisecond, day, "first wait after a refusal that names no wait; doubles each time"},
		{"cooldown.max", &s.cooldown.Max, millisecond, day, "longest such wait"},
		{"cooldown.max-directed", &s.cooldown.MaxDirected, millisecond, machine.MaxDirected.Seconds(), "longest wait that the provider may ask for; a longer one stops the run"},
		{"cooldown.jitter", &s.cooldown.Jitter, 0, 1, "random share added to waits"},
		{"error-window.length", &s.errors.Window, 1, day, "time over which failed calls are counted"},
		{"error-window.high", &s.errors.High, 0.001, 1, "share of failed calls above which the pace is lowered"},
		{"error-window.low", &s.errors.Low, 0.001, 1, "share of failed calls below which it is restored"},
		{"error-window.factor", &s.errors.Factor, 0.01, 1, "factor for the lowered pace"},
		{"error-window.hold", &s.errors.Hold, millisecond, day, "shortest time for which it stays lowered"},
		{"error-window.min-calls", &s.errors.MinSamples, 1, mostCalls, "fewer calls than this decide nothing"},
		{"breaker.window", &s.breaker.Window, 1, day, "time over which failed calls are counted"},
		{"breaker.failure-rate", &s.breaker.FailureRate, 0.01, 1, "share of failed calls that opens the breaker; unset: none"},
		{"breaker.min-calls", &s.breaker.MinSamples, 1, mostCalls, "fewer calls than this decide nothing by share"},
		{"breaker.consecutive", &s.breaker.Consecutive, 1, mostCalls, "failed items in a row that open it; at least as many as calls are in flight"},
		{"breaker.open", &s.breaker.OpenFor, millisecond, day, "time without calls when it opens"},
		{"breaker.max-open", &s.breaker.MaxOpen, millisecond, day, "longest such time, while probes fail"},
		{"breaker.successes", &s.breaker.Successes, 1, mostCalls, "probes in a row that must be answered before it closes"},
		{"backoff.base", &s.backoff.Base, millisecond, day, "longest wait of an item after its first failed call; doubles each time"},
		{"backoff.max", &s.backoff.Max, millisecond, day, "longest wait after any failed call"},
		{"max-lanes", &s.most, 1, mostLanes, "models at once; items of further models are not run"},
		{"idle-lanes", &s.idle, 1, 30 * day, "how long an unused model is remembered"},
	}
}

// newLaneSettings returns the settings of lanes at their defaults, each bound to its name in fs.
// A setting without a default is zero.
func newLaneSettings(file string) *laneSettings {
	s := &laneSettings{
		fs: pflag.NewFlagSet("lanes", pflag.ContinueOnError), file: file, lines: map[string]int{},
		rate: limiter.RateConfig{
			Floor: limiter.DefaultRateFloor, Increase: limiter.DefaultRateIncrease, Decrease: limiter.DefaultRateDecrease,
		},
		ramp: limiter.RampConfig{
			Initial: limiter.DefaultRampInitial, Target: limiter.DefaultRampTarget, Duration: limiter.DefaultRampDuration,
		},
		cooldown: limiter.CooldownConfig{
			Base: limiter.DefaultCooldownBase, Max: limiter.DefaultCooldownMax,
			MaxDirected: limiter.DefaultMaxDirected, Jitter: limiter.DefaultCooldownJitter,
		},
		errors: limiter.ErrorWindowConfig{
			Window: limiter.DefaultErrorWindow, High: limiter.DefaultErrorHigh, Low: limiter.DefaultErrorLow,
			Factor: limiter.DefaultErrorFactor, Hold: limiter.DefaultErrorHold, MinSamples: limiter.DefaultErrorMinSamples,
		},
		breaker: limiter.BreakerConfig{
			Window: limiter.DefaultBreakerWindow, MinSamples: limiter.DefaultBreakerMinSamples,
			Consecutive: limiter.DefaultBreakerConsecutive, OpenFor: limiter.DefaultBreakerOpenFor, MaxOpen: limiter.DefaultBreakerMaxOpen,
			Successes: limiter.DefaultBreakerSuccesses,
		},
		backoff: limiter.BackoffConfig{Base: limiter.DefaultBackoffBase, Max: limiter.DefaultBackoffMax},
		most:    machine.DefaultMaxLanes,
		idle:    machine.DefaultIdleTTL,
	}
	for _, setting := range s.table() {
		switch target := setting.target.(type) {
		case *float64:
			s.fs.Float64Var(target, setting.name, *target, setting.meaning)
		case *int:
			s.fs.IntVar(target, setting.name, *target, setting.meaning)
		case *time.Duration:
			s.fs.DurationVar(target, setting.name, *target, setting.meaning)
		}
	}
	return s
}

// keys lists the settings of a section, in order; none if there is no such section.
func (s *laneSettings) keys(section string) (keys []string) {
	for _, setting := range s.table() {
		if key, ok := strings.CutPrefix(setting.name, section+"."); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// value returns the setting's value as a number, in the unit of its bounds.
func (one *laneSetting) value() float64 {
	switch to := one.target.(type) {
	case *float64:
		return *to
	case *int:
		return float64(*to)
	}
	return one.target.(*time.Duration).Seconds()
}

// allowed says in words which values the setting may have.
func (one *laneSetting) allowed() string {
	if _, is := one.target.(*time.Duration); is {
		return fmt.Sprintf("from %s to %s", words.Span(one.min), words.Span(one.max))
	}
	return fmt.Sprintf("from %s to %s", plainNumber(one.min), plainNumber(one.max))
}

// unset says what a setting without a default means.
var unset = map[string]string{"breaker.failure-rate": "never", "rate.initial": "any", "rate.max": "any"}

// shown returns a setting's value as a user would write it.
func (s *laneSettings) shown(name string) string {
	for _, setting := range s.table() {
		if _, is := setting.target.(*time.Duration); is && setting.name == name {
			return words.Span(setting.value())
		}
	}
	if word := unset[name]; word != "" && s.number(name) == 0 {
		return word
	}
	return s.fs.Lookup(name).Value.String()
}

func plainNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// given reports whether the file has the section or the setting.
func (s *laneSettings) given(name string) bool { return s != nil && s.lines[name] > 0 }

// Lane returns the configuration of every lane under that law, as far as the file sets it.
func (s *laneSettings) Lane(law string) (cfg batch.LaneConfig) {
	if law == LawNone {
		cfg.Law = batch.NoLaw
	}
	if s.given("rate") {
		if cfg.Rate = s.rate; law == lawModel {
			cfg.Rate = batch.RateConfig{Initial: s.rate.Initial}
		}
	}
	if s.given("ramp") {
		cfg.Ramp = s.ramp
	}
	if s.given("cooldown") {
		if cfg.Cooldown = s.cooldown; cfg.Cooldown.Jitter == 0 {
			cfg.Cooldown.Jitter = -1 // no jitter, as 0 is the default
		}
	}
	if s.given("error-window") {
		cfg.Errors = s.errors
	}
	if s.given("breaker") {
		cfg.Breaker = s.breaker
	}
	return cfg
}

// useLaw sets the breaker's usual open time under that law, unless the file sets one.
func (s *laneSettings) useLaw(law string) {
	if s == nil || law != lawModel {
		return
	}
	if !s.given("breaker.open") {
		s.breaker.OpenFor = machine.ModelOpen
		if s.given("breaker.max-open") {
			s.breaker.OpenFor = min(machine.ModelOpen, s.breaker.MaxOpen)
		}
	}
	if !s.given("breaker.max-open") {
		s.breaker.MaxOpen = max(machine.ModelOpen, s.breaker.OpenFor)
	}
}

// Options returns the settings as options of package batch.
func (s *laneSettings) Options(law string) (opts []batch.Option) {
	if c := s.Lane(law); c != (batch.LaneConfig{}) {
		opts = append(opts, batch.WithLaneDefaults(c))
	}
	if s.given("backoff") {
		opts = append(opts, batch.WithBackoff(s.backoff.Base, s.backoff.Max))
	}
	if s.given("max-lanes") {
		opts = append(opts, batch.WithMaxLanes(s.most))
	}
	if s.given("idle-lanes") {
		opts = append(opts, batch.WithIdleLanes(s.idle))
	}
	return opts
}

// WriteConfigHelp writes the help for the settings that have no flag, section by section.
func WriteConfigHelp(out io.Writer) {
	fmt.Fprint(out, configHelp)
	s, previous := newLaneSettings(""), ""
	for _, setting := range s.table() {
		section, key, within := strings.Cut(setting.name, ".")
		if !within {
			section = "" // the settings without a section stand together
		}
		if section != previous {
			fmt.Fprintln(out)
			previous = section
		}
		if !within {
			fmt.Fprintf(out, "  %-16s %-6s %s (%s)\n", setting.name+":", s.shown(setting.name), setting.meaning, setting.allowed())
			continue
		}
		if key == s.keys(section)[0] {
			fmt.Fprintf(out, "  %s:\n", section)
		}
		fmt.Fprintf(out, "    %-14s %-6s %s (%s)\n", key+":", s.shown(setting.name), setting.meaning, setting.allowed())
	}
	fmt.Fprintf(out, lanesHelp, wrappedWords(slices.Concat(ofLanes, ownWords, laneSections)), strings.Join(poolWords, ", "))
}

// wrappedWords joins words with commas, in indented lines that fit a terminal.
func wrappedWords(words []string) string {
	const columns = 84
	var b strings.Builder
	line := "   "
	for i, word := range words {
		if i < len(words)-1 {
			word += ","
		}
		if len(line)+1+len(word) > columns {
			b.WriteString(line + "\n")
			line = "   "
		}
		line += " " + word
	}
	return b.String() + line
}

const lanesHelp = `
Several providers, endpoints or keys are lanes. Each has the words of the flags that describe one
provider, and words of its own. Pools say which lanes take which lines (docs/pools.md).

  lanes:
    fast:
      provider: openai
    big:
      provider: azure
      base-url: https://acme-we.openai.azure.com
      api-key-env: AZURE_WE_KEY
      models: {gpt-5-mini: mini-prod}
  pools:
    main:
      lines: {model: [gpt-5-mini]}
      spread: [fast, big]

Words of a lane:
%s
Words of a pool: %s.
headrace lanes --config FILE shows what a file means, and calls nothing.
`

const configHelp = `The file of --config is YAML. Each flag of headrace run is a line, without its dashes; a flag
or a variable beats it. Nothing in it is executed, expanded or included, and keys are not
allowed in it: a secret of headers is named by its variable or file (headrace help network).
Flags of headrace serve are lines, too, which headrace run skips.

  base-url: http://127.0.0.1:8080/v1
  rpm: 600
  headers:
    X-Title: nightly
    x-portkey-api-key: env:PORTKEY_API_KEY
  law: plain
  ramp:
    initial: 5
    target: 20
    duration: 5m

The settings below have no flag and apply to every model. Each line shows the default. rate,
ramp and cooldown belong to --law plain: without ramp, a model climbs within 10 s to the rate
that headrace has learned. --law model takes rate.initial only, and its breaker, if open and
max-open are not set, opens for 2.3s at a time. --law none limits only the calls in flight,
and takes neither these nor error-window.
`
