package observe

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

var errTest = errors.New("test")

// A world is a run that follows a script, in which calls take a second.
type world struct {
	*Recorder
	now    time.Time
	ledger batch.Ledger
}

func newWorld(cfg Config) *world { return &world{Recorder: New(cfg), now: start} }

// goes lets the run go on for some seconds, with so many items a second on each lane.
func (w *world) goes(seconds int, by machine.Bound, status batch.Status, perSecond ...int) {
	for range 2 * seconds {
		w.now = w.now.Add(500 * time.Millisecond)
		w.ledger[by] += 500 * time.Millisecond
		for k, n := range perSecond {
			for i := range n / 2 {
				w.countCall(&batch.Call{Worker: i, Lane: status.Lanes[k].Name, Begun: w.now, Latency: time.Second})
				w.countEnd(&batch.End{Worker: i, Lane: status.Lanes[k].Name})
			}
		}
		s := status
		s.At, s.Known = w.now, max(s.Known, len(s.Lanes))
		s.Run.Bound, s.Run.Ledger = by, w.ledger
		w.event(batch.Event{Status: &s})
	}
}

// learned is a lane with what was learned of its limits, in units a second; 0: nothing.
func learned(name string, requests, tokens float64) machine.LaneStatus {
	l := machine.LaneStatus{Name: name, Draw: limiter.Cost{Requests: 1, Input: 700, Output: 300}}
	for k, refill := range []float64{requests, tokens} {
		if refill > 0 {
			l.View.Limits[k] = limiter.LimitView{Source: limiter.Learned, Refill: refill}
		}
	}
	return l
}

func statusOf(concurrency int, lanes ...machine.LaneStatus) batch.Status {
	return batch.Status{Run: machine.RunStatus{Concurrency: concurrency}, Lanes: lanes}
}

// What binds is the least capacity, and what would bind next is the least of the others,
// at its capacity over the present speed.
func TestNext(t *testing.T) {
	for _, c := range []struct {
		name       string
		by         machine.Bound
		status     batch.Status
		next, then limiter.Bound
		factor     float64
		allowed    float64
	}{
		{"requests, then tokens, then -c", machine.BoundRequests, statusOf(64, learned("l", 10/0.98, 31_000/0.98)), limiter.BoundTokens, limiter.BoundConcurrency, 3.1, 10},
		{"requests, then -c", machine.BoundRequests, statusOf(20, learned("l", 10/0.98, 31_000/0.98)), limiter.BoundConcurrency, limiter.BoundTokens, 2, 10},
		{"-c, then requests", machine.BoundConcurrency, statusOf(10, learned("l", 24/0.98, 0)), limiter.BoundRequests, limiter.BoundNone, 2.4, 10},
		{"-c, nothing else known", machine.BoundConcurrency, statusOf(10, learned("l", 0, 0)), limiter.BoundNone, limiter.BoundNone, 0, 10},
		{"input, with room", machine.BoundInput, statusOf(40, learned("l", 24/0.98, 0)), limiter.BoundRequests, limiter.BoundConcurrency, 2.4, 24},
		{"what is least already is as good as bound", machine.BoundTrial, statusOf(40, learned("l", 5/0.98, 0)), limiter.BoundRequests, limiter.BoundConcurrency, 1, 5},
		{"a window", machine.BoundWindow, statusOf(64, windowed(learned("l", 30/0.98, 0), 10)), limiter.BoundRequests, limiter.BoundConcurrency, 3, 10},
		{"nothing follows the end", machine.BoundTail, statusOf(64, learned("l", 30/0.98, 0)), limiter.BoundNone, limiter.BoundNone, 0, 30},
		{"nor a pause", machine.BoundPaused, statusOf(64, learned("l", 30/0.98, 0)), limiter.BoundNone, limiter.BoundNone, 0, 30},
	} {
		w := newWorld(Config{})
		w.goes(60, c.by, c.status, 10)
		p := w.Snapshot(w.now)
		if h := p.Bottleneck; h.By != c.by || h.Next != c.next || h.Then != c.then || math.Abs(h.Factor-c.factor) > 1e-6 {
			t.Errorf("%s: %+v", c.name, h)
		}
		if math.Abs(p.Allowed-c.allowed) > 1e-6 {
			t.Errorf("%s: %v allowed, want %v", c.name, p.Allowed, c.allowed)
		}
	}
}

func windowed(l machine.LaneStatus, n int) machine.LaneStatus {
	l.Window = n
	return l
}

// What the user said of a limit counts whole, what others draw is not there to be used, and
// a limit of which an item draws nothing binds nothing.
func TestLimitCapacity(t *testing.T) {
	for _, c := range []struct {
		limit limiter.LimitView
		draw  float64
		want  float64
	}{
		{limiter.LimitView{Source: limiter.Configured, Refill: 10}, 1, 10},
		{limiter.LimitView{Source: limiter.Learned, Refill: 10}, 1, 9.8},
		{limiter.LimitView{Source: limiter.Seen, Refill: 10, Others: 4.8}, 1, 5},
		{limiter.LimitView{Source: limiter.Seen, Refill: 1000}, 100, 9.8},
		{limiter.LimitView{Source: limiter.Seen, Refill: 1, Others: 4}, 1, 0},
		{limiter.LimitView{Refill: 10}, 1, 0},
		{limiter.LimitView{Source: limiter.Configured, Refill: 10}, 0, 0},
		{limiter.LimitView{Source: limiter.Configured, Refill: 10}, math.NaN(), 0},
	} {
		if got := limitCapacity(&c.limit, c.draw); !near(got, c.want) {
			t.Errorf("%+v by %v: %v, want %v", c.limit, c.draw, got, c.want)
		}
	}
}

