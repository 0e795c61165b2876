package keeper

import (
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A rig is a keeper, and hands that ask it.
type rig struct {
	*Keeper
	t   *testing.T
	now time.Time
	out Out

	watch  func(permit.Give)
	silent bool // workers say nothing but what a test has them say; else they ask all the time
}

// told is a limit of a call a second, a minute of which may be saved up: four leave in the first
// seconds, and what comes back is seen.
var told = machine.LaneConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Minute}}

// many is one of a thousand calls a second.
var many = machine.LaneConfig{Limits: limiter.Limits{RPM: 60_000}}

func under(c machine.LaneConfig) Config {
	return Config{Limits: map[string]machine.LaneConfig{"org": c}}
}

func newRig(t *testing.T, c Config) *rig {
	if c.Epoch == 0 {
		c.Epoch = 1
	}
	return &rig{Keeper: New(c), t: t, now: noon}
}

func calls(n int, input float64) []permit.Cost {
	wants := make([]permit.Cost, n)
	for i := range wants {
		wants[i].Input = input
	}
	return wants
}

// asking is an ask of worker w.
func asking(w string, seq uint64, wants []permit.Cost, reports ...permit.Report) permit.Ask {
	return permit.Ask{Version: permit.Version, Worker: w, Job: "job", Limit: "org", Seq: seq, Epoch: 1, Wants: wants, First: 1, Reports: reports}
}

func (r *rig) hears(a permit.Ask) *rig {
	r.t.Helper()
	if err := r.Heard(r.now, a); err != nil {
		r.t.Fatal(err)
	}
	return r.decides()
}

func (r *rig) decides() *rig {
	r.t.Helper()
	for _, p := range r.line {
		if !r.silent {
			p.heard = r.now
		}
	}
	out := r.Ready(r.now)
	r.out.Gives = append(r.out.Gives, out.Gives...)
	for _, g := range out.Gives {
		if r.watch != nil {
			r.watch(g)
		}
	}
	r.out.Cools = append(r.out.Cools, out.Cools...)
	r.out.WakeAt, r.out.Outbid = out.WakeAt, out.Outbid
	if fault := audit(r.Keeper); fault != "" {
		r.t.Fatal(fault)
	}
	if at := out.WakeAt; !at.IsZero() && !at.After(r.now) {
		r.t.Fatalf("at %v it wants to be asked at %v", r.now.Sub(noon), at.Sub(noon))
	}
	return r
}

// at has time pass, and the keeper decide whenever it wants to.
func (r *rig) at(d time.Duration) *rig {
	r.t.Helper()
	for to := noon.Add(d); ; r.decides() {
		if at := r.out.WakeAt; at.IsZero() || at.After(to) {
			r.now = to
			return r.decides()
		}
		r.now = r.out.WakeAt
	}
}

// given are the permits that were given to a worker since it was asked last.
func (r *rig) given(worker string) (permits []permit.Permit) {
	kept := r.out.Gives[:0]
	for _, g := range r.out.Gives {
		if g.Worker == worker {
			permits = append(permits, g.Permits...)
		} else {
			kept = append(kept, g)
		}
	}
	r.out.Gives = kept
	return permits
}

func (r *rig) lane() machine.LaneStatus { return r.Status(r.now).Limits[0].Lane }

// refused is a refusal whose headers say that nothing is left.
var refused = machine.Outcome{
	Signal: machine.Throttled, Latency: 100 * time.Millisecond,
	Sightings: []limiter.Sighting{{Dimension: limiter.Requests, Limit: 600, Window: time.Minute, Reset: time.Second, HasReset: true}},
}

func left(p permit.Permit) permit.Report {
	return permit.Report{Epoch: 1, Number: p.Number, Cost: p.Cost}
}

func unused(p permit.Permit) permit.Report {
	return permit.Report{Epoch: 1, Number: p.Number, Unused: true}
}

func ended(p permit.Permit, o machine.Outcome) permit.Report {
	return permit.Report{Epoch: 1, Number: p.Number, Cost: p.Cost, Age: 10 * time.Millisecond, Ended: permit.OutcomeOf(o)}
}

var errCredit = &provider.Error{Kind: provider.QuotaExhausted, Status: 429, Code: "insufficient_quota", Message: "no credit"}
