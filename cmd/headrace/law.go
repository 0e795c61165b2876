package main

import (
	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
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
// refusing, so its latency is watched instead of its refusals; the simulated
// provider refuses wherever it is.
func (f *runFlags) lawOptions() []batch.Option {
	switch {
	case f.law == lawPlain:
		return []batch.Option{batch.WithPlainLaw()}
	case f.providerPreset().Local:
		return []batch.Option{batch.WithLocalServer(f.timeout / 2)}
	}
	return nil
}
