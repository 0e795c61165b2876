package status

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/printable"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/internal/command/world"
)

const (
	// watchEvery is the time between two looks at a timeline: two looks for each second in
	// it.
	watchEvery = 500 * time.Millisecond
	// lineEvery is the time between two lines about a run of which only the figures change.
	lineEvery = 5 * time.Second
	// silence is the time without a new second in its timeline after which a run may have
	// died: on a busy machine a second comes late.
	silence = 5 * time.Second
	// longSilence is the time after which it has died, where no lock says whether it runs.
	longSilence = 15 * time.Second
	// mostBeginningLooks is the largest number of looks, every beginningEvery, for the first progress
	// of a run.
	mostBeginningLooks = 20
	beginningWait      = 25 * time.Millisecond
)

// watched is a run of another process, by its timeline.
type watched struct {
	*world.World
	output string
	reader timeline.Reader

	latest  time.Time // the latest time in the timeline
	arrived time.Time // when that arrived, by this process's clock
}

// watchedRun returns the run that writes to an output, by its timeline; an error if it has none.
func watchedRun(w *world.World, flags *statusFlags, output string) (*watched, error) {
	of := settings.Flags{Output: output, Timeline: flags.timeline}
	path := of.TimelinePath()
	if path == "" {
		return nil, exit.Refuse("%s has no timeline: give --timeline FILE as for the run", output)
	}
	return &watched{World: w, output: output, reader: timeline.Reader{Path: path}, arrived: w.Clock.Now()}, nil
}

// read reads the timeline, and notes when something new arrived in it.
func (w *watched) read() (timeline.View, error) {
	v, err := w.reader.Read()
	switch {
	case errors.Is(err, timeline.ErrNone):
		return v, exit.Refuse("%s is not there: the run was started with --timeline none, with another --timeline, or not at all; headrace status %s counts what is in the output",
			w.reader.Path, settings.ShellQuote(w.output))
	case err != nil:
		return v, exit.Refuse("%s: %s", w.reader.Path, exit.PlainText(err))
	}
	if !v.At.Equal(w.latest) {
		w.latest, w.arrived = v.At, w.Clock.Now()
	}
	return v, nil
}

// firstView waits for the first progress of a run that has just begun, for a bounded number of looks.
func (w *watched) firstView(ctx context.Context) (timeline.View, error) {
	for n := 0; ; n++ {
		v, err := w.read()
		if err != nil || v.Progress != nil || n == mostBeginningLooks {
			return v, err
		}
		select {
		case <-w.Clock.After(beginningWait):
		case <-w.Signals:
			return v, nil
		case <-ctx.Done():
			return v, nil
		}
	}
}

// printProgress prints the latest event of a run, for programs.
func (w *watched) printProgress(ctx context.Context) error {
	v, err := w.firstView(ctx)
	if err != nil {
		return err
	}
	if v.Progress == nil {
		return exit.Refuse("%s has no state of the run yet: ask again in a second", w.reader.Path)
	}
	line := v.Line
	if w.wasKilled(&v) {
		fmt.Fprintf(w.Stderr, "headrace: %s\n", printable.Line(w.stoppedAt(&v)))
		was := fmt.Appendf(nil, `"state":%q`, v.Progress.State) // no text before it has such quotes
		line = bytes.Replace(line, was, []byte(`"state":"killed"`), 1)
	}
	fmt.Fprintf(w.Stdout, "%s\n", printable.JSON(line))
	return w.exitAsRun(&v, v.Progress.Failed > 0)
}

// wasKilled reports whether a run has not ended and does not go on.
func (w *watched) wasKilled(v *timeline.View) bool {
	return !v.Ended && w.isFile() && (journal.LockLeft(w.output) || w.whyOver(v) != "")
}

// Fate says whether a run to an output goes on, or was killed. The timeline is that of its runs; "" for none.
func Fate(w *world.World, output, path string) (runs, killed bool) {
	run := &watched{World: w, output: output, reader: timeline.Reader{Path: path}, arrived: w.Clock.Now()}
	_, who, killed := run.fate()
	return who != "", killed
}

// fate returns the timeline's view, who is writing the output, and whether the run was killed. who is "" if the run
// does not go on. Without a timeline the lock of the output decides.
func (w *watched) fate() (v timeline.View, who string, killed bool) {
	v, err := w.reader.Read()
	if err != nil && (runtime.GOOS == "windows" || !journal.LockLeft(w.output)) { // on Windows each run leaves its lock
		v.Ended = true
	}
	if who, runs := journal.LockedBy(w.output); runs {
		return v, cmp.Or(who, "another process"), false
	}
	return v, "", w.wasKilled(&v)
}

// exitAsRun returns an ending with the run's exit code; nil if the run goes on.
func (w *watched) exitAsRun(v *timeline.View, failed bool) error {
	code := exit.OK
	_, runs := journal.LockedBy(w.output)
	switch {
	case runs && w.isFile():
	case w.wasKilled(v):
		code = exit.Interrupted
	case v.ExitCode != nil:
		code = *v.ExitCode
	case failed:
		code = exit.ItemsFailed
	}
	if code == exit.OK {
		return nil
	}
	return &exit.Ending{Code: code}
}

// watch shows a run until it ends, or until Ctrl-C, which only stops the watching.
func (w *watched) watch(ctx context.Context) error {
	v, err := w.firstView(ctx)
	if err != nil {
		return err
	}
	shown := w.newFace()
	why, err := w.follow(ctx, &v, shown)
	shown.end(why)
	if err != nil || why == "" {
		return err
	}
	return w.exitAsRun(&v, v.Progress != nil && v.Progress.Failed > 0)
}

