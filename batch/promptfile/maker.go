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
	"github.com/headrace/headrace/provider/estimate"
)

// Maker makes items from requests, and lines from results, as a Job does. It is for
// programs that read and write on their own. One goroutine makes its items, and one its
// lines; these may differ.
type Maker struct {
	cfg    *Config
	latest struct{ model, lane string } // of items
	costs  []float64                    // room for those of lines
	spent  journal.Costs                // of earlier tries that this run's lines replace
	unseen *journal.Earlier             // of calls that no line is about: the next line has it; nil: none
}

// NewMaker returns a Maker for jobs of this Config. It uses Lane, Cost, Price, Bill, Simulated,
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
	it := &Item{Request: req, maxTokens: m.cfg.boundOf(&req)}
	if m.cfg.Pool != nil {
		it.lane = m.cfg.Pool(&it.Request)
	} else {
		it.lane = m.lane(req.Model)
	}
	it.cost = m.cfg.Cost(&it.Request)
	if m.cfg.MaxCost > 0 {
		it.prompt, it.bound = estimate.For(it.Endpoint, it.Body)
		if it.bound == 0 {
			it.bound = float64(it.maxTokens)
		}
	}
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
func (m *Maker) Line(res *Result, sums *Sums) (line journal.Line, ended bool) {
	cost, source := m.countCost(res, sums)
	if errors.Is(res.Err, batch.ErrNotRun) {
		return line, false
	}
	line = lineFor(&res.Item.Request)
	added := &line.Headrace
	added.Attempts, added.Lane, added.Simulated = res.Attempts, res.Lane, m.cfg.Simulated
	added.CostUSD, added.CostSource = cost, source
	added.QueuedMS, added.WaitedMS, added.LatencyMS = res.Queued.Milliseconds(), res.Waited.Milliseconds(), res.Latency.Milliseconds()
	added.Earlier = m.earlier(added.Key)
	added.Usage = usageOf(res.Usage)
	if doubt := res.Doubtful(); doubt.Calls > 0 {
		added.Doubtful = journal.Doubtful{Calls: int64(doubt.Calls), USD: m.cfg.doubtful(res.Item, doubt.Calls), Usage: usageOf(doubt.Usage)}
	}
	if m.cfg.Fields.Text && res.Value.HasText {
		text := res.Value.Text // alone: the line may live longer than the result
		added.Text = &text
	}
	origin := Origin{Provider: m.cfg.Fields.Provider}
	if m.cfg.Origin != nil {
		origin = m.cfg.Origin(res.Pool, res.Lane)
		added.Fallback = origin.Fallback
	}
	if origin.Provider != "" { // the line says where its answer is from
		added.Provider, added.Dialect, added.Translated = origin.Provider, res.Value.Dialect, res.Value.Translated
		added.Finish = string(provider.EndOf(res.Finish))
		added.Usage.ReasoningTokens, added.Doubtful.ReasoningTokens = res.Usage.ReasoningTokens, res.Doubtful().Usage.ReasoningTokens
	}
	if (origin.Provider != "" || m.cfg.Origin != nil) && res.Value.Served != res.Item.Model {
		added.Served = res.Value.Served
	}
	if kind, ok := provider.FinishKind(res.Finish); ok && kind == provider.Truncated {
		sums.Truncated++
	}
	if res.Err != nil {
		if cost != nil {
			sums.FailedUSD += *cost
		}
		m.addFailure(&line, res, sums)
		return line, true
	}
	added.Filtered = provider.IsFiltered(res.Finish)
	line.Response = &journal.Response{StatusCode: res.Value.Status, RequestID: res.Value.RequestID, Body: res.Value.Body, Checked: m.cfg.Checked}
	return line, true
}

// earlier returns the cost of calls from before this run that the item's line must include; nil if there is none.
func (m *Maker) earlier(key string) *journal.Earlier {
	e, unseen := m.spent.Of(key), m.unseen
	if m.unseen = nil; e == nil || unseen == nil {
		return cmp.Or(e, unseen)
	}
	sum := *e
	sum.Add(*unseen)
	return &sum
}

// usageOf converts a usage to the form that all lines have. Only lines with an origin count
// reasoning.
func usageOf(u provider.Usage) journal.Usage {
	return journal.Usage{
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens, CacheWriteTokens: u.CacheWriteTokens,
	}
}

