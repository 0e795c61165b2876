package promptfile

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// Plan is the result of the check of an input, before any call.
type Plan struct {
	Items  int // of the whole input, or of its first Reader.Limit
	Done   int // of these, items with a result of an earlier run
	Failed int // of these, items that failed for good in an earlier run and are not tried again
	Refused
	Unpriced []string // models of items that are left and have no price, if MaxCost is given: the first ten
	Work     []Work   // work that is left, by lane, in the order in which the input names them; nil for a stream
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
	files, err := j.cfg.Input.stat() // a later change shows as another time or size
	if j.checked.files = files; err != nil {
		return p, fmt.Errorf("promptfile: %w: %w", err, ErrInput)
	}
	err = j.scanInput(&p)
	j.plan = p
	return p, err
}

// scanInput reads the input to its end. It counts into p the items, the refused lines and the work that is left. It
// keeps the digest, which shows later whether the content has changed.
func (j *Job) scanInput(p *Plan) error {
	cfg := j.cfg.reader()
	cfg.NoKeys, cfg.Takes = j.past.empty(), j.takes()
	priced := prices{}
	if j.cfg.MaxCost > 0 {
		priced.known = j.cfg.Reserve
	}
	left := workload{lane: j.cfg.Lane, index: map[string]int{}}
	found, err := Scan(j.cfg.Input, cfg, j.cfg.Drain, func(req prompts.Request) {
		how := j.past.stateOf(req.Key)
		p.note(how)
		if how == notEnded {
			left.add(req.Model, len(req.Body))
			priced.add(req.Model, &p.Unpriced)
			if j.cfg.Watch.Left != nil {
				j.cfg.Watch.Left(&req)
			}
		}
		if p.Items%checkedEvery == 0 && j.cfg.Watch.Checked != nil {
			j.cfg.Watch.Checked(p.Items)
		}
	})
	p.Refused, p.Work, j.checked.digest = found.Refused, left.work, found.Digest
	return err
}

// note counts one item, by how an earlier run has ended it.
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

// add counts an item of the model, with the bytes of its body.
func (w *workload) add(model string, bytes int) {
	if len(w.work) == 0 || model != w.latest.model {
		w.latest.model, w.latest.at = model, w.indexOf(w.lane(model))
	}
	work := &w.work[w.latest.at]
	work.Items++
	work.Bytes += int64(bytes)
}

// indexOf returns the index of a lane's work, and adds the lane if it is new.
func (w *workload) indexOf(lane string) int {
	if i, known := w.index[lane]; known {
		return i
	}
	if len(w.work) >= lanesApart && lane != OtherLanes {
		return w.indexOf(OtherLanes)
	}
	w.index[lane] = len(w.work)
	w.work = append(w.work, Work{Lane: lane})
	return len(w.work) - 1
}

// Asks returns the request that a provider's client gets for a request of this job's input.
// A Reader.Takes can thus decide about the same request that is sent later.
func (c *Config) Asks(r *prompts.Request) provider.Request { return asks(r, c.boundOf(r)) }

func asks(r *prompts.Request, maxTokens int) provider.Request {
	return provider.Request{Endpoint: r.Endpoint, Model: r.Model, Body: r.Body, MaxTokens: maxTokens}
}

// boundOf returns the bound on output for a request without one of its own.
func (c *Config) boundOf(r *prompts.Request) int {
	if r.Form.IsPrompt() {
		return c.MaxTokensOfPrompts
	}
	return c.MaxTokens
}

// skips reports whether a bad line goes to the errors file, rather than ending the run.
func (c *Config) skips(bad *prompts.LineError) bool {
	if errors.Is(bad, prompts.ErrUntranslatable) {
		return c.SkipUntranslatable
	}
	return c.SkipBad
}

// takes returns Reader.Takes for the pass that checks the input, and for the only pass of a
// stream. It asks only about requests that no earlier run has ended. It remembers the
// refused lines of a file.
func (j *Job) takes() func(*prompts.Request) error {
	ask := j.cfg.Reader.Takes
	if ask == nil {
		return nil
	}
	return func(r *prompts.Request) error {
		if j.past.ended(r.Key) {
			return nil
		}
		err := ask(r)
		if err != nil && !j.cfg.Input.Stream {
			j.refusedLines.Add(r.Line)
		}
		return err
	}
}

// takesAgain returns Reader.Takes for later passes over a checked input. It asks again only
// about lines that were refused, to say why.
func (j *Job) takesAgain() func(*prompts.Request) error {
	if j.refusedLines.Empty() {
		return nil
	}
	return func(r *prompts.Request) error {
		if !j.refusedLines.Has(r.Line) {
			return nil
		}
		return j.cfg.Reader.Takes(r)
	}
}

// ErrChanged says that the input changed during the run. Another run asks what is left.
var ErrChanged = errors.New("the input changed after it was checked")

// checked describes the input at the time of its check.
type checked struct {
	files  []os.FileInfo
	digest prompts.Digest
}

// checkUnchanged returns ErrChanged if the content of the input changed after its check. It compares the checked
// input with the one that was read to its end. It also compares it with the one that is there when the run is over,
// which it reads again only if its time or size differs. An input that is gone by then was read whole.
func (j *Job) checkUnchanged(in *intake) error {
	if j.cfg.Input.Stream || !in.whole {
		return nil
	}
	if in.digest != j.checked.digest {
		read := in.done + in.failed + in.asked + in.unsampled
		return fmt.Errorf("promptfile: %s: %w: %d items were checked and %d were read", j.cfg.Input.Name, ErrChanged, j.plan.Items, read)
	}
	current, err := j.cfg.Input.stat()
	if err != nil || j.checked.matches(current) {
		return nil //nolint:nilerr // see above
	}
	cfg := j.cfg.reader()
	cfg.Passing, cfg.NoKeys, cfg.Takes = true, true, j.takesAgain() // a limit counts the same lines
	var latest Scanned
	if err := latest.read(j.cfg.Input, cfg, j.cfg.Drain, func(prompts.Request) {}); err != nil {
		return nil //nolint:nilerr // the run is to end now, or the input is gone
	}
	if latest.Digest == j.checked.digest {
		return nil
	}
	return fmt.Errorf("promptfile: %s: %w: its content has changed since it was read", j.cfg.Input.Name, ErrChanged)
}

// matches reports whether no file has been written to since.
func (c *checked) matches(now []os.FileInfo) bool {
	return slices.EqualFunc(c.files, now, func(then, now os.FileInfo) bool {
		return os.SameFile(then, now) && then.Size() == now.Size() && then.ModTime().Equal(now.ModTime())
	})
}
