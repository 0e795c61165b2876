package metrics

import (
	"bytes"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/command/metrics/exposition"
	"github.com/headrace/headrace/internal/disk"
)

// fileEvery is the period in which a File is written: node_exporter is scraped about as often.
const fileEvery = 15 * time.Second

// fileMode lets node_exporter, which is another user, read the file.
const fileMode = 0o644

// A File holds the metrics of a run for node_exporter's textfile collector. Only one goroutine
// may use it.
type File struct {
	path    string
	sources []exposition.Source
}

// IsOurs reports whether a file that begins with head is such a file.
func IsOurs(head []byte) bool {
	return bytes.HasPrefix(head, []byte("# HELP headrace_")) || bytes.HasPrefix(head, []byte("# HELP gen_ai_"))
}

// NewFile returns the file at a path. It holds the run's metrics only: those of the process
// would meet node_exporter's own.
func NewFile(path string, run ...exposition.Source) *File { return &File{path: path, sources: run} }

// Write replaces the file with the figures of this moment. A reader sees the old file or the
// new one, whole.
func (f *File) Write() error {
	var page exposition.Page
	for _, one := range f.sources {
		one.Collect(&page)
	}
	return disk.Real().Unsynced().Write(f.path, page.AppendText(nil), fileMode)
}

// Keep writes the file every fileEvery, and a last time when over is closed. It passes only the first error to fault,
// as the run goes on without the file.
func (f *File) Keep(clock clockwork.Clock, over <-chan struct{}, fault func(error)) {
	ticker := clock.NewTicker(fileEvery)
	defer ticker.Stop()
	reported := false
	for last := false; !last; {
		select {
		case <-ticker.Chan():
		case <-over:
			last = true
		}
		if err := f.Write(); err != nil && !reported {
			reported = true
			fault(err)
		}
	}
}