// Without the gate the concurrency is worth what the calls themselves take.
func TestNextAfterTheOutput(t *testing.T) {
	w := newWorld(Config{})
	for range 120 {
		w.now = w.now.Add(500 * time.Millisecond)
		w.ledger[machine.BoundConcurrency] += 500 * time.Millisecond
		for i := range 5 {
			w.countCall(&batch.Call{Worker: i, Lane: "l", Latency: 250 * time.Millisecond, Gated: 750 * time.Millisecond})
			w.countEnd(&batch.End{Worker: i, Lane: "l"})
		}
		s := statusOf(10, learned("l", 0, 0))
		s.At, s.Known, s.Run.Bound, s.Run.Ledger = w.now, 1, machine.BoundConcurrency, w.ledger
		w.event(batch.Event{Status: &s})
	}
	p := w.Snapshot(w.now)
	if h := p.Bottleneck; h.By != limiter.BoundOutput || !near(h.Share, 0.75) || h.Next != limiter.BoundConcurrency || math.Abs(h.Factor-4) > 1e-6 {
		t.Errorf("%+v", h)
	}
}

// The efficiency is what was answered of what was allowed, while that is known.
func TestEfficiency(t *testing.T) {
	var all Sample
	w := newWorld(Config{OnSample: func(s Sample) { all = all.Merge(s) }})
	w.goes(100, machine.BoundInput, statusOf(0, learned("l", 0, 0)), 10)
	if p := w.Snapshot(w.now); p.Efficiency != 0 || !math.IsInf(p.Allowed, 1) {
		t.Errorf("nothing is known: %v, %v", p.Efficiency, p.Allowed)
	}
	w.goes(100, machine.BoundInput, statusOf(0, learned("l", 20/0.98, 0)), 10)
	if p := w.Snapshot(w.now); !near(p.Efficiency, 0.5) || !near(p.Allowed, 20) {
		t.Errorf("%v, %v", p.Efficiency, p.Allowed)
	}
	w.goes(100, machine.BoundCooldown, statusOf(0, learned("l", 20/0.98, 0)))
	if p := w.Snapshot(w.now); !near(p.Efficiency, 0.25) {
		t.Errorf("%v", p.Efficiency)
	}
	if !near(all.Allowed, 20) || math.Abs(all.AllowedSpan-200) > 1 {
		t.Errorf("%v over %v s", all.Allowed, all.AllowedSpan)
	}
}

// What several lanes allow is not known while one of them searches for its limit.
func TestSearchingLaneAllowsNothingKnown(t *testing.T) {
	w := newWorld(Config{})
	searching := learned("b", 0, 0)
	searching.Rate, searching.Window = 50, 64
	w.goes(100, machine.BoundInput, statusOf(0, learned("a", 20/0.98, 0), searching), 10)
	if p := w.Snapshot(w.now); p.Efficiency != 0 || !math.IsInf(p.Allowed, 1) {
		t.Errorf("%v, %v", p.Efficiency, p.Allowed)
	}
	w.goes(100, machine.BoundInput, statusOf(0, learned("a", 20/0.98, 0), learned("b", 20/0.98, 0)), 10)
	if p := w.Snapshot(w.now); !near(p.Efficiency, 0.25) || !near(p.Allowed, 40) {
		t.Errorf("%v, %v", p.Efficiency, p.Allowed)
	}
}

