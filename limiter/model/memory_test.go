package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

var rewriteMemory = flag.Bool("rewrite-memory", false, "write the golden memory anew")

// everything is a memory with something in each field.
func everything() limiter.Memory {
	return limiter.Memory{
		Version: limiter.MemoryVersion, Law: "model", At: noon,
		Limits: []limiter.LimitMemory{
			{On: "requests", Source: "learned", Refill: 10, Capacity: 45, Debt: 30, Ceiling: 15},
			{
				On: "input tokens", Source: "seen", Refill: 1000, Capacity: 60000, Debt: 40000, Others: 100, Period: 60,
				Window: &limiter.WindowMemory{Ends: at(12.123456789), Period: 59.5, Most: 60000},
			},
		},
		Answered: 9.7, Latency: 1.2, Refusal: 0.06, Pace: 9.8, Factor: 1.25, Reserve: 2, ReserveAt: at(-30), Hold: at(4), Refused: at(-1),
		Lied: 100, Local: 24, Ramp: &limiter.RampMemory{At: at(-1), Share: 0.5, Double: 1, Target: 20, Time: 300},
		Estimate: &limiter.EstimateMemory{Search: 7, Calls: 320, Span: 32, At: at(-20), Every: 11, Confirmed: true},
		Chance:   limiter.Counts{{20, 100, 10}, {28, 250, 26}},
		Cap:      &limiter.CapMemory{Most: 8.4, Clear: 30, Beside: limiter.Counts{{7, 200, 1}, {8, 20, 19}}, Paces: limiter.Counts{{28, 220, 20}}},
		Drought:  &limiter.DroughtMemory{Began: at(-3), Refusals: 4, Busy: true},
		Plain:    &limiter.PlainMemory{Rate: 7, Goal: 10, Escalation: 2},
	}
}

// The form in which a memory lies on a disk is a promise: what this version wrote, a
// later one reads.
func TestMemoryIsGolden(t *testing.T) {
	const path = "testdata/memory_1.json"
	got := must.Get(json.MarshalIndent(everything(), "", "  "))(t)
	got = append(got, '\n')
	if *rewriteMemory {
		must.Do(t, os.WriteFile(path, got, 0o644))
	}
	golden := must.Get(os.ReadFile(path))(t)
	if !bytes.Equal(got, golden) {
		t.Errorf("the form has changed: a memory of version %d is written as\n%s", limiter.MemoryVersion, got)
	}
	var read limiter.Memory
	must.Do(t, json.Unmarshal(golden, &read))
	again, _ := json.MarshalIndent(read, "", "  ")
	want(t, "read and written again", string(again)+"\n", string(golden))
}

// A memory with members that this version no longer has is read for what it has.
func TestOlderMemoryIsRead(t *testing.T) {
	old := must.Get(os.ReadFile("testdata/memory_1_before.json"))(t)
	var k limiter.Memory
	must.Do(t, json.Unmarshal(old, &k))
	if want := everything(); !reflect.DeepEqual(k, want) {
		t.Errorf("read as\n%+v\nwant\n%+v", k, want)
	}
	restored(t, k.At.Add(time.Second), k, limiter.LawConfig{})
}

func restored(t *testing.T, now time.Time, k limiter.Memory, c limiter.LawConfig) *Law {
	t.Helper()
	m := New(c, now, seeded(1))
	must.Do(t, m.Restore(now, k))
	return m
}

