package main

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// usdFlag is the value of a flag in USD; 0: the flag was not given.
type usdFlag float64

// String is part of pflag.Value.
func (m *usdFlag) String() string {
	if *m == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*m), 'f', -1, 64)
}

// Set is part of pflag.Value.
func (m *usdFlag) Set(text string) error {
	usd, err := strconv.ParseFloat(text, 64)
	if err != nil || !(usd > 0) || math.IsInf(usd, 0) {
		return errors.New("must be a number of USD, more than 0")
	}
	*m = usdFlag(usd)
	return nil
}

// Type is part of pflag.Value.
func (m *usdFlag) Type() string { return "USD" }

// firstCap returns the list of caps with which a job begins; nil: it has no cap. It refuses one if the price of --model is not known.
// The prices of other models show when the lines are read.
func (m *usdFlag) firstCap(s *run.Settings, lines promptfile.Config) ([]limiter.Money, error) {
	if *m == 0 {
		return nil, nil
	}
	if model := s.Given(settings.Input)["model"]; model != "" {
		if _, known := lines.Price(model, provider.Usage{InputTokens: 1, OutputTokens: 1}); !known {
			return nil, exit.End(exit.Usage, "--max-cost: the price of %s is not known: --price IN,OUT sets it, in USD per million tokens", model)
		}
	}
	return []limiter.Money{limiter.USD(float64(*m))}, nil
}

// greaterCap returns a greater --max-cost to suggest, in USD, for a job that has stopped at its cap. It returns "" for any
// other job.
func greaterCap(r *job.Record) string {
	if len(r.Caps) == 0 || !strings.Contains(r.Why, "--max-cost") {
		return ""
	}
	const times = 2 // an example
	return strconv.FormatFloat(times*r.Caps[len(r.Caps)-1].USD(), 'f', -1, 64)
}
