package promptfile

import "github.com/headrace/headrace/batch/prompts"

// Plan is what the check of an input has found, before any call.
type Plan struct {
	Items  int // of the whole input, or of its first Reader.Limit
	Done   int // of these, the ones with a result of an earlier run
	Failed int // of these, the ones that failed for good in an earlier run, and are not tried again
	Refused
	Work []Work // what is left to do, by lane, in the order in which the input names them; nil of a stream
}

// Work is what is left to do on one lane.
type Work struct {
	Lane  string // of Config.Lane
	Items int
	Bytes int64 // of their bodies
}

// An input may name any number of models: the first 32 lanes are told apart, which are more
// than a person reads, and what is left on all others is that of OtherLanes.
const (
	lanesApart = 32
	OtherLanes = "other"
)

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

// workload is work while it is summed up. A model's name is joined to its lane's once in a
// row: most files name one model.
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

// at is where a lane's work is.
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
