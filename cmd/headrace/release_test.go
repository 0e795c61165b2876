package main

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cmd/headrace/internal/event"
)

// The first signal drains and keeps signals for itself; the second gives them their usual
// effect back before the calls are abandoned, so that a third ends whatever hangs.
func TestSecondSignalReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		var seen []string
		w := &world{clock: clockwork.NewRealClock(), signals: signals}
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
