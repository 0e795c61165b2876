package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/internal/command/schema"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/limiter"
)

const planLong = `Estimate what a prompt file would cost and how long it would take. No call is made, and no
key is needed.

Tokens are estimated from the text. The time comes from the scheduler of headrace run, in
virtual time, against a simulated provider with the limits that you give. A run learns limits
that you do not give; they cannot be foreseen here. Of more than 100,000 items, plan runs a
sample.

plan reads and checks the input as run does, with the same flags and the same file of
--config, and lists bad lines in the same way. A law, its lanes' settings, a burst and a
latency target change the time as they do in a run. With lanes in that file it has a row for each
pool and lane, and the cost on the cheapest and on the dearest lane.`

// Command returns the command headrace plan.
func Command(w *world.World) *cobra.Command {
	flags := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan INPUT... [flags]",
		Short: "Estimate what a prompt file would cost and how long it would take",
		Long:  planLong,
		Example: `  headrace plan examples/prompts.jsonl --model gpt-6-luna --tier openai-build
  headrace plan prompts.jsonl --rpm 600 --tpm 200000 -c 64
  headrace plan prompts.jsonl --rpm 600 --json | jq .seconds`,
		Args: settings.SomeInputs,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.Release() // there is nothing to save: Ctrl-C has its usual effect
			w.Stdout = exit.ForPeople(w.Stdout)
			if err := flags.Complete(cmd.Flags(), w.Env); err != nil {
				return err
			}
			inputs, err := settings.Matching(args)
			if err != nil {
				return err
			}
			return planFiles(w, flags, inputs)
		},
	}
	flags.registerPlan(cmd.Flags())
	settings.CompleteWords(cmd, "tier", strings.Split(TierNames(), ", ")...)
	settings.CompleteValues(cmd)
	return cmd
}

// planFlags are the flags of plan, by name: its own, and those of run that change which
// calls are made, when, or at what cost.
type planFlags struct {
	settings.Flags
	tier         string
	latency      time.Duration
	answerTokens float64
	json         bool

	ownTier Tier
}

// notOfPlan lists the flags of run that change neither its calls nor their time.
var notOfPlan = []string{
	"output", "errors", "timeline", "insecure-http", "api-key-env", "api-key-file", "header", "ca-file", "client-cert", "client-key", "text", "max-attempts", "max-bodies", "item-timeout", "first-answer",
	"outage-patience", "keep-going", "max-failures", "long-wait", "filtered", "order", "retry-failed", "fresh", "forget", "durable", "progress", "color",
	"log-level", "log-format", "log-file", "sim-profile", "cluster", "ctl", "print-config", "stream", "stream-idle", "pilot", "spill", "yes", "confirm-above",
	"metrics-addr", "metrics-file", "linger", "through", "share", "report",
}

// registerPlan registers the flags of plan: those of run that matter for it, and its own.
func (f *planFlags) registerPlan(fs *pflag.FlagSet) {
	f.Planned, f.ManyLanes = f.check, true
	run := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.Register(run)
	fs.SortFlags = false
	run.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(notOfPlan, flag.Name) {
			fs.AddFlag(flag)
		}
	})
	for name, usage := range map[string]string{
		"provider": "provider that run would call: openai, anthropic, … (see headrace help providers) or sim",
		"base-url": "server that run would call; with --provider openai it decides the preset",
		"rpm":      "requests a minute allowed for each model; 0: not known",
		"tpm":      "tokens a minute allowed for each model; 0: not known",
		"seed":     "seed for the latencies", "on-bad-line": "fail (there is no plan) or skip (bad lines are left out)",
	} {
		fs.Lookup(name).Usage = usage
	}
	fs.StringVar(&f.tier, "tier", "", "published limits of a tier, for the models that it lists: "+TierNames())
	fs.DurationVar(&f.latency, "latency", 0, "median time of a call; 0: 0.5 s plus 20 ms for each token written")
	fs.Float64Var(&f.answerTokens, "output-tokens", limiter.ExpectedOutput, "tokens of an answer if its line has no max_tokens")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	settings.NameValues(fs, map[string]string{"tier": "NAME", "latency": "D", "output-tokens": "N"})
}

