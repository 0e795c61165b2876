package command

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
		w := &World{clock: clockwork.NewRealClock(), signals: signals}
		h := w.watch(t.Context(), 0, func(event.Code, string) {})
		w.release = func() {
			if h.ctx.Err() == nil {
				seen = append(seen, "released")
			}
		}
		signals <- os.Interrupt
		synctest.Wait()
		if len(seen) > 0 || h.ctx.Err() != nil {
			t.Errorf("after the first: %v, %v", seen, h.ctx.Err())
		}
		signals <- os.Interrupt
		<-h.ctx.Done()
		if !slices.Equal(seen, []string{"released"}) {
			t.Errorf("after the second: %v", seen)
		}
		h.close()
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
			w := &World{clock: clockwork.NewRealClock(), signals: signals}
			h := w.watch(t.Context(), time.Minute, func(_ event.Code, text string) { said = text })
			if by := h.reason(); by != "" {
				t.Errorf("%q before anything drains it", by)
			}
			if sig != nil {
				signals <- sig
			}
			<-h.drain
			if got := [2]string{h.reason(), said}; got != want {
				t.Errorf("%v: %q, want %q", sig, got, want)
			}
			h.close()
		})
	}
}

// A SIGTERM that comes twice at once, as from timeout, is one; a later one abandons.
func TestSIGTERMSentTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		w := &World{clock: clockwork.NewRealClock(), signals: signals, release: func() {}}
		h := w.watch(t.Context(), 0, func(event.Code, string) {})
		for range 3 {
			signals <- syscall.SIGTERM
			synctest.Wait()
		}
		if !h.called() || h.ctx.Err() != nil {
			t.Errorf("after the first: %t, %v", h.called(), h.ctx.Err())
		}
		time.Sleep(2 * sameCall)
		signals <- syscall.SIGTERM
		<-h.ctx.Done()
		h.close()
	})
}
