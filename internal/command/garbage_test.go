package command

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/world"
)

// A run of the command has the room for garbage while results are written, and gives the
// setting back when it is over. Where the user has set GOGC the run leaves it alone.
func TestRunHasRoomForGarbage(t *testing.T) {
	t.Chdir(t.TempDir()) // the errors file of a run to standard output
	const odd = 123      // no setting of ours
	defer debug.SetGCPercent(debug.SetGCPercent(odd))
	for _, gogc := range []string{"", "123"} {
		note := percentNoter{map[int]bool{}}
		var errs strings.Builder
		w := &world.World{
			Name: "headrace", Args: []string{"run", "-", "-o", "-", "--provider", "sim", "--format", "text"},
			Stdin: strings.NewReader("one\ntwo\nthree\n"), Stdout: note, Stderr: &errs, Clock: clockwork.NewRealClock(),
			Env:     func(name string) (string, bool) { return gogc, name == "GOGC" && gogc != "" },
			Signals: make(chan os.Signal), Release: func() {},
		}
		if code := Run(t.Context(), w); code != 0 || len(note.percents) == 0 {
			t.Fatalf("exit code %d, %d settings seen: %s", code, len(note.percents), errs.String())
		}
		if tuned := !note.percents[odd]; tuned != (gogc == "") {
			t.Errorf("GOGC=%q: while results were written the collector was set to %v", gogc, note.percents)
		}
		if after := gcPercent(); after != odd {
			t.Errorf("GOGC=%q: %d percent afterwards, want %d", gogc, after, odd)
		}
	}
}

func gcPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// A percentNoter notes how the collector is set when results are written.
type percentNoter struct{ percents map[int]bool }

func (n percentNoter) Write(p []byte) (int, error) {
	n.percents[gcPercent()] = true
	return len(p), nil
}
