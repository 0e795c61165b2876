package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/metrics"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
)

// meters shows the run to Prometheus. The zero value of its server and of its file are none.
type meters struct {
	*verdict.Facts
	show *display

	server *metrics.Server
	over   chan struct{} // closed when the run's figures are final
	files  sync.WaitGroup
}

// open begins to serve and to write, as the flags say.
func (m *meters) open() error {
	m.over = make(chan struct{})
	collector := metrics.NewCollector(m.stand)
	if addr := m.Flags.MetricsAddr; addr != "" {
		server, err := metrics.Listen(addr, collector, m.progress)
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
		file := metrics.NewFile(path, collector)
		m.files.Go(func() {
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
	if text := settings.NoFolder(path, path); text != "" {
		return exit.Refuse("--metrics-file: %s", text)
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
	return metrics.Stand{
		Snapshot: m.show.recorder.Snapshot(m.Clock.Now()), Times: m.show.recorder.Times(),
		Pending: int(max(0, m.show.unwritten.Load())),
	}, true
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

// finish writes the file for the last time, with the run's final figures.
func (m *meters) finish() {
	close(m.over)
	m.files.Wait()
}

// close keeps serving for as long as --linger says, if the run has begun, and closes the
// address. A signal ends the wait.
func (m *meters) close(ctx context.Context) {
	if m.server == nil {
		return
	}
	if _, begun := m.stand(); begun && m.Flags.Linger > 0 && !m.Halt.Called() {
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
