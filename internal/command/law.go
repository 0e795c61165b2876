package command

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/limiter"
)

// The laws of admission that --law chooses from.
const (
	lawModel = "model"
	lawPlain = "plain"
	lawNone  = "none"
)

func registerLaw(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "law", lawModel, "how calls are paced: model (follows the provider's own limits), plain (given limits, trial and a ramp) or none (only -c limits calls)")
	nameValues(fs, map[string]string{"law": "NAME"})
}

// checkLaw refuses an unknown law, and flags that the law does not use. In a cluster a keeper
// keeps the limit, by its law.
func (f *runFlags) checkLaw(inCluster bool) error {
	faults := []error{oneOf("law", f.law, lawModel, lawPlain, lawNone)}
	if f.law == lawNone {
		if inCluster {
			faults = append(faults, errors.New("--law none cannot be used in a cluster, which keeps one limit for all: use model or plain"))
		}
		for _, name := range []string{"rpm", "tpm", "input-tpm", "output-tpm", "burst", "latency-target"} {
			if flag := f.all.Lookup(name); flag.Changed && strings.Trim(flag.Value.String(), "0s") != "" {
				faults = append(faults, fmt.Errorf("--%s: %s has no effect with --law none, which limits nothing: remove one of the two", name, flag.Value))
			}
		}
	}
	return errors.Join(faults...)
}

// lawOptions returns the options that pace the lanes. A server of one's own queues instead
// of refusing, so its latency is watched as well as its refusals. The simulated provider
// refuses wherever it is.
func (f *runFlags) lawOptions() []batch.Option {
	opts := []batch.Option{batch.WithLatencyTarget(f.latencyTarget)}
	switch {
	case f.law == lawPlain:
		opts = append(opts, batch.WithPlainLaw())
	case f.law == lawModel && f.whoAnswers(f.preset).Local:
		opts = append(opts, batch.WithLocalServer(cmp.Or(f.latencyTarget, limiter.LocalTarget(f.timeout))))
	}
	return opts
}
