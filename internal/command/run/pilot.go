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
	models, lanes map[string]*answerSums
	failed        map[string]bool // keys of the items that failed for good
}

func newPilot(items int) *pilot {
	return &pilot{items: items, models: map[string]*answerSums{}, lanes: map[string]*answerSums{}, failed: map[string]bool{}}
}

// answerSums sums up the answers of one model, or of one lane.
type answerSums struct {
	answers                 int
	input, estimate, output float64 // tokens
	latencies               []time.Duration
}

// note adds an item that has ended. An answer without usage shows no lengths, and is not counted.
func (p *pilot) note(res *promptfile.Result) {
	if res.Err != nil {
		p.failed[res.Item.Key] = true
		return
	}
	if !res.Value.HasUsage {
		return
	}
	addAnswer(p.models, res.Item.Model, res)
	addAnswer(p.lanes, res.Lane, res)
}

// addAnswer adds an answer to the sums of that name, which is a model or a lane.
func addAnswer(sumsByName map[string]*answerSums, name string, res *promptfile.Result) {
	item, sums := res.Item, sumsByName[name]
	if sums == nil {
		sums = &answerSums{}
		sumsByName[name] = sums
	}
	sums.answers++
	sums.input += float64(res.Value.Usage.InputTokens)
	sums.output += float64(res.Value.Usage.OutputTokens)
	sums.estimate += estimate.Prompt(item.Body)
	sums.latencies = append(sums.latencies, res.Latency)
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

// pilotFindings returns what the pilot has shown, by model and by lane.
func (r *runner) pilotFindings() (models, lanes map[string]plan.Pilot) {
	limits := map[string]limiter.Limits{}
	for _, lane := range r.show.recorder.Snapshot(r.Clock.Now()).Lanes {
		limits[lane.Name] = seenLimits(&lane.View)
	}
	models, lanes = map[string]plan.Pilot{}, map[string]plan.Pilot{}
	for model, sums := range r.pilot.models {
		models[model] = sums.toPilot(limits[r.Account.Lane(model)])
	}
	for lane, sums := range r.pilot.lanes {
		lanes[lane] = sums.toPilot(limits[lane])
	}
	return models, lanes
}

func (s *answerSums) toPilot(limits limiter.Limits) plan.Pilot {
	slices.Sort(s.latencies)
	return plan.Pilot{
		Answers: s.answers, Input: s.input / max(1, s.estimate), Output: s.output / float64(s.answers),
		Latency: s.latencies[len(s.latencies)/2], Limits: limits,
	}
}

// seenLimits returns the limits a minute that the headers of answers have shown.
func seenLimits(v *limiter.View) (l limiter.Limits) {
	for i, target := range []*float64{&l.RPM, &l.TPM, &l.InputTPM, &l.OutputTPM} {
		if limit := v.Limits[i]; limit.Source == limiter.Seen {
			*target = limit.Refill * time.Minute.Seconds()
		}
	}
	return l
}
