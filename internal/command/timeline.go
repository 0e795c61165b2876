package command

import (
	"errors"
	"fmt"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/observe"
)

// noTimeline is the value of --timeline that keeps no timeline.
const noTimeline = "none"

// timelinePath returns the path of a run's timeline; "" if there is none. An output that is
// no file has none, unless the user names one.
func (f *runFlags) timelinePath() string {
	switch {
	case f.timeline == noTimeline:
		return ""
	case f.timeline != "":
		return f.timeline
	case f.toStdout(), isNoFile(f.output):
		return ""
	}
	return timeline.Path(f.output)
}

func (f *runFlags) checkTimeline() error {
	if f.timeline == "-" {
		return errors.New(`--timeline "-": standard output carries results only: name a file, or none`)
	}
	return nil
}

// placeTimeline finds the path of the timeline, and refuses that of another file of the run.
func (r *runner) placeTimeline() error {
	path := r.flags.timelinePath()
	for _, other := range r.files() {
		switch {
		case !journal.SameFile(path, other.name):
		case r.flags.timeline != "":
			return refuse("the timeline, %s, is the %s, %s: choose another file", path, other.what, other.name)
		default:
			r.sayTimeline(fmt.Sprintf("no timeline is written: %s is the %s; choose another file with --timeline", path, other.what))
			return nil
		}
	}
	r.timelineAt = path
	return nil
}

// openTimeline begins the timeline of the run. The run also works without one, so faults are
// notices, not errors.
func (r *runner) openTimeline(s event.Start) {
	if r.timelineAt == "" {
		return
	}
	err := r.putTimelineAside()
	if err == nil {
		r.timeline, err = timeline.Open(timeline.Config{
			Path: r.timelineAt, At: r.began, Start: s, Progress: r.stands, Notice: r.sayTimeline,
			Failures: func() []observe.Failure { return r.recorder.Snapshot(r.clock.Now()).Failures },
		})
	}
	if err != nil {
		r.sayTimeline(fmt.Sprintf("no timeline is written to %s: %s", r.timelineAt, plainText(err)))
	}
}

// putTimelineAside keeps the old timeline of an output that starts over.
func (r *runner) putTimelineAside() error {
	if !r.startedOver {
		return nil
	}
	as, err := timeline.PutAside(r.timelineAt)
	if as != "" {
		r.console.Notice(event.StartingOver, fmt.Sprintf("starting over: the old %s is kept as %s", r.timelineAt, as))
	}
	return err
}

func (r *runner) sayTimeline(text string) { r.console.Notice(event.Timeline, text) }

func (r *runner) onSample(s observe.Sample) { r.timeline.Sample(s) }

// closeTimeline writes the outcome of the run. If the reader of the output has gone, it
// writes only that the run has ended.
func (r *runner) closeTimeline() {
	if r.timeline == nil {
		return
	}
	r.timeline.Close(summaryOf(r.report, event.Stamp(r.clock.Now())))
}

func summaryOf(report *progress.Report, at string) any {
	if report != nil {
		return report.Event()
	}
	return struct {
		Event string `json:"event"`
		At    string `json:"at"`
	}{"summary", at}
}
