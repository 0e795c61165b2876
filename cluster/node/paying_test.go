package node

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A job stops at its cap, by its user's bound, once it is spent; it goes on when the cap is raised, and ends. What its
// calls have cost is never more than the cap. A cap is only raised.
func TestAJobStopsAtItsCap(t *testing.T) {
	const items = 60
	c := newCluster(t)
	var calls atomic.Int64
	open := func(r *job.Record) (*Caller, error) {
		caller, err := opening(func(_ context.Context, it *promptfile.Item) (provider.Reply, error) {
			calls.Add(1)
			return provider.Reply{
				Status: http.StatusOK, Body: json.RawMessage(`{}`), Usage: provider.Usage{OutputTokens: 1}, HasUsage: true,
			}, nil
		})(r)
		caller.Lines.Price = func(_ string, u provider.Usage) (float64, bool) { return min(float64(u.OutputTokens), 1), true } // a dollar a call
		return caller, err
	}
	end := works([]*Node{c.join(func(text string) { t.Log(text) }), c.join(func(text string) { t.Log(text) })}, open)
	n := c.join(nil)
	t.Cleanup(func() { _ = n.Close() })
	caller, _ := open(nil)
	in := job.Record{Inputs: c.inputs(0, items), Caps: []limiter.Money{limiter.USD(20)}}
	in.Reading, in.Cut = job.Reading{Model: "m"}, job.Cut{ChunkLines: 50}
	r := must.Get(n.Submit(t.Context(), in, caller, 0))(t)
	s := c.waitFor(n, r.Job, job.Stopped)
	if got := calls.Load(); got < 18 || got > 20 || !s.Record.Bound { // each of two purses may lack a part of a dollar
		t.Errorf("%d calls of a dollar for 20; %+v", got, s.Record)
	}
	if s.Record.Format != job.RecordFormat {
		t.Errorf("format %d: an older worker would take it", s.Record.Format)
	}
	if err := n.Raise(t.Context(), r.Job, limiter.USD(20)); err == nil {
		t.Error("a cap was raised to what it was")
	}
	must.Do(t, n.Raise(t.Context(), r.Job, limiter.USD(90)))
	must.Do(t, n.Resume(t.Context(), r.Job))
	c.waitFor(n, r.Job, job.Done)
	if got := calls.Load(); got != items {
		t.Errorf("%d calls for %d items", got, items)
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// A worker that lacks money while calls are in flight waits for what they bring back, and the others do not hear of it. With
// none in flight it refuses the job.
func TestRefusalsForMoney(t *testing.T) {
	clock := clockwork.NewFakeClock()
	r := &refusals{clock: clock, say: func(string) {}, jobs: map[string]*refused{}}
	r.refuseUnpaid("j", "no money", false)
	if said := r.report(); !r.refuses("j") || len(said) != 0 {
		t.Errorf("it is said: %v", said)
	}
	clock.Advance(time.Second)
	r.refuseUnpaid("j", "no money", true)
	if said := r.report()["j"]; !said.Final || !said.Bound {
		t.Errorf("said: %+v", said)
	}
	r.lift("j", "")
	if !r.isRefused("j") {
		t.Error("a line that was read lifts it")
	}
	if r.lift("j", capAsLimit); r.isRefused("j") {
		t.Error("it stays when there is money again")
	}
}

// An answer whose use has no known price, as one of a tier without a price, has cost what was reserved for it. So has one
// that does not say what it used, also if it does not fit.
func TestUnknownCostIsWhatWasReserved(t *testing.T) {
	used := provider.Reply{Usage: provider.Usage{OutputTokens: 1}, HasUsage: true}
	for name, c := range map[string]struct {
		reply provider.Reply
		known bool
		err   error
		want  limiter.Money
	}{
		"known":           {used, true, nil, 3},
		"no price":        {used, false, nil, 7},
		"says nothing":    {provider.Reply{}, true, nil, 7},
		"does not fit":    {used, true, provider.Misfit, 3},
		"nor says a word": {provider.Reply{}, true, provider.Misfit, 7},
		"refused":         {provider.Reply{}, true, provider.Throttled, 0},
	} {
		p := payer{price: func(string, string, provider.Usage) (float64, bool) { return 3e-12, c.known }}
		if got := p.cost(t.Context(), "m", 7, &c.reply, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
