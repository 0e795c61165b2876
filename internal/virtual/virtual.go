package virtual

import "time"

// A Time is the present of a world, and what is planned to happen in it. The zero Time begins at the zero hour.
type Time struct {
	start  time.Time
	age    time.Duration
	coming Queue[func()]
}

// Begin returns a Time that begins at that hour.
func Begin(at time.Time) Time { return Time{start: at} }

// Now returns the present.
func (t *Time) Now() time.Time { return t.start.Add(t.age) }

// Age returns the time since the beginning.
func (t *Time) Age() time.Duration { return t.age }

// In plans something for so much later. Something planned for the past is due at once.
func (t *Time) In(d time.Duration, do func()) { t.coming.Put(t.age+d, do) }

// Planned returns the number of things that will happen.
func (t *Time) Planned() int { return t.coming.Len() }

// Due reports whether something is planned for now.
func (t *Time) Due() bool {
	at, planned := t.coming.Next()
	return planned && at <= t.age
}

// Pass moves the present to the alarm or to what is planned next, whichever is earlier. A zero alarm is none. Pass
// returns false if there is neither. For an alarm that is over it lets a nanosecond pass unless something is due, so
// that no world stands still.
func (t *Time) Pass(alarm time.Time) bool {
	at, planned := t.coming.Next()
	if rings := alarm.Sub(t.start); !alarm.IsZero() && !t.Due() && (!planned || rings < at) {
		at, planned = max(rings, t.age+1), true
	}
	t.age = max(t.age, at)
	return planned
}

// Do brings about the first thing that is due. It returns false if nothing is.
func (t *Time) Do() bool {
	due := t.Due()
	if due {
		t.coming.Take()()
	}
	return due
}

// A Queue holds things, each with its moment: the time since some beginning. The zero Queue is empty.
type Queue[T any] struct {
	heap []entry[T]
	put  uint64 // so many were put in
}

type entry[T any] struct {
	at    time.Duration
	order uint64
	thing T
}

// Len returns the number of things.
func (q *Queue[T]) Len() int { return len(q.heap) }

// Next returns the moment of the next one; false: there is none.
func (q *Queue[T]) Next() (time.Duration, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// Put puts in a thing.
func (q *Queue[T]) Put(at time.Duration, thing T) {
	q.put++
	q.heap = append(q.heap, entry[T]{at, q.put, thing})
	for i := len(q.heap) - 1; i > 0 && q.before(i, (i-1)/2); i = (i - 1) / 2 {
		q.swap(i, (i-1)/2)
	}
}

// Take removes and returns the item of the earliest moment; of several, the one that was put in first. It panics if
// the queue is empty.
func (q *Queue[T]) Take() T {
	first, last := q.heap[0].thing, len(q.heap)-1
	q.heap[0], q.heap[last] = q.heap[last], entry[T]{} // or the array would keep it alive
	q.heap = q.heap[:last]
	for i, child := 0, 1; child < last; i, child = child, 2*child+1 {
		if child+1 < last && q.before(child+1, child) {
			child++
		}
		if !q.before(child, i) {
			break
		}
		q.swap(i, child)
	}
	return first
}

func (q *Queue[T]) before(i, j int) bool {
	a, b := &q.heap[i], &q.heap[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (q *Queue[T]) swap(i, j int) { q.heap[i], q.heap[j] = q.heap[j], q.heap[i] }
