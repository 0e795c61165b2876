package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/internal/must"
)

// hurried is a clock on which every wait is over at once.
func hurried(t testing.TB) clockwork.Clock {
	clock := clockwork.NewFakeClock()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for clock.BlockUntilContext(ctx, 1) == nil {
			clock.Advance(time.Minute)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return clock
}

// faulty is a store on a server, with the clock hurried.
func faulty(t testing.TB) (*s3test.Server, store.Store) {
	server := s3test.Start(t)
	return server, open(t, server.Address("p"), store.WithClock(hurried(t)))
}

func every(*http.Request) bool { return true }

func read(t testing.TB, s store.Store, name string) string {
	t.Helper()
	content := must.Get(store.ReadAll(t.Context(), s, name, 64<<20))(t)
	return string(content)
}

func names(t testing.TB, s store.Store, prefix string) []string {
	t.Helper()
	var found []string
	for o, err := range s.List(t.Context(), prefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, o.Name)
	}
	return found
}

// Whatever happens to a PUT a few times, the object is written once, and its writer gets no error.
func TestCreateThroughFaults(t *testing.T) {
	server, s := faulty(t)
	for _, fault := range []s3test.Fault{
		s3test.SlowDown, s3test.Conflict, s3test.LoseAsk, s3test.LoseAnswer, s3test.FailAfter, s3test.Repeat,
	} {
		for _, times := range []int{1, 3, 7} {
			name, before := fmt.Sprintf("%d-times-%d", times, fault), server.Faults(fault)
			server.Fault(s3test.First(times, fault, s3test.IsPut))
			if err := store.CreateBytes(t.Context(), s, name, []byte("mine")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if server.Faults(fault) == before {
				t.Errorf("%s: it did not happen", name)
			}
			server.Fault(nil)
			if got := read(t, s, name); got != "mine" {
				t.Errorf("%s: %q", name, got)
			}
			if err := store.CreateBytes(t.Context(), s, name, []byte("mine")); !errors.Is(err, store.ErrExists) {
				t.Errorf("%s: another call: %v", name, err)
			}
		}
	}
}

// Where no answer ever comes, it is asked whose the object is.
func TestCreateNeverAnswered(t *testing.T) {
	server, s := faulty(t)
	for _, fault := range []s3test.Fault{s3test.LoseAnswer, s3test.FailAfter} {
		name := fmt.Sprint("k", fault)
		server.Fault(s3test.First(1000, fault, s3test.IsPut))
		if err := store.CreateBytes(t.Context(), s, name, []byte("mine")); err != nil {
			t.Errorf("%v", err)
		}
		if err := store.CreateBytes(t.Context(), s, name, []byte("another's")); !errors.Is(err, store.ErrExists) {
			t.Errorf("%v", err)
		}
		server.Fault(nil)
		if got := read(t, s, name); got != "mine" {
			t.Errorf("%q", got)
		}
	}
}

// A server that is down leaves it open whether anything was written, and is asked a bounded number
// of times.
func TestCreateWhileDown(t *testing.T) {
	server, s := faulty(t)
	for _, fault := range []s3test.Fault{s3test.SlowDown, s3test.LoseAsk, s3test.Conflict} {
		before := server.Faults(fault)
		server.Fault(s3test.First(1000, fault, every))
		err := store.CreateBytes(t.Context(), s, "k", []byte("mine"))
		if err == nil || errors.Is(err, store.ErrExists) || !strings.Contains(err.Error(), "given up after 8 tries") {
			t.Errorf("%v", err)
		}
		if asked := server.Faults(fault) - before; asked != 16 { // eight PUTs, eight HEADs
			t.Errorf("%d requests", asked)
		}
	}
	server.Fault(nil)
	if got := names(t, s, ""); got != nil {
		t.Errorf("%q", got)
	}
}

// That a name is taken says nothing while it cannot be asked by whom: it may be by oneself.
func TestCreateTakenByAnUnknown(t *testing.T) {
	server, s := faulty(t)
	answered := s3test.First(1, s3test.LoseAnswer, s3test.IsPut)
	heads := s3test.First(1000, s3test.SlowDown, func(r *http.Request) bool { return r.Method == http.MethodHead })
	server.Fault(func(n int, r *http.Request) s3test.Fault { return max(answered(n, r), heads(n, r)) })
	err := store.CreateBytes(t.Context(), s, "k", []byte("mine"))
	if err == nil || errors.Is(err, store.ErrExists) || !strings.Contains(err.Error(), "perhaps by this very call") {
		t.Errorf("%v", err)
	}
}

// Of many writers at once exactly one wins, whatever happens to their requests; all others hear that
// the name is taken, or that it is open.
func TestRacesInAStorm(t *testing.T) {
	server, s := faulty(t)
	const rounds, writers, seed = 25, 16, 7
	server.Fault(s3test.Storm(seed, 0.4,
		s3test.SlowDown, s3test.Conflict, s3test.LoseAsk, s3test.LoseAnswer, s3test.FailAfter, s3test.Repeat))
	lost := 0
	for round := range rounds {
		name := fmt.Sprintf("race-%d", round)
		won, open := race(t, s, name, writers)
		if won > 1 || won+open == 0 {
			t.Fatalf("seed %d, round %d: %d won, it was open to %d", seed, round, won, open)
		}
		lost += open
	}
	t.Logf("%d requests; lost answers %d, repeated %d; it was left open to %d of %d writers",
		server.Requests(), server.Faults(s3test.LoseAnswer), server.Faults(s3test.Repeat), lost, rounds*writers)
}

// race says how many won, and to how many it was left open. What is there must be the winner's.
func race(t *testing.T, s store.Store, name string, writers int) (won, open int) {
	t.Helper()
	type answer struct {
		writer int
		err    error
	}
	answers := make(chan answer)
	for w := range writers {
		go func() {
			answers <- answer{w, store.CreateBytes(t.Context(), s, name, bytes.Repeat([]byte{byte('a' + w)}, 3000))}
		}()
	}
	winner := -1
	for range writers {
		switch a := <-answers; {
		case a.err == nil:
			won++
			winner = a.writer
		case !errors.Is(a.err, store.ErrExists):
			open++
		}
	}
	if winner >= 0 {
		content, err := store.ReadAll(t.Context(), s, name, 1<<20)
		if err == nil && string(content) != strings.Repeat(string(rune('a'+winner)), 3000) {
			t.Errorf("%s: %d won, and %.3q is there", name, winner, content)
		}
	}
	return won, open
}

// A body that cannot be sent twice is sent once; and what became of that is found out.
func TestCreateOfWhatCannotBeSentTwice(t *testing.T) {
	server, s := faulty(t)
	const size = store.BufferedBody + 1
	body := func() io.Reader { return io.LimitReader(endless{}, size) }

	server.Fault(s3test.First(1, s3test.SlowDown, s3test.IsPut))
	err := s.Create(t.Context(), "k", body(), size)
	if err == nil || errors.Is(err, store.ErrExists) || !strings.Contains(err.Error(), "cannot be sent twice") {
		t.Errorf("%v", err)
	}
	server.Fault(s3test.First(1, s3test.LoseAnswer, s3test.IsPut))
	if err := s.Create(t.Context(), "k", body(), size); err != nil {
		t.Errorf("%v", err)
	}
	// One that can seek goes on from where it stood, each time.
	server.Fault(s3test.First(2, s3test.SlowDown, s3test.IsPut))
	sought := strings.NewReader("skipped, sent")
	_, _ = sought.Seek(9, io.SeekStart)
	if err := s.Create(t.Context(), "sought", sought, 4); err != nil || read(t, s, "sought") != "sent" {
		t.Errorf("%v", err)
	}
}

// endless reads for ever.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// What is wrong with a body is not sent again.
func TestABadBodyIsNotSentAgain(t *testing.T) {
	server, s := faulty(t)
	before := server.Requests()
	err := s.Create(t.Context(), "k", strings.NewReader("too long"), 3)
	if err == nil || server.Requests()-before > 1 {
		t.Errorf("%v, %d requests", err, server.Requests()-before)
	}
}

// Reads, lists and deletions go on through what passes.
func TestTheRestThroughFaults(t *testing.T) {
	server, s := faulty(t)
	for _, fault := range []s3test.Fault{s3test.SlowDown, s3test.LoseAsk, s3test.LoseAnswer, s3test.FailAfter} {
		name := fmt.Sprint("k", fault)
		must.Do(t, store.CreateBytes(t.Context(), s, name, []byte("mine")))
		for verb, do := range map[string]func() error{
			"read": func() error { read(t, s, name); return nil },
			"list": func() error {
				if got := names(t, s, name); len(got) != 1 {
					return fmt.Errorf("%q", got)
				}
				return nil
			},
			"identity": func() error {
				_, size, err := s.Identity(t.Context(), name)
				if size != 4 {
					return fmt.Errorf("%d bytes, %w", size, err)
				}
				return err
			},
		} {
			server.Fault(s3test.First(3, fault, every))
			if err := do(); err != nil {
				t.Errorf("%s through %d: %v", verb, fault, err)
			}
		}
		server.Fault(s3test.First(3, fault, every))
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("delete through %d: %v", fault, err)
		}
		server.Fault(nil)
		if got := names(t, s, name); got != nil {
			t.Errorf("%q is left", got)
		}
	}
}

