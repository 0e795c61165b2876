package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The heap gives what a sorted slice gives, also when elements leave from the
// middle, and each element knows where it is.
func TestHeapAgainstSortedSlice(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		h := heap[*Item]{before: byDue, moved: itemMoved}
		var twin []*Item
		for step := range 400 {
			switch {
			case len(twin) == 0 || rng.IntN(5) < 3:
				it := &Item{Seq: uint64(step), due: storyStart.Add(time.Duration(rng.IntN(50)))}
				h.push(it)
				twin = append(twin, it)
			case rng.IntN(2) == 0:
				h.remove(int(takeAny(rng, &twin).pos))
			default:
				slices.SortFunc(twin, dueOrder)
				if got := h.pop(); got != twin[0] {
					t.Fatalf("seed %d: popped item %d, want %d", seed, got.Seq, twin[0].Seq)
				}
				twin = twin[1:]
			}
			if h.len() != len(twin) || !h.isHeap() {
				t.Fatalf("seed %d: %d elements, want %d, in order: %v", seed, h.len(), len(twin), h.isHeap())
			}
			for i, it := range h.items {
				if int(it.pos) != i {
					t.Fatalf("seed %d: item %d is at %d and believes to be at %d", seed, it.Seq, i, it.pos)
				}
			}
		}
	}
}

func dueOrder(a, b *Item) int {
	if byDue(a, b) {
		return -1
	}
	return 1
}

// takeAny takes any element out of the slice.
func takeAny(rng *rand.Rand, twin *[]*Item) *Item {
	s := *twin
	i, last := rng.IntN(len(s)), len(s)-1
	s[i], s[last] = s[last], s[i]
	*twin = s[:last]
	return s[last]
}

// The heap calls moved for an element that leaves, and its array keeps nothing of it alive.
func TestHeapForgetsWhatLeft(t *testing.T) {
	h := heap[*Item]{before: byDue, moved: itemMoved}
	it := &Item{}
	h.push(it)
	h.pop()
	if it.pos != -1 || h.items[:1][0] != nil {
		t.Errorf("position %d, want -1; kept %v, want nothing", it.pos, h.items[:1][0])
	}
	if h.top() != nil {
		t.Error("an empty heap has a top")
	}
}

// The line gives what a slice gives, also when items leave from the middle.
func TestFifoAgainstSlice(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var q fifo
		var twin []*Item
		for step := range 400 {
			switch {
			case len(twin) == 0 || rng.IntN(5) < 3:
				it := &Item{Seq: uint64(step)}
				q.push(it)
				twin = append(twin, it)
			case rng.IntN(2) == 0:
				i := rng.IntN(len(twin))
				q.remove(twin[i])
				twin = slices.Delete(twin, i, i+1)
			default:
				if got := q.pop(); got != twin[0] {
					t.Fatalf("seed %d: popped item %d, want %d", seed, got.Seq, twin[0].Seq)
				}
				twin = twin[1:]
			}
			if got := walk(q); !slices.Equal(got, twin) || q.n != len(twin) {
				t.Fatalf("seed %d: %d items in line, want %d", seed, q.n, len(twin))
			}
		}
	}
}

func walk(q fifo) (items []*Item) {
	for it := q.first; it != nil; it = it.next {
		items = append(items, it)
		if it.next == nil && it != q.last {
			return nil
		}
	}
	return items
}

// A pool is in line once, however often it is woken.
func TestPoolRingTakesEachOnce(t *testing.T) {
	var q poolRing
	a, b := &pool{name: "a"}, &pool{name: "b"}
	q.push(a)
	q.push(b)
	q.push(a)
	if got := []*pool{q.pop(), q.pop(), q.pop()}; !slices.Equal(got, []*pool{a, b, nil}) || q.n != 0 {
		t.Errorf("got %v, %d left; want a, b, nothing", got, q.n)
	}
}

// Alarms ring by time, and those of one moment in the order in which they were set.
func TestAlarmsRingInOrder(t *testing.T) {
	h := newAlarms()
	alarms := make([]alarm, 5)
	for i := range alarms {
		alarms[i] = alarm{pos: -1}
	}
	at := storyStart.Add(time.Second)
	for i := range alarms {
		h.set(&alarms[i], at)
	}
	h.set(&alarms[0], at)         // goes to the end of the line
	h.set(&alarms[3], at.Add(-1)) // to the head
	h.clear(&alarms[4])           // out
	h.clear(&alarms[4])           // which may be said twice
	for _, want := range []int{3, 1, 2, 0} {
		if got := h.due(at); got != &alarms[want] {
			t.Fatalf("alarm %d did not ring in its turn", want)
		}
	}
	if h.due(at) != nil || h.top() != nil {
		t.Error("an alarm rang twice")
	}
}