// All that a memory holds is taken up.
func TestMemoryIsTakenUp(t *testing.T) {
	k := everything()
	k.Limits[0].Ceiling, k.Ramp.Share = 0, 0.25
	m := restored(t, noon, k, limiter.LawConfig{Local: true})
	v := m.View(noon, limiter.Cost{Requests: 1})
	want(t, "source", v.Limits[dimRequests].Source, limiter.Learned)
	near(t, "refill", v.Limits[dimRequests].Refill, 10, 0)
	near(t, "level", v.Limits[dimRequests].Level, 15, 1e-9)
	want(t, "window", v.Limits[dimInput].Period, time.Minute)
	near(t, "window's end", v.Limits[dimInput].Ends.Sub(noon).Seconds(), 12.123456789, 1e-8)
	near(t, "window's level", v.Limits[dimInput].Level, 20000, 1e-9)
	want(t, "hold", v.Hold.Sub(noon), 4*time.Second)
	want(t, "drought", v.Probed, 4)
	near(t, "lied", v.Lied, 100, 0)
	near(t, "chance", v.Chance, 36.0/360, 0.02)
	near(t, "cap", m.crowd.cap.most, 8.4, 0)
	want(t, "beside", m.crowd.byInFlight.at(8).refused, 19)
	want(t, "local", m.local.Size(), 24)
	near(t, "reserve", m.reserveNow(0), 2*math.Pow(0.8, 0.5), 1e-9)
	near(t, "answers", m.answered.PerSecond(noon), 10, 1)
	near(t, "every", m.estimate.every, 11, 0)
	near(t, "evidence", m.estimate.inflow.rate(), 10, 0)
	want(t, "confirmed", m.estimate.confirmed, true)
	near(t, "estimated at", m.estimate.at, -5.5, 1e-9)
	near(t, "factor", m.factor, 1.25, 0)
	near(t, "latency", m.latency, 1.2, 0)
	near(t, "refusals", m.refusalDelay, 0.06, 0)
	near(t, "pace", m.lastPace, 9.8, 0)
	near(t, "last refused", m.lastRefused, -1, 1e-9)
}

// All that is taken up is saved again, if no time has passed.
func TestMemoryIsSavedWhole(t *testing.T) {
	k := everything()
	k.Answered, k.ReserveAt, k.Longer = 10, noon, 1.5 // of these only what is true now is kept
	k.Limits[0].Ceiling, k.Limits[1].Others = 0, 0    // the user gave no limit, and a window shows what others draw
	k.Limits = append(k.Limits, limiter.LimitMemory{On: "output tokens", Source: "seen", Refill: 500, Capacity: 30000, Debt: 10000, Others: 50, Period: 60})
	k.Ramp = &limiter.RampMemory{At: at(-0.5), Share: 0.5, Double: 1}
	k.Estimate.Search, k.Estimate.At, k.Plain = 0, at(-3), nil // a rate is known, and lately
	a, _ := json.MarshalIndent(k, "", " ")
	b, _ := json.MarshalIndent(restored(t, noon, k, limiter.LawConfig{Local: true}).Save(noon), "", " ")
	want(t, "saved", string(b), string(a))
}

// What is saved and restored at one moment is the same law, as far as it is remembered:
// saved again it is the same memory.
func TestSaveAndRestoreAgree(t *testing.T) {
	for world, g := range worlds {
		for law, c := range lawsOf {
			r := newRig(newLaw(c, noon, seeded(1)), g())
			for range race.Fewer(30) {
				r.run(3 * time.Second)
				k := r.law.Save(r.now)
				text, err := json.Marshal(k)
				if err != nil {
					t.Fatalf("%s, %s: %v", law, world, err)
				}
				var read limiter.Memory
				must.Do(t, json.Unmarshal(text, &read))
				next := newLaw(c, r.now, seeded(1))
				must.Do(t, next.Restore(r.now, read))
				if world == "lies" && law == "told" {
					continue // what the user says again, is believed again
				}
				a, b := r.law.View(r.now, limiter.Cost{Requests: 1}), next.View(r.now, limiter.Cost{Requests: 1})
				la, lb := &a.Limits[dimRequests], &b.Limits[dimRequests]
				if la.Source != lb.Source || math.Abs(la.Refill-lb.Refill) > 1e-9 || la.Capacity != lb.Capacity ||
					la.Level < lb.Level-1e-6 && la.Level > -60*la.Refill+1 || a.Cap != b.Cap || a.Lied != b.Lied || !near2(a.Drought, b.Drought) || !near2(a.Hold, b.Hold) {
					t.Fatalf("%s, %s:\n%+v\nrestored\n%+v", law, world, a, b)
				}
			}
		}
	}
}

