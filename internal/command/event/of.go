package event

import (
	"math"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// Context holds what words need and a snapshot does not know.
type Context struct {
	Input, Output string         // as the user named them
	Provider      string         // its name
	Simulated     bool           // its answers are simulated
	Timeout       time.Duration  // of a call; 0: none
	Stdout        bool           // the results go to a reader of standard output
	Stream        bool           // the input can be read only once
	Resumable     bool           // the same command goes on with what is left
	Skipped       int            // bad lines, which count as failed
	Unwritten     int            // lines of ended items that the operating system does not have yet
	InLine        time.Duration  // how long calls have lately waited in headrace serve before they left; 0: not at all
	Draining      string         // what ends the run, such as "your Ctrl-C"; "": nothing does
	Stopped       string         // what stopped the run other than the provider; "": nothing did
	Bound         string         // the word for what holds the run back, if that is no bound of a run on one machine
	Latest        string         // the latest event, with its time
	Zone          *time.Location // of the clock that people read; nil: local
}

// Bounds of the lists in an event.
const (
	mostModels   = 3
	mostFailures = 8
)

// Of returns the progress event of a snapshot.
func Of(p *observe.Snapshot, c Context) Progress {
	s := &scene{snapshot: p, context: &c, lane: laneOf(p)}
	progress := Progress{
		Event: "progress", ElapsedS: Round(p.At.Sub(p.Began).Seconds()), At: Stamp(p.At), State: p.State.String(),
		Done: p.Before + p.Answered + p.Failed, Before: p.Before, Failed: int64(p.Failed + c.Skipped),
		InFlight: p.InFlight, Waiting: p.Waiting, PerSecond: Round(p.Speed), Open: p.Open, HalfOpen: p.HalfOpen,
		Input: c.Input, Output: c.Output, Provider: c.Provider, Simulated: c.Simulated, Concurrency: p.Concurrency,
		Models: models(p), OfModels: p.OfLanes, BoundS: Seconds(p.Ledger),
		Allowed: Finite(p.Allowed), Efficiency: nilUnlessPositive(p.Efficiency),
		Answered: p.Answered, Calls: p.Calls, Throttled: p.Throttled, Cooldowns: p.Cooldowns, Broke: p.Broke, Again: retriedCalls(p),
		Truncated: p.Truncated, Filtered: p.Filtered, Parked: p.Parked, Delayed: p.Delayed,
		OldestS: nilUnlessPositive(p.Oldest.Seconds()), SlowestS: nilUnlessPositive(p.Slowest.Seconds()),
		P50MS: milli(p.P50), P95MS: milli(p.P95), Failures: failureList(p), Latest: printable.Line(c.Latest), Lanes: lanes(s),
		Accounts: AccountsOf(p.Lanes),
	}
	if p.Total >= 0 {
		progress.Total = &p.Total
	}
	progress.Disk = &Disk{PendingLines: c.Unwritten}
	s.describeBound(&progress)
	s.describeEnd(&progress)
	addSpent(&progress, p)
	return progress
}

// models lists the models of the lanes that end last.
func models(p *observe.Snapshot) []string {
	names := []string{}
	for i := range p.Lanes[:min(len(p.Lanes), mostModels)] {
		names = append(names, modelOf(p.Lanes[i].Name))
	}
	return names
}

// modelOf returns a lane's name without its provider.
func modelOf(lane string) string {
	if _, model, ok := strings.Cut(lane, "/"); ok && model != "" {
		lane = model
	}
	return printable.Line(lane)
}

// addSpent fills in the tokens and the money. The money is left out if no call had a price, and its forecast
// while that is unknown.
func addSpent(progress *Progress, snapshot *observe.Snapshot) {
	progress.Spent = Spent{
		InputTokens: snapshot.Spent.InputTokens, OutputTokens: snapshot.Spent.OutputTokens, CachedTokens: snapshot.Spent.CachedTokens, Unpriced: snapshot.Spent.Unpriced,
		Doubtful: DoubtfulOf(snapshot.Spent.Doubtful), Budget: BudgetOf(snapshot.Money),
	}
	if snapshot.Spent.Priced > 0 || snapshot.Spent.USD > 0 {
		progress.Spent.USD = &snapshot.Spent.USD
	}
	if snapshot.InAll.Known && progress.Spent.USD != nil {
		progress.InAll = &InAll{USD: snapshot.InAll.Likely, PlusMinus: snapshot.InAll.PlusMinus}
	}
}

// BudgetOf returns a run's money as an event has it; nil: it has no --max-cost.
func BudgetOf(m batch.Spending) *Budget {
	if m.Cap == 0 {
		return nil
	}
	return &Budget{m.Cap.USD(), m.Spent.USD(), m.Reserved.USD(), m.Doubtful.USD(), m.Over.USD()}
}

// DoubtfulOf returns doubtful usage as an event has it.
func DoubtfulOf(d provider.Doubtful) Doubtful {
	return Doubtful{d.Calls, d.Usage.InputTokens, d.Usage.OutputTokens, d.Usage.CachedTokens}
}

// retriedCalls returns the number of broken calls that did not end their items. It is too high if the run has
// more kinds of failure than a snapshot holds.
func retriedCalls(p *observe.Snapshot) int {
	n := p.Broke
	for _, f := range p.Failures {
		if retriedKinds[f.Kind] {
			n -= f.Count
		}
	}
	return max(0, n)
}

// retriedKinds lists the kinds of failure after which a run calls an item again, if it may.
var retriedKinds = func() map[string]bool {
	kinds := map[string]bool{}
	for _, k := range []provider.Kind{provider.Unknown, provider.Timeout, provider.TransportFault, provider.EmptyAnswer, provider.Server} {
		kinds[k.String()] = true
	}
	return kinds
}()

// failureList returns the most frequent failures, each with an example.
func failureList(p *observe.Snapshot) []Failure {
	list := []Failure{}
	for _, f := range p.Failures[:min(len(p.Failures), mostFailures)] {
		failure := Failure{Kind: f.Kind, Code: f.Code, Message: f.Message, Count: f.Count}
		if len(f.Examples) > 0 {
			failure.Example = f.Examples[0]
		}
		list = append(list, failure)
	}
	return list
}

// Seconds returns a ledger in the form of events. It keeps nanoseconds, so that the sum is the time of the
// run.
func Seconds(l observe.Ledger) map[string]float64 {
	seconds := map[string]float64{}
	for k, d := range l {
		if by := limiter.Bound(k); by != limiter.BoundNone && d != 0 {
			seconds[by.String()] = d.Seconds()
		}
	}
	return seconds
}

func lanes(s *scene) []Lane {
	list := []Lane{}
	for i := range s.snapshot.Lanes {
		list = append(list, s.laneEvent(&s.snapshot.Lanes[i]))
	}
	return list
}

// laneEvent returns a lane in the form of events, with times in seconds or milliseconds. A pointer is nil if
// its value is unknown or infinite.
func (s *scene) laneEvent(lane *observe.Lane) Lane {
	out := Lane{
		Name: lane.Name, Account: lane.Account, Phase: lane.Phase.String(), Speed: lane.LaneStatus.Speed.String(), Why: lane.Why, WaitS: Round(lane.Wait.Seconds()),
		Epoch: lane.Epoch, Rate: Finite(lane.Rate), InFlight: lane.InFlight, Parked: lane.Parked, Delayed: lane.Delayed,
		MeanMS: lane.Latency.Milliseconds(), P95MS: lane.LaneStatus.P95.Milliseconds(), P50MS: milli(lane.P50),
		Bound: s.laneBound(lane).String(), BoundShort: s.laneBoundText(lane), Limits: limits(lane),
		Answered: lane.Answered, Throttled: lane.Throttled, Broke: lane.Broke, Failed: lane.Failed, DonePerS: Round(lane.Speed),
		Errors: Round(lane.Errors), Slowed: Round(lane.Slowed), Belief: s.believed(lane).String(), Breaker: lane.Breaker.String(), Failures: lane.Failures,
		FirstS: Until(s.snapshot.At, lane.FirstDue), LastS: Until(s.snapshot.At, lane.LastDue),
		Level: Levels{Finite(lane.Level.Requests), Finite(lane.Level.Tokens), Finite(lane.Level.InputTokens), Finite(lane.Level.OutputTokens)},
	}
	if usd := lane.Spent.USD; lane.Account != "" && lane.Spent.Priced > 0 {
		out.USD = &usd
	}
	if lane.P95 > 0 { // it is of the same answers as the median
		out.P95MS = lane.P95.Milliseconds()
	}
	if lane.Cause != nil {
		out.Cause = lane.Cause.Error()
	}
	if lane.Window > 0 {
		out.Window = &lane.Window
	}
	if lane.Left >= 0 {
		out.Left = &lane.Left
	}
	if !lane.Until.IsZero() {
		at := Stamp(lane.Until)
		out.Until = &at
	}
	return out
}

// limits lists the known limits of a lane.
func limits(lane *observe.Lane) []Limit {
	list := []Limit{}
	for k := range lane.View.Limits {
		if v := &lane.View.Limits[k]; v.Known() {
			list = append(list, Limit{
				Limit: LimitWords[k], PerSecond: Round(v.Refill), Source: SourceWord(v),
				Used: nilUnlessPositive(lane.Used[k]), Level: Finite(lane.View.Level(dimensions[k])),
			})
		}
	}
	return list
}

// LimitWords holds the words for the limits, in the order of a view.
var LimitWords = [limiter.Dimensions]string{"requests", "tokens", "input_tokens", "output_tokens"}

var dimensions = [limiter.Dimensions]limiter.Dimension{limiter.Requests, limiter.Tokens, limiter.InputTokens, limiter.OutputTokens}

// SourceWord returns the word of events for the source of a limit.
func SourceWord(v *limiter.LimitView) string {
	switch {
	case v.Source == limiter.Seen && v.Said:
		return "refusals"
	case v.Source == limiter.Seen:
		return "headers"
	}
	return v.Source.String()
}

// Stamp shows a moment as events have it: RFC 3339 with milliseconds, in UTC.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Round rounds to the thousandth: what is behind that is noise. Numbers that JSON does not
// have become 0.
func Round(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	return math.Round(x*1000) / 1000
}

// RoundUSD rounds dollars to the billionth, as timelines do: a call may cost less than Round keeps.
func RoundUSD(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// Finite returns a number for JSON, which has no infinity: null then.
func Finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	x = Round(x)
	return &x
}

// nilUnlessPositive returns a number, or nil for 0 or less, which means that it is not known.
func nilUnlessPositive(x float64) *float64 {
	if x <= 0 {
		return nil
	}
	return Finite(x)
}

func milli(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// Until returns the seconds from now until then; null: there is no such moment.
func Until(now, then time.Time) *float64 {
	if then.IsZero() {
		return nil
	}
	return Finite(max(0, then.Sub(now)).Seconds())
}