// No request goes on for ever, and a request without an answer does not count as a missing object.
func TestTheRestWhileDown(t *testing.T) {
	server, s := faulty(t)
	server.Fault(s3test.First(1000, s3test.SlowDown, every))
	_, opened := s.Open(t.Context(), "k", 0, -1)
	_, _, identified := s.Identity(t.Context(), "k")
	var listed error
	for _, err := range s.List(t.Context(), "", "") {
		listed = err
	}
	for i, err := range []error{opened, identified, listed, s.Delete(t.Context(), "k")} {
		if err == nil || errors.Is(err, store.ErrMissing) || !strings.Contains(err.Error(), "given up after 8 tries") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if server.Faults(s3test.SlowDown) != 4*8 {
		t.Errorf("%d requests", server.Faults(s3test.SlowDown))
	}
}

// A stream that breaks is gone on with where it broke, and yields what is there, once.
func TestReadsGoOn(t *testing.T) {
	server, s := faulty(t)
	content := make([]byte, 300_000)
	for i := range content {
		content[i] = byte(i * 31 >> 3)
	}
	must.Do(t, store.CreateBytes(t.Context(), s, "k", content))
	for _, c := range []struct{ offset, length int64 }{{0, -1}, {1000, -1}, {1000, 200_000}} {
		server.Fault(s3test.First(6, s3test.Cut, s3test.IsGet))
		in := must.Get(s.Open(t.Context(), "k", c.offset, c.length))(t)
		got, err := io.ReadAll(in)
		want := content[c.offset:]
		if c.length >= 0 {
			want = want[:c.length]
		}
		if err := errors.Join(err, in.Close()); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v: %d bytes, %v", c, len(got), err)
		}
	}
	if server.Faults(s3test.Cut) != 3*6 {
		t.Errorf("%d were cut", server.Faults(s3test.Cut))
	}
}

