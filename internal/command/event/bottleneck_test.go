package event

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

var noon = time.Date(2026, 11, 21, 15, 16, 0, 0, time.UTC)

func in(d time.Duration) time.Time { return noon.Add(d) }

// steady is a run in its middle: of one lane, whose limit on requests is known.
func steady(by limiter.Bound) observe.Snapshot {
	l := observe.Lane{NextBound: by, Left: 47_886}
	l.Name, l.LaneStatus.Latency = "openai/gpt-4o-mini", 3100*time.Millisecond
	l.View.At = noon
	l.View.Limits[0] = limiter.LimitView{Source: limiter.Seen, Refill: 10, Capacity: 10, Level: 0.5}
	l.Used[0] = 0.98
	return observe.Snapshot{
		At: noon, Began: in(-88 * time.Minute), Total: 100_000, Answered: 52_083, Failed: 31, Concurrency: 64, InFlight: 31, Waiting: 1024,
		Speed: 9.8, P50: 2900 * time.Millisecond, P95: 6100 * time.Millisecond,
		Bottleneck: observe.Bottleneck{By: by, Share: 0.97, Lane: l.Name},
		Ends:       observe.Forecast{Low: 77 * time.Minute, Likely: 81 * time.Minute, High: 85 * time.Minute, Known: true},
		Lanes:      []observe.Lane{l}, OfLanes: 1, Spent: observe.Spent{Usage: provider.Usage{InputTokens: 18_200_000, OutputTokens: 4_100_000}},
	}
}

var here = Context{Input: "prompts.jsonl", Output: "results.jsonl", Provider: "openai", Timeout: 2 * time.Minute, Zone: time.UTC, Resumable: true}

// boundTexts is a scene of the table: how a snapshot differs from steady, and every sentence of it.
type boundTexts struct {
	name string
	by   limiter.Bound
	p    func(p *observe.Snapshot, l *observe.Lane)
	c    func(c *Context)
}

// said returns every sentence of a scene, a line each.
func (c *boundTexts) said() (Progress, string) {
	p, with := steady(c.by), here
	if c.p != nil {
		c.p(&p, &p.Lanes[0])
	}
	if c.c != nil {
		c.c(&with)
	}
	e := Of(&p, with)
	text := "== " + c.name + "\n"
	for _, one := range []struct{ name, words string }{
		{"held", e.BoundText},
		{"more", e.BoundMore},
		{"wide", e.BoundWide},
		{"short", e.BoundShort},
		{"lane", e.Lanes[0].BoundShort},
		{"ends", e.EndsText},
		{"short", e.EndsShort},
	} {
		text += strings.TrimRight(fmt.Sprintf("%-6s %s", one.name, one.words), " ") + "\n"
	}
	return e, text
}

