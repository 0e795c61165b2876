package main

import (
	"slices"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cmd/headrace/internal/forecast"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// scheme is what a prompt file asks for, as far as it shows.
type scheme struct {
	*world
	flags  *planFlags
	input  string
	preset provider.Preset

	lines    int
	items    int
	assumed  int // items whose answer nothing bounds
	models   []*modelPlan
	byModel  map[string]int
	sample   forecast.Sample
	latency  time.Duration // of all calls, in the median
	forecast forecast.Forecast
	whatIfs  []whatIf
}

// modelPlan is what one model is asked.
type modelPlan struct {
	name          string
	items         int
	input, output float64
	limits        limiter.Limits
}

// planFile reads the file, runs the forecast and prints what came of it.
func (w *world) planFile(flags *planFlags, input string) error {
	s := &scheme{world: w, flags: flags, input: input, byModel: map[string]int{}}
	s.preset = presetOf(flags.preset, flags.provider, flags.baseURL)
	if err := s.read(); err != nil {
		return err
	}
	s.foresee()
	if flags.json {
		return s.printJSON()
	}
	s.print()
	return nil
}

// read goes through the file as run's check does: every bad line is listed.
func (s *scheme) read() error {
	src, err := s.source(s.input)
	if err != nil {
		return err
	}
	file, err := src.Open()
	if err != nil {
		return refuse("%v: the input cannot be read", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	reader := prompts.NewReader(file, s.readerConfig(src.Name))
	var bad promptfile.BadLines
	for req, err := range reader.All() {
		if err == nil {
			s.take(req)
		} else if err = bad.Note(err); err != nil {
			return refuse("%s", plainText(err))
		}
		if s.items == s.flags.limit && s.flags.limit > 0 {
			break
		}
	}
	s.lines = reader.Line()
	if bad.All > 0 {
		return (&runner{world: s.world, flags: &runFlags{}, input: s.input}).badLines(&bad)
	}
	return nil
}

func (s *scheme) readerConfig(name string) prompts.Config {
	model := s.flags.model
	if model == "" && s.flags.provider == providerSim {
		model = simDefaultModel
	}
	return prompts.Config{Name: name, DefaultModel: model, DefaultEndpoint: s.flags.endpoint, Passing: true, NoKeys: true}
}

// take counts one item.
func (s *scheme) take(req prompts.Request) {
	m := s.modelOf(req.Model)
	input, output := provider.PromptTokens(req.Body), s.outputOf(req)
	s.items++
	m.items++
	m.input += input
	m.output += output
	latency := s.latencyOf(output)
	s.latency += latency
	s.sample.Add(forecast.Call{
		Lane: s.byModel[s.laneOf(req.Model)], Cost: s.costOf(req, m, input, output), Latency: latency,
	})
}

// laneOf is the quota that a model's calls draw on, as in a run: the simulated
// provider has one for all.
func (s *scheme) laneOf(model string) string {
	if s.flags.provider == providerSim {
		return "all models"
	}
	return model
}

func (s *scheme) modelOf(model string) *modelPlan {
	name := s.laneOf(model)
	i, ok := s.byModel[name]
	if !ok {
		i = len(s.models)
		s.byModel[name] = i
		s.models = append(s.models, &modelPlan{name: name, limits: s.flags.limitsOf(model)})
	}
	return s.models[i]
}

// outputOf is how long the answer is taken to be: as long as it may, or else the
// assumption. Embeddings have none.
func (s *scheme) outputOf(req prompts.Request) float64 {
	if req.Endpoint == prompts.Embeddings {
		return 0
	}
	if most := provider.MaxOutput(req.Body); most > 0 {
		return most
	}
	s.assumed++
	return s.flags.answer
}

func (s *scheme) latencyOf(output float64) time.Duration {
	if s.flags.latency > 0 {
		return s.flags.latency
	}
	return firstToken + time.Duration(output/tokensPerSec*float64(time.Second))
}

// costOf is what the call draws: by the provider's rule, and where output has a
// limit of its own, what is expected of it.
func (s *scheme) costOf(req prompts.Request, m *modelPlan, input, output float64) limiter.Cost {
	if m.limits.OutputTPM > 0 {
		return limiter.Cost{Requests: 1, Input: input, Output: output}
	}
	return costOf(s.preset, req.Body)
}

// whatIf is how long it would take with half and with twice of one thing.
type whatIf struct {
	on             limiter.Dimension // None: the concurrency
	halved, double time.Duration
}

// whatIfSample is how many calls each of these is run with: what counts is their
// ratio, and a fifth of the sample shows the same.
const whatIfSample = 20_000

// foresee runs the forecast, and the others beside it.
func (s *scheme) foresee() {
	s.forecast = forecast.Run(s.config(limiter.None, 1), &s.sample)
	if s.items == 0 {
		return
	}
	smaller := s.sample.Smaller(whatIfSample)
	asIs := forecast.Run(s.config(limiter.None, 1), smaller).Took
	took := func(d limiter.Dimension, factor float64) time.Duration {
		share := forecast.Run(s.config(d, factor), smaller).Took.Seconds() / max(asIs.Seconds(), 1e-9)
		return time.Duration(share * float64(s.forecast.Took))
	}
	for _, d := range append(forecast.Dimensions, limiter.None) {
		if d != limiter.None && !s.limited(d) {
			continue
		}
		s.whatIfs = append(s.whatIfs, whatIf{on: d, halved: took(d, 0.5), double: took(d, 2)})
	}
}

// limited reports whether any model has a limit in that dimension.
func (s *scheme) limited(d limiter.Dimension) bool {
	for _, m := range s.models {
		if m.limits.PerMinute(d) > 0 {
			return true
		}
	}
	return false
}

// config is the batch's, with one thing changed by a factor.
func (s *scheme) config(d limiter.Dimension, factor float64) forecast.Config {
	c := forecast.Config{Concurrency: s.flags.concurrency, Seed: s.flags.seed}
	if d == limiter.None {
		c.Concurrency = max(1, int(float64(c.Concurrency)*factor+0.5))
	}
	for _, m := range s.models {
		l := m.limits
		switch d {
		case limiter.Requests:
			l.RPM *= factor
		case limiter.Tokens:
			l.TPM *= factor
		case limiter.InputTokens:
			l.InputTPM *= factor
		case limiter.OutputTokens:
			l.OutputTPM *= factor
		}
		c.Limits = append(c.Limits, l)
	}
	return c
}

// used is how full a limit is where it is fullest; that of None is the concurrency.
func (s *scheme) used(d limiter.Dimension) float64 {
	if d == limiter.None {
		return s.forecast.Concurrency
	}
	most := 0.0
	for _, l := range s.forecast.Lanes {
		most = max(most, l.Used[d])
	}
	return most
}

// gain is how much sooner a batch must be over with twice of something, as a share
// of its time, for that to be what holds it back: less is noise.
const gain = 0.05

// binding is what holds the batch back most: that of which twice as much saves the
// most time. It is false if no single limit does.
func (s *scheme) binding() (limiter.Dimension, bool) {
	best, least := limiter.None, time.Duration(float64(s.forecast.Took)*(1-gain))
	found := false
	for _, x := range s.whatIfs {
		if x.double < least {
			best, least, found = x.on, x.double, true
		}
	}
	return best, found
}

// fullShare is how full a limit is that matters: a run leaves a few percent of each
// in reserve, and takes some seconds to get up to it.
const fullShare = 0.8

// anyFull reports whether any limit matters.
func (s *scheme) anyFull() bool {
	return slices.ContainsFunc(s.whatIfs, func(x whatIf) bool { return s.used(x.on) >= fullShare })
}

func (s *scheme) tooLarge() (n int) {
	for _, l := range s.forecast.Lanes {
		n += l.TooLarge
	}
	return n
}
