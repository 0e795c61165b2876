package virtual

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// A queue gives what a stable sort gives, while things are put in and taken out, and its array keeps nothing alive.
func TestQueueAgainstSort(t *testing.T) {
	type thing struct {
		at time.Duration
		n  int
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var q Queue[*thing]
	var twin []*thing
	for n := range 5000 {
		if rng.IntN(5) < 3 {
			x := &thing{time.Duration(rng.IntN(50)), n}
			q.Put(x.at, x)
			twin = append(twin, x)
		} else if at, planned := q.Next(); planned {
			slices.SortStableFunc(twin, func(a, b *thing) int { return cmp.Compare(a.at, b.at) })
			if got := q.Take(); got != twin[0] || at != got.at {
				t.Fatalf("%v at %v, want %v", *got, at, *twin[0])
			}
			twin = twin[1:]
		}
		if q.Len() != len(twin) {
			t.Fatalf("%d things, want %d", q.Len(), len(twin))
		}
	}
	for q.Len() > 0 {
		q.Take()
	}
	if rest := q.heap[:cap(q.heap)]; slices.ContainsFunc(rest, func(e entry[*thing]) bool { return e.thing != nil }) {
		t.Error("the array keeps what was taken out")
	}
}

// A world does what is planned in its order, at its moments, and an alarm comes between.
func TestPassAndDo(t *testing.T) {
	w := Begin(noon)
	var said []string
	say := func(word string) func() { return func() { said = append(said, word+" "+w.Age().String()) } }
	w.In(3*time.Second, say("c"))
	w.In(time.Second, func() {
		say("a")()
		w.In(-time.Hour, say("b")) // for the past: it is due at once
	})
	w.In(3*time.Second, say("d"))
	for w.Pass(noon.Add(2 * time.Second)) {
		if !w.Do() {
			say("alarm")()
			break
		}
	}
	for w.Pass(time.Time{}) {
		for w.Do() {
		}
	}
	if want := []string{"a 1s", "b 1s", "alarm 2s", "c 3s", "d 3s"}; !slices.Equal(said, want) {
		t.Errorf("%v, want %v", said, want)
	}
	if w.Planned() != 0 || w.Due() || w.Do() || !w.Now().Equal(noon.Add(3*time.Second)) {
		t.Errorf("%d are planned, and it is %v", w.Planned(), w.Now())
	}
}

// An alarm that is over lets a nanosecond pass, but not while something is due.
func TestAlarmThatIsOver(t *testing.T) {
	w := Begin(noon)
	w.In(time.Second, func() {})
	w.In(time.Second, func() {})
	w.Pass(time.Time{})
	for _, want := range []time.Duration{time.Second, time.Second, time.Second + 1, time.Second + 2} {
		if !w.Pass(noon) || w.Age() != want {
			t.Errorf("%v have passed, want %v", w.Age(), want)
		}
		w.Do()
	}
}
