package store_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
)

// ledger counts the readers that were not closed.
type ledger struct {
	*storetest.Memory
	open int
}

type entry struct {
	io.ReadCloser
	of *ledger
}

func (l *ledger) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	in, err := l.Memory.Open(ctx, name, offset, length)
	if err == nil {
		l.open++
		in = &entry{in, l}
	}
	return in, err
}

func (e *entry) Close() error {
	e.of.open--
	return e.ReadCloser.Close()
}

// ReadAll and ReadJournal close the readers that they open.
func TestReadersAreClosed(t *testing.T) {
	l := &ledger{Memory: storetest.NewMemory()}
	if err := store.CreateBytes(t.Context(), l, "j.000000", []byte("1\n2\n")); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int64{3, 4} {
		if _, err := store.ReadAll(t.Context(), l, "j.000000", most); (err == nil) != (most == 4) {
			t.Errorf("%d bytes: %v", most, err)
		}
	}
	expect(t, journal(t, l), "1", "2")
	if err := first(store.ReadJournal(t.Context(), l, "j")); err != nil {
		t.Error(err)
	}
	if l.open != 0 {
		t.Errorf("%d are open", l.open)
	}
}

// The longest names that may be.
func TestCheckName(t *testing.T) {
	segment := strings.Repeat("x", store.MaxSegment)
	longest := strings.Repeat(segment+"/", 3) + strings.Repeat("x", store.MaxName-3*len(segment)-3)
	for name, ok := range map[string]bool{segment: true, segment + "x": false, longest: true, longest + "x": false} {
		if err := store.CheckName(name); (err == nil) != ok {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
}
