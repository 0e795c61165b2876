package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/provider"
)

// meters shows the run to Prometheus. The zero value of its server and of its file are none.
type meters struct {
	*verdict.Facts
	show *display

	genAI  *metrics.GenAI // nil: nothing shows it
	server *exposition.Server
	over   chan struct{} // closed when the run's figures are final
	files  sync.WaitGroup
}

// open begins to serve and to write, as the flags say.
func (m *meters) open() error {
	m.over = make(chan struct{})
	if m.Flags.MetricsAddr == "" && m.Flags.MetricsFile == "" {
		return nil
	}
	collector := metrics.NewCollector(m.stand)
	m.genAI = metrics.NewGenAI()
	if addr := m.Flags.MetricsAddr; addr != "" {
		server, err := metrics.Listen(addr, m.progress, collector, m.genAI)
		if err != nil {
			return exit.Refuse("--metrics-addr: %v: choose another address, or end the program that has it", err)
		}
		m.server = server
		text := fmt.Sprintf("metrics are at http://%s/metrics", server.Addr())
		if !server.Local() {
			text += ": every machine that reaches this address can read the figures of this run, and no prompt or answer"
		}
		m.show.console.Notice(event.Metrics, text)
	}
	if path := m.Flags.MetricsFile; path != "" {
		if err := m.checkFile(path); err != nil {
			return err
		}
		file := metrics.NewFile(path, collector, m.genAI)
		m.files.Go(func() {
			select {
			case <-m.show.watched:
			case <-m.over:
				if _, begun := m.stand(); !begun {
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

// checkFile refuses a file that belongs to the run otherwise.
func (m *meters) checkFile(path string) error {
	for _, other := range append(files(m.Facts), namedFile{"timeline", m.Flags.TimelinePath()}, namedFile{"log", m.Flags.LogFile}) {
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

// stand returns how the run stands; false before its first call.
func (m *meters) stand() (metrics.Stand, bool) {
	select {
	case <-m.show.watched:
	default:
		return metrics.Stand{}, false
	}
	s := metrics.Stand{Pending: int(max(0, m.show.unwritten.Load()))}
	s.Snapshot, s.Times = m.show.recorder.SnapshotAndTimes(m.Clock.Now())
	return s, true
}

// progress returns the run's progress; nil before its first call.
func (m *meters) progress() *event.Progress {
	select {
	case <-m.show.watched:
		return m.show.stands()
	default:
		return nil
	}
}

// note counts a call by OpenTelemetry's conventions. Workers call it.
func (m *meters) note(r *provider.Request, reply *provider.Reply, took time.Duration, err error) {
	vendor, host := m.Account.Server(r.Lane)
	m.genAI.Note(&metrics.Call{Endpoint: r.Endpoint, Vendor: vendor, Model: r.Model, Server: host, Err: err, Took: took, Usage: reply.Usage})
}

// finish writes the file for the last time, with the run's final figures.
func (m *meters) finish() {
	close(m.over)
	m.files.Wait()
}

// close keeps serving for as long as --linger says, if the run has begun and is the last one, and closes
// the address. After a pilot the next run serves there. A signal ends the wait.
func (m *meters) close(ctx context.Context, last bool) {
	if m.server == nil {
		return
	}
	if _, begun := m.stand(); begun && last && m.Flags.Linger > 0 && !m.Halt.Called() {
		timer := m.Clock.NewTimer(m.Flags.Linger)
		defer timer.Stop()
		select {
		case <-timer.Chan():
		case <-m.Signals:
		case <-ctx.Done():
		}
	}
	_ = m.server.Close() // it was read only
}