// What holds the run back is about the lane that ends last, if that one is held by it; else
// about the only one that is; else about none. And of one lane nothing needs to be said.
func TestBoundIsAboutALane(t *testing.T) {
	bound := func(l machine.LaneStatus, b machine.Bound) machine.LaneStatus { l.Bound = b; return l }
	work := []Work{{Lane: "short", Items: 700}, {Lane: "long", Items: 60_000}, {Lane: "other", Items: 700}}
	for _, c := range []struct {
		name  string
		lanes [3]machine.Bound // short, long, other
		known int
		lane  string
	}{
		{"all", [3]machine.Bound{machine.BoundTokens, machine.BoundTokens, machine.BoundTokens}, 3, "long"},
		{"one that is not the last", [3]machine.Bound{machine.BoundTokens, machine.BoundNone, machine.BoundWindow}, 3, "short"},
		{"two of those", [3]machine.Bound{machine.BoundTokens, machine.BoundRequests, machine.BoundTokens}, 3, ""},
		{"none", [3]machine.Bound{}, 3, ""},
	} {
		w := newWorld(Config{Work: work})
		w.goes(30, machine.BoundTokens, statusOf(0,
			bound(learned("short", 40/0.98, 20_000/0.98), c.lanes[0]), bound(learned("long", 30/0.98, 10_000/0.98), c.lanes[1]), bound(learned("other", 0, 0), c.lanes[2])), 20, 10, 10)
		p := w.Snapshot(w.now)
		if p.Bottleneck.Lane != c.lane || p.Lanes[0].Name != "long" || p.Lanes[0].Left != 60_000-300 {
			t.Errorf("%s: about %q; %+v", c.name, p.Bottleneck.Lane, p.Lanes[0])
		}
		if c.lane == "long" && (p.Bottleneck.Next != limiter.BoundRequests || math.Abs(p.Bottleneck.Factor-3) > 1e-6) {
			t.Errorf("%s: %+v", c.name, p.Bottleneck)
		}
		if want := c.lanes[1]; p.Lanes[0].NextBound != want {
			t.Errorf("%s: long is held by %q, want %q", c.name, p.Lanes[0].NextBound, want)
		}
	}
	w := newWorld(Config{})
	w.goes(30, machine.BoundTokens, statusOf(0, bound(learned("one", 0, 10_000), machine.BoundTokens)), 10)
	if p := w.Snapshot(w.now); p.Bottleneck.Lane != "" || p.Bottleneck.By != limiter.BoundTokens {
		t.Errorf("%+v", p.Bottleneck)
	}
}

// A lane shows its own figures, and what share of its limits it draws.
func TestLaneFigures(t *testing.T) {
	w := newWorld(Config{})
	w.goes(30, machine.BoundConcurrency, statusOf(30, learned("a", 20, 0), learned("b", 0, 40_000)), 20, 10)
	w.countCall(&batch.Call{Lane: "a", Err: batch.RetryAfter(0, errTest), Kind: batch.Throttled})
	w.countCall(&batch.Call{Lane: "b", Err: errTest})
	w.countEnd(&batch.End{Lane: "b", Err: errTest})
	w.goes(1, machine.BoundConcurrency, statusOf(30, learned("a", 20, 0), learned("b", 0, 40_000)), 20, 10)
	p := w.Snapshot(w.now)
	a, b := p.Lanes[0], p.Lanes[1]
	if a.Name != "a" || a.Answered != 620 || a.Speed != 20 || a.Throttled != 1 || math.Abs(a.Used[0]-1) > 0.01 || a.Used[1] != 0 || a.Left != UnknownTotal {
		t.Errorf("%+v", a)
	}
	if b.Name != "b" || b.Answered != 310 || b.Failed != 1 || b.Broke != 1 || math.Abs(b.Used[1]-0.25) > 0.01 || b.P50 < 950*time.Millisecond || b.P50 > 1050*time.Millisecond {
		t.Errorf("%+v", b)
	}
	if a.NextBound != limiter.BoundConcurrency || math.Abs(p.Speed-30) > 0.2 {
		t.Errorf("%q, %v", a.NextBound, p.Speed)
	}
}

// A window lets through as many calls as it holds in the time that one takes.
func TestWindowCapacity(t *testing.T) {
	l := windowed(learned("l", 0, 0), 10)
	none := [limiter.Dimensions]float64{}
	if got := capacities(&l, none, 0.5); len(got) != 1 || got[0] != (capacity{limiter.BoundWindow, 20}) {
		t.Errorf("%+v", got)
	}
	if got := capacities(&l, none, 0); len(got) != 0 {
		t.Errorf("without a latency: %+v", got)
	}
}

// A lane for which nothing waits, while something does for another, needs no more than it uses.
func TestIdleLaneNeedsWhatItUses(t *testing.T) {
	idle := learned("idle", 40/0.98, 0)
	idle.Draw = limiter.Cost{}
	w := newWorld(Config{})
	w.goes(60, machine.BoundRequests, statusOf(0, learned("busy", 10/0.98, 0), idle), 10, 4)
	if p := w.Snapshot(w.now); math.Abs(p.Allowed-14) > 1e-6 {
		t.Errorf("%v allowed, want 10 and the 4 that are used", p.Allowed)
	}
}

// The lane that has most left to do, at its pace, comes first.
func TestLanesComeByWhatIsLeft(t *testing.T) {
	w := newWorld(Config{Work: []Work{{Lane: "a", Items: 10}, {Lane: "b", Items: 1000}, {Lane: "c", Items: 100}}})
	var names []string
	for _, l := range w.Snapshot(start).Lanes {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "a b c" { // nothing has ended: nobody knows how long each takes
		t.Error(got)
	}
	status := statusOf(8, learned("a", 1, 0), learned("b", 1, 0), learned("c", 1, 0))
	for k := range 20 {
		for _, lane := range []string{"a", "b", "c"} {
			w.countCall(&batch.Call{Lane: lane, Latency: time.Second})
			w.countEnd(&batch.End{Lane: lane})
		}
		status.At, status.Run.Ledger[1] = start.Add(time.Duration(k+1)*time.Second), time.Duration(k+1)*time.Second
		w.event(batch.Event{Status: &status})
	}
	names = nil
	for _, l := range w.Snapshot(status.At).Lanes {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "b c a" {
		t.Error(got)
	}
}
