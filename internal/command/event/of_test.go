package event

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// The snapshot of a lane is valid JSON no matter what is known: unlimited values are null,
// and a debt is negative.
func TestLanePictureForPrograms(t *testing.T) {
	l := observe.Lane{LaneStatus: machine.LaneStatus{
		Name: "l", Rate: math.Inf(1), Breaker: limiter.HalfOpen, Failures: 4,
		FirstDue: in(time.Second), LastDue: in(time.Minute),
		Level: machine.Levels{Requests: math.Inf(1), Tokens: -2.5, InputTokens: 7, OutputTokens: math.NaN()},
	}}
	e := Of(&observe.Snapshot{At: noon, Began: noon, OfLanes: 1, Open: 2, HalfOpen: 1, Lanes: []observe.Lane{l}}, here)
	out, err := json.Marshal(e)
	var got map[string]any
	if err != nil || json.Unmarshal(out, &got) != nil || got["breakers_open"] != 2.0 || got["breakers_half_open"] != 1.0 {
		t.Fatalf("%v: %s", err, out)
	}
	if want := `"breaker":"half-open","failures_in_row":4,"first_due_s":1,"last_due_s":60,` +
		`"level":{"requests":null,"tokens":-2.5,"input_tokens":7,"output_tokens":null}}]}`; !strings.HasSuffix(string(out), want) {
		t.Errorf("it does not end in %s: %s", want, out)
	}
}

// The belief about calls in flight names the number that binds: the concurrency where that is
// less.
func TestBeliefIsWhatBinds(t *testing.T) {
	for most, want := range map[int]string{0: "", 8: "no more than 8 in flight", 64: "no more than 64 in flight", 256: "no more than 64 in flight"} {
		p := steady(limiter.BoundTrial)
		p.Lanes[0].View = limiter.View{At: noon, Cap: most}
		e := Of(&p, here)
		if e.Lanes[0].Belief != want || want != "" && !strings.Contains(e.BoundMore, want) || strings.Contains(e.BoundMore, "256") {
			t.Errorf("of %d calls: %q, and %q", most, e.Lanes[0].Belief, e.BoundMore)
		}
		p.Concurrency = 0 // not known
		if got := Of(&p, here).Lanes[0].Belief; most > 0 && got != "no more than "+words.Number(most)+" in flight" {
			t.Errorf("of %d calls with no concurrency: %q", most, got)
		}
	}
}

// Counts have the meaning that programs expect: items that earlier runs have ended are done,
// bad lines failed, and a call that ended its item was not tried again.
func TestFigures(t *testing.T) {
	p := steady(limiter.BoundRequests)
	p.Before, p.Broke, p.Allowed, p.Efficiency = 100, 120, math.Inf(1), 0.986
	p.Ledger = observe.Ledger{limiter.BoundRequests: 3*time.Second + 1, limiter.BoundTail: 0, limiter.BoundNone: time.Second}
	p.Failures = []observe.Failure{
		{Kind: "timeout", Count: 5},
		{Kind: "server", Code: "500", Count: 3},
		{Kind: "invalid", Count: 23, Message: "too long", Examples: []observe.Example{{ID: "a", Line: 7, Message: "too long: 9"}}},
	}
	p.Spent.Priced, p.Spent.USD, p.InAll = 3, 5.21, observe.Estimate{Likely: 10, PlusMinus: 0.06, Known: true}
	p.Spent.Doubtful = provider.Doubtful{Calls: 2, Usage: provider.Usage{InputTokens: 9, OutputTokens: 4, CachedTokens: 3}}
	with := here
	with.Skipped, with.Unwritten = 4, 12
	e := Of(&p, with)
	if e.Done != 100+52_083+31 || e.Failed != 35 || e.Again != 112 || *e.Total != 100_000 || e.Allowed != nil || *e.Efficiency != 0.986 {
		t.Errorf("%+v", e)
	}
	if text, err := json.Marshal(e.Spent); err != nil || !strings.Contains(string(text), `,"doubtful":{"calls":2,"input_tokens":9,"output_tokens":4,"cached_tokens":3}}`) {
		t.Errorf("%s, %v", text, err)
	}
	if e.Disk.PendingLines != 12 {
		t.Errorf("%+v", e.Disk)
	}
	if len(e.BoundS) != 1 || e.BoundS["requests"] != 3.000000001 || e.ElapsedS != 88*60 || e.At != "2026-11-21T15:16:00.000Z" {
		t.Errorf("%v, %v, %s", e.BoundS, e.ElapsedS, e.At)
	}
	if *e.Spent.USD != 5.21 || e.InAll.USD != 10 || e.Failures[2].Example != (observe.Example{Line: 7, ID: "a", Message: "too long: 9"}) || e.Models[0] != "gpt-4o-mini" {
		t.Errorf("%+v, %+v, %+v", e.Spent, e.InAll, e.Failures)
	}
	l := e.Lanes[0]
	if len(l.Limits) != 1 || l.Limits[0].Limit != "requests" || l.Limits[0].Source != "headers" || *l.Limits[0].Used != 0.98 || *l.Left != 47_886 {
		t.Errorf("%+v", l)
	}
	p.Total, p.Spent = observe.UnknownTotal, observe.Spent{}
	if e := Of(&p, here); e.Total != nil || e.Spent != (Spent{}) || e.InAll != nil {
		t.Errorf("%+v", e)
	}
}

// A lane of a file names its account; a run of one provider has none.
func TestLaneNamesItsAccount(t *testing.T) {
	p := observe.Snapshot{Lanes: []observe.Lane{{LaneStatus: machine.LaneStatus{Name: "a/m", Account: "acme"}}, {LaneStatus: machine.LaneStatus{Name: "b/m"}}}}
	text, err := json.Marshal(Of(&p, Context{}).Lanes)
	if err != nil || strings.Count(string(text), `"account"`) != 1 || !strings.Contains(string(text), `"name":"a/m","account":"acme"`) {
		t.Errorf("%s, %v", text, err)
	}
}