func near2(a, b time.Time) bool { return a.Sub(b).Abs() < time.Microsecond }

// Debts flow in while nobody runs, and never more than may be saved up.
func TestDebtsAge(t *testing.T) {
	k := everything()
	k.Limits = []limiter.LimitMemory{{On: "requests", Source: "learned", Refill: 10, Capacity: 45, Debt: 50}}
	for seconds, level := range map[float64]float64{-60: -5, 0: -5, 1: 5, 4: 35, 5: 45, 3600: 45, 1e6: 45} {
		m := restored(t, at(seconds), k, limiter.LawConfig{})
		near(t, "level", viewOf(m, at(seconds)).Level(limiter.Requests), level, 1e-6)
	}
}

// What was true for a while is not true for ever: hours later a drought and a hold
// are over, and a rate is soon tried anew.
func TestMemoriesAge(t *testing.T) {
	k := everything()
	k.Limits[0].Ceiling = 0
	now := at(3 * 3600)
	m := restored(t, now, k, limiter.LawConfig{})
	v := m.View(now, limiter.Cost{Requests: 1})
	want(t, "hold", v.Hold, time.Time{})
	want(t, "drought", v.Drought, time.Time{})
	want(t, "fastest", m.opened(0), burstCap)
	near(t, "window's level", v.Limits[dimInput].Level, 60000, 1e-9)
	near(t, "calls that speak for chance", first(m.chance.paces.below(paceBins)), trialFresh, 2)
	m.Tick(now.Add(tryMost*time.Second/2), true)
	if m.estimate.try == nil {
		t.Error("nothing more is tried, three hours after the last estimate")
	}
}

func first(a, _ float64) float64 { return a }

// What the user says now wins over what was saved; what he does not say any more is a
// guess.
func TestConfiguredWinsOverSaved(t *testing.T) {
	learned := limiter.LimitMemory{On: "requests", Source: "learned", Refill: 5, Capacity: 20, Ceiling: 10}
	configured := limiter.LimitMemory{On: "requests", Source: "told", Refill: 10, Capacity: 2, Ceiling: 10}
	seen := limiter.LimitMemory{On: "requests", Source: "seen", Refill: 100, Capacity: 600}
	tokens := limiter.LimitMemory{On: "tokens", Source: "told", Refill: 1000, Capacity: 5000, Ceiling: 1000}
	for _, c := range []struct {
		what       string
		saved      limiter.LimitMemory
		configured limiter.Limits
		source     limiter.Source
		refill     float64
	}{
		{"learned, the same told as then", learned, limiter.Limits{RPM: 600}, limiter.Learned, 5},
		{"learned, another told now", learned, limiter.Limits{RPM: 120}, limiter.Configured, 2},
		{"learned, more told now", learned, limiter.Limits{RPM: 1200}, limiter.Configured, 20},
		{"learned, nothing told now", learned, limiter.Limits{}, limiter.Learned, 5},
		{"told, nothing told now", configured, limiter.Limits{}, limiter.Learned, 10},
		{"told, another told now", configured, limiter.Limits{RPM: 60}, limiter.Configured, 1},
		{"seen, less told now", seen, limiter.Limits{RPM: 600}, limiter.Seen, 10},
		{"seen, more told now", seen, limiter.Limits{RPM: 60000}, limiter.Seen, 100},
		{"tokens told, nothing told now", tokens, limiter.Limits{}, limiter.Unknown, 0},
	} {
		m := restored(t, noon, limiter.Memory{Version: 1, Law: "model", At: noon, Limits: []limiter.LimitMemory{c.saved}}, limiter.LawConfig{Limits: c.configured})
		g := &m.gauges[max(0, dimensionNamed(c.saved.On))]
		if g.source != c.source || math.Abs(g.refill-c.refill) > 1e-9 {
			t.Errorf("%s: %v %v a second, want %v %v", c.what, g.source, g.refill, c.source, c.refill)
		}
		if (m.estimate.search == nil) != m.gauges[dimRequests].known() {
			t.Errorf("%s: a search goes on for what is known, or does not for what is not", c.what)
		}
	}
}

