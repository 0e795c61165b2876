package command

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
)

func gcPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// The room for garbage is about 13 MiB while little is held, and Go's own share once
// more is held than that.
func TestRoomForGarbage(t *testing.T) {
	for held, want := range map[uint64]int{
		0: 300, 4 << 20: 300, 5 << 20: 200, 6 << 20: 200, 8 << 20: 100, 13 << 20: 100, 1 << 30: 100,
	} {
		if got := percentFor(held); got != want {
			t.Errorf("%d MiB held: %d percent, want %d", held>>20, got, want)
		}
	}
}

// A run that comes to hold much is collected as usual from the next collection on,
// and when it is over the setting is what it was.
func TestGarbageIsWatched(t *testing.T) {
	before := gcPercent()
	defer debug.SetGCPercent(debug.SetGCPercent(before))
	restore := tuneGarbage(func(string) (string, bool) { return "", false })
	much := make([]byte, 256<<20)
	for i := 0; gcPercent() != usualPercent; i++ {
		if i == 1000 {
			t.Fatalf("with 256 MiB held it is still %d percent", gcPercent())
		}
		runtime.GC() // the finalizer runs in a goroutine of the runtime, a little later
	}
	runtime.KeepAlive(much)
	restore()
	if got := gcPercent(); got != before {
		t.Errorf("%d percent afterwards, want %d", got, before)
	}
}

// A GOGC that the user has set stays as it is.
func TestUsersGCSettingIsKept(t *testing.T) {
	before := gcPercent()
	tuneGarbage(func(name string) (string, bool) { return "50", name == "GOGC" })()
	if got := gcPercent(); got != before {
		t.Errorf("%d percent, want %d", got, before)
	}
}

// A percentNoter notes how the collector is set when results are written.
type percentNoter struct{ percents map[int]bool }

func (n percentNoter) Write(p []byte) (int, error) {
	n.percents[gcPercent()] = true
	return len(p), nil
}

// A run of the command has the room for garbage while results are written, and gives the
// setting back when it is over. Where the user has set GOGC the run leaves it alone.
func TestRunHasRoomForGarbage(t *testing.T) {
	t.Chdir(t.TempDir()) // the errors file of a run to standard output
	const odd = 123      // no setting of ours
	defer debug.SetGCPercent(debug.SetGCPercent(odd))
	for _, gogc := range []string{"", "123"} {
		note := percentNoter{map[int]bool{}}
		var errs strings.Builder
		w := &World{
			name: "headrace", args: []string{"run", "-", "-o", "-", "--provider", "sim", "--format", "text"},
			stdin: strings.NewReader("one\ntwo\nthree\n"), stdout: note, stderr: &errs, clock: clockwork.NewRealClock(),
			env:     func(name string) (string, bool) { return gogc, name == "GOGC" && gogc != "" },
			signals: make(chan os.Signal), release: func() {},
		}
		if code := run(t.Context(), w); code != 0 || len(note.percents) == 0 {
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
