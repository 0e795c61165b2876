package lab

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// Each bound is of a scenario that there is: a name that was changed would make its
// bound hold by never being looked at.
func TestBoundsAreOfScenarios(t *testing.T) {
	var names []string
	for _, s := range Scenarios() {
		names = append(names, s.Name)
	}
	for name := range bounds {
		if !slices.Contains(names, name) {
			t.Errorf("no scenario is called %q", name)
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(Scenarios()) {
		t.Error("two scenarios have one name")
	}
}

// Every rival ends an easy world, each item answered once: a rival that fails by a
// slip of ours would flatter us.
func TestRivalsEnd(t *testing.T) {
	s := named("easy", headers, minute, limit(600, 2000))
	for _, law := range Rivals() {
		t.Run(law.Name, func(t *testing.T) {
			t.Parallel()
			if m := Measure(s, law.New, TunedSeeds); m.Lost > 0 || m.Repeated > 0 || m.Ratio > 1.8 || m.Ratio < 0.9 {
				t.Errorf("%+v", m)
			}
		})
	}
}

// A rival that knows the limit of a deep bucket is never refused. One that has twice the
// limit, or no limit, is: they are what their names say. Those that learn are refused a few
// times in a hundred items, the deaf ones all the time.
func TestRivalsAreWhatTheyAre(t *testing.T) {
	s := named("easy", minute, limit(600, 4000))
	for _, law := range Rivals() {
		refused := Measure(s, law.New, TunedSeeds).Refused
		if informed := law.Name == "bucket"; informed != (refused == 0) {
			t.Errorf("%s: %.0f refused", law.Name, refused)
		}
		deaf := law.Name == "bucket2" || law.Name == "backoff"
		if share := refused / float64(s.Items); deaf != (share > 0.25) {
			t.Errorf("%s: %.2f refusals an item", law.Name, share)
		}
	}
}

// A scaled scenario is the same world with another limit: it takes as long.
func TestScaled(t *testing.T) {
	s := named("halves", headers, minute, turns(300))
	half := s.Scaled(0.5)
	if half.RPM != 300 || half.Changes[0].RPM != 150 || s.Changes[0].RPM != 300 || half.Items != 5000 {
		t.Errorf("%+v", half)
	}
	if a, b := s.optimum(nil), half.optimum(nil); a != b {
		t.Errorf("the optimum is %v, and was %v", b, a)
	}
}

// The optimum of a window counts whole calls: what it has left over is lost.
func TestOptimumOfWindowsIsWhole(t *testing.T) {
	s := named("x", windows(time.Second), limit(90, 10)) // one and a half a window
	if got := s.optimum(nil).Seconds(); got < 9 || got > 11 {
		t.Errorf("ten calls, one a second, take %v s", got)
	}
}

// The same world gives the same table, aligned, with a cell for each law.
func TestTable(t *testing.T) {
	var a, b strings.Builder
	rows := []Scenario{named("one", minute, limit(600, 700)), named("another", five, limit(60, 100))}
	for _, w := range []*strings.Builder{&a, &b} {
		must.Do(t, Table(w, rows, Compare(Rivals(), []uint64{5})))
	}
	if a.String() != b.String() {
		t.Errorf("two tables of one world:\n%s\n%s", a.String(), b.String())
	}
	lines := strings.Split(strings.TrimSpace(a.String()), "\n")
	if len(lines) != 4 || strings.Count(lines[0], "|") != len(Rivals())+2 || strings.Contains(a.String(), "never") {
		t.Errorf("%s", a.String())
	}
}
