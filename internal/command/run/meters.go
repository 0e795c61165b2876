package run

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/live"
	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/command/report"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider"
)

// meters shows the run to Prometheus, and in a report.
type meters struct {
	*verdict.Facts
	show *display

	genAI   *metrics.GenAI // nil: nothing shows it
	address *address       // nil: there is none, or none yet. After a pilot it is that of the pilot
	over    chan struct{}  // closed when the run's figures are final
	files   sync.WaitGroup
}

// An address shows a run, or a pilot until the run after it has begun.
type address struct {
	*exposition.Server

	page  *live.Page
	first *meters
	next  atomic.Pointer[meters] // after a pilot
}

// run returns the run that is shown.
func (a *address) run() *meters {
	if next := a.next.Load(); next != nil && next.begun() {
		return next
	}
	return a.first
}

// Collect shows the calls by OpenTelemetry's conventions.
func (a *address) Collect(to *exposition.Page) { a.run().genAI.Collect(to) }

// open starts to serve and to write metrics, as the flags say.
func (m *meters) open() error {
	m.over = make(chan struct{})
	if m.Flags.Report != "" {
		if err := report.Check("--report", m.Flags.Report); err != nil {
			return err
		}
	}
	if m.Flags.MetricsAddr == "" && m.Flags.MetricsFile == "" {
		return nil
	}
	m.genAI = metrics.NewGenAI()
	if m.Flags.MetricsAddr != "" {
		m.show.scene = &scene{}
	}
	if m.address != nil {
		m.address.next.Store(m)
	} else if m.Flags.MetricsAddr != "" {
		if err := m.listen(); err != nil {
			return err
		}
	}
	if path := m.Flags.MetricsFile; path != "" {
		if err := m.checkFile(path); err != nil {
			return err
		}
		file := metrics.NewFile(path, metrics.NewCollector(m.standNow), m.genAI)
		m.files.Go(func() {
			select {
			case <-m.show.watched:
			case <-m.over:
				if !m.begun() {
					return // the file keeps the figures of an earlier run, such as a pilot
				}
			}
			file.Keep(m.Clock, m.over, func(err error) {
				m.show.console.Notice(event.Metrics, fmt.Sprintf("--metrics-file: %s: the run goes on without it", exit.PlainText(err)))
			})
		})
	}
	return nil
}

// listen starts to serve at the address, and shows the address.
func (m *meters) listen() (err error) {
	a := &address{first: m}
	collector := metrics.NewCollector(func() (metrics.Stand, bool) { return a.run().standNow() })
	a.page = m.livePage(a, !exposition.IsLocal(m.Flags.MetricsAddr))
	a.Server, err = metrics.Listen(m.Flags.MetricsAddr, a.page, func(bare bool) *event.Progress { return a.run().progress(bare) }, collector, a)
	if err != nil {
		return exit.Refuse("--metrics-addr: %v: choose another address, or end the program that has it", err)
	}
	m.address = a
	m.show.console.Notice(event.Metrics, a.Notice("this run"))
	m.show.console.Notice(event.Metrics, fmt.Sprintf("the run is shown at http://%s/", a.Addr()))
	return nil
}

// checkFile refuses a metrics file that the run uses for something else.
func (m *meters) checkFile(path string) error {
	for _, other := range append(ownFiles(m.Facts), namedFile{"timeline", m.Flags.TimelinePath()}, namedFile{"log", m.Flags.LogFile}) {
		if journal.SameFile(path, other.name) {
			return exit.Refuse("--metrics-file: %s is the %s: choose another file", path, other.what)
		}
	}
	if text := settings.NoFolder(path); text != "" {
		return exit.Refuse("--metrics-file: %s", text)
	}
	if err := disk.Inspect(path, metrics.IsOurs); err != nil { // the new file would take its place
		return exit.Refuse("--metrics-file: %s", exit.PlainText(err))
	}
	return nil
}

// begun reports whether the run has begun to make calls.
func (m *meters) begun() bool {
	select {
	case <-m.show.watched:
		return true
	default:
		return false
	}
}

// standNow returns the run's current figures; false before its first call.
func (m *meters) standNow() (metrics.Stand, bool) {
	if !m.begun() {
		return metrics.Stand{}, false
	}
	s := metrics.Stand{Pending: int(max(0, m.show.unwritten.Load()))}
	s.Snapshot, s.Times = m.show.recorder.SnapshotAndTimes(m.Clock.Now())
	return s, true
}

// progress returns the run's progress; nil before its first call. bare: without the words of others.
func (m *meters) progress(hideQuotes bool) *event.Progress {
	if !m.begun() {
		return nil
	}
	return m.show.progressFor(hideQuotes)
}

// countCall counts a call by OpenTelemetry's conventions. Workers call it.
func (m *meters) countCall(r *provider.Request, reply *provider.Reply, took time.Duration, err error) {
	vendor, host, model := m.Account.Called(r.Lane, r.Model)
	m.genAI.Note(&metrics.Call{Endpoint: r.Endpoint, Vendor: vendor, Model: model, Server: host, Err: err, Took: took, Usage: reply.Usage})
}

// report writes the report of a run that has ended. A failure to do so is a notice, as the results are saved.
func (m *meters) report() {
	if _, begun := m.standNow(); !begun || m.Flags.Report == "" {
		return
	}
	if err := report.Write(m.World, m.Flags, m.Flags.Report); err != nil {
		m.show.console.Notice(event.Report, fmt.Sprintf("--report: %s: headrace report %s -o %s makes it later",
			exit.PlainText(err), settings.ShellQuote(m.Flags.Output), settings.ShellQuote(m.Flags.Report)))
	}
}

// finish writes the file for the last time, with the run's final figures.
func (m *meters) finish() {
	close(m.over)
	m.files.Wait()
}

// close closes the address after --linger, if the run has begun. A signal ends the wait. A pilot is not the
// last run, and leaves its address open for the next.
func (m *meters) close(ctx context.Context, isLastRun bool) {
	if m.address == nil || !isLastRun {
		return
	}
	m.address.page.End()
	if m.begun() && m.Flags.Linger > 0 && !m.Halt.Called() {
		timer := m.Clock.NewTimer(m.Flags.Linger)
		defer timer.Stop()
		select {
		case <-timer.Chan():
		case <-m.Signals:
		case <-ctx.Done():
		}
	}
	_ = m.address.Close() // it was read only
}
