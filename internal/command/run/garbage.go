package run

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// garbageRoom is the number of bytes of garbage that may gather before a collection. Go
// collects when the heap has doubled: a run that holds 4 MiB would stop for it sixty times a
// second, and give it a tenth of its time. With this room it is a hundredth, for 13 MiB
// more.
const garbageRoom = 13 << 20

// usualPercent is Go's own setting. It applies to a run that holds more than the room (the
// keys of ten million items, answers of 60 MiB), as to any Go program.
const usualPercent = 100

// garbage keeps the room for garbage about the same while the live heap grows and shrinks.
// It looks after each collection: the collector reports when it frees an object that nobody
// holds.
type garbage struct {
	percent int // what is set now
	before  int // what was set before
	over    atomic.Bool
}

// sentinel is such an object. It must not be of size zero: all objects of size zero may be
// one.
type sentinel struct{ *garbage }

// tuneGarbage adapts the garbage collector to a run. The user's own GOGC has precedence. restore sets the old
// value again.
func tuneGarbage(env func(string) (string, bool)) (restore func()) {
	if _, set := env("GOGC"); set {
		return func() {}
	}
	g := &garbage{percent: percentFor(liveHeap())}
	g.before = debug.SetGCPercent(g.percent)
	g.watch()
	return func() {
		g.over.Store(true)
		debug.SetGCPercent(g.before)
	}
}

// watch makes the collector call adjust after the next collection.
func (g *garbage) watch() {
	runtime.SetFinalizer(&sentinel{g}, func(s *sentinel) { s.adjust() })
}

// adjust sets the room for garbage by the live heap, and schedules its next call. It runs in the finalizers'
// goroutine, perhaps while the run ends.
func (g *garbage) adjust() {
	if g.over.Load() {
		return
	}
	if p := percentFor(liveHeap()); p != g.percent { // setting it stops the world for a moment
		debug.SetGCPercent(p)
		g.percent = p
	}
	if g.over.Load() { // it was false above: the old setting must be the last
		debug.SetGCPercent(g.before)
		return
	}
	g.watch()
}

// percentFor returns how far the heap may grow, in percent, when that much is held.
func percentFor(kept uint64) int {
	const least = 4 << 20 // Go counts at least this much as held
	percent := int(garbageRoom * 100 / max(kept, least))
	return max(percent-percent%usualPercent, usualPercent) // in steps, so that it changes seldom
}

// liveHeap returns the bytes that the latest collection has found alive.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
