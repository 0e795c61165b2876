package command

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/observe"
)

// aRun is a run of another process, whose timeline gets a second each second.
type aRun struct {
	*testing.T
	output string
	writer *timeline.Writer
	at     event.Progress
}

func begunRun(t *testing.T) *aRun {
	t.Helper()
	r := &aRun{T: t, output: filepath.Join(t.TempDir(), "out.jsonl")}
	must.Do(t, os.WriteFile(r.output, nil, 0o600))
	r.at = event.Progress{Event: "progress", State: "running", Bound: "requests", BoundShort: "requests limit"}
	r.writer = must.Get(timeline.Open(timeline.Config{
		Path: timeline.Path(r.output), At: time.Now(), Start: event.Start{Event: "start"},
		Progress: func() *event.Progress { p := r.at; p.At = event.Stamp(time.Now()); return &p },
	}))(t)
	return r
}

// second lets a second pass and tells it. In a bubble nothing else happens meanwhile.
func (r *aRun) second() {
	time.Sleep(time.Second)
	r.at.Done++
	r.at.ElapsedS++
	r.writer.Sample(observe.Sample{At: time.Now(), Elapsed: r.at.ElapsedS, Span: 1, Answered: 1})
	synctest.Wait()
}

// watching is headrace status --watch in a bubble.
func watching(t *testing.T, out io.Writer, signals chan os.Signal, args ...string) (ended chan int) {
	t.Helper()
	w := &world.World{
		Name: "headrace", Args: append([]string{"status", "--watch"}, args...), Stdout: out, Stderr: out, Clock: clockwork.NewRealClock(),
		Env: func(string) (string, bool) { return "", false }, Signals: signals, Release: func() {},
	}
	ended = make(chan int, 1)
	go func() { ended <- Run(t.Context(), w) }()
	return ended
}

// A user who watches a run without a terminal reads a line each five seconds, one when the
// bound changes, and one at its end.
func TestWatchFollowsARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begunRun(t)
		var out strings.Builder
		ended := watching(t, &out, nil, r.output)
		for n := 1; n <= 20; n++ {
			if n == 13 {
				r.at.Bound, r.at.BoundShort = "tokens", "tokens limit"
			}
			r.second()
		}
		r.at.State = "over"
		r.writer.Close(event.Summary{Event: "summary"})
		code := <-ended
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if n := len(lines); code != exit.OK || n < 6 || n > 7 || lines[n-1] != "the run has ended" || !strings.Contains(lines[n-2], "20 done") {
			t.Errorf("exit code %d:\n%s", code, out.String())
		}
		if strings.Count(out.String(), "tokens limit") < 2 || !strings.Contains(lines[3], "13 done") {
			t.Errorf("what holds it back:\n%s", out.String())
		}
	})
}

// Of a run that was killed it says so and how it stood. One whose output is locked goes on,
// however long it is silent, until nobody wants to look any more.
func TestWatchOfASilentRun(t *testing.T) {
	for _, locked := range []bool{false, true} {
		t.Run(fmt.Sprintf("locked %t", locked), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := begunRun(t)
				r.second()
				r.writer.Close(nil)
				if locked {
					lock := must.Get(journal.LockOutput(r.output))(t)
					defer func() { _ = lock.Unlock() }()
				}
				var out strings.Builder
				signals := make(chan os.Signal, 1)
				began := time.Now()
				ended := watching(t, &out, signals, r.output)
				if locked {
					time.Sleep(time.Hour)
					signals <- os.Interrupt
				}
				code, took := <-ended, time.Since(began)
				said := strings.Contains(out.String(), "the run has stopped: it was killed, or its machine went down, after ")
				if (code == exit.Interrupted) == locked || !locked && code != exit.Interrupted || said == locked || !strings.Contains(out.String(), "1 done") || !locked && took > 6*time.Second {
					t.Errorf("exit code %d after %v:\n%s", code, took, out.String())
				}
			})
		})
	}
}

// Where nothing is locked, as the output is no file, silence alone tells.
func TestWatchWithoutALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begunRun(t)
		r.second()
		r.writer.Close(nil)
		var out strings.Builder
		began := time.Now()
		ended := watching(t, &out, nil, "-", "--timeline", timeline.Path(r.output))
		code, took := <-ended, time.Since(began)
		if code != exit.OK || !strings.Contains(out.String(), "no sign of the run since ") || took < 15*time.Second || took > 16*time.Second {
			t.Errorf("exit code %d after %v:\n%s", code, took, out.String())
		}
	})
}

// A timeline that goes away while it is watched is said.
func TestWatchOfATimelineThatGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begunRun(t)
		var out strings.Builder
		ended := watching(t, &out, nil, r.output)
		r.second()
		must.Do(t, os.Remove(timeline.Path(r.output)))
		if code := <-ended; code != exit.Usage || !strings.Contains(out.String(), "is not there") {
			t.Errorf("exit code %d:\n%s", code, out.String())
		}
		r.writer.Close(nil)
	})
}

// A program that asks for the event of a killed run gets the last one. Standard error says
// that there will be no other.
func TestEventOfAKilledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begunRun(t)
		r.second()
		r.writer.Close(nil)
		for _, c := range []struct {
			later  time.Duration
			killed bool
		}{{time.Second, false}, {time.Hour, true}} {
			time.Sleep(c.later)
			code, out, errs := inWorld(t, nil, nil, "status", r.output, "--json")
			said := strings.Contains(errs, "the run has stopped: it was killed")
			state := strings.Contains(out, `"state":"killed"`)
			if said != c.killed || state != c.killed || (code == exit.Interrupted) != c.killed || !c.killed && code != exit.OK || !strings.Contains(out, `"done":1`) {
				t.Errorf("%v later: exit code %d: %s%s", c.later, code, out, errs)
			}
		}
	})
}

// What is in a timeline steers no terminal.
func TestWatchIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begunRun(t)
		r.at.BoundShort, r.at.Lanes = "\x1b[2J\u202e", []event.Lane{{Cause: "\x1b[2J"}}
		r.second()
		r.writer.Close(event.Summary{Event: "summary"})
		var out strings.Builder
		<-watching(t, &out, nil, r.output)
		_, json, _ := inWorld(t, nil, nil, "status", r.output, "--json")
		if strings.ContainsAny(out.String()+json, "\x1b\u202e") || !strings.Contains(json, `\u001b[2J\u202e`) {
			t.Errorf("%q\n%q", out.String(), json)
		}
	})
}
