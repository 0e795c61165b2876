package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
	"github.com/jonboulle/clockwork"
)

// gated is a store whose Create says when it is asked, and waits for what it is to do.
type gated struct {
	*storetest.Memory
	asked chan string
	do    chan error // nil: do it; errDone: do it, and say it failed; another: fail
}

// errDone is an answer that was lost.
var errDone = errors.New("the answer is lost")

func newGated() *gated {
	return &gated{Memory: storetest.NewMemory(), asked: make(chan string), do: make(chan error)}
}

func (g *gated) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	select {
	case g.asked <- name:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := <-g.do
	if err == nil || errors.Is(err, errDone) {
		err = errors.Join(err, g.Memory.Create(ctx, name, body, size))
	}
	return err
}

// next answers the next Create, and says what it was of.
func (g *gated) next(answer error) string {
	name := <-g.asked
	g.do <- answer
	return name
}

// begun is a journal in pieces on a store that waits, at a clock that stands.
func begun(t *testing.T, lines int) (*gated, *clockwork.FakeClock, store.Journal) {
	t.Helper()
	g, clock := newGated(), clockwork.NewFakeClock()
	made := make(chan store.Journal)
	go func() {
		j, err := store.CreateJournal(t.Context(), g, "j", store.JournalConfig{Clock: clock, Lines: lines})
		if err != nil {
			t.Error(err)
		}
		made <- j
	}()
	if name := g.next(nil); name != "j.000000" {
		t.Errorf("it begins with %s", name)
	}
	return g, clock, <-made
}

func add(t testing.TB, j store.Journal, lines ...string) {
	t.Helper()
	for _, line := range lines {
		must.Do(t, j.Write(t.Context(), []byte(line)))
	}
}

func journal(t testing.TB, s store.Store) []string {
	t.Helper()
	var got []string
	for line, err := range store.ReadJournal(t.Context(), s, "j") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(line))
	}
	return got
}

