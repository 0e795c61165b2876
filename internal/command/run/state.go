package run

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/saver"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/state"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/disk"
)

// A memory is what a run knows from earlier ones, and where it keeps what it learns.
type memory struct {
	*verdict.Facts
	show           *display
	known          batch.Memory // what an earlier run has learned
	saved          *state.File  // keeps what the run learns; nil: nothing does
	answeredBefore bool         // by an earlier run of the same output, at the provider of this one
}

// stateFile returns the file in which this run keeps its state. It is nil if the output is no regular file,
// and if headrace serve keeps the state.
func (m *memory) stateFile() *state.File {
	if m.Flags.ToStdout() || settings.IsNoFile(m.Flags.Output) || m.Flags.Through != "" { // serve learns the limits
		return nil
	}
	file := &state.File{Path: settings.StatePath(m.Flags.Output), Law: m.Flags.Law, Now: m.Clock.Now, Disk: disk.Real(), Synced: m.Flags.Durability() == saver.Sync}
	for _, other := range append(slices.Clone(m.Inputs), m.Flags.Output, m.Flags.ErrorsPath()) {
		if journal.SameFile(other, file.Path) {
			return nil
		}
	}
	file.Server, file.Print = m.Account.ServerOf()
	return file
}

// recall loads what an earlier run has learned, and decides where this run saves to. It reports faults as
// notices.
func (m *memory) recall(begun promptfile.Begun) {
	m.answeredBefore = begun.Results > 0
	file := m.stateFile()
	if file == nil {
		return
	}
	known, err := file.Load()
	if errors.Is(err, state.ErrNotOurs) || errors.Is(err, state.ErrUnread) {
		m.show.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v", file.Path, err))
		return
	}
	m.saved = file
	m.answeredBefore = m.answeredBefore && !errors.Is(err, state.ErrOthers)
	switch {
	case m.Flags.Forget:
		_ = os.Remove(file.Path) // if it stays, the next save replaces it, or it is too old one day
	case err != nil:
		m.show.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v; the run learns the provider's limits again", file.Path, err))
	default:
		m.known = known
	}
	if begun.Fresh {
		m.known.Items = nil // each item is asked for the first time
	}
}

func (m *memory) options() []batch.Option {
	if m.saved == nil {
		return nil
	}
	return []batch.Option{batch.WithMemory(m.known), batch.WithMemorySaver(m.saved.Save)}
}

// noteUnsaved says that what the run has learned is not saved, and why.
func (m *memory) noteUnsaved(err error) {
	if err != nil {
		m.show.console.Notice(event.State, fmt.Sprintf("%s is not up to date: %s; only what was learned about the provider is lost", m.saved.Path, exit.PlainText(errors.Unwrap(err))))
	}
}
