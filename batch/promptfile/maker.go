package promptfile

import (
	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Maker makes items of requests, and of what becomes of them the lines that a Job writes: for
// whoever reads and writes by himself. Its items are made in one goroutine, its lines in one,
// which may be another.
type Maker struct {
	cfg    *Config
	latest struct{ model, lane string } // of items
	costs  costs                        // of lines
}

// NewMaker gives a Maker for jobs of this Config. Of it count Lane, Cost, Price, Simulated,
// Fields, Checked, Redact and the bounds of output.
func NewMaker(cfg Config) *Maker {
	cfg = cfg.withDefaults()
	return &Maker{cfg: &cfg}
}

// Options are what a batch.Stream of its items needs beside the caller's own, which come
// later and count. Lanes of a batch.Shared are told by who made that.
func (m *Maker) Options() []batch.Option {
	if !m.cfg.estimates {
		return nil
	}
	return []batch.Option{batch.WithCharge(batch.Charge{Rule: limiter.ChargeGreater})}
}

// Item is what a run is given of a request.
func (m *Maker) Item(req prompts.Request) *Item {
	it := &Item{Request: req, lane: m.lane(req.Model), maxTokens: m.cfg.boundOf(&req)}
	it.cost = m.cfg.Cost(&it.Request)
	return it
}

// lane is the lane of a model. Most files name one: it is joined once.
func (m *Maker) lane(model string) string {
	if m.latest.lane == "" || m.latest.model != model {
		m.latest.model, m.latest.lane = model, m.cfg.Lane(model)
	}
	return m.latest.lane
}

// Line is the output line of an item that ended: one with an Error is for the errors file. An
// item that was not run has none: ended is false. What it adds to the costs, truncated answers
// and failures of a run is counted in sums; that is all of sums that it touches.
func (m *Maker) Line(res *Result, sums *Sums) (l journal.Line, ended bool) {
	cost := m.spend(res, sums)
	if l, ended = m.cfg.lineOf(res); !ended {
		return l, false
	}
	l.Headrace.CostUSD = cost
	if kind, ok := provider.FinishKind(res.Finish); ok && kind == provider.Truncated {
		sums.Truncated++
	}
	if l.Error != nil {
		sums.count(l.Error.Code)
	}
	return l, true
}

func (s *Sums) count(code string) {
	if s.Kinds == nil {
		s.Kinds = map[string]int{}
	}
	s.Kinds[code]++
}

// BadLine is the line for the errors file of a line that is not asked, where such lines are
// skipped rather than the end of all.
func (m *Maker) BadLine(bad *prompts.LineError) journal.Line {
	l := badLine(bad)
	if m.cfg.Input.Several() {
		l.Headrace.File, l.Headrace.FileLine = bad.File, bad.FileLine()
	}
	l.Headrace.Output = m.cfg.named
	l.Headrace.Simulated, l.Headrace.Provider = m.cfg.Simulated, m.cfg.Fields.Provider
	return l
}