func expect(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// closing closes a journal, all of whose pieces are answered with nil.
func closing(t testing.TB, g *gated, j store.Journal) {
	t.Helper()
	done := make(chan error)
	go func() { done <- j.Close(t.Context()) }()
	for {
		select {
		case <-g.asked:
			g.do <- nil
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// A piece is written when it has its lines, without anybody asking; the next gathers meanwhile.
func TestPiecesByLines(t *testing.T) {
	g, _, j := begun(t, 3)
	add(t, j, "1", "2", "3", "4", "5")
	if name := g.next(nil); name != "j.000001" {
		t.Error(name)
	}
	add(t, j, "6")
	if name := g.next(nil); name != "j.000002" {
		t.Error(name)
	}
	closing(t, g, j)
	expect(t, journal(t, g), "1", "2", "3", "4", "5", "6")
}

// A line waits no longer than Every for the piece that it is in, also if none follows.
func TestPiecesByTime(t *testing.T) {
	g, clock, j := begun(t, 100)
	add(t, j, "1")
	clock.Advance(store.DefaultPieceEvery - time.Second)
	add(t, j, "2")
	clock.Advance(time.Second)
	if name := g.next(nil); name != "j.000001" {
		t.Error(name)
	}
	add(t, j, "3")
	if err := j.Sync(t.Context()); err != nil {
		t.Error(err)
	}
	closing(t, g, j)
	expect(t, journal(t, g), "1", "2", "3")
	if got := storetest.Pieces(t, g, "j"); got != 3 {
		t.Errorf("%d pieces", got)
	}
}

// Flush returns when all lines before it are written, in order, and makes no piece of none.
func TestPiecesFlush(t *testing.T) {
	g, _, j := begun(t, 2)
	if err := j.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	add(t, j, "1", "2", "3")
	done := make(chan error)
	go func() { done <- j.Flush(t.Context()) }()
	g.next(nil)
	g.next(nil)
	if err := <-done; err != nil {
		t.Error(err)
	}
	expect(t, journal(t, g), "1", "2", "3")
	closing(t, g, j)
}

// A failed write is reported to the waiting caller, and done again: the same bytes under the same name,
// as the first time may have succeeded.
func TestPiecesAgain(t *testing.T) {
	down := errors.New("down")
	for _, answer := range []error{down, errDone} {
		g, clock, j := begun(t, 2)
		add(t, j, "1")
		done := make(chan error)
		go func() { done <- j.Flush(t.Context()) }()
		g.next(answer)
		if err := <-done; !errors.Is(err, answer) {
			t.Errorf("%v", err)
		}
		add(t, j, "2", "3") // not in the piece that was cut
		advanced(t, clock, time.Second)
		if name := g.next(nil); name != "j.000001" {
			t.Error(name)
		}
		closing(t, g, j)
		expect(t, journal(t, g), "1", "2", "3")
		if got := storetest.Pieces(t, g, "j"); got != 3 {
			t.Errorf("%d pieces", got)
		}
	}
}

// advanced moves a clock on, when somebody waits for it.
func advanced(t testing.TB, clock *clockwork.FakeClock, by time.Duration) {
	t.Helper()
	must.Do(t, clock.BlockUntilContext(t.Context(), 1))
	clock.Advance(by)
}

// While the store is down two pieces gather, and no more: then Write waits, for as long as ctx lets it.
func TestPiecesAreBounded(t *testing.T) {
	g, _, j := begun(t, 2)
	add(t, j, "1", "2", "3", "4")
	<-g.asked
	ctx, cancel := context.WithCancel(t.Context())
	wrote := make(chan error)
	go func() { wrote <- j.Write(ctx, []byte("5")) }()
	select {
	case err := <-wrote:
		t.Errorf("a fifth line was taken: %v", err)
	default:
	}
	cancel()
	if err := <-wrote; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	go func() { wrote <- j.Write(t.Context(), []byte("6")) }()
	g.do <- nil
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	closing(t, g, j)
	expect(t, journal(t, g), "1", "2", "3", "4", "6")
}

// Two writers of one journal are found out by the second's piece, and the first's stays.
func TestPiecesOfTwoWriters(t *testing.T) {
	g, _, j := begun(t, 100)
	must.Do(t, store.CreateBytes(t.Context(), g.Memory, "j.000001", []byte("another's\n")))
	add(t, j, "mine")
	done := make(chan error)
	go func() { done <- j.Flush(t.Context()) }()
	g.next(nil)
	for i, err := range []error{
		<-done, j.Write(t.Context(), []byte("more")), j.Sync(t.Context()), j.Flush(t.Context()), j.Close(t.Context()),
	} {
		if !errors.Is(err, store.ErrExists) || !strings.Contains(err.Error(), "another process writes it") {
			t.Errorf("%d: %v", i, err)
		}
	}
	expect(t, journal(t, g), "another's")
}

// A journal that was deleted while it was being written stays deleted: what comes late is no journal, so
// that its writer, who looks for it, sees that it is gone.
func TestLatePiecesAreNoJournal(t *testing.T) {
	m := storetest.NewMemory()
	j := journalIn(t, m, "w/0001-a")
	add(t, j, "one")
	other := journalIn(t, m, "w/0002-b")
	for _, do := range []func(context.Context) error{
		j.Flush,
		func(ctx context.Context) error { return store.DeleteJournal(ctx, m, "w/0001-a") },
		func(ctx context.Context) error { return j.Write(ctx, []byte("two")) },
		j.Close, other.Close,
	} {
		must.Do(t, do(t.Context()))
	}
	if first := firstOf(t, m, "w/0001-a."); first != "w/0001-a.000002" {
		t.Fatalf("the late piece is %q", first)
	}
	for name, err := range store.Journals(t.Context(), m, "w/") {
		if err != nil || name != "w/0002-b" {
			t.Errorf("there is a journal %q: %v", name, err)
		}
	}
	for line, err := range store.ReadJournal(t.Context(), m, "w/0001-a") {
		if !errors.Is(err, store.ErrMissing) {
			t.Errorf("it is read: %q, %v", line, err)
		}
	}
}

func journalIn(t *testing.T, s store.Store, name string) store.Journal {
	t.Helper()
	j := must.Get(store.CreateJournal(t.Context(), s, name, store.JournalConfig{}))(t)
	return j
}

// firstOf is the first object whose name begins so.
func firstOf(t *testing.T, s store.Store, prefix string) string {
	t.Helper()
	for o, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		return o.Name
	}
	return ""
}

// Close says what is lost when there is no time, and leaves no goroutine.
func TestPiecesCloseInTime(t *testing.T) {
	g, _, j := begun(t, 100)
	add(t, j, "lost")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- j.Close(ctx) }()
	<-g.asked
	cancel()
	g.do <- errors.New("too late")
	if err := <-done; err == nil {
		t.Error("nothing was lost")
	}
	if err := j.Write(t.Context(), []byte("late")); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("%v", err)
	}
	expect(t, journal(t, g))
}

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
		j := must.Get(store.CreateJournal(t.Context(), n, "j", store.JournalConfig{}))(t)
		n.syncFails = false
		add(t, j, "1")
		must.Do(t, j.Sync(t.Context()))
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
	j := must.Get(store.CreateJournal(t.Context(), s, "j", store.JournalConfig{Lines: 7, Clock: clockwork.NewFakeClock()}))(t)
	var want []string
	for n := range 100 {
		want = append(want, fmt.Sprint("line ", n))
		add(t, j, want[n])
	}
	must.Do(t, j.Close(t.Context()))
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
	must.Do(t, store.CreateBytes(t.Context(), m, "j.000000", nil))
	if err := first(store.ReadJournal(t.Context(), long{m}, "j")); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("read: %v", err)
	}
	line := make([]byte, store.MaxLine+1)
	for _, s := range []store.Store{storetest.NewMemory(), open(t, t.TempDir())} {
		j := must.Get(store.CreateJournal(t.Context(), s, "j", store.JournalConfig{}))(t)
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
