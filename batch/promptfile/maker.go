package promptfile

import (
	"cmp"
	"errors"
	"fmt"

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

// Item is one request of the input on its way through a run.
type Item struct {
	prompts.Request
	lane      string // the quota that its call draws on
	cost      batch.Cost
	maxTokens int // see Config.MaxTokens
}

// Result is the outcome of an item.
type Result = batch.Result[*Item, provider.Reply]

// Pool returns the pool in which the item waits.
func (it *Item) Pool() string { return it.lane }

// Cost returns what the item's call is expected to draw.
func (it *Item) Cost() batch.Cost { return it.cost }

// ItemKey returns the key under which the item is remembered, should it fail and not end.
func (it *Item) ItemKey() string { return it.Key }

// Asks returns the request for a provider's client.
func (it *Item) Asks() provider.Request { return asks(&it.Request, it.maxTokens) }

// The codes of lines that were never asked, in an errors file.
const (
	CodeInvalidLine    = journal.CodeInvalidLine    // it is not a request
	CodeUntranslatable = journal.CodeUntranslatable // it cannot be translated for the provider
)

// lineFor begins the output line of a request, with what the request knows.
func lineFor(req *prompts.Request) journal.Line {
	return journal.LineOf(req.ID, journal.Headrace{
		Line: req.Line, File: req.File, FileLine: req.FileLine, Key: req.Key, Model: req.Model, Metadata: req.Metadata,
	})
}

// badLine returns the errors-file line for a line that is not asked.
func badLine(e *prompts.LineError) journal.Line {
	if e.Request != nil {
		l := lineFor(e.Request)
		l.Error = &journal.Failure{Code: CodeUntranslatable, Message: e.Error()}
		return l
	}
	l := lineFor(&prompts.Request{Line: e.Line, ID: cmp.Or(e.ID, prompts.LineID(e.Line)), Key: e.Key()})
	l.Error = &journal.Failure{Code: CodeInvalidLine, Message: e.Error()}
	return l
}

// lineOf returns the output line of an item that ended: one with an Error is for the errors
// file. An item that was not run has none.
func (c *Config) lineOf(r *Result) (l journal.Line, ended bool) {
	if errors.Is(r.Err, batch.ErrNotRun) {
		return l, false
	}
	l = lineFor(&r.Item.Request)
	l.Headrace.Attempts, l.Headrace.Lane, l.Headrace.Simulated = r.Attempts, r.Lane, c.Simulated
	l.Headrace.Usage = usageOf(r.Usage)
	if doubt := r.Doubtful(); doubt.Calls > 0 {
		l.Headrace.Doubtful = journal.Doubtful{Calls: int64(doubt.Calls), Usage: usageOf(doubt.Usage)}
	}
	c.addOrigin(&l.Headrace, r)
	l.Headrace.QueuedMS, l.Headrace.WaitedMS, l.Headrace.LatencyMS = r.Queued.Milliseconds(), r.Waited.Milliseconds(), r.Latency.Milliseconds()
	if r.Err != nil {
		c.addFailure(&l, r)
		return l, true
	}
	l.Headrace.Filtered = provider.IsFiltered(r.Finish)
	l.Response = &journal.Response{StatusCode: r.Value.Status, RequestID: r.Value.RequestID, Body: r.Value.Body, Checked: c.Checked}
	return l, true
}

// usageOf converts a usage to the form that all lines have. Only lines with an origin count
// reasoning.
func usageOf(u provider.Usage) journal.Usage {
	return journal.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens, CacheWriteTokens: u.CacheWriteTokens,
	}
}

// addOrigin adds where an answer is from, and its text, as far as the run's lines have
// that.
func (c *Config) addOrigin(h *journal.Headrace, r *Result) {
	if c.Fields.Text && r.Value.HasText {
		text := r.Value.Text // alone: the line may live longer than the result
		h.Text = &text
	}
	if c.Fields.Provider == "" {
		return
	}
	h.Provider, h.Dialect, h.Translated = c.Fields.Provider, r.Value.Dialect, r.Value.Translated
	h.Finish = string(provider.EndOf(r.Finish))
	h.Usage.ReasoningTokens, h.Doubtful.ReasoningTokens = r.Usage.ReasoningTokens, r.Doubtful().Usage.ReasoningTokens
	if r.Value.Served != r.Item.Model {
		h.Served = r.Value.Served
	}
}

// addFailure says why an item failed, and how each of its calls ended.
func (c *Config) addFailure(l *journal.Line, r *Result) {
	l.Error = &journal.Failure{Code: codeOf(r.Err), Message: c.Redact(messageOf(r.Err))}
	if e := faultOf(r.Err); e != nil && e.Status != 0 {
		l.Response = &journal.Response{StatusCode: e.Status, RequestID: e.RequestID, Body: e.Body}
		if e.Body == nil && provider.IsFiltered(r.Finish) { // an answer that is kept, although it is not a result
			l.Response.Body = r.Value.Body
		}
	}
	l.Headrace.Output = c.named
	l.Headrace.Calls = r.Calls
	for _, f := range r.Failures {
		l.Headrace.Failures = append(l.Headrace.Failures, journal.CallFailure{
			Kind: f.Kind.String(), Status: f.Status, Message: c.Redact(f.Message), Calls: f.Calls,
		})
	}
}

// faultOf returns the provider package's view of an error, or nil if it has none.
func faultOf(err error) *provider.Error {
	var e *provider.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// codeOf returns the word for a failure in result files.
func codeOf(err error) string {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return "panic"
	}
	if e := faultOf(err); e != nil {
		return e.Kind.String()
	}
	return provider.Unknown.String()
}

// messageOf returns one line about a failure. The stack of a panic is for the log.
func messageOf(err error) string {
	var panicked *batch.PanicError
	if errors.As(err, &panicked) {
		return fmt.Sprintf("panic: %v", panicked.Value)
	}
	return err.Error()
}

// spend counts the cost of an item, and keeps it for the item's line; nil means unknown. An
// item that failed and used nothing has no cost to count.
func (m *Maker) spend(res *Result, sums *Sums) *float64 {
	if res.Err != nil && res.Usage == (provider.Usage{}) {
		return nil
	}
	usd, ok := m.cfg.Price(res.Item.Model, res.Usage)
	if !ok || !provider.IsCost(usd) {
		sums.Unpriced++
		return nil
	}
	sums.CostUSD += usd
	sums.Priced++
	return m.costs.keep(usd)
}

// costsAtOnce is the number of costs in one allocation: half a kilobyte, which a line that
// waits for the disk may keep from being freed.
const costsAtOnce = 64

// costs stores the costs of lines, many to an allocation. It belongs to one goroutine.
type costs struct{ room []float64 }

func (c *costs) keep(usd float64) *float64 {
	if len(c.room) == 0 {
		c.room = make([]float64, costsAtOnce)
	}
	kept := &c.room[0]
	*kept, c.room = usd, c.room[1:]
	return kept
}
