package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/node"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/run"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/observe"
	"github.com/headrace/headrace/provider"
)

// A jobDisplay shows the progress of a job as headrace run shows a run, in the form that --progress names.
type jobDisplay struct {
	s               *run.Settings
	console         *progress.Console
	closed          func()
	began           bool
	lastShown       time.Time       // time of the last show
	earlierReported bool            // parts done before the watch began have been reported
	refused         map[string]bool // refusals of workers that have been reported
}

// openDisplay opens the display that the flags choose. The caller closes it.
func openDisplay(s *run.Settings) (*jobDisplay, error) {
	console, _, closed, err := s.Face()
	if err != nil {
		return nil, err
	}
	return &jobDisplay{s: s, console: console, closed: closed, refused: map[string]bool{}}, nil
}

func (f *jobDisplay) close() { f.closed() }

// line shows a notice to a person.
func (f *jobDisplay) line(text string) { f.console.Notice(event.Other, text) }

func (f *jobDisplay) event(code event.Code, text string) { f.console.Notice(code, text) }

func (f *jobDisplay) error(err error) { f.line(err.Error()) }

// watch shows a job until it has ended.
func (f *jobDisplay) watch(ctx context.Context, n *node.Node, name string) (node.JobStatus, error) {
	return n.Watch(ctx, name, watchEvery, f.show)
}

// watchEvery is the interval between two looks at the job, for the fastest face. The end of a job shows within that time.
const watchEvery = 500 * time.Millisecond

// show shows how the job stands, and reports each refusal of a worker once. Once the input is
// read, it shows a running job in each period of the face, and any other job each time.
func (f *jobDisplay) show(s *node.Standing) {
	r := &s.Record
	if !f.began && r.Job != "" {
		f.begin(s)
	}
	for _, text := range refusalsOf(s) {
		if !f.refused[text] {
			f.refused[text] = true
			f.line(text)
		}
	}
	if s.Chunks == 0 {
		return // its input is being read
	}
	if s.Before > 0 && s.Before < s.Items && !f.earlierReported {
		f.earlierReported = true
		f.line(fmt.Sprintf("%d items had ended before: failures and tokens are counted from now on", s.Before))
	}
	if over := s.Record.State != job.Running; !over && s.At.Sub(f.lastShown) < f.s.Every()-watchEvery/10 { // periods are never quite in time
		return
	}
	f.lastShown = s.At
	p := pictureOf(s)
	e := event.Of(&p, contextOf(s))
	f.console.Show(&e)
}

// begin announces the job that the display shows from now on.
func (f *jobDisplay) begin(s *node.Standing) {
	f.began = true
	var items *int // null: not known
	if s.Chunks > 0 {
		items = &s.Items
	}
	f.s.Begin(firstInput(&s.Record), items)
	if s.Record.State == job.Indexing {
		f.line("job " + s.Record.Job + ": its input is being read")
	}
}

// firstInput names the first input of a job, and says how many more there are.
func firstInput(r *job.Record) string {
	if len(r.Inputs) == 0 {
		return ""
	}
	if more := len(r.Inputs) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", r.Inputs[0].Name, more)
	}
	return r.Inputs[0].Name
}

// contextOf returns the facts about a job that are shown next to its figures.
func contextOf(s *node.Standing) event.Context {
	asked := s.Record.Asking.Provider
	by, _ := boundOf(s)
	return event.Context{
		Input: firstInput(&s.Record), Output: s.Record.Output, Provider: asked, Simulated: asked == "sim",
		Resumable: true, Skipped: s.Since.Skipped, Stopped: whyStopped(s), Bound: by, Latest: whoWorks(s), Zone: time.Local,
	}
}

// whyStopped returns why a job has stopped, such as a bound or an input that is gone. It returns "" if the provider has
// stopped a limit of the job.
func whyStopped(s *node.Standing) string {
	byProvider := slices.ContainsFunc(s.Limits, func(l bus.LimitPicture) bool { return l.Phase == machine.Stopped.String() })
	if s.Record.State != job.Stopped || byProvider {
		return ""
	}
	why, _, _ := strings.Cut(s.Record.Why, "\n")
	return why
}