// A stream that breaks again and again without a byte between is an error in the end.
func TestReadsGiveUp(t *testing.T) {
	server, s := faulty(t)
	must.Do(t, store.CreateBytes(t.Context(), s, "k", []byte("xy")))
	server.Fault(s3test.First(1000, s3test.Cut, s3test.IsGet))
	_, err := store.ReadAll(t.Context(), s, "k", 10)
	if err == nil || !strings.Contains(err.Error(), "read k at byte 1") && !strings.Contains(err.Error(), "at byte 1:") {
		t.Errorf("%v", err)
	}
	if asked := server.Faults(s3test.Cut); asked > 20 {
		t.Errorf("%d requests", asked)
	}
}

// Two objects are not read as one, if the first was replaced while it was read.
func TestReadsOfWhatIsReplaced(t *testing.T) {
	server, s := faulty(t)
	must.Do(t, store.CreateBytes(t.Context(), s, "k", bytes.Repeat([]byte("a"), 100_000)))
	server.Fault(s3test.First(1, s3test.Cut, s3test.IsGet))
	in := must.Get(s.Open(t.Context(), "k", 0, -1))(t)
	defer in.Close()
	must.Do(t, s.Delete(t.Context(), "k"))
	must.Do(t, store.CreateBytes(t.Context(), s, "k", bytes.Repeat([]byte("b"), 100_000)))
	if got, err := io.ReadAll(in); !errors.Is(err, store.ErrChanged) || bytes.ContainsRune(got, 'b') {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A list that breaks goes on behind the last name.
func TestListsGoOn(t *testing.T) {
	server, s := faulty(t)
	for n := range 40 {
		must.Do(t, store.CreateBytes(t.Context(), s, fmt.Sprintf("k/%02d", n), nil))
	}
	all := names(t, s, "")
	for _, fault := range []s3test.Fault{s3test.Cut, s3test.SlowDown, s3test.LoseAnswer} {
		server.Fault(s3test.First(5, fault, s3test.IsList))
		if got := names(t, s, ""); fmt.Sprint(got) != fmt.Sprint(all) || len(got) != 40 {
			t.Errorf("%d: %q", fault, got)
		}
	}
}

// Names that come begin the count of tries anew: a list that is refused before each of its pages is not given up.
func TestListsThatMoveOn(t *testing.T) {
	unset(t)
	const pages = 20
	asked := 0
	s := open(t, "s3://bucket?region=x&endpoint=http://h", store.WithClock(hurried(t)), store.WithTransport(through(
		func(r *http.Request) (*http.Response, error) {
			if asked++; asked%2 == 0 {
				return answer(r, http.StatusServiceUnavailable, "SlowDown"), nil
			}
			next := 0
			for _, name := range []string{"start-after", "continuation-token"} {
				if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
					next = n + 1
				}
			}
			w := httptest.NewRecorder()
			fmt.Fprintf(w, "<ListBucketResult><IsTruncated>%t</IsTruncated><NextContinuationToken>%02d</NextContinuationToken>"+
				"<Contents><Key>%02d</Key></Contents></ListBucketResult>", next+1 < pages, next, next)
			return w.Result(), nil
		})))
	if got := names(t, s, ""); len(got) != pages || !slices.IsSorted(got) {
		t.Errorf("%q", got)
	}
}

// A list that takes long is waited for, and left when nobody waits any more; it is never taken for
// one that is complete.
func TestSlowLists(t *testing.T) {
	server, s := faulty(t)
	must.Do(t, store.CreateBytes(t.Context(), s, "k", nil))
	blocked, release := make(chan struct{}), make(chan struct{})
	server.Fault(func(_ int, r *http.Request) s3test.Fault {
		if s3test.IsList(r) {
			blocked <- struct{}{}
			<-release
		}
		return s3test.None
	})
	ctx, cancel := context.WithCancel(t.Context())
	type list struct {
		names []string
		err   error
	}
	lists := make(chan list)
	ask := func(ctx context.Context) {
		var l list
		for o, err := range s.List(ctx, "", "") {
			l.names, l.err = append(l.names, o.Name), err
		}
		lists <- l
	}
	go ask(ctx)
	<-blocked
	cancel()
	if l := <-lists; !errors.Is(l.err, context.Canceled) {
		t.Errorf("one that was left: %+v", l)
	}
	go ask(t.Context())
	<-blocked
	close(release)
	if l := <-lists; l.err != nil || fmt.Sprint(l.names) != "[k]" {
		t.Errorf("one that was waited for: %+v", l)
	}
	server.Fault(nil)
}

// A context that ends while a request waits for its next try ends the request.
func TestWaitingEndsWithTheContext(t *testing.T) {
	server := s3test.Start(t)
	clock := clockwork.NewFakeClock()
	s := open(t, server.Address("p"), store.WithClock(clock))
	server.Fault(s3test.First(1000, s3test.SlowDown, every))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- store.CreateBytes(ctx, s, "k", nil) }()
	must.Do(t, clock.BlockUntilContext(t.Context(), 1))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A store that lets two in is found out through all faults, and one that does not is not.
func TestProbeInAStorm(t *testing.T) {
	server, s := faulty(t)
	server.Fault(s3test.Storm(3, 0.2, s3test.SlowDown, s3test.LoseAnswer, s3test.Conflict, s3test.Cut))
	if err := store.Probe(t.Context(), s, chance(), store.ProbeConfig{}); err != nil {
		t.Error(err)
	}
}
