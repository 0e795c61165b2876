package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/ctl"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
)

// control carries out what headrace ctl asks of the run. Its server calls Do, one command at a time.
type control struct {
	*verdict.Facts
	show *display
	log  *runLog

	job    *promptfile.Job
	steers *batch.Control
	server *ctl.Server // nil: nobody is heard
	pilot  *control    // of the pilot before this run; nil: there was none

	mu          sync.Mutex // guards those below: the reader sets again what the pilot leaves
	paused      bool
	concurrency int
	cap         float64                 // USD; 0: none
	limitsOfAll batch.Limits            // of the lanes that have none of their own
	limits      map[string]batch.Limits // by lane
}

// steering returns what steers the run.
func (c *control) steering() *batch.Control {
	c.steers = batch.NewControl()
	return c.steers
}

// open starts to listen for headrace ctl. If that fails, the run continues without it.
func (c *control) open(job *promptfile.Job) {
	c.job, c.concurrency, c.cap = job, c.Flags.Concurrency, c.Flags.MaxCost
	c.limitsOfAll, c.limits = c.Flags.Limits(), map[string]batch.Limits{}
	if pilot := c.pilot; pilot != nil {
		c.paused, c.concurrency, c.limitsOfAll, c.limits = pilot.paused, pilot.concurrency, pilot.limitsOfAll, pilot.limits
	}
	if c.Flags.Ctl == settings.CtlOff || c.Flags.ToStdout() || settings.IsNoFile(c.Flags.Output) {
		return
	}
	name, err := ctl.OfFile(c.Flags.Output)
	if err == nil {
		c.server, err = ctl.Serve(c.Runtime, c, name)
	}
	if err != nil {
		c.log.Info("no control by headrace ctl", "error", err)
	}
}

// restoreAfterPilot repeats the changes that headrace ctl made during the pilot, before the first item is
// read.
func (c *control) restoreAfterPilot() {
	if c.pilot == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx := c.Halt.Ctx
	record := func(what, lane, from, to string, err error) {
		if err != nil {
			c.log.Warn("a change by headrace ctl could not be kept after the pilot", "what", what, "lane", lane, "error", err)
			return
		}
		c.changed(what, lane, from, to)
	}
	if c.paused {
		record("state", "", "running", "paused", c.steers.Pause(ctx))
	}
	if was := c.Flags.Concurrency; c.concurrency != was {
		record("concurrency", "", strconv.Itoa(was), strconv.Itoa(c.concurrency), c.job.SetConcurrency(ctx, c.concurrency))
	}
	if was := c.Flags.Limits(); c.limitsOfAll != was {
		record("limits", "", ctl.LimitWords(was), ctl.LimitWords(c.limitsOfAll), c.steers.SetLimitsOfAll(ctx, c.limitsOfAll))
	}
	for _, lane := range slices.Sorted(maps.Keys(c.limits)) {
		to := c.limits[lane]
		record("limits", lane, ctl.LimitWords(c.initialLimits(lane)), ctl.LimitWords(to), c.steers.SetLimits(ctx, lane, to))
	}
}

// close stops listening. A new bound on the cost holds for the rest after a pilot, and for the command that
// continues.
func (c *control) close() {
	if err := c.server.Close(); err != nil {
		c.log.Info("a command of headrace ctl was cut off", "error", err)
	}
	if c.cap != c.Flags.MaxCost {
		c.Flags.MaxCost = c.cap
		c.Args = settings.WithMaxCost(c.Args, strconv.FormatFloat(c.cap, 'f', -1, 64))
	}
}