// whoWorks names the workers and the keeper.
func whoWorks(s *node.Standing) string {
	const named = 3
	var names []string
	for i := range s.Workers {
		if w := &s.Workers[i]; i < named {
			names = append(names, fmt.Sprintf("%s %d", shortName(w.Name), w.Jobs[s.Record.Job].InFlight))
		}
	}
	text := "no worker: start one with headrace worker"
	switch n := len(s.Workers); {
	case n == 1:
		text = "1 worker: " + names[0] + " in flight"
	case n > 1:
		text = fmt.Sprintf("%d workers: %s in flight", n, strings.Join(names, ", "))
		if n > named {
			text = fmt.Sprintf("%d workers", n)
		}
	}
	if s.Keeper == "" {
		return text + "; no keeper yet, one of them will be in seconds"
	}
	return fmt.Sprintf("%s; keeper: %s (number %d)", text, shortName(s.Keeper), s.Epoch)
}

// shortName returns a worker's name without its random ending.
func shortName(name string) string {
	if at := strings.LastIndexByte(name, '-'); at > 0 {
		return name[:at]
	}
	return name
}

// pictureOf turns the standing of a job into the snapshot of a run, with the job's limits as lanes.
func pictureOf(s *node.Standing) observe.Snapshot {
	p := observe.Snapshot{
		At: s.At, Began: s.Began, Total: observe.UnknownTotal, Before: s.Before, Failed: s.Since.Failed,
		Calls: int(s.Calls), Throttled: int(s.Refused), Cooldowns: int(s.Cooldowns), Concurrency: s.Concurrency, InFlight: s.InFlight, Waiting: s.Waiting,
		Speed: s.PerSecond, OfLanes: len(s.Limits), Ends: forecastOf(s),
		Spent: observe.Spent{
			Usage: provider.Usage{InputTokens: s.Since.Usage.InputTokens, OutputTokens: s.Since.Usage.OutputTokens, CachedTokens: s.Since.Usage.CachedTokens},
			Doubtful: provider.Doubtful{
				Calls: int(s.Since.Doubtful.Calls),
				Usage: provider.Usage{InputTokens: s.Since.Doubtful.InputTokens, OutputTokens: s.Since.Doubtful.OutputTokens, CachedTokens: s.Since.Doubtful.CachedTokens},
			},
			USD: s.Since.CostUSD, Priced: s.Since.Priced, Unpriced: s.Since.Unpriced,
		},
	}
	if s.Record.Round == 0 && s.Chunks > 0 {
		p.Total = s.Items
	}
	p.Answered = max(0, s.Done-s.Before-p.Failed)
	switch s.Record.State {
	case job.Stopped:
		p.State = observe.Stopped
	case job.Done:
		p.State = observe.Over
	case job.Canceled, job.Refused:
		p.State = observe.Draining
	case job.Indexing, job.Running:
		if s.Record.Paused {
			p.State = observe.Paused
		}
	}
	for i := range s.Limits {
		lane := laneOf(&s.Limits[i])
		lane.Speed, lane.Name = s.PermitsPerSecond[lane.Name], plainName(lane.Name, s.Limits)
		p.Lanes = append(p.Lanes, lane)
	}
	by, limit := boundOf(s)
	p.Bottleneck.By, p.Bottleneck.Lane = limiter.ParseBound(by), plainName(limit, s.Limits)
	p.Bottleneck.Share = 1
	return p
}

// plainName returns a limit's name without address and account, unless another limit would then have the same name.
func plainName(name string, of []bus.LimitPicture) string {
	cut := func(name string) string {
		if at := strings.IndexAny(name, "@#"); at > 0 {
			return name[:at]
		}
		return name
	}
	for i := range of {
		if of[i].Name != name && cut(of[i].Name) == cut(name) {
			return name
		}
	}
	return cut(name)
}

// Bounds of a job in addition to those of a run.
const (
	byNobody = "no worker yet"
	byNone   = "no worker that can do it"
	byOffice = "no keeper yet"
	byWork   = "the parts that are in work"
)

