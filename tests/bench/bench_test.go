package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"go.uber.org/goleak"
)

// A contestant is a process of its own, here of the test's program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childWord {
		exit(child(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// Every contestant asks each prompt once, over connections that it keeps, and stands in
// the table with its ratios. How they come out is the machine's affair at that moment,
// and not asserted; nor is how many connections more than calls in flight there are, as
// a transport dials one when it is asked before the answer that it has read is put back.
func TestEveryContestantFinishes(t *testing.T) {
	const inFlight, calls = 8, 400
	p := plan{items: calls, size: 300, inFlight: inFlight, latency: time.Millisecond, rounds: 2, durable: "sync", dir: t.TempDir()}
	s := must.Get(prepare(t.Context(), p))(t)
	defer s.clean()
	rounds := must.Get(s.compete(contestants()))(t)
	for _, r := range rounds {
		for _, c := range contestants() {
			f := r[c.name]
			if f.wall <= 0 || f.cpu <= 0 || f.peak <= 0 || f.allocs <= 0 {
				t.Errorf("%s: %+v", c.name, f)
			}
			if f.connections < 1 || f.connections > calls/4 {
				t.Errorf("%s opened %d connections for %d calls, %d in flight", c.name, f.connections, calls, inFlight)
			}
		}
	}
	var out strings.Builder
	must.Do(t, table(&out, p, contestants(), rounds))
	for _, want := range []string{"| bare | ", " 1.00 (1.00–1.00) ", "| naive | ", "| typed | ", "| library | ", "| command | ", "| quiet | ", "in flight (50ms): bare "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

// A call that is made twice, or not at all, fails the comparison instead of
// making it look good.
func TestWrongNumberOfCallsIsNoFigure(t *testing.T) {
	p := plan{items: 10, size: 300, inFlight: 1, rounds: 1, dir: t.TempDir(), binary: "/bin/true"}
	s := must.Get(prepare(t.Context(), p))(t)
	defer s.clean()
	if _, err := s.turn(contestant{name: "idle", args: command}); err == nil || !strings.Contains(err.Error(), "0 calls were made for 10 prompts") {
		t.Errorf("%v", err)
	}
}

// Flags that make no sense are refused with what would.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-items", "0"}, {"-size", "10"}, {"-latency", "-1s"}, {"extra"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q passed", args)
		}
	}
	if _, err := choose("bare,nobody"); err == nil || !strings.Contains(err.Error(), "bare, naive, typed, library, command, quiet") {
		t.Errorf("%v", err)
	}
	some, err := choose("command")
	if err != nil || len(some) != 2 || some[0].name != yardstick {
		t.Errorf("%v, %v: the yardstick is always there", some, err)
	}
}

// The median and the ratios are those of the rounds.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	rounds := []round{
		{"bare": {wall: time.Second}, "x": {wall: 2 * time.Second}},
		{"bare": {wall: 4 * time.Second}, "x": {wall: 4 * time.Second}},
		{"bare": {wall: 2 * time.Second}, "x": {wall: 8 * time.Second}},
	}
	wall := func(f figures) float64 { return f.wall.Seconds() }
	if got, want := ratio(rounds, "x", wall), "2.00 (1.00–4.00)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("median %v", got)
	}
}
