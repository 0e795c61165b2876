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
func (s *scene) add(one observe.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples.Add(one)
}

// change takes what headrace ctl has changed. A nil scene keeps nothing.
func (s *scene) change(e event.Changed) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes[max(0, len(s.changes)-timeline.MostChanges):], e)
}

// past returns the samples and the changes so far.
func (s *scene) past() ([]observe.Sample, []event.Changed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples.All(), slices.Clone(s.changes)
}

// end notes how the run has ended.
func (m *meters) end() {
	if m.show.scene == nil {
		return
	}
	if r := m.show.verdict.Report; r != nil {
		outcome := r.Event()
		m.show.scene.outcome.Store(&outcome)
	}
	m.show.scene.ended.Store(true)
}

// livePage returns the page of the run at an address. bare: it shows no examples of failures.
func (m *meters) livePage(a *address, bare bool) *live.Page {
	cfg := live.Config{Clock: m.Clock, Render: func() (title, body string) {
		return a.run().moment(bare).HTML()
	}}
	cfg.Timeline = func(to io.Writer, bare bool) error { return a.run().timeline(to, bare) }
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

// timeline writes the timeline so far: that of the file, or of what is shown if there is none.
func (m *meters) timeline(to io.Writer, bare bool) error {
	if !m.begun() {
		return errors.New("the run has not begun")
	}
	if m.show.timeline != nil {
		return timeline.Copy(to, m.show.timelineAt, bare)
	}
	one := timeline.Run{At: m.Began, Start: m.show.startOf(nil)}
	one.Samples, one.Changes = m.show.scene.past()
	return one.Write(to)
}

// moment returns how the run stands. bare: without what others have said.
func (m *meters) moment(bare bool) *report.Moment {
	s := m.show.scene
	now := &report.Moment{Over: s.ended.Load(), Errors: m.Flags.ErrorsPath(), Zone: time.Local, Bare: bare} // asked before the progress, which is then final
	if now.Progress = m.progress(bare); now.Progress == nil {
		return now
	}
	start := m.show.startOf(nil)
	if !s.read {
		s.read, s.earlier = true, m.show.earlier(start.Run)
	}
	now.Began, now.Settings, now.Concurrency, now.Earlier = m.Began, start.Settings, start.Concurrency, s.earlier
	now.Samples, now.Changes = s.past()
	if now.Over {
		now.Summary = s.outcome.Load()
	}
	return now
}

// earlier reads the runs before this one; none if there is no timeline.
func (d *display) earlier(own string) []timeline.Run {
	if d.timelineAt == "" {
		return nil
	}
	runs, _ := timeline.ReadRuns(d.timelineAt) // without them the page shows this run
	for k := range runs {
		if runs[k].Start.Run == own {
			return runs[:k]
		}
	}
	return runs
}
