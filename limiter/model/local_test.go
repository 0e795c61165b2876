package model

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/parttest"
)

// serve runs n calls on a server that works on slots at a time, each for a second,
// and queues the rest, as a local server does.
func serve(w *localWindow, n, slots int) {
	for done := 0; done < n; {
		batch := min(w.Size(), n-done)
		for range batch {
			w.Sent()
		}
		for i := range batch {
			w.Ended()
			w.Answered(time.Duration(1+i/slots) * time.Second)
		}
		done += batch
	}
}

// The window of a local server settles where its queue keeps the latency near the
// target, from below as from above, and never falls to nothing.
func TestLocalWindowFindsTheTarget(t *testing.T) {
	for _, start := range []float64{1, 16, 4000} {
		w := localWindow{Target: 10 * time.Second, size: start}
		serve(&w, 200_000, 32)
		if got := w.Size(); got < 200 || got > 420 {
			t.Errorf("from %v: %d calls in flight on a server of 32 slots and a target of ten seconds", start, got)
		}
	}
}

// A window that is not used does not grow: it proves nothing about the server.
func TestLocalWindowGrowsOnlyWhenUsed(t *testing.T) {
	var w localWindow
	for range 1000 {
		w.Sent()
		w.Ended()
		w.Answered(time.Millisecond)
	}
	if got := w.Size(); got != localStart {
		t.Errorf("%d, though one call at a time was made", got)
	}
}

// A burst of timeouts is one fault.
func TestLocalWindowFaultsOncePerMoment(t *testing.T) {
	w := localWindow{size: 100}
	at := time.Unix(1000, 0)
	for range 50 {
		w.Faulted(at)
	}
	if got := w.Size(); got != 70 {
		t.Errorf("%d after a moment of faults", got)
	}
	w.Faulted(at.Add(11 * time.Second))
	if got := w.Size(); got != 48 && got != 49 {
		t.Errorf("%d after two", got)
	}
}

// A server that answers at once is not kept waiting: its first ten answers open the
// window three times as wide.
func TestLocalWindowLeapsWhereAnswersAreFast(t *testing.T) {
	w := localWindow{Target: time.Minute}
	for range localStart {
		w.Sent()
	}
	for range localSample {
		w.Ended()
		w.Answered(100 * time.Millisecond)
	}
	if got := w.Size(); got != localLeap*localStart {
		t.Errorf("%d after the first answers, want %d", got, localLeap*localStart)
	}
}

// A leap is no leap over the target: not even where calls are answered one at a time.
func TestLocalWindowLeapsNoFurtherThanItMay(t *testing.T) {
	for each := 10 * time.Millisecond; each < 4*time.Second; each += 10 * time.Millisecond {
		w := localWindow{Target: time.Minute}
		for before := localStart; ; before = w.Size() {
			for range before {
				w.Sent()
			}
			for i := range before {
				w.Ended()
				w.Answered(time.Duration(1+i) * each)
			}
			if float64(w.Size()) <= localGrow*float64(before+1) { // the size has a fraction that nobody sees
				break // by growth, not by a leap
			}
			if last := time.Duration(w.Size()) * each; last > w.Target {
				t.Fatalf("%v each: from %d to %d calls in flight, and the last takes %v", each, before, w.Size(), last)
			}
		}
	}
}

// A call that vanished, broke or was refused takes no room in the window of a server of
// one's own: what was asked for and is gone does not look like use, and lets nothing grow.
func TestEndsFreeTheLocalWindow(t *testing.T) {
	for name, end := range map[string]func(*Law, time.Time, limiter.News){
		"answered":  func(m *Law, now time.Time, n limiter.News) { n.Good = true; m.Answered(now, n) },
		"failed":    func(m *Law, now time.Time, n limiter.News) { m.Failed(now, n) },
		"vanished":  func(m *Law, now time.Time, n limiter.News) { m.Vanished(now, n) },
		"refused":   func(m *Law, now time.Time, n limiter.News) { m.Refused(now, n) },
		"straggled": func(m *Law, now time.Time, n limiter.News) { m.Straggled(now, n) },
	} {
		m := newModel(limiter.LawConfig{Local: true}, noon)
		for range 2 * localStart {
			end(m, noon, leave(m, noon, one))
		}
		want(t, name+": in flight", m.local.inFlight, 0)
		for i := range 2 * localStart { // one at a time: there is no use for a larger window
			n := leave(m, at(float64(i)), one)
			n.Good, n.Latency = true, 10*time.Millisecond
			m.Answered(at(float64(i)), n)
		}
		if size := m.local.Size(); size > localStart {
			t.Errorf("%s: %d calls may be in flight, and one at a time was", name, size)
		}
	}
}

// Copies of a local window are independent.
func TestCopiesOfLocalWindowsAreIndependent(t *testing.T) {
	parttest.Copies(t, parttest.Of(localWindow{}, func(w *localWindow, _ time.Time) { w.Sent(); w.Answered(time.Second) }))
}

// The model climbs in no shape of the user's.
func TestModelHasNoRamp(t *testing.T) {
	want(t, "climb", New(limiter.LawConfig{}, noon, seeded(1)).SetRamp(at(0), limiter.RampConfig{Target: 5}), time.Time{})
}