// follow shows a run until it is over, and returns why. why is "" if the user has stopped the watch, or no longer
// reads.
func (w *watched) follow(ctx context.Context, v *timeline.View, shown face) (why string, err error) {
	ticker := w.Clock.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		over := w.whyOver(v)
		if over == "" {
			shown.show(v.Progress, &w.reader)
			if w.Unread() {
				return "", nil
			}
			select {
			case <-ticker.Chan():
			case <-w.Signals:
				return "", nil
			case <-ctx.Done():
				return "", nil
			}
		}
		if *v, err = w.read(); err != nil {
			return "", err
		}
		if over != "" && w.whyOver(v) == over { // it includes the very last events
			shown.last(v.Progress, &w.reader)
			return over, nil
		}
	}
}

// whyOver returns how it is known that a run is over; "" if it is not.
func (w *watched) whyOver(v *timeline.View) string {
	if v.Ended {
		return "the run has ended"
	}
	last, quiet := v.At, w.Clock.Now().Sub(w.arrived)
	if !last.IsZero() {
		quiet = max(quiet, w.Clock.Now().Sub(last))
	}
	if quiet < silence {
		return ""
	}
	if w.isFile() {
		if _, runs := journal.LockedBy(w.output); runs {
			return ""
		}
		return w.stoppedAt(v)
	}
	if w.Clock.Now().Sub(w.arrived) < longSilence {
		return ""
	}
	return "no sign of the run since " + latestOf(v)
}

// isFile reports whether the output is a file, which a run locks.
func (w *watched) isFile() bool {
	info, err := os.Stat(w.output)
	return err == nil && info.Mode().IsRegular()
}

// stoppedAt says that a run was killed.
func (w *watched) stoppedAt(v *timeline.View) string {
	return fmt.Sprintf("the run has stopped: it was killed, or its machine went down, after %s; the same command resumes it", latestOf(v))
}

// latestOf says when the run last wrote to its timeline.
func latestOf(v *timeline.View) string {
	if v.At.IsZero() {
		return "its timeline has begun"
	}
	return v.At.Local().Format(time.DateTime)
}

// face shows a watched run: on a terminal as a panel, otherwise in lines.
type face interface {
	show(p *event.Progress, of *timeline.Reader) // how the run stands, at each look; nil: that is not known
	last(p *event.Progress, of *timeline.Reader) // the same at its end
	end(why string)                              // nothing is shown after it; "" says nothing
}

// lines shows a run in lines: one when the bound changes, and one every five seconds.
type lines struct {
	out   io.Writer
	now   func() time.Time
	shown event.Progress
	at    time.Time // when the last line was printed; zero: none was
}

// show prints a line if the state, the bound or the failures have changed, or if the last line is old.
func (l *lines) show(p *event.Progress, _ *timeline.Reader) {
	if p == nil {
		return
	}
	news := p.State != l.shown.State || p.Bound != l.shown.Bound || p.Failed != l.shown.Failed
	later := p.At != l.shown.At && l.now().Sub(l.at) >= lineEvery
	if l.at.IsZero() || p.At != l.shown.At && news || later {
		l.print(p)
	}
}

// last prints the last progress, unless the latest line has shown it.
func (l *lines) last(p *event.Progress, _ *timeline.Reader) {
	if p != nil && (l.at.IsZero() || p.At != l.shown.At || p.State != l.shown.State) {
		l.print(p)
	}
}

func (l *lines) print(p *event.Progress) {
	fmt.Fprintln(l.out, printable.Line(event.Line(p)))
	l.shown, l.at = *p, l.now()
}

func (l *lines) end(why string) {
	if why != "" {
		fmt.Fprintln(l.out, why)
	}
}

// newFace returns a panel on the terminal at standard output. Where that is none, or cannot be steered, it returns
// lines.
func (w *watched) newFace() face {
	lines := &lines{out: exit.ForPeople(w.Stdout), now: w.Clock.Now}
	file, ok := w.Window.(*os.File)
	if !ok {
		return lines
	}
	at := world.TerminalAt(file)
	if at.Size == nil {
		return lines
	}
	style := panel.StyleOf(w.Env, runtime.GOOS == "windows")
	no, _ := w.Env("NO_COLOR")
	style.Color = no == ""
	screen := panel.NewScreen(file, at.Size, style)
	screen.Clock, screen.Foreground, screen.Continued = w.Clock, at.Foreground, at.Continued
	return &painted{screen: screen, out: lines.out}
}

// painted shows a run as its own terminal does.
type painted struct {
	screen *panel.Screen
	out    io.Writer // gets the lines when nothing is painted any more
	ended  *event.Progress
}

func (p *painted) show(e *event.Progress, of *timeline.Reader) {
	if e == nil {
		return
	}
	speeds, span := of.Speeds(panel.SpeedsFor(p.screen.Width()))
	p.screen.Paint(e, speeds, span)
}

func (p *painted) last(e *event.Progress, _ *timeline.Reader) { p.ended = e }

// end removes the panel, and prints the last state and why the watch ended.
func (p *painted) end(why string) {
	p.screen.Close()
	if p.ended != nil {
		fmt.Fprintln(p.out, strings.Join(event.Lines(p.ended), "\n"))
	}
	if why != "" {
		fmt.Fprintln(p.out, why)
	}
}
