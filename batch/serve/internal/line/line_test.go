package line

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// enter lets n requests of a place enter.
func enter(t *testing.T, l *Line, p Place, n int) (all []*Request) {
	t.Helper()
	for range n {
		r, err := l.Enter("m", p)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// goes lets n requests go and counts them by their client's name and class.
func goes(t *testing.T, l *Line, n int) map[string]int {
	t.Helper()
	count := map[string]int{}
	for range n {
		r := l.Next("m")
		if r == nil {
			t.Fatal("nobody goes")
		}
		count[r.Client]++
		count[r.Class.String()]++
		l.Leave(r)
	}
	return count
}

func TestClassesShare(t *testing.T) {
	l := New(Config{})
	for c := range Batch + 1 {
		enter(t, l, Place{Class: c, Client: "a"}, 1000)
	}
	got := goes(t, l, 210)
	if got["interactive"] != 160 || got["normal"] != 40 || got["batch"] != 10 {
		t.Errorf("went %v, want 160, 40 and 10", got)
	}
}

func TestClientsShareByWeightAndCost(t *testing.T) {
	l := New(Config{})
	enter(t, l, Place{Client: "three", Weight: 3}, 1000)
	enter(t, l, Place{Client: "one", Cost: 2}, 1000)
	got := goes(t, l, 700)
	if got["three"] < 598 || got["three"] > 602 { // 3 : 1 of the cost is 6 : 1 of the requests
		t.Errorf("went %v, want 600 and 100", got)
	}
}

// A client that sends one now and then is next after what is going.
func TestSomebodyNewIsNext(t *testing.T) {
	l := New(Config{})
	enter(t, l, Place{Client: "a"}, 500)
	for i := range 20 {
		goes(t, l, 10)
		enter(t, l, Place{Client: "b"}, 1)
		if got := goes(t, l, 2); got["b"] != 1 {
			t.Fatalf("round %d: b's only request is not among the next two: %v", i, got)
		}
	}
}

// A client whose next request comes when its last has gone takes turns with one whose requests wait.
func TestOneAfterTheOtherWinsNothing(t *testing.T) {
	l := New(Config{})
	enter(t, l, Place{Client: "a"}, 500)
	b := 0
	for range 200 {
		if b == 0 || l.clients["b"] == nil {
			enter(t, l, Place{Client: "b"}, 1)
		}
		b += goes(t, l, 1)["b"]
	}
	if b < 99 || b > 101 {
		t.Errorf("b had %d of 200, want half", b)
	}
}

func TestTheLeastPatientOfAClientGoesFirst(t *testing.T) {
	l := New(Config{})
	for _, after := range []time.Duration{0, 30 * time.Second, 10 * time.Second, 0, 20 * time.Second} {
		p := Place{Payload: after}
		if after > 0 {
			p.Latest = noon.Add(after)
		}
		enter(t, l, p, 1)
	}
	var order []time.Duration
	for r := l.Next("m"); r != nil; r = l.Next("m") {
		order = append(order, r.Payload.(time.Duration))
	}
	if want := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 0, 0}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestTagsOfAClientTakeTurns(t *testing.T) {
	l := New(Config{})
	enter(t, l, Place{Client: "a", Tag: "many"}, 100)
	few := enter(t, l, Place{Client: "a", Tag: "few"}, 5)
	goes(t, l, 12)
	for i, r := range few {
		if r.Waits() {
			t.Errorf("request %d of the small tag still waits", i)
		}
	}
}

func TestBounds(t *testing.T) {
	l := New(Config{MaxWaiting: 10, PerClient: 6})
	a := enter(t, l, Place{Client: "a"}, 6)
	if _, err := l.Enter("m", Place{Client: "a", Class: Batch}); !errors.Is(err, ErrFull) {
		t.Errorf("the seventh of one client: %v", err)
	}
	enter(t, l, Place{Client: "b", MaxWaiting: 7}, 4)
	if _, err := l.Enter("other", Place{Client: "c"}); !errors.Is(err, ErrFull) {
		t.Errorf("the eleventh in all: %v", err)
	}
	l.Leave(a[3])
	l.Leave(a[3]) // twice is once
	enter(t, l, Place{Client: "c"}, 1)
	if _, err := l.Enter("m", Place{Client: "c"}); !errors.Is(err, ErrFull) || l.Waiting() != 10 {
		t.Errorf("with %d waiting: %v", l.Waiting(), err)
	}
	for r := l.Next("m"); r != nil; r = l.Next("m") {
		l.Leave(r)
	}
	if len(l.pools)+len(l.clients)+l.Waiting() != 0 {
		t.Errorf("an empty line keeps %d pools and %d clients", len(l.pools), len(l.clients))
	}
}

// The bounds of a key hold for all names that it gives together, and not for a key of such a name. Without bounds of its own
// each name has those of the line.
func TestBoundsOfAKeyHoldForAllNames(t *testing.T) {
	l := New(Config{PerClient: 4})
	named := func(name string) Place { return Place{Client: name, Key: "proxy", MaxWaiting: 3, MaxInFlight: 2} }
	for _, name := range []string{"a", "b", "proxy"} {
		enter(t, l, named(name), 1)
	}
	if _, err := l.Enter("other", named("c")); !errors.Is(err, ErrFull) {
		t.Errorf("the fourth name of a key that may have three waiting: %v", err)
	}
	own := enter(t, l, Place{Client: "a", MaxWaiting: 3}, 3)
	var gone []*Request
	for r := l.Next("m"); r != nil; r = l.Next("m") {
		gone = append(gone, r)
	}
	if len(gone) != 5 || l.Waiting() != 1 || !slices.Contains(gone, own[2]) {
		t.Errorf("%d have gone and %d wait, want 5 and 1", len(gone), l.Waiting())
	}
	for _, r := range gone {
		l.Leave(r)
	}
	if r := l.Next("m"); r == nil || r.Key != "proxy" {
		t.Error("the last of the key does not go when its others have ended")
	}
	open := Place{Key: "open", Client: "x"}
	enter(t, l, open, 4)
	if _, err := l.Enter("m", open); !errors.Is(err, ErrFull) {
		t.Errorf("the fifth of one name: %v", err)
	}
	open.Client = "y"
	enter(t, l, open, 4)
}

// A client with all its calls in flight lets others go before it, in every pool, and comes back when one ends.
func TestCallsInFlightAreBounded(t *testing.T) {
	l := New(Config{})
	p := Place{Client: "a", MaxInFlight: 2}
	enter(t, l, p, 3)
	if _, err := l.Enter("other", p); err != nil {
		t.Fatal(err)
	}
	enter(t, l, Place{Client: "b"}, 2)
	first := l.Next("m")
	var order string
	for range 3 {
		order += l.Next("m").Client
	}
	if first.Client != "a" || order != "bab" {
		t.Fatalf("a and then %s go, want a b a b", order)
	}
	if r := l.Next("m"); r != nil {
		t.Errorf("%s goes while two of it have gone", r.Client)
	}
	if r := l.Next("other"); r != nil {
		t.Errorf("%s goes in another pool", r.Client)
	}
	if !l.Leave(first) {
		t.Error("the place that is free again goes unsaid")
	}
	if r := l.Next("other"); r == nil || r.Client != "a" {
		t.Error("the free place is of no use in another pool")
	}
}

func TestExpire(t *testing.T) {
	l := New(Config{})
	for i := range 10 {
		enter(t, l, Place{Client: fmt.Sprint(i % 3), Latest: noon.Add(time.Duration(i) * time.Second)}, 1)
	}
	gone := l.Next("m")
	late := l.Expire(noon.Add(5 * time.Second))
	if len(late) != 5 || slices.Contains(late, gone) || l.Waiting() != 4 {
		t.Errorf("%d were late and %d wait, want 5 and 4", len(late), l.Waiting())
	}
	for _, r := range late {
		if r.Latest.After(noon.Add(5 * time.Second)) {
			t.Errorf("one was taken out %v before its time", r.Latest.Sub(noon))
		}
	}
}

// The estimate is near what goes before a request, if nobody comes.
func TestAhead(t *testing.T) {
	l := New(Config{})
	enter(t, l, Place{Client: "a"}, 30)
	enter(t, l, Place{Client: "b", Weight: 2}, 30)
	enter(t, l, Place{Client: "a", Class: Normal}, 30)
	goes(t, l, 7)
	type guess struct {
		n    int
		cost float64
	}
	guesses := map[*Request]guess{}
	l.Each("m", func(r *Request, n int, cost float64) {
		if alone, sum := l.Ahead(r); alone != n || math.Abs(sum-cost) > 1e-6 {
			t.Errorf("Each says %d, %g, and Ahead %d, %g", n, cost, alone, sum)
		}
		guesses[r] = guess{n, cost}
	})
	if len(guesses) != 83 {
		t.Fatalf("%d were visited, want 83", len(guesses))
	}
	for n := range 83 {
		r := l.Next("m")
		if g := guesses[r]; math.Abs(float64(g.n-n)) > 3 || math.Abs(g.cost-float64(n)) > 3 {
			t.Errorf("%d went before one of %s in %v; the guess was %d", n, r.Client, r.Class, g.n)
		}
		l.Leave(r)
	}
}

// Clear takes out those, too, that may not go.
func TestClear(t *testing.T) {
	l := New(Config{})
	all := enter(t, l, Place{Client: "a", MaxInFlight: 1}, 3)
	all = append(all, enter(t, l, Place{Client: "b", Class: Batch}, 3)...)
	if _, err := l.Enter("other", Place{}); err != nil {
		t.Fatal(err)
	}
	gone := l.Next("m")
	if got := l.Clear("m"); !slices.Equal(got, all[1:]) || l.Waiting() != 1 || gone != all[0] {
		t.Errorf("%d were taken out and %d wait, want 5 and 1", len(got), l.Waiting())
	}
}

// Clients that have gone are not kept for ever, nor forgotten too early.
func TestIdleFlowsAreSwept(t *testing.T) {
	l := New(Config{})
	enter(t, l, Place{Client: "a"}, 20_000)
	for i := range 10_000 {
		enter(t, l, Place{Client: fmt.Sprint("c", i), Tag: fmt.Sprint("t", i)}, 1)
		goes(t, l, 2)
	}
	if n := len(l.pools["m"].children["interactive"].children); n > 4*minSweep || len(l.clients) != 1 {
		t.Errorf("%d flows and %d clients are kept for one that waits", n, len(l.clients))
	}
}

func TestClassOf(t *testing.T) {
	for c := range Batch + 1 {
		if got, ok := ClassOf(c.String()); got != c || !ok {
			t.Errorf("%v is %v, %v", c, got, ok)
		}
	}
	if _, ok := ClassOf("urgent"); ok {
		t.Error("urgent is no class")
	}
}

func BenchmarkNext(b *testing.B) {
	for _, clients := range []int{1, 1000} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			l := New(Config{})
			for i := range 10_000 {
				_, _ = l.Enter("m", Place{Client: fmt.Sprint(i % clients), Latest: noon.Add(time.Duration(i))})
			}
			b.ReportAllocs()
			for b.Loop() {
				r := l.Next("m")
				l.Leave(r)
				_, _ = l.Enter("m", r.Place)
			}
		})
	}
}
