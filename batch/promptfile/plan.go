package promptfile

import "github.com/headrace/headrace/batch/prompts"

// Plan is the result of the check of an input, before any call.
type Plan struct {
	Items  int // of the whole input, or of its first Reader.Limit
	Done   int // of these, items with a result of an earlier run
	Failed int // of these, items that failed for good in an earlier run and are not tried again
	Refused
	Work []Work // work that is left, by lane, in the order in which the input names them; nil for a stream
}

// Work is the work left on one lane.
type Work struct {
	Lane  string // of Config.Lane
	Items int
	Bytes int64 // of their bodies
}

// An input may name any number of models. The first 32 lanes are counted apart: more than a
// person reads. The work of all others is summed up as OtherLanes.
const (
	lanesApart = 32
	OtherLanes = "other"
)

// Left returns the number of items left to do.
func (p *Plan) Left() int { return p.Items - p.Done - p.Failed }

// checkedEvery is the number of items between calls of Watch.Checked: a few seconds' worth.
const checkedEvery = 1_000_000

// Plan reads a file to its end, or to its limit, and calls nothing. It does not read a
// stream, whose plan is empty. The error is ErrHalted, or says why the input cannot be
// read.
func (j *Job) Plan() (Plan, error) {
	var p Plan
	j.planned = true
	if j.cfg.Input.Stream {
		return p, nil
	}
	err := j.look()
	if err == nil {
		err = j.survey(&p)
	}
	j.plan = p
	return p, err
}

func (j *Job) survey(p *Plan) error {
	cfg := j.cfg.reader()
	cfg.NoKeys, cfg.Takes = j.past.empty(), j.takes()
	left := workload{lane: j.cfg.Lane, index: map[string]int{}}
	found, err := Scan(j.cfg.Input, cfg, j.cfg.Drain, func(req prompts.Request) {
		how := j.past.of(req.Key)
		p.note(how)
		if how == notEnded {
			left.add(req.Model, len(req.Body))
		}
		if p.Items%checkedEvery == 0 && j.cfg.Watch.Checked != nil {
			j.cfg.Watch.Checked(p.Items)
		}
	})
	p.Refused, p.Work, j.checked.digest = found.Refused, left.work, found.Digest
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

// workload sums up work. It looks up a model's lane once for several items in a row, as
// most files name one model.
type workload struct {
	lane   func(model string) string
	index  map[string]int // of lanes, into work
	work   []Work
	latest struct {
		model string
		at    int
	}
}

func (w *workload) add(model string, bytes int) {
	if len(w.work) == 0 || model != w.latest.model {
		w.latest.model, w.latest.at = model, w.at(w.lane(model))
	}
	of := &w.work[w.latest.at]
	of.Items++
	of.Bytes += int64(bytes)
}

// at returns the index of a lane's work.
func (w *workload) at(lane string) int {
	if i, known := w.index[lane]; known {
		return i
	}
	if len(w.work) >= lanesApart && lane != OtherLanes {
		return w.at(OtherLanes)
	}
	w.index[lane] = len(w.work)
	w.work = append(w.work, Work{Lane: lane})
	return len(w.work) - 1
}