// check finds the tier, and faults in plan's own flags.
func (f *planFlags) check() (err error) {
	f.ownTier, err = TierOf(f.tier)
	if f.tier != "" && f.Law == settings.LawNone {
		err = fmt.Errorf("--tier: %s has no effect with --law none, which limits nothing: remove one of the two", f.tier)
	}
	return errors.Join(err, settings.AtLeast("latency", f.latency, 0), f.checkAnswer())
}

// mostAnswer exceeds the tokens of any sensible answer.
const mostAnswer = 1e9

func (f *planFlags) checkAnswer() error {
	if f.answerTokens >= 0 && f.answerTokens <= mostAnswer { // NaN fails too
		return nil
	}
	return fmt.Errorf("--output-tokens: %v is not a number of tokens: it may be from 0 to %s", f.answerTokens, words.Thousands(mostAnswer))
}

// planFiles reads the files, runs the forecast and prints the plan.
func planFiles(w *world.World, flags *planFlags, inputs []string) error {
	src, err := settings.OpenInputs(w.Stdin, inputs, flags.FormatOf)
	if err != nil {
		return err
	}
	if _, err := schema.Of(&flags.Flags); err != nil {
		return err
	}
	p := New(flags.planConfig(src.Name, w.Clock.Now()))
	routes := p.cfg.Routes
	configure := func(cfg *prompts.Config) {
		if routes != nil {
			routes.Reads(cfg)
		}
		if flags.Schema != "" {
			cfg.Takes = schema.Takes(cfg.Takes)
		}
	}
	found, err := verdict.Scan(w, &flags.InputFlags, src, configure, p.Take)
	if err != nil {
		return err
	}
	if routes != nil {
		if err := routes.Close(); err != nil {
			return exit.Refuse("%s: %v: correct the models of the lines, or lanes and pools in %s", src.Name, err, flags.Config)
		}
	}
	p.Foresee(found.Lines, found.Bad.All, found.Untranslatable.All)
	if !flags.json {
		p.Text(w.Stdout)
		return nil
	}
	return p.JSON(w.Stdout)
}

// planConfig translates the flags into the settings of a plan.
func (f *planFlags) planConfig(input string, at time.Time) Config {
	c := ConfigOf(&f.Flags, input, at)
	c.Tier, c.Latency, c.Output = f.ownTier, f.latency, f.answerTokens
	return c
}

// ConfigOf translates the flags of run into the settings of a plan of that run, with the prices of an
// instant.
func ConfigOf(f *settings.Flags, input string, at time.Time) Config {
	vendor := f.Answering(f.Preset)
	lane := f.Lanes.Lane(f.Law)
	if f.Law == settings.LawPlain {
		lane.Law = limiter.Plain
	}
	lane.Target = f.LatencyTarget
	rowName := func(model string) string { return model }
	if f.Provider == settings.ProviderSim { // it has one for all
		rowName = func(string) string { return "all models" }
	}
	var routes *route.Table
	if f.Fleet != nil {
		routes = route.New(f)
	}
	return Config{
		Routes: routes,
		Input:  input, Service: f.PriceTier(), OffersFlex: f.OffersFlex(), Capped: f.MaxCost > 0, Checked: f.Schema != "" && f.SchemaRetries > 0, Row: rowName, Limits: f.Limits(), Ramps: vendor.Name == settings.ProviderOpenAI && f.Provider == settings.ProviderOpenAI,
		Quota: func(model string) string { // as in a run
			return settings.LaneOf(f.Name(), model, f.Provider == settings.ProviderSim || f.Vendor.ByAccount)
		},
		Cost: func(q *prompts.Request) limiter.Cost { return settings.CostOf(vendor.Charge, q) }, Counts: vendor.Name,
		Concurrency: f.Concurrency, Lane: lane, Timeout: f.Timeout, Deadline: f.Deadline, Output: limiter.ExpectedOutput, Prices: f.Known, At: at, Seed: f.Seed,
	}
}
