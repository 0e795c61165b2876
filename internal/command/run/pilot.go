package run

import (
	"errors"
	"slices"
	"time"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/plan"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/estimate"
)

// pilot is a run of a few items, spread over the input, from which the rest is planned. Its items
// are asked and saved as all others are, so the rest buys none of them again.
//
//	--pilot 50: run of 50 items ─▶ shown ─▶ plan of the rest ─▶ question ─▶ run of the rest
//
// Over several lanes it goes to all lanes of each pool in turn: the rest is then planned by the lengths
// that models have shown, and by the latencies and limits of lanes.
type pilot struct {
	items         int
	models, lanes map[string]*shown
	failed        map[string]bool // keys of the items that failed for good
}

func newPilot(items int) *pilot {
	return &pilot{items: items, models: map[string]*shown{}, lanes: map[string]*shown{}, failed: map[string]bool{}}
}

// shown sums up the answers of one model, or of one lane.
type shown struct {
	answers                 int
	input, estimate, output float64 // tokens
	latencies               []time.Duration
}

// note takes an item that has ended. An answer without a usage shows no lengths and counts for nothing.
func (p *pilot) note(res *promptfile.Result) {
	if res.Err != nil {
		p.failed[res.Item.Key] = true
		return
	}
	if !res.Value.HasUsage {
		return
	}
	noteIn(p.models, res.Item.Model, res)
	noteIn(p.lanes, res.Lane, res)
}

func noteIn(all map[string]*shown, name string, res *promptfile.Result) {
	it, s := res.Item, all[name]
	if s == nil {
		s = &shown{}
		all[name] = s
	}
	s.answers++
	s.input += float64(res.Value.Usage.InputTokens)
	s.output += float64(res.Value.Usage.OutputTokens)
	s.estimate += estimate.Prompt(it.Body)
	s.latencies = append(s.latencies, res.Latency)
}

// pilotIsOver reports whether a pilot has gone through its items, and others are left. Items that
// failed do not count against it.
func (r *runner) pilotIsOver(err error) bool {
	end, ended := errors.AsType[*exit.Ending](err)
	if err != nil && (!ended || end.Code != exit.ItemsFailed) {
		return false
	}
	return r.verdict.Report != nil && r.verdict.Report.NotRun == 0 && r.verdict.Report.Left > 0
}

// found returns what the pilot has shown, by model and by lane.
func (r *runner) found() (models, lanes map[string]plan.Pilot) {
	limits := map[string]limiter.Limits{}
	for _, lane := range r.show.recorder.Snapshot(r.Clock.Now()).Lanes {
		limits[lane.Name] = seen(&lane.View)
	}
	models, lanes = map[string]plan.Pilot{}, map[string]plan.Pilot{}
	for model, s := range r.pilot.models {
		models[model] = s.sum(limits[r.Account.Lane(model)])
	}
	for lane, s := range r.pilot.lanes {
		lanes[lane] = s.sum(limits[lane])
	}
	return models, lanes
}

func (s *shown) sum(limits limiter.Limits) plan.Pilot {
	slices.Sort(s.latencies)
	return plan.Pilot{
		Answers: s.answers, Input: s.input / max(1, s.estimate), Output: s.output / float64(s.answers),
		Latency: s.latencies[len(s.latencies)/2], Limits: limits,
	}
}

// seen returns the limits that the headers of answers have shown.
func seen(v *limiter.View) (l limiter.Limits) {
	for i, to := range []*float64{&l.RPM, &l.TPM, &l.InputTPM, &l.OutputTPM} {
		if of := v.Limits[i]; of.Source == limiter.Seen {
			*to = of.Refill * time.Minute.Seconds()
		}
	}
	return l
}
