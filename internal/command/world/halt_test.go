package world

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/event"
)

// The first signal drains and keeps signals for itself; the second gives them their usual
// effect back before the calls are abandoned, so that a third ends whatever hangs.
func TestSecondSignalReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		var seen []string
		w := &World{Clock: clockwork.NewRealClock(), Signals: signals}
		h := w.Watch(t.Context(), 0, func(event.Code, string) {})
		w.Release = func() {
			if h.Ctx.Err() == nil {
				seen = append(seen, "released")
			}
		}
		signals <- os.Interrupt
		synctest.Wait()
		if len(seen) > 0 || h.Ctx.Err() != nil {
			t.Errorf("after the first: %v, %v", seen, h.Ctx.Err())
		}
		signals <- os.Interrupt
		<-h.Ctx.Done()
		if !slices.Equal(seen, []string{"released"}) {
			t.Errorf("after the second: %v", seen)
		}
		h.Close()
	})
}

// What drains a run is called by its name.
func TestWhatDrainsIsNamed(t *testing.T) {
	for sig, want := range map[os.Signal][2]string{
		os.Interrupt:    {"your Ctrl-C", "stopping: calls in flight finish and are saved; Ctrl-C again abandons them"},
		syscall.SIGTERM: {"a SIGTERM", "stopping: a SIGTERM: calls in flight finish and are saved; Ctrl-C abandons them"},
		syscall.SIGHUP:  {"a SIGHUP", "stopping: a SIGHUP: calls in flight finish and are saved; Ctrl-C abandons them"},
		nil:             {"your --deadline", "stopping at the deadline of 1m0s: calls in flight finish and are saved; Ctrl-C abandons them"},
	} {
		synctest.Test(t, func(t *testing.T) {
			signals, said := make(chan os.Signal, 1), ""
			w := &World{Clock: clockwork.NewRealClock(), Signals: signals}
			h := w.Watch(t.Context(), time.Minute, func(_ event.Code, text string) { said = text })
			if by := h.Reason(); by != "" {
				t.Errorf("%q before anything drains it", by)
			}
			if sig != nil {
				signals <- sig
			}
			<-h.Drain
			if got := [2]string{h.Reason(), said}; got != want {
				t.Errorf("%v: %q, want %q", sig, got, want)
			}
			h.Close()
		})
	}
}

// A SIGTERM that comes twice at once, as from timeout, is one; a later one abandons.
func TestSIGTERMSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		w := &World{Clock: clockwork.NewRealClock(), Signals: signals, Release: func() {}}
		h := w.Watch(t.Context(), 0, func(event.Code, string) {})
		for range 3 {
			signals <- syscall.SIGTERM
			synctest.Wait()
		}
		if !h.Called() || h.Ctx.Err() != nil {
			t.Errorf("after the first: %t, %v", h.Called(), h.Ctx.Err())
		}
		time.Sleep(2 * sameCall)
		signals <- syscall.SIGTERM
		<-h.Ctx.Done()
		h.Close()
	})
}