// A memory that this version or this law cannot read is an error, and changes nothing.
func TestMemoriesOfOtherLaws(t *testing.T) {
	for what, change := range map[string]func(*limiter.Memory){
		"newer":        func(k *limiter.Memory) { k.Version = 2 },
		"no version":   func(k *limiter.Memory) { k.Version = 0 },
		"another law":  func(k *limiter.Memory) { k.Law = "other" },
		"saved never":  func(k *limiter.Memory) { k.At = time.Time{} },
		"version < 0":  func(k *limiter.Memory) { k.Version = -1 },
		"no law named": func(k *limiter.Memory) { k.Law = "" },
	} {
		k := everything()
		change(&k)
		for _, c := range lawsOf {
			law := newLaw(c, noon, seeded(1))
			before := contents(law)
			if err := law.Restore(noon, k); !errors.Is(err, limiter.ErrMemory) {
				t.Errorf("%s: %v", what, err)
			}
			if !sameContents(before, contents(law)) {
				t.Errorf("%s: the law changed", what)
			}
		}
	}
}

// A restored law goes on as the one that was saved would have: as fast, and without a
// wave of refusals, which a law that begins anew meets.
func TestRestoredLawGoesOn(t *testing.T) {
	for _, away := range []time.Duration{10 * time.Second, 0, 3 * time.Hour}[:race.Fewer(3)] {
		var restored, same, anew rig // their sums
		for i := range 12 {
			taught := taughtRig(i).run(5 * time.Minute)
			restored.count(restoredRig(t, taught, away).run(10 * time.Second))
			anew.count(taughtRig(i).run(10 * time.Second))
			taught.sent, taught.refused = 0, 0
			same.count(taught.run(10 * time.Second))
		}
		if float64(restored.sent) < 0.98*float64(same.sent) || restored.refused > same.refused+4 || 5*restored.refused > anew.refused {
			t.Errorf("away %v, in ten seconds: restored %d calls, %d refused; the same %d, %d; anew %d, %d",
				away, restored.sent, restored.refused, same.sent, same.refused, anew.sent, anew.refused)
		}
	}
}

func (r *rig) count(o *rig) { r.sent, r.refused = r.sent+o.sent, r.refused+o.refused }

// taughtRig is one of some worlds with a rate to learn. Answers take longer and shorter:
// if all took as long, so many in flight would be the same as so many a second.
func taughtRig(i int) *rig {
	r := newRig(New(limiter.LawConfig{}, noon, seeded(uint64(i))), bucketGate(10, []float64{5, 15, 45}[i%3]))
	r.varies = seeded(uint64(100 + i))
	return r
}

// restoredRig is the same world, so much later, with another law that knows what the
// first one did.
func restoredRig(t *testing.T, was *rig, away time.Duration) *rig {
	r := &rig{gate: was.gate, now: was.now.Add(away), latency: was.latency, varies: seeded(7)}
	law := New(limiter.LawConfig{}, r.now, seeded(2))
	must.Do(t, law.Restore(r.now, was.law.Save(was.now)))
	r.law = law
	return r
}

// Where another limit binds, the rate that is searched for requests rises beyond any: after a
// restart it is the highest, and not the first again, which calls would wait for.
func TestRestoreOfASearchThatNothingStops(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	m.estimate.search.pace = 3e8
	next := newModel(limiter.LawConfig{}, noon)
	must.Do(t, next.Restore(noon, m.Save(noon)))
	if s := next.estimate.search; s == nil || s.pace != limiter.MaxRate {
		t.Errorf("the search goes on at %+v", s)
	}
}
