package bank

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/tests/lab"
)

func headrace() lab.Rival { return lab.Rivals()[0] }

// all are the worlds and the weak points.
func all(v Vary) []World { return slices.Concat(Worlds(v), WeakPoints(v)) }

func titled(t *testing.T, title string) World {
	for _, w := range all(Usual) {
		if w.Title() == title {
			return w
		}
	}
	t.Fatalf("no world is called %q", title)
	return World{}
}

// A handful of worlds, of each kind one: nothing is lost, nothing repeated, and the
// clairvoyant is not beaten by more than the luck of an answer.
func TestNothingIsLost(t *testing.T) {
	for _, title := range []string{
		"W1 bucket 5 s", "W2 windows 10 s", "W3 sliding 10 s", "W5 cap 8, 100 ms answers", "W6 shed 0.1 + bucket 60 s, headers",
		"W7 shared pool", "W8 noisy, bucket 5 s", "W9 RPM and TPM, 5 s, told", "W10 drifts, 5 s", "W11 refusals charged, bucket 5 s",
		"W12 replicas, 60 s", "W13 autoscaler", "W14 day's limit", "W16 no limit at all", "W17 two calls saved up, 60 a minute, headers",
		"W18 24 s, told, windows 1 s", "W19 503, bucket 5 s, outage of a minute at 30 s", "W20 bucket 1 s, 200 a second",
		"P2 own, no limit, 256 at work, outage of 10s", "P9 cost a few tokens low, own, bucket 1 s, 3 s", "P10 two processes, bucket 5 s",
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			r := titled(t, title).Run(headrace(), 5)
			if r.Undone > 0 || r.Repeated > 0 {
				t.Fatalf("%.3f undone, %d repeated", r.Undone, r.Repeated)
			}
			if r.Ratio < 0.98 || r.Imposed > r.Refused {
				t.Errorf("%s", r.cell())
			}
			t.Log(r.cell())
		})
	}
}

