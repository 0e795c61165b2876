package promptfile

import (
	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// Maker makes items from requests, and lines from results, as a Job does. It is for
// programs that read and write on their own. One goroutine makes its items, and one its
// lines; these may differ.
type Maker struct {
	cfg    *Config
	latest struct{ model, lane string } // of items
	costs  costs                        // of lines
}

// NewMaker returns a Maker for jobs of this Config. It uses Lane, Cost, Price, Simulated,
// Fields, Checked, Redact and the bounds of output.
func NewMaker(cfg Config) *Maker {
	cfg = cfg.withDefaults()
	return &Maker{cfg: &cfg}
}

// Options returns what a batch.Stream of its items needs besides the caller's own options,
// which follow them and win. For lanes of a batch.Shared, these options belong to
// batch.NewShared.
func (m *Maker) Options() []batch.Option {
	if !m.cfg.estimates {
		return nil
	}
	return []batch.Option{batch.WithCharge(batch.Charge{Rule: limiter.ChargeGreater})}
}

// Item returns the item of a request.
func (m *Maker) Item(req prompts.Request) *Item {
	it := &Item{Request: req, lane: m.lane(req.Model), maxTokens: m.cfg.boundOf(&req)}
	it.cost = m.cfg.Cost(&it.Request)
	return it
}

// lane returns the lane of a model. Most files name one model, so its name is joined once.
func (m *Maker) lane(model string) string {
	if m.latest.lane == "" || m.latest.model != model {
		m.latest.model, m.latest.lane = model, m.cfg.Lane(model)
	}
	return m.latest.lane
}

// Line returns the output line of an item that ended: one with an Error is for the errors
// file. An item that was not run has no line: ended is false. Line adds the item's cost,
// truncated answer or failure to sums, and changes nothing else there.
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

// BadLine returns the errors-file line for a line that is not asked, for runs that skip
// such lines rather than end.
func (m *Maker) BadLine(bad *prompts.LineError) journal.Line {
	l := badLine(bad)
	if m.cfg.Input.Several() {
		l.Headrace.File, l.Headrace.FileLine = bad.File, bad.FileLine()
	}
	l.Headrace.Output = m.cfg.named
	l.Headrace.Simulated, l.Headrace.Provider = m.cfg.Simulated, m.cfg.Fields.Provider
	return l
}
