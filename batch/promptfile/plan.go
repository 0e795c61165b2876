package promptfile

import "github.com/headrace/headrace/batch/prompts"

// Plan is what the check of an input has found, before any call.
type Plan struct {
	Items  int      // of the whole input, or of its first Reader.Limit
	Done   int      // of these, the ones with a result of an earlier run
	Failed int      // of these, the ones that failed for good in an earlier run, and are not tried again
	Bad    BadLines // that are no requests
}

// Left is how many items there are to do.
func (p *Plan) Left() int { return p.Items - p.Done - p.Failed }

// checkedEvery is how many items are checked before Watch is told: a few seconds' worth.
const checkedEvery = 1_000_000

// Plan reads a file to its end, or to its limit, and calls nothing. A stream is not read:
// its plan is empty. The error is ErrHalted, or tells why the input cannot be read on.
func (j *Job) Plan() (Plan, error) {
	var p Plan
	j.planned = true
	if j.cfg.Input.Stream {
		return p, nil
	}
	err := j.survey(&p)
	j.plan = p
	return p, err
}

func (j *Job) survey(p *Plan) error {
	cfg := j.cfg.reader(false)
	cfg.NoKeys = j.past.empty()
	found, err := Scan(j.cfg.Input, cfg, j.cfg.Drain, func(req prompts.Request) {
		p.note(j.past.of(req.Key))
		if p.Items%checkedEvery == 0 && j.cfg.Watch.Checked != nil {
			j.cfg.Watch.Checked(p.Items)
		}
	})
	p.Bad = found.Bad
	return err
}

// note counts one item.
func (p *Plan) note(how endedHow) {
	p.Items++
	switch how {
	case endedWell:
		p.Done++
	case endedBadly:
		p.Failed++
	}
}
