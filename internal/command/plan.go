package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/plan"
	"github.com/headrace/headrace/limiter"
)

const planLong = `Say what a prompt file would cost and how long it would take. No call is made, and no
key is needed.

Tokens are estimated from the text. The time comes from the coordinator itself, run in
virtual time against a simulated provider with the limits that you tell; limits that you
do not tell are learned in a run, and cannot be foreseen here. Of more than 100,000 items
a sample is run.

The input is read and checked as run does it, by the same flags, and bad lines are listed
in the same way.`

func newPlanCommand(w *World) *cobra.Command {
	flags := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan INPUT [flags]",
		Short: "Say what a prompt file would cost and how long it would take",
		Long:  planLong,
		Example: `  headrace plan examples/prompts.jsonl --model gpt-6-luna --tier openai-build
  headrace plan prompts.jsonl --rpm 600 --tpm 200000 -c 64
  headrace plan prompts.jsonl --rpm 600 --json | jq .seconds`,
		Args: oneInput,
		RunE: func(cmd *cobra.Command, args []string) error {
			w.release() // there is nothing to be saved: Ctrl-C has its usual effect
			w.stdout = forPeople(w.stdout)
			if err := flags.complete(cmd.Flags(), w.env); err != nil {
				return err
			}
			return w.planFile(flags, args[0])
		},
	}
	flags.register(cmd.Flags())
	completeProvider(cmd)
	return cmd
}

// planFlags are the flags of plan, by name. Those that run has too mean the same.
type planFlags struct {
	inputFlags
	priceFlags
	preset      string
	concurrency int
	limits      limiter.Limits
	tier        string
	latency     time.Duration
	answer      float64
	json        bool
	seed        uint64

	ownTier plan.Tier
}

func (f *planFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.provider, "provider", providerOpenAI, "whom run would call: openai, anthropic, … (see headrace help providers) or sim")
	fs.StringVar(&f.baseURL, "base-url", "", "the server that run would call; of --provider openai it tells the preset")
	f.registerWhom(fs)
	registerPreset(fs, &f.preset)
	f.registerInput(fs, "fail (there is no plan) or skip (bad lines are left out)")
	fs.IntVarP(&f.concurrency, "concurrency", "c", batch.DefaultConcurrency, "most calls in flight")
	fs.Float64Var(&f.limits.RPM, "rpm", 0, "requests a minute that each model is allowed; 0 is not told")
	fs.Float64Var(&f.limits.TPM, "tpm", 0, "tokens a minute that each model is allowed; 0 is not told")
	fs.Float64Var(&f.limits.InputTPM, "input-tpm", 0, "input tokens a minute that each model is allowed; 0 is not told")
	fs.Float64Var(&f.limits.OutputTPM, "output-tpm", 0, "output tokens a minute that each model is allowed; 0 is not told")
	fs.StringVar(&f.tier, "tier", "", "published limits of a tier, for models that it lists: "+plan.TierNames())
	fs.DurationVar(&f.latency, "latency", 0, "median time of a call; 0 is 0.5 s and 20 ms for each token written")
	fs.Float64Var(&f.answer, "output-tokens", limiter.ExpectedOutput, "tokens of an answer that its line does not bound")
	f.registerPrices(fs)
	fs.BoolVar(&f.json, "json", false, "print JSON")
	fs.Uint64Var(&f.seed, "seed", 0, "draws other latencies")
	nameValues(fs, map[string]string{
		"concurrency": "N",
		"rpm":         "N", "tpm": "N", "input-tpm": "N", "output-tpm": "N", "tier": "NAME", "latency": "D",
		"output-tokens": "N", "seed": "N",
	})
}

// complete takes what was not given from the environment, reads the tables and
// checks the rest.
func (f *planFlags) complete(fs *pflag.FlagSet, env func(string) (string, bool)) error {
	if err := fromEnvironment(fs, env); err != nil {
		return err
	}
	whom := f.resolve(fs, env) // nobody is called: no address is needed
	if most := f.vendor.InFlight; most > 0 && !fs.Changed("concurrency") {
		f.concurrency = min(f.concurrency, most)
	}
	var tierErr error
	f.ownTier, tierErr = plan.TierOf(f.tier)
	return usage(
		whom,
		oneOf("on-untranslatable", f.onUntranslatable, badLineFail, badLineSkip),
		checkPreset(f.preset),
		f.checkEndpoint(),
		f.checkLimits(),
		atLeast("concurrency", f.concurrency, 1),
		atMost("concurrency", f.concurrency, machine.MaxConcurrency),
		atLeast("latency", f.latency, 0),
		atLeast("output-tokens", int(f.answer), 0),
		atLeast("limit", f.limit, 0),
		oneOf("format", f.format, formatAuto, formatJSONL, formatText, formatCSV),
		oneOf("on-bad-line", f.onBadLine, badLineFail, badLineSkip),
		f.parseTemplate(),
		f.parseParams(),
		f.readPrices(&f.inputFlags, f.preset),
		tierErr,
	)
}

func (f *planFlags) checkLimits() error {
	return checkLimits(f.limits, "is not told")
}

// planFile reads the file, runs the forecast and prints what came of it.
func (w *World) planFile(flags *planFlags, input string) error {
	p := plan.New(flags.planOf(input))
	found, err := w.scan(&flags.inputFlags, input, p.Take)
	if err != nil {
		return err
	}
	p.Foresee(found.Lines, found.Bad.All, found.Untranslatable.All)
	if !flags.json {
		p.Text(w.stdout)
		return nil
	}
	if err := p.JSON(w.stdout); err != nil {
		return &ending{code: ExitOutput, text: fmt.Sprintf("%v: the plan cannot be written", err)}
	}
	return nil
}

func (f *planFlags) planOf(input string) plan.Config {
	answers := f.whoAnswers(f.preset)
	return plan.Config{
		Input: input, Lane: f.laneOf, Limits: f.limits, Tier: f.ownTier, Ramps: answers.Name == providerOpenAI && f.provider == providerOpenAI,
		Cost: func(body []byte) limiter.Cost { return costOf(answers.Charge, body) }, Counts: answers.Name,
		Concurrency: f.concurrency, Latency: f.latency, Output: f.answer, Prices: f.known, Seed: f.seed,
	}
}

// laneOf is the quota that a model's calls draw on, as in a run: the simulated
// provider has one for all.
func (f *planFlags) laneOf(model string) string {
	if f.provider == providerSim {
		return "all models"
	}
	return model
}
