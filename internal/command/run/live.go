package run

import (
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/live"
	"github.com/headrace/headrace/internal/command/report"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/timeline"
	"github.com/headrace/headrace/observe"
)

// A scene keeps what the live page of a run shows of its past.
type scene struct {
	mu      sync.Mutex // guards what follows
	samples report.Samples
	changes []event.Changed // the latest

	ended   atomic.Bool // the outcome is known, as far as it ever is
	outcome atomic.Pointer[event.Summary]

	read    bool           // the earlier runs have been read; the page's, as is the next
	earlier []timeline.Run // of the same output
}

// add takes a sample. The observer calls it.
func (s *scene) add(sample observe.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples.Add(sample)
}

// addChange stores a change that headrace ctl has made. A nil scene keeps nothing.
func (s *scene) addChange(e event.Changed) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes[max(0, len(s.changes)-timeline.MostChanges):], e)
}

// history returns the samples and the changes so far.
func (s *scene) history() ([]observe.Sample, []event.Changed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples.All(), slices.Clone(s.changes)
}

// storeOutcome keeps the outcome of the run for its live page.
func (m *meters) storeOutcome() {
	if m.show.scene == nil {
		return
	}
	if r := m.show.verdict.Report; r != nil {
		outcome := r.Event()
		m.show.scene.outcome.Store(&outcome)
	}
	m.show.scene.ended.Store(true)
}

// livePage returns the live page of the run at an address. With hideQuotes it shows no examples of failures,
// which may quote prompts.
func (m *meters) livePage(a *address, hideQuotes bool) *live.Page {
	cfg := live.Config{Clock: m.Clock, Render: func() (title, body string) {
		return a.run().moment(hideQuotes).HTML()
	}}
	cfg.Timeline = func(to io.Writer, hideQuotes bool) error { return a.run().timeline(to, hideQuotes) }
	if !m.Flags.ToStdout() && !settings.IsNoFile(m.Flags.Output) {
		cfg.Report = func() ([]byte, error) {
			text, err := report.Page(m.World, m.Flags)
			if err != nil {
				err = errors.New(exit.PlainText(err))
			}
			return text, err
		}
	}
	return live.New(cfg)
}

// timeline writes the timeline so far. Without a timeline file it writes what the live page has kept.
func (m *meters) timeline(to io.Writer, hideQuotes bool) error {
	if !m.begun() {
		return errors.New("the run has not begun")
	}
	if m.show.timeline != nil {
		return timeline.Copy(to, m.show.timelineAt, hideQuotes)
	}
	run := timeline.Run{At: m.Began, Start: m.show.startOf(nil)}
	run.Samples, run.Changes = m.show.scene.history()
	return run.Write(to)
}

// moment returns the state of the run for its live page. With hideQuotes it leaves out the texts of the
// provider, which may quote prompts.
func (m *meters) moment(hideQuotes bool) *report.Moment {
	scene := m.show.scene
	moment := &report.Moment{Over: scene.ended.Load(), Errors: m.Flags.ErrorsPath(), Zone: time.Local, Bare: hideQuotes} // asked before the progress, which is then final
	if moment.Progress = m.progress(hideQuotes); moment.Progress == nil {
		return moment
	}
	start := m.show.startOf(nil)
	if !scene.read {
		scene.read, scene.earlier = true, m.show.earlierRuns(start.Run)
	}
	moment.Began, moment.Settings, moment.Concurrency, moment.Earlier = m.Began, start.Settings, start.Concurrency, scene.earlier
	moment.Samples, moment.Changes = scene.history()
	if moment.Over {
		moment.Summary = scene.outcome.Load()
	}
	return moment
}

// earlierRuns reads the runs before this one from the timeline; none if there is no timeline.
func (d *display) earlierRuns(runID string) []timeline.Run {
	if d.timelineAt == "" {
		return nil
	}
	runs, _ := timeline.ReadRuns(d.timelineAt) // without them the page shows this run
	for k := range runs {
		if runs[k].Start.Run == runID {
			return runs[:k]
		}
	}
	return runs
}
