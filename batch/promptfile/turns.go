package promptfile

import (
	"encoding/json"
	"fmt"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/saver"
)

// turns puts results in the order of the input. Results ahead of their turn wait in memory,
// and beyond a bound in a file next to the output; meanwhile they are not saved. It belongs
// to the goroutine that takes the results.
type turns struct {
	order *saver.Reorder
	fault func(error)
	buf   []byte
	lost  int   // results that could not be kept while they waited
	err   error // the first fault
}

func newTurns(folder string, save func(journal.Line), fault func(error)) *turns {
	emit := func(text []byte) error {
		var l journal.Line
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("a result that waited for its turn: %w", err)
		}
		save(l)
		return nil
	}
	return &turns{order: saver.NewReorder(folder, 0, emit), fault: fault}
}

// take gives an index its turn. A nil line means an item without a result.
func (t *turns) take(index int, l *journal.Line) {
	t.buf = t.buf[:0]
	if l != nil {
		t.buf = journal.AppendLine(t.buf, l)
	}
	if err := t.order.Put(index, t.buf); err != nil {
		t.note(err)
		if l != nil {
			t.lost++
		}
	}
}

func (t *turns) note(err error) {
	if t.err == nil {
		t.err = err
		t.fault(err)
	}
}

// close saves the results that still wait.
func (t *turns) close() error {
	if err := t.order.Close(); err != nil {
		t.note(err)
	}
	return t.err
}