// Do carries out a command of headrace ctl, and returns the answer to it.
func (c *control) Do(ctx context.Context, cmd ctl.Command) (answer ctl.Answer, err error) {
	switch cmd.Word {
	case ctl.Status:
		p := c.show.progressNow()
		return ctl.Answer{Text: strings.Join(event.Lines(p), "\n"), Progress: p}, nil
	case ctl.Report:
		return ctl.Answer{Files: c.files()}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch cmd.Word {
	case ctl.Pause:
		answer.Text, err = c.pause(ctx, true)
	case ctl.Resume:
		answer.Text, err = c.pause(ctx, false)
	case ctl.Drain:
		answer.Text = c.drain()
	case ctl.Concurrency:
		answer.Text, err = c.setConcurrency(ctx, cmd.N)
	case ctl.MaxCost:
		answer.Text, err = c.setMaxCost(ctx, cmd.USD)
	case ctl.Limit:
		answer.Text, err = c.setLimits(ctx, &cmd)
	case ctl.Reset:
		answer.Text, err = c.reset(ctx, cmd.Lane)
	case ctl.LogLevel:
		level := c.Flags.Leveler()
		from := level.Level()
		level.Set(cmd.Level)
		answer.Text = c.changed("log-level", "", strings.ToLower(from.String()), strings.ToLower(cmd.Level.String()))
	default:
		err = fmt.Errorf("%s: a run cannot do that", cmd.Word)
	}
	return answer, err
}

// files returns the absolute paths of the run's files.
func (c *control) files() *ctl.Files {
	absolute := func(path string) string {
		if path == "" {
			return ""
		}
		if all, err := filepath.Abs(path); err == nil {
			return all
		}
		return path
	}
	return &ctl.Files{Output: absolute(c.Flags.Output), Errors: absolute(c.Flags.ErrorsPath()), Timeline: absolute(c.show.timelineAt)}
}

// changed shows a change, records it, and returns it in words. If nothing has changed, it only returns the
// words.
func (c *control) changed(what, lane, from, to string) string {
	e := event.Changed{Event: "changed", At: event.Stamp(c.Clock.Now()), What: what, Lane: lane, From: from, To: to, By: "ctl"}
	if e.Text = e.Say(); e.IsNone() {
		return e.Text
	}
	c.show.console.Changed(e)
	c.show.timeline.Changed(e)
	c.show.scene.addChange(e)
	c.log.Info("changed by ctl", "what", what, "lane", lane, "from", from, "to", to)
	text, _ := strings.CutSuffix(e.Text, ", by headrace ctl")
	return text
}

// pause pauses the run, or resumes it, and returns what has changed.
func (c *control) pause(ctx context.Context, paused bool) (string, error) {
	if c.Halt.Called() {
		return "", errors.New("the run is ending: it can no longer be paused or resumed")
	}
	from, to, do := "running", "paused", c.steers.Pause
	if !paused {
		from, to, do = to, from, c.steers.Resume
	}
	if c.paused == paused {
		return "it is " + to + " already", nil
	}
	if err := do(ctx); err != nil {
		return "", err
	}
	c.paused = paused
	return c.changed("state", "", from, to), nil
}

// drain ends the run as the first Ctrl-C does: nothing more is started.
func (c *control) drain() string {
	if c.Halt.Called() {
		return "it is ending already, by " + c.Halt.Reason()
	}
	c.Halt.Tell("headrace ctl")
	from := "running"
	if c.paused {
		from = "paused"
	}
	return c.changed("state", "", from, "draining")
}

// setConcurrency changes the most calls in flight, within what the run's files and sockets allow.
func (c *control) setConcurrency(ctx context.Context, n int) (string, error) {
	if most := c.Account.MostConcurrency(); n > most {
		return "", fmt.Errorf("concurrency %d is too much for this run: want 1 to %d, or start it with a higher -c", n, most)
	}
	if err := c.job.SetConcurrency(ctx, n); err != nil {
		return "", err
	}
	from := c.concurrency
	c.concurrency = n
	return c.changed("concurrency", "", strconv.Itoa(from), strconv.Itoa(n)), nil
}

// setMaxCost changes the bound on the cost. A run without a bound has not counted its cost, so it cannot get
// one.
func (c *control) setMaxCost(ctx context.Context, usd float64) (string, error) {
	if c.cap == 0 {
		return "", errors.New("max-cost: the run was started without --max-cost, and has not counted what it spends: start it with one")
	}
	if err := c.steers.SetMaxCost(ctx, usd); err != nil {
		return "", err
	}
	from := c.cap
	c.cap = usd
	return c.changed("max-cost", "", words.Money(from), words.Money(usd)), nil
}

// lanes lists the run's lanes, as far as they are used.
func (c *control) lanes() (names []string) {
	for _, l := range c.show.recorder.Snapshot(c.Clock.Now()).Lanes {
		names = append(names, l.Name)
	}
	return names
}

// lanesNamed returns the lanes that a name means: all of one lane of the file, or one lane of the run.
func (c *control) lanesNamed(name string) ([]string, error) {
	all := c.lanes()
	named := slices.DeleteFunc(slices.Clone(all), func(lane string) bool {
		known := c.Account.LaneNamed(lane)
		return lane != name && (known == nil || known.Spec.Name != name)
	})
	if len(named) == 0 {
		return nil, fmt.Errorf("lane %q is not in use: want %s", exit.WithoutKeys(name), strings.Join(all[:min(len(all), mostNamed)], ", "))
	}
	return named, nil
}

// mostNamed bounds the lanes that a refusal names.
const mostNamed = 20

// setLimits changes the limits of one lane, or of all lanes where the file has none.
func (c *control) setLimits(ctx context.Context, cmd *ctl.Command) (string, error) {
	switch {
	case c.Flags.Through != "":
		return "", fmt.Errorf("limit: headrace serve at %s has the limits: headrace ctl changes them there", c.Flags.Through)
	case c.Flags.Law == settings.LawNone:
		return "", errors.New("limit: a run with --law none has no limit but its concurrency")
	case cmd.Lane == "" && c.Flags.Fleet != nil:
		all := c.lanes()
		return "", fmt.Errorf("limit: name a lane, as each has limits of its own: %s", strings.Join(all[:min(len(all), mostNamed)], ", "))
	case cmd.Lane == "":
		from, to := c.limitsOfAll, cmd.On(c.limitsOfAll)
		if err := c.steers.SetLimitsOfAll(ctx, to); err != nil {
			return "", err
		}
		was := ctl.AllWords(from, c.limits)
		c.limitsOfAll, c.limits = to, map[string]batch.Limits{}
		return c.changed("limits", "", was, ctl.LimitWords(to)), nil
	}
	lanes, err := c.lanesNamed(cmd.Lane)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, lane := range lanes {
		from, known := c.limits[lane]
		if !known {
			from = c.initialLimits(lane)
		}
		to := cmd.On(from)
		if err := c.steers.SetLimits(ctx, lane, to); err != nil {
			return "", err
		}
		c.limits[lane] = to
		texts = append(texts, c.changed("limits", lane, ctl.LimitWords(from), ctl.LimitWords(to)))
	}
	return strings.Join(texts, "\n"), nil
}

// initialLimits returns the limits that a lane's flags set at the start.
func (c *control) initialLimits(lane string) batch.Limits {
	if of := c.Account.LaneNamed(lane); of != nil {
		return of.Spec.Flags.Limits()
	}
	return c.limitsOfAll
}

// reset makes lanes forget the limits that they have learned. The name may be left out if there is only one.
func (c *control) reset(ctx context.Context, name string) (string, error) {
	lanes := c.lanes()
	if name != "" {
		var err error
		if lanes, err = c.lanesNamed(name); err != nil {
			return "", err
		}
	} else if len(lanes) != 1 {
		return "", fmt.Errorf("reset: name a lane: %s", strings.Join(lanes[:min(len(lanes), mostNamed)], ", "))
	}
	var texts []string
	for _, lane := range lanes {
		if err := c.steers.ResetLane(ctx, lane); err != nil {
			return "", err
		}
		texts = append(texts, c.changed("reset", lane, "", "afresh"))
	}
	return strings.Join(texts, "\n"), nil
}
