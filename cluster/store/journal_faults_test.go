package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/cluster/store/storetest"
)

// A journal that cannot be begun says why.
func TestJournalsThatCannotBegin(t *testing.T) {
	down := errors.New("down")
	if _, err := store.CreateJournal(t.Context(), storetest.Broken{Err: down}, "j", store.JournalConfig{}); !errors.Is(err, down) {
		t.Error(err)
	}
	for _, err := range []error{
		store.DeleteJournal(t.Context(), storetest.Broken{Err: down}, "j"),
		first(store.ReadJournal(t.Context(), storetest.Broken{Err: down}, "j")),
		first(store.Journals(t.Context(), storetest.Broken{Err: down}, "j")),
	} {
		if !errors.Is(err, down) {
			t.Error(err)
		}
	}
}

func first[T any](list func(func(T, error) bool)) error {
	for _, err := range list {
		return err
	}
	return nil
}

// torn is a tail of which writes or syncs fail.
type torn struct {
	store.Store
	written   *[]string
	fail      error
	syncFails bool
}

func (n *torn) Append(context.Context, string) (store.Tail, error) { return n, nil }

func (n *torn) Write(p []byte) (int, error) {
	if n.fail != nil && !n.syncFails {
		return 1, n.fail
	}
	*n.written = append(*n.written, string(p))
	return len(p), nil
}

func (n *torn) Sync() error {
	if n.syncFails {
		return n.fail
	}
	return nil
}

func (n *torn) Close() error { return nil }

// After a line that was torn, or a sync that failed, all that is not saved is written again, behind a line feed
// that ends what is torn.
func TestAppendedIsMended(t *testing.T) {
	full := errors.New("full")
	for _, syncFails := range []bool{false, true} {
		n := &torn{written: new([]string), syncFails: syncFails}
		j, err := store.CreateJournal(t.Context(), n, "j", store.JournalConfig{})
		if err != nil {
			t.Fatal(err)
		}
		n.syncFails = false
		add(t, j, "1")
		if err := j.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.fail, n.syncFails = full, syncFails
		add(t, j, "2")
		for range 2 {
			if err := j.Sync(t.Context()); !errors.Is(err, full) || errors.Is(err, store.ErrEnded) {
				t.Errorf("%v", err)
			}
			*n.written = (*n.written)[:1]
		}
		n.fail, n.syncFails = nil, false
		add(t, j, "3")
		if err := errors.Join(j.Sync(t.Context()), j.Sync(t.Context()), j.Close(t.Context())); err != nil {
			t.Error(err)
		}
		if got := strings.Join(*n.written, ""); got != "1\n\n2\n3\n" {
			t.Errorf("%q was written", got)
		}
		if err := j.Write(t.Context(), []byte("late")); !errors.Is(err, store.ErrEnded) {
			t.Errorf("%v", err)
		}
	}
}

// A journal in a bucket comes through faults, and no line twice.
func TestJournalThroughFaults(t *testing.T) {
	server, s := faulty(t)
	server.Fault(s3test.Storm(5, 0.4, s3test.SlowDown, s3test.LoseAnswer, s3test.Conflict, s3test.FailAfter, s3test.Repeat))
	j, err := store.CreateJournal(t.Context(), s, "j", store.JournalConfig{Lines: 7, Clock: clockwork.NewFakeClock()})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for n := range 100 {
		want = append(want, fmt.Sprint("line ", n))
		add(t, j, want[n])
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Fault(nil)
	expect(t, journal(t, s), want...)
	if server.Faults(s3test.LoseAnswer) == 0 {
		t.Error("no answer was lost")
	}
}

// long is a store whose every object is a line without an end.
type long struct{ store.Store }

func (long) Open(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return io.NopCloser(endless{}), nil
}

// A line has a bound, written or read.
func TestLinesAreBounded(t *testing.T) {
	m := storetest.NewMemory()
	if err := store.CreateBytes(t.Context(), m, "j.000000", nil); err != nil {
		t.Fatal(err)
	}
	if err := first(store.ReadJournal(t.Context(), long{m}, "j")); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("read: %v", err)
	}
	line := make([]byte, store.MaxLine+1)
	for _, s := range []store.Store{storetest.NewMemory(), open(t, t.TempDir())} {
		j, err := store.CreateJournal(t.Context(), s, "j", store.JournalConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Write(t.Context(), line); err == nil || !strings.Contains(err.Error(), "67108864 are the most") {
			t.Errorf("written: %v", err)
		}
		if err := errors.Join(j.Write(t.Context(), line[1:]), j.Close(t.Context())); err != nil {
			t.Error(err)
		}
		if got := journal(t, s); len(got) != 1 || len(got[0]) != store.MaxLine {
			t.Errorf("%d lines", len(got))
		}
	}
}

// A piece is also written when it has its bytes.
func TestPiecesByBytes(t *testing.T) {
	g, _, j := begun(t, 100)
	line := strings.Repeat("x", 1<<20)
	add(t, j, line, line, line, line)
	g.next(nil)
	add(t, j, "small")
	closing(t, g, j)
	if got := journal(t, g); len(got) != 5 || storetest.Pieces(t, g, "j") != 3 {
		t.Errorf("%d lines in %d pieces", len(got), storetest.Pieces(t, g, "j"))
	}
}
