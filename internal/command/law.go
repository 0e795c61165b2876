package command

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
)

// The laws of admission that --law chooses from.
const (
	lawModel = "model"
	lawPlain = "plain"
)

func registerLaw(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "law", lawModel, "how calls are paced: model (follows the provider's own limits) or plain (told limits, trial and a ramp)")
	nameValues(fs, map[string]string{"law": "NAME"})
}

func checkLaw(name string) error { return oneOf("law", name, lawModel, lawPlain) }

// lawOptions say how the lanes are paced. A server of one's own queues instead of
// refusing, so its latency is watched besides its refusals; the simulated provider refuses
// wherever it is.
func (f *runFlags) lawOptions() []batch.Option {
	opts := []batch.Option{batch.WithLatencyTarget(f.latencyTarget)}
	switch {
	case f.law == lawPlain:
		opts = append(opts, batch.WithPlainLaw())
	case f.whoAnswers(f.preset).Local:
		opts = append(opts, batch.WithLocalServer(cmp.Or(f.latencyTarget, limiter.LocalTarget(f.timeout))))
	}
	return opts
}
