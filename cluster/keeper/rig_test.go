package keeper

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/purity"
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

// configured is a limit of a call a second, a minute of which may be saved up: four leave in the first
// seconds, and what comes back is seen.
var configured = machine.LaneConfig{Limits: limiter.Limits{RPM: 60, Burst: time.Minute}}

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
	must.Do(r.t, r.Heard(r.now, a))
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

// audit finds what is wrong with the books of a keeper; "" if nothing is.
func audit(k *Keeper) string {
	inFlight := map[string]int{}
	for _, s := range k.machine.Status(k.now, len(k.order)).Lanes {
		inFlight[s.Name] = s.InFlight
	}
	waits, holds := map[*limit]int{}, map[*limit]int{}
	if len(k.line) != len(k.peers) {
		return fmt.Sprintf("%d peers in line and %d by name", len(k.line), len(k.peers))
	}
	for _, p := range k.line {
		if fault := auditPeer(k, p); fault != "" {
			return fmt.Sprintf("%v: %s", p.name, fault)
		}
		waits[p.limit] += len(p.offers)
		holds[p.limit] += len(p.permits)
	}
	for _, l := range k.order {
		switch teams := 0; {
		case l.waiting > MaxWaiting:
			return fmt.Sprintf("%s: %d permits wait", l.name, l.waiting)
		case holds[l] != inFlight[l.name]:
			return fmt.Sprintf("%s: the machine has %d calls in flight, and the books %d", l.name, inFlight[l.name], holds[l])
		case waits[l] > l.waiting:
			return fmt.Sprintf("%s: %d permits wait, and peers have %d", l.name, l.waiting, waits[l])
		default:
			for _, t := range l.turns {
				teams += t.peers
				if l.teams[t.job] != t || t.peers == 0 {
					return fmt.Sprintf("%s: team %s", l.name, t.job)
				}
			}
		}
	}
	return ""
}

func auditPeer(k *Keeper, p *peer) string {
	if k.peers[p.name] != p {
		return "it is in line, and nobody has its name"
	}
	inLine := 0
	for _, q := range p.team.line {
		if q == p {
			inLine++
		}
	}
	boxed := 0
	for _, q := range k.outbox {
		if q == p {
			boxed++
		}
	}
	switch {
	case p.inLine != (inLine == 1) || inLine > 1:
		return fmt.Sprintf("it is %d times in its team's line", inLine)
	case p.needs() && !p.inLine && k.now.Sub(p.heard) <= silentAfter:
		return "it needs a permit, and is in no line"
	case p.inOutbox != (boxed == 1) || boxed > 1:
		return fmt.Sprintf("it is %d times in the outbox", boxed)
	case len(p.outgoing) > 0 && !p.inOutbox:
		return "there is something for it, and it is not in the outbox"
	case p.taken < len(p.offers):
		return fmt.Sprintf("%d of its wants are taken, and %d permits wait", p.taken, len(p.offers))
	case len(p.wants) > permit.MaxWants:
		return "it wants too much"
	}
	for _, h := range p.offers {
		if h.state != waiting || h.peer != p {
			return "what waits is not waiting"
		}
	}
	for _, h := range p.outgoing {
		if h.state != outgoing || h.wave != p.limit.wave {
			return fmt.Sprintf("permit %d is to be given, in state %d, of wave %d at wave %d", h.number, h.state, h.wave, p.limit.wave)
		}
	}
	for number, h := range p.permits {
		if h.number != number || h.peer != p || h.state == waiting || h.state == over {
			return fmt.Sprintf("permit %d is in state %d", number, h.state)
		}
		if h.state != sent && k.now.Sub(h.at) > permit.Forgotten+2*permit.GiveEvery {
			return fmt.Sprintf("permit %d was granted %v ago, and nothing was said of it", number, k.now.Sub(h.at))
		}
	}
	return ""
}

// This is all that a keeper may know of the world: nothing of it can start something, wait for something, ask for the
// time, or draw lots that it was not given.
func TestPure(t *testing.T) {
	purity.Check(t, 6,
		"cmp", "errors", "fmt", "maps", "math", "slices", "time",
		"github.com/headrace/headrace/cluster/permit", "github.com/headrace/headrace/coordinator/machine", "github.com/headrace/headrace/limiter",
	)
}

// What a permit costs its keeper, from the bytes of the ask to those of the give, and the
// reports that its call has left and ended: what 200 workers say in ten seconds, replayed.
// Less than 10 µs is the aim; some two thirds of it are JSON.
func BenchmarkPermit(b *testing.B) {
	for name, c := range map[string]struct {
		rate float64
		json bool
	}{"500 a second": {500_000, true}, "5,000 a second": {5_000_000, true}, "5,000 a second, without JSON": {5_000_000, false}} {
		b.Run(name, func(b *testing.B) {
			p := usual(1)
			p.storm, p.rate, p.length, p.from, p.loss = false, c.rate, 40*time.Second, 0, 0
			tape := record(b, p)
			b.ReportAllocs()
			b.ResetTimer()
			permits, messages := 0, 0
			for range b.N {
				n, m := tape.play(b, c.json)
				permits, messages = permits+n, messages+m
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(permits), "ns/permit")
			b.ReportMetric(float64(messages)/float64(permits), "messages/permit")
		})
	}
}

// A tape is what one keeper heard and decided.
type tape struct {
	config  Config
	entries []entry
}

// An entry is an ask that was heard, or a decision.
type entry struct {
	at    time.Time
	ask   *permit.Ask // nil: it is a decision
	bytes []byte
}

func record(b *testing.B, p plan) *tape {
	t := &tape{}
	p.taped = func(d *activeKeeper, a *permit.Ask) {
		e := entry{at: d.clock.at(d.o.l.Age()), ask: a}
		if a != nil {
			e.bytes, _ = json.Marshal(a)
		}
		t.entries = append(t.entries, e)
	}
	l := newLab(p)
	t.config = l.center.(*office).config(1)
	if r := l.run(); len(r.faults) > 0 {
		b.Fatal(r.faults)
	}
	return t
}

// play has a keeper hear the tape, and answers with how many permits it gave, in how many
// messages.
func (t *tape) play(b *testing.B, over bool) (permits, messages int) {
	k := New(t.config)
	for i := range t.entries {
		e := &t.entries[i]
		if e.ask == nil {
			out := k.Ready(e.at)
			messages += len(out.Gives)
			for j := range out.Gives {
				permits += len(out.Gives[j].Permits)
				if over {
					must.Get(json.Marshal(&out.Gives[j]))(b)
				}
			}
			continue
		}
		messages++
		a := *e.ask
		if over {
			a = permit.Ask{}
			must.Do(b, json.Unmarshal(e.bytes, &a))
		}
		must.Do(b, k.Heard(e.at, a))
	}
	return permits, messages
}