// busyShare is the share of the allowed calls in flight at which concurrency holds a job back.
const busyShare = 0.9

// boundOf returns the cause that holds a job back. If that is a limit, it also returns the limit's name: the one under
// which the most calls wait.
func boundOf(s *node.Standing) (by, limit string) {
	switch {
	case s.Record.IsPaused():
		return limiter.BoundPaused.String(), ""
	case len(s.Workers) == 0:
		return byNobody, ""
	case len(refusalsOf(s)) == len(s.Workers):
		return byNone, ""
	case s.Keeper == "":
		return byOffice, ""
	}
	most := 0
	for i := range s.Limits {
		for _, j := range s.Limits[i].Jobs {
			if j.Job == s.Record.Job && j.Wanted > most {
				most, limit, by = j.Wanted, s.Limits[i].Name, s.Limits[i].Bound
			}
		}
	}
	switch {
	case most > 0 && by != "":
		return by, limit
	case float64(s.InFlight) >= busyShare*float64(s.Concurrency):
		return "concurrency", ""
	}
	return byWork, ""
}

// A forecast of the end needs as much data as that of a run.
const (
	endsItems = 30
	endsSpan  = 20 * time.Second
	endsGive  = 4 // a fourth of the rest, either way: the speed is measured over seconds
)

// forecastOf estimates the end of a job from its present speed. It gives none before there is enough data.
func forecastOf(s *node.Standing) observe.Forecast {
	switch {
	case s.Record.IsPaused():
		return observe.Forecast{Why: "paused"}
	case s.Items == 0 || s.Record.Round > 0:
		return observe.Forecast{Why: "total"}
	case s.PerSecond <= 0 || s.Done-s.Before < endsItems || s.At.Sub(s.Began) < endsSpan:
		return observe.Forecast{Why: "early"}
	}
	likely := time.Duration(float64(s.Items-s.Done) / s.PerSecond * float64(time.Second))
	return observe.Forecast{Known: true, Likely: likely, Low: likely - likely/endsGive, High: likely + likely/endsGive}
}

// laneOf shows a limit as a lane of a run.
func laneOf(l *bus.LimitPicture) observe.Lane {
	lane := observe.Lane{Left: observe.UnknownTotal, NextBound: limiter.ParseBound(l.Bound), Throttled: int(l.Refused)}
	if lane.Account = plainAccount(l.Account); l.Stopped != "" {
		lane.Cause = errors.New(whyLimitStopped(l))
	}
	lane.Name, lane.InFlight, lane.Why, lane.Wait = l.Name, l.InFlight, l.Why, time.Duration(l.WaitS*float64(time.Second))
	for p := machine.Flowing; p <= machine.Stopped; p++ {
		if p.String() == l.Phase {
			lane.Phase = p
		}
	}
	if l.Pace != nil {
		lane.Rate = *l.Pace
	}
	for _, k := range l.Known {
		at, ok := viewPlaces[k.Limit]
		if !ok {
			continue
		}
		source := limiter.Learned
		for _, one := range []limiter.Source{limiter.Configured, limiter.Seen} {
			if one.String() == k.Source {
				source = one
			}
		}
		lane.View.Limits[at] = limiter.LimitView{Source: source, Refill: k.PerSecond}
	}
	return lane
}

// plainAccount returns an account's name as people know it: that of the file, or else the sum of its keys.
func plainAccount(name string) string {
	if at := strings.IndexByte(name, '#'); at > 0 {
		return name[:at]
	}
	return name
}

// whyLimitStopped returns why a limit has stopped, with its account as people know it.
func whyLimitStopped(l *bus.LimitPicture) string {
	if l.Account == "" {
		return l.Stopped
	}
	return strings.Replace(l.Stopped, "account "+l.Account+": ", "account "+plainAccount(l.Account)+": ", 1)
}

// viewPlaces maps the names of limited quantities to their places in a view.
var viewPlaces = map[string]int{"requests": 0, "tokens": 1, "input_tokens": 2, "output_tokens": 3}