// What holds a run back, and when it ends, is said to the letter as in testdata/held.txt,
// and has room.
func TestBoundText(t *testing.T) {
	file, err := os.ReadFile("testdata/held.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, all := string(file), ""
	for _, c := range scenes {
		e, got := c.said()
		if all += got + "\n"; !strings.Contains(want, got+"\n") {
			_, was, _ := strings.Cut(want, "== "+c.name+"\n")
			was, _, _ = strings.Cut(was, "\n\n")
			t.Errorf("%s\nwant\n%s\n", got, was)
		}
		fits(t, &e)
	}
	if all != want {
		t.Errorf("the file has other scenes; all of them are\n%s", all)
	}
}

var quota = &provider.Error{Kind: provider.QuotaExhausted, Provider: "openai", Status: 429, Code: "insufficient_quota"}

var errBroken = errors.New("openai: server: 503: upstream connect error")

var scenes = []boundTexts{
	{name: "requests", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Bottleneck.Next, p.Bottleneck.Factor, p.Bottleneck.Then = limiter.BoundTokens, 3.1, limiter.BoundConcurrency
	}},
	{name: "requests, more than one clause has room", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Bottleneck.Next, p.Bottleneck.Factor, p.Bottleneck.Then = limiter.BoundOutputTokens, 12.1, limiter.BoundWindow
	}},
	{name: "requests, faster than they refill", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) { l.Used[0] = 3.7 }},
	{name: "requests, a little above", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) { l.Used[0] = 1.09 }},
	{name: "requests, nobody knows until when", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Ends = observe.Forecast{Low: 20 * time.Minute, Likely: 32 * time.Minute, High: 72 * time.Minute, Known: true}
	}},
	{name: "requests, learned, others", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[0] = limiter.LimitView{Source: limiter.Learned, Refill: 10, Others: 3.3}
		l.Used[0] = 0.65
		p.Bottleneck.Second, p.Bottleneck.SecondShare, p.Bottleneck.Share = limiter.BoundConcurrency, 0.34, 0.66
	}},
	{name: "requests, in the words of a refusal", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[0] = limiter.LimitView{Source: limiter.Seen, Said: true, Refill: 10}
	}},
	{name: "tokens, more than estimated", by: limiter.BoundTokens, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[1] = limiter.LimitView{Source: limiter.Seen, Refill: 500, Others: 50}
	}},
	{name: "requests, told, in debt", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[0] = limiter.LimitView{Source: limiter.Configured, Refill: 0.01, Level: -3}
		l.Used[0] = 0
	}},
	{name: "requests, nothing known", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) { l.View.Limits[0] = limiter.LimitView{} }},
	{name: "requests of one of three models", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) { p.OfLanes = 3 }},
	{name: "requests of many models", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) { p.OfLanes, p.Bottleneck.Lane = 3, "" }},
	{name: "tokens", by: limiter.BoundTokens, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[1] = limiter.LimitView{Source: limiter.Seen, Refill: 200_000. / 60}
		l.Used[1], l.Draw = 0.98, limiter.Cost{Requests: 1, Input: 478, Output: 512}
	}},
	{name: "tokens, all used", by: limiter.BoundTokens, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[1] = limiter.LimitView{Source: limiter.Seen, Refill: 200_000. / 60}
		l.Used[1], l.Draw = 0.98, limiter.Cost{Requests: 1, Input: 400, Output: 50}
		p.Bottleneck.Next, p.Bottleneck.Factor = limiter.BoundConcurrency, 1.4
	}},
	{name: "input tokens", by: limiter.BoundInputTokens, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[2] = limiter.LimitView{Source: limiter.Learned, Refill: 1e6 / 60}
		l.Used[2] = 0.5
	}},
	{name: "output tokens", by: limiter.BoundOutputTokens, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[3] = limiter.LimitView{Source: limiter.Configured, Refill: 8000. / 60}
		l.Used[3], l.Draw = 0.99, limiter.Cost{Requests: 1, Input: 400, Output: 512}
	}},
	{name: "search", by: limiter.BoundSearch, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[0], l.View.Search = limiter.LimitView{}, 64
		p.Ends = observe.Forecast{Why: "early"}
	}},
	{name: "search, refused once", by: limiter.BoundSearch, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[0], l.View.Search, l.View.Over = limiter.LimitView{}, 5.5, 11
		l.View.Limits[1] = limiter.LimitView{Source: limiter.Seen, Refill: 1000}
	}},
	{name: "trial", by: limiter.BoundTrial, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Trial, l.View.Chance, l.View.ChanceSeen = in(-time.Second), 0.05, 20
	}},
	{name: "a window of the minute, half of it refused", by: limiter.BoundTrial, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[0] = limiter.LimitView{Source: limiter.Learned, Refill: 10, Capacity: 600, Level: 3, Period: time.Minute, Ends: in(41 * time.Second)}
	}},
	{name: "errors", by: limiter.BoundErrors, p: func(p *observe.Snapshot, l *observe.Lane) { l.Slowed, l.Errors = 0.5, 0.34 }},
	{name: "errors, to a quarter", by: limiter.BoundErrors, p: func(p *observe.Snapshot, l *observe.Lane) { l.Slowed, l.Errors = 0.25, 0.51 }},
	{name: "a cap that refusals have taught", by: limiter.BoundWindow, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Cap, l.Window, l.View.Binds.By, l.InFlight = 2, 2, limiter.BoundWindow, 2
	}},
	{name: "your own server", by: limiter.BoundWindow, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Local = true
		l.View.Cap, l.Window, l.View.Binds.By, l.InFlight = 8, 8, limiter.BoundWindow, 8
	}},
	{name: "your own server, whose pace has grown since", by: limiter.BoundWindow, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Cap, l.Window, l.View.Binds.By, l.InFlight = 217, 217, limiter.BoundWindow, 9
	}},
	{name: "latency target", by: limiter.BoundWindow, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Window, l.Window, l.View.Binds.By = 12, 12, limiter.BoundLatency
	}},
	{name: "guard", by: limiter.BoundWindow, p: func(p *observe.Snapshot, l *observe.Lane) { l.Window = 1 }},
	{name: "concurrency", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Bottleneck.Next, p.Bottleneck.Factor, p.InFlight = limiter.BoundRequests, 2.4, 64
	}},
	{name: "concurrency, nothing next", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) { p.InFlight, p.Concurrency = 1, 1 }},
	{name: "concurrency, a guard next", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Bottleneck.Next, p.Bottleneck.Factor, p.InFlight = limiter.BoundWindow, 4.4, 64
	}},
	{name: "concurrency, a window next", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Cap = 96
		p.Bottleneck.Next, p.Bottleneck.Factor, p.InFlight = limiter.BoundWindow, 1.5, 60
	}},
	{name: "concurrency, your own server", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight, l.Local, l.Latency = 64, true, 9700*time.Millisecond
	}},
	{name: "concurrency, few in flight by now", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight, p.OfLanes, p.Bottleneck.Lane, l.Local = 3, 2, "", true
	}},
	{name: "concurrency, of calls that wait in headrace serve", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Bottleneck.Next, p.Bottleneck.Factor, p.InFlight = limiter.BoundWindow, 4.4, 64
	}, c: func(c *Context) { c.InLine = 2400 * time.Millisecond }},
	{name: "concurrency, of calls that hardly wait in headrace serve", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight = 64
	}, c: func(c *Context) { c.InLine = time.Second }},
	{name: "disk", by: limiter.BoundOutput},
	{name: "pipe", by: limiter.BoundOutput, c: func(c *Context) { c.Stdout = true }},
	{name: "cooldown", by: limiter.BoundCooldown, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Reason, l.Until, l.Wave, l.Parked = machine.Cooling, machine.ByThrottle, in(12400*time.Millisecond), 12, 9
		p.Ends = observe.Forecast{Low: 77 * time.Minute, Likely: 82 * time.Minute, High: 87 * time.Minute, Known: true}
	}},
	{name: "cooldown of before", by: limiter.BoundCooldown, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Reason, l.Until, l.Parked = machine.Cooling, machine.ByMemory, in(2*time.Hour), 1
	}},
	{name: "hold", by: limiter.BoundCooldown, p: func(p *observe.Snapshot, l *observe.Lane) { l.View.Hold = in(4200 * time.Millisecond) }},
	{name: "cooldown of many", by: limiter.BoundCooldown, p: func(p *observe.Snapshot, l *observe.Lane) { p.OfLanes, p.Bottleneck.Lane = 12, "" }},
	{name: "overload", by: limiter.BoundOverload, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Reason, l.Until, l.Wave = machine.Cooling, machine.ByOverload, in(4*time.Second), 1
	}},
	{name: "overload that is over", by: limiter.BoundOverload, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Wave, p.Bottleneck.Second, p.Bottleneck.SecondShare, p.Bottleneck.Share = machine.Flowing, 1, limiter.BoundConcurrency, 0.82, 0.18
	}},
	{name: "overload, nothing let in", by: limiter.BoundOverload, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Reason, l.Until, l.Wave, l.Parked = machine.Cooling, machine.ByOverload, in(2400*time.Millisecond), 1, 8
		l.View.Probed, l.View.Drought = 7, in(-41*time.Second)
		p.Ends = observe.Forecast{Why: "outage", Left: 26 * time.Minute}
	}},
	{name: "overload, of one model of two, the call leaves", by: limiter.BoundOverload, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Reason, l.Until, p.OfLanes = machine.Cooling, machine.ByOverload, in(0), 2
		l.View.Probed, l.View.Drought = 2, in(-3*time.Second)
	}},
	{name: "outage", by: limiter.BoundBreaker, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Reason, l.Until, l.Failures, l.Cause, p.Open = machine.Cooling, machine.ByBreaker, in(28*time.Second), 23, errBroken, 1
		p.Ends = observe.Forecast{Why: "outage", Left: 81 * time.Minute}
	}},
	{name: "outages", by: limiter.BoundBreaker, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Open, p.OfLanes, p.Bottleneck.Lane, p.Ends = 3, 4, "", observe.Forecast{Why: "outage"}
	}},
	{name: "probe", by: limiter.BoundRecovery, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.View.Limits[0] = limiter.LimitView{}
		l.Phase, l.Wave, l.Parked = machine.Probing, 12, 9
	}},
	{name: "ramp", by: limiter.BoundRecovery, p: func(p *observe.Snapshot, l *observe.Lane) {
		l.Phase, l.Until = machine.Ramping, in(6200*time.Millisecond)
	}},
	{name: "several come back", by: limiter.BoundRecovery, p: func(p *observe.Snapshot, l *observe.Lane) { p.OfLanes, p.Bottleneck.Lane = 3, "" }},
	{name: "backoff", by: limiter.BoundBackoff, p: func(p *observe.Snapshot, l *observe.Lane) { p.Delayed, p.FirstDue = 38, in(4200*time.Millisecond) }},
	{name: "backoff of one", by: limiter.BoundBackoff, p: func(p *observe.Snapshot, l *observe.Lane) { p.Delayed = 1 }},
	{name: "input", by: limiter.BoundInput, c: func(c *Context) { c.Input, c.Stream = "standard input", true }, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Total, p.InFlight, p.Speed, p.Ends = observe.UnknownTotal, 4, 3.1, observe.Forecast{Why: "total"}
	}},
	{name: "paused", by: limiter.BoundRequests, p: func(p *observe.Snapshot, l *observe.Lane) { p.State = observe.Paused }},
	{name: "draining", by: limiter.BoundRequests, c: func(c *Context) { c.Draining = CtrlC }, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.State, p.InFlight, p.P95, p.Oldest = observe.Draining, 6, 8*time.Second, 4200*time.Millisecond
		p.Answered += 25
	}},
	{name: "SIGTERM", by: limiter.BoundDraining, c: func(c *Context) { c.Draining = "a SIGTERM" }, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.State, p.InFlight = observe.Draining, 6
	}},
	{name: "deadline, one hangs", by: limiter.BoundDraining, c: func(c *Context) { c.Draining = "your --deadline" }, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.State, p.InFlight, p.Oldest = observe.Draining, 1, 95*time.Second
	}},
	{name: "drained", by: limiter.BoundDraining, c: func(c *Context) { c.Draining = "a full disk" }, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.State, p.InFlight, p.Answered = observe.Draining, 0, 99_968
	}},
	{name: "quota", by: limiter.BoundStopped, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.State, p.InFlight, l.Phase, l.Cause = observe.Stopped, 6, machine.Stopped, quota
	}},
	{name: "quota, in many words", by: limiter.BoundStopped, p: func(p *observe.Snapshot, l *observe.Lane) {
		wordy := *quota
		wordy.Message = "You exceeded your current quota, please check your plan and billing details."
		p.State, p.InFlight, l.Phase, l.Cause = observe.Stopped, 6, machine.Stopped, &wordy
	}},
	{name: "stopped, one left", by: limiter.BoundStopped, c: func(c *Context) { c.Timeout = 0 }, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.State, p.InFlight, p.Answered, p.P95 = observe.Stopped, 1, 99_968, 0
	}},
	{name: "tail that hangs", by: limiter.BoundTail, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight, p.Oldest, p.Slowest, p.Ends = 25, 95*time.Second, 400*time.Millisecond, observe.Forecast{Low: 0, Likely: 25 * time.Second, High: 30 * time.Second, Known: true}
	}},
	{name: "tail, slow as ever", by: limiter.BoundTail, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight, p.Oldest, p.Slowest = 3, 6*time.Second, 5*time.Second
	}},
	{name: "tail", by: limiter.BoundTail, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight, p.Oldest, p.Slowest = 1, time.Second, 9*time.Second
	}},
	{name: "tail, all back", by: limiter.BoundTail, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight, p.State, p.Ends = 0, observe.Over, observe.Forecast{Why: "over"}
	}},
	{name: "over", by: limiter.BoundConcurrency, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.InFlight, p.State, p.Ends, p.Bottleneck.Second = 0, observe.Over, observe.Forecast{Why: "over"}, limiter.BoundTail
		p.Ledger = observe.Ledger{limiter.BoundConcurrency: 95 * time.Second, limiter.BoundTail: 5 * time.Second}
	}},
	{name: "nothing", by: limiter.BoundNone, p: func(p *observe.Snapshot, l *observe.Lane) { p.Ends = observe.Forecast{Why: "early"} }},
	{name: "slept", by: limiter.BoundSlept, p: func(p *observe.Snapshot, l *observe.Lane) {
		p.Ledger = observe.Ledger{limiter.BoundSlept: 61 * time.Second}
	}},
	{name: "budget", by: limiter.BoundBudget},
	{name: "one of no run's", by: limiter.BoundNone, c: func(c *Context) { c.Bound = "moon_phase" }},
}

// fits complains of words that have no room, or steer a terminal.
func fits(t *testing.T, e *Progress) {
	t.Helper()
	type text struct {
		s    string
		most int
	}
	list := []text{
		{e.BoundText, rowCells},
		{e.BoundMore, rowCells},
		{e.BoundShort, shortCells},
		{e.EndsText, rowCells},
		{e.EndsShort, endCells},
		{e.BoundWide, 1 << 20},
		{e.EndsWide, 1 << 20},
		{e.Latest, 1 << 20},
		{CallsRow(e), rowCells},
		{SpentRow(e), rowCells},
		{FailedRow(e), rowCells},
	}
	for _, l := range e.Lanes {
		list = append(list, text{l.BoundShort, laneCells})
	}
	for _, one := range list {
		if cells(one.s) > one.most {
			t.Errorf("%d cells, and %d have room: %s", cells(one.s), one.most, one.s)
		}
		if printableText(one.s) != one.s {
			t.Errorf("it steers: %q", one.s)
		}
	}
	if e.BoundText == "" || e.BoundShort == "" || e.EndsText == "" {
		t.Errorf("nothing is said of %q in %s: %q, %q, %q", e.Bound, e.State, e.BoundText, e.BoundShort, e.EndsText)
	}
}
