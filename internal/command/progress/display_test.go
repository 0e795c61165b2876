package progress

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/panel"
)

// On a panel, notices, the log and long waits are lines above it, which steer nothing; what a
// lane does is a row of the panel. At the end the summary has taken its place.
func TestPanel(t *testing.T) {
	var out strings.Builder
	asked := 0
	screen := panel.NewScreen(&out, func() (int, int) { return 80, 24 }, panel.Style{})
	d := Panel(screen, func(n int) ([]float64, time.Duration) { asked = n; return []float64{1, 2}, 2 * time.Second }).display
	total := 10
	d.status(&event.Progress{State: "running", Total: &total, Done: 4, PerSecond: 2, BoundText: "your -c 4", Latest: "12:00:00 m: cooled"})
	d.notice(time.Time{}, event.Resumed, "hello \x1b[2J")
	d.log([]byte("a line of the log\n"))
	d.transition(&batch.Transition{Lane: "m", Cause: errors.New("not a line")})
	d.longWait(&batch.LongWait{Lane: "m"})
	before := out.String()
	d.summary(&Report{Left: 1})
	all := out.String()
	for _, want := range []string{"Held by  your -c 4", "▄█", "12:00:00 m: cooled", "headrace: hello \\x1b[2J\r\n", "a line of the log\r\n", "warning: m: "} {
		if !strings.Contains(before, want) {
			t.Errorf("no %q in %q", want, before)
		}
	}
	if strings.Contains(all, "not a line") || asked != panel.SpeedsFor(80) {
		t.Errorf("%d speeds asked for; %q", asked, all)
	}
	if end := all[len(before):]; !strings.Contains(end, "\nitems ") || strings.Contains(end, "Held by") {
		t.Errorf("the end is %q", end)
	}
}