// The same world is the same each time, and so is the table, however many worlds run at
// once.
func TestSameEachTime(t *testing.T) {
	worlds := []World{
		titled(t, "W8 violent, bucket 1 s"), titled(t, "W12 replicas, 5 s"), titled(t, "W18 24 s, headers, bucket 5 s"),
	}
	seeds := []uint64{3, 4}
	if a, b := Measure(worlds, headrace(), seeds, 1), Measure(worlds, headrace(), seeds, 4); !reflect.DeepEqual(a, b) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

// Titles are what two reports are compared by: no two worlds share one, and no
// number that is varied changes one.
func TestTitles(t *testing.T) {
	usual := all(Usual)
	varied := all(Vary{Rate: 1.37, Chance: 1.6, Cap: 1.5, Status: 503, Answers: time.Second})
	seen := map[string]bool{}
	for i, w := range usual {
		if seen[w.Title()] {
			t.Errorf("two worlds are called %q", w.Title())
		}
		seen[w.Title()] = true
		if varied[i].Title() != w.Title() {
			t.Errorf("%q is %q if varied", w.Title(), varied[i].Title())
		}
	}
}

// A varied world lasts about as long: it has more to do and more to do it with.
func TestVariedLastsAsLong(t *testing.T) {
	varied := all(Vary{Rate: 1.37, Chance: 1.6, Cap: 1.5, Status: 429})
	for i, w := range all(Usual) {
		a, b := w.optimum(1, nil).Seconds(), varied[i].optimum(1, nil).Seconds()
		if b/a < 0.85 || b/a > 1.2 {
			t.Errorf("%s: %.1f s, varied %.1f s", w.Title(), a, b)
		}
	}
}

// Every optimum takes at least 95 % of the time that the hands need for all items, or half a
// trip if that is less.
func TestOptimaArePhysical(t *testing.T) {
	for _, w := range all(Usual) {
		trip := (w.server.Answers.Mean() + 2*w.hop).Seconds()
		least := 0.95 * float64(w.Items()) / float64(w.hands) * trip // as long as the hands need
		if got := w.optimum(2, nil).Seconds(); got < min(least, trip/2) {
			t.Errorf("%s: %.2f s, and the hands need %.2f s", w.Title(), got, least)
		}
	}
}

// A report that was saved is the report, and differs in nothing from itself; one
// that is better in a world differs there.
func TestAgainst(t *testing.T) {
	worlds := []World{titled(t, "W18 24 s, told, windows 1 s"), titled(t, "W20 spacing, 50 a second")}
	r := Report{Law: "headrace", Seeds: []uint64{1}, Vary: Usual, Results: Measure(worlds, headrace(), []uint64{1}, 2)}
	file := filepath.Join(t.TempDir(), "figures.json")
	must.Do(t, r.Save(file))
	old, err := Load(file)
	if err != nil || !reflect.DeepEqual(r, old) {
		t.Fatalf("%v\n%+v\n%+v", err, r, old)
	}
	if got := against(t, r, old); !strings.Contains(got, "0 of 2 worlds differ") {
		t.Error(got)
	}
	r.Results[1].Ratio = 1.01
	got := against(t, r, old)
	if !strings.Contains(got, "1 of 2 worlds differ") || !strings.Contains(got, "1.010") || strings.Contains(got, "W18") {
		t.Error(got)
	}
	if _, err := Load(file + "?"); err == nil {
		t.Error("a report that is not there was loaded")
	}
}

func against(t *testing.T, r, old Report) string {
	var s strings.Builder
	must.Do(t, r.PrintAgainst(&s, old))
	return s.String()
}

// A target is met if all of it is.
func TestTargets(t *testing.T) {
	good := Result{Items: 1000, Ratio: 1.01, Refused: 40, Imposed: 30, Target: asBucket}
	slow, much, undone, deaf := good, good, good, good
	slow.Ratio, much.Refused, undone.Undone = 1.02, 41, 0.01
	deaf.Target, deaf.Recovered = asOutage, -1
	if !good.Met() || slow.Met() || much.Met() || undone.Met() || deaf.Met() {
		t.Errorf("good %v, slow %v, much %v, undone %v, deaf %v", good.Met(), slow.Met(), much.Met(), undone.Met(), deaf.Met())
	}
	if s := total([]Result{good, slow}); s.met != 1 || s.asked != 2 {
		t.Errorf("%+v", s)
	}
}

// Weak points change nothing in the total of the worlds: each has a line of its own.
func TestTotalsApart(t *testing.T) {
	world := Result{Items: 1000, Ratio: 1, Refused: 40, Target: asBucket}
	weak := Result{Items: 1000, Ratio: 2, Refused: 7, Target: asShort, Weak: true}
	alone := totals([]Result{world})
	if got := totals([]Result{weak, world}); got != alone+totals([]Result{weak}) || !strings.Contains(got, "weak points: Σ ln ratio 0.69 · 7 refused") {
		t.Errorf("%q", got)
	}
	if strings.Contains(alone, "weak") {
		t.Errorf("%q", alone)
	}
	for _, w := range Worlds(Usual) {
		if w.Weak {
			t.Errorf("%q is among the worlds", w.Title())
		}
	}
	for _, w := range WeakPoints(Usual) {
		if !w.Weak || !w.Target.Asks() || !w.Run(headrace(), 1).Weak {
			t.Errorf("%q is no weak point, or asks nothing", w.Title())
			break
		}
	}
}

// A trace tells each second and the machine's transitions.
func TestTrace(t *testing.T) {
	var s strings.Builder
	must.Do(t, titled(t, "W20 sliding 6 s, 50 a second").Trace(&s, headrace(), 1))
	for _, want := range []string{"     0 s  sent", "Flowing → Cooling", "seed 1: "} {
		if !strings.Contains(strings.ToLower(s.String()), strings.ToLower(want)) {
			t.Errorf("no %q in\n%s", want, s.String())
		}
	}
}