// addFailure adds to a line why its item failed, and how each of its calls ended. It counts the failure.
func (m *Maker) addFailure(line *journal.Line, res *Result, sums *Sums) {
	code, message := provider.Unknown.String(), res.Err.Error()
	fault, known := errors.AsType[*provider.Error](res.Err)
	known = known && fault != nil
	if known {
		code = fault.Kind.String()
	}
	if panicked, is := errors.AsType[*batch.PanicError](res.Err); is {
		code, message = "panic", fmt.Sprintf("panic: %v", panicked.Value) // the stack is for the log
	}
	if sums.Kinds == nil {
		sums.Kinds = map[string]int{}
	}
	sums.Kinds[code]++
	line.Error = &journal.Failure{Code: code, Message: m.cfg.Redact(message)}
	if known && fault.Status != 0 {
		line.Response = &journal.Response{StatusCode: fault.Status, RequestID: fault.RequestID, Body: fault.Body}
		if fault.Body == nil && provider.IsFiltered(res.Finish) { // an answer that is kept, although it is not a result
			line.Response.Body = res.Value.Body
		}
	}
	line.Headrace.Output, line.Headrace.Calls = m.cfg.outputName, res.Calls
	for _, f := range res.Failures {
		line.Headrace.Failures = append(line.Headrace.Failures, journal.CallFailure{
			Kind: f.Kind.String(), Status: f.Status, Message: m.cfg.Redact(f.Message), Calls: f.Calls,
		})
	}
}

// costsAtOnce is the number of costs in one allocation: half a kilobyte, which a line that
// waits for the disk may keep from being freed.
const costsAtOnce = 64

// countCost counts the cost of an item, and returns it for the item's line; nil means unknown. An item that failed
// and used nothing has no cost to count.
func (m *Maker) countCost(res *Result, sums *Sums) (cost *float64, source string) {
	if res.Err != nil && res.Usage == (provider.Usage{}) {
		return nil, ""
	}
	bill := m.cfg.Bill(res.Lane, res.Item.Model, res.Usage)
	if !bill.Known || !provider.IsCost(bill.USD) {
		sums.Unpriced++
		return nil, ""
	}
	sums.CostUSD += bill.USD
	sums.Priced++
	if len(m.costs) == 0 {
		m.costs = make([]float64, costsAtOnce)
	}
	kept := &m.costs[0]
	*kept, m.costs = bill.USD, m.costs[1:]
	return kept, bill.Source
}

// BadLine returns the errors-file line for a line that is not asked, for runs that skip
// such lines rather than end.
func (m *Maker) BadLine(bad *prompts.LineError) journal.Line {
	l := badLine(bad)
	if m.cfg.Input.Several() {
		l.Headrace.File, l.Headrace.FileLine = bad.File, bad.FileLine()
	}
	l.Headrace.Output = m.cfg.outputName
	l.Headrace.Simulated, l.Headrace.Provider = m.cfg.Simulated, m.cfg.Fields.Provider
	return l
}

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

// Item is one request of the input on its way through a run.
type Item struct {
	prompts.Request
	lane      string // its pool: the quota that its call draws on, where there is one lane
	cost      batch.Cost
	maxTokens int // see Config.MaxTokens
	misfits   int // its answers in which Check has found a fault; only the call under way uses it

	prompt, bound float64 // in tokens, if the run has a budget; a bound of 0: there is none
}

// Result is the outcome of an item.
type Result = batch.Result[*Item, provider.Reply]

// Pool returns the pool in which the item waits.
func (it *Item) Pool() string { return it.lane }

// Cost returns what the item's call is expected to draw.
func (it *Item) Cost() batch.Cost { return it.cost }

// ItemKey returns the key under which the item is remembered, should it fail and not end.
func (it *Item) ItemKey() string { return it.Key }

// Misfits returns how many answers to the item did not fit, by [Config.Misfit]. Only the item's call
// may ask for it.
func (it *Item) Misfits() int { return it.misfits }

// Asks returns the request for a provider's client.
func (it *Item) Asks() provider.Request { return asks(&it.Request, it.maxTokens) }

// The codes of lines that were never asked, in an errors file.
const (
	CodeInvalidLine    = journal.CodeInvalidLine    // it is not a request
	CodeUntranslatable = journal.CodeUntranslatable // it cannot be translated for the provider
)
