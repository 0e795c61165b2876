package command

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// garbageRoom is how much garbage may gather before it is collected, in bytes. Go
// collects when the heap has doubled: a run that holds 4 MiB would stop for it sixty
// times a second, and give it a tenth of its time. With this room it is a hundredth,
// for 16 MiB more.
const garbageRoom = 16 << 20

// usualPercent is Go's own setting. A run that holds more than the room (the keys of
// ten million items, answers of 60 MiB) is collected as any Go program is.
const usualPercent = 100

// garbage keeps the room for garbage about the same while what is held grows and
// shrinks. It looks after each collection: an object that nobody holds is one that
// the collector tells it about.
type garbage struct {
	percent int // what is set now
	before  int // what was set before
	over    atomic.Bool
}

// sentinel is such an object. It must not be of size zero: those are not told apart.
type sentinel struct{ *garbage }

// tuneGarbage sets the collector for a run; close gives back what was there before.
func tuneGarbage(env func(string) (string, bool)) (restore func()) {
	if _, told := env("GOGC"); told {
		return func() {}
	}
	g := &garbage{percent: percentFor(held())}
	g.before = debug.SetGCPercent(g.percent)
	g.watch()
	return func() {
		g.over.Store(true)
		debug.SetGCPercent(g.before)
	}
}

// watch has look called when the next collection is over.
func (g *garbage) watch() {
	runtime.SetFinalizer(&sentinel{g}, func(s *sentinel) { s.look() })
}

func (g *garbage) look() {
	if g.over.Load() {
		return
	}
	if p := percentFor(held()); p != g.percent { // to set it stops the world for a moment
		debug.SetGCPercent(p)
		g.percent = p
	}
	if g.over.Load() { // it was not when this began: the last word is what was before
		debug.SetGCPercent(g.before)
		return
	}
	g.watch()
}

// percentFor is how much the heap may grow when that much is held.
func percentFor(held uint64) int {
	const least = 4 << 20 // as much counts as held at least, says Go
	percent := int(garbageRoom * 100 / max(held, least))
	return max(percent-percent%usualPercent, usualPercent) // in steps, so that it changes seldom
}

// held is what the latest collection has found alive, in bytes.
func held() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
