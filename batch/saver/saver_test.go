package saver

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/headrace/headrace/batch/internal/keys"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/must"
)

// savedLine is the line of item n, as a run makes it.
func savedLine(n int) journal.Line {
	id := fmt.Sprintf("item-%d", n)
	l := journal.LineOf(id, journal.Headrace{Line: n, Model: "m", Key: new(keys.Maker).Bad([]byte(id)).String()})
	l.Response = &journal.Response{StatusCode: 200, Body: []byte(`{"n":1}`)}
	return l
}

// made is the end of a file, which is made if it is missing.
func made(path string) (*journal.Tail, error) {
	j, err := journal.ReadJournal(path)
	if err != nil {
		return nil, err
	}
	return j.Append()
}

// lazily is the end of an errors file, which its first line makes.
func lazily(path string) (*journal.Tail, error) {
	j, err := journal.ReadErrorsJournal(path)
	if err != nil {
		return nil, err
	}
	return j.AppendLazily()
}

// newSaver saves to a new file. meddle, unless nil, sees the keeper before it is used.
func newSaver(t testing.TB, cfg Config, meddle func(*Saver)) (*Saver, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.jsonl")
	w := must.Get(made(path))(t)
	s := New(w, cfg)
	if meddle != nil {
		meddle(s) // nothing was saved yet: the saver's goroutine has not looked
	}
	return s, path
}

// A line is in the file, whole, before its item counts as done; items are done in
// the order in which they came, each once.
func TestSavedMeansInTheFile(t *testing.T) {
	for _, mode := range []Durability{Sync, OS} {
		const items = 1000
		s, path := newSaver(t, Config{Durability: mode}, nil)
		var done []int
		for n := range items {
			s.Save(savedLine(n), func(err error) {
				text, _ := os.ReadFile(path)
				if err != nil || !strings.HasSuffix(string(text), "}\n") || strings.Count(string(text), "\n") <= n {
					t.Errorf("item %d is done, with error %v, among %d lines", n, err, strings.Count(string(text), "\n"))
				}
				done = append(done, n)
			})
		}
		must.Do(t, s.Close())
		if len(done) != items || !slices.IsSorted(done) {
			t.Errorf("%d items done, sorted: %v", len(done), slices.IsSorted(done))
		}
		if j, err := journal.ReadJournal(path); err != nil || j.Keys.Len() != items {
			t.Errorf("%v, %+v", err, j)
		}
	}
}

// Lines that come while a commit runs go out together in the next.
func TestCommitsAreShared(t *testing.T) {
	began, goOn, syncs := make(chan bool), make(chan bool), 0
	s, _ := newSaver(t, Config{}, func(s *Saver) {
		s.keeper.disk.SyncData = func(*os.File) error {
			if syncs++; syncs == 1 {
				began <- true
				<-goOn
			}
			return nil
		}
	})
	s.Save(savedLine(0), nil)
	<-began
	for n := range 500 {
		s.Save(savedLine(n+1), nil)
	}
	close(goOn)
	must.Do(t, s.Close())
	if syncs > 3 { // the first, then all that gathered, and what was still at the door
		t.Errorf("%d syncs for 501 lines", syncs)
	}
}

// atTheDoor gives a saver without goroutines at whose door lines wait.
func atTheDoor(lines int) *Saver {
	s := &Saver{lines: make(chan pendingLine, queueLines), commits: make(chan *bundle), spare: make(chan *bundle, 2)}
	s.spare <- new(bundle)
	s.spare <- new(bundle)
	for n := range lines {
		s.Save(savedLine(n), nil)
	}
	return s
}

// What is at the door goes along, though the disk is free.
func TestAllAtTheDoorGoAlong(t *testing.T) {
	s := atTheDoor(100)
	go s.gather()
	if b := <-s.commits; len(b.items) != 100 {
		t.Errorf("%d of 100 lines go along", len(b.items))
	}
	close(s.lines)
	for range s.commits {
		t.Error("there was another line")
	}
}

// On a busy processor the saver lets a goroutine run that is about to bring a line, and the
// line goes along. A line alone goes out all the same.
func TestLinesAboutToComeGoAlong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := atTheDoor(1)
	go s.Save(savedLine(1), nil)
	go s.gather() // begins first, as what was started last does on one processor
	b := <-s.commits
	if len(b.items) != 2 {
		t.Errorf("%d of 2 lines go along", len(b.items))
	}
	if b.reset(); b.yields != 0 {
		t.Error("the next lines of this bundle are not waited for")
	}
	s.spare <- b
	s.Save(savedLine(2), nil)
	if b = <-s.commits; len(b.items) != 1 {
		t.Errorf("%d lines go out, not one", len(b.items))
	}
	close(s.lines)
	for range s.commits {
		t.Error("there was another line")
	}
}

// In mode os nothing waits for the disk.
func TestOSModeDoesNotSync(t *testing.T) {
	s, _ := newSaver(t, Config{Durability: OS}, func(s *Saver) {
		s.keeper.disk.SyncData = func(*os.File) error { t.Error("it syncs"); return nil }
	})
	s.Save(savedLine(1), nil)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A sync that failed is final, though the next one would succeed: no line of it or
// after it counts as saved, and each is named.
func TestFailedSyncIsFinal(t *testing.T) {
	var reported []error
	syncs := 0
	s, _ := newSaver(t, Config{Fault: func(err error) { reported = append(reported, err) }}, func(s *Saver) {
		s.keeper.disk.SyncData = func(*os.File) error {
			if syncs++; syncs == 2 {
				return syscall.EIO
			}
			return nil
		}
	})
	first := make(chan error)
	s.Save(savedLine(0), func(err error) { first <- err })
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	var failed int
	for n := range 20 {
		s.Save(savedLine(n+1), func(err error) {
			if errors.Is(err, syscall.EIO) {
				failed++
			}
		})
	}
	err := s.Close()
	var unsaved *Error
	if !errors.As(err, &unsaved) || unsaved.Lines != 20 || len(unsaved.IDs) != namedUnsaved || unsaved.IDs[0] != "item-1" {
		t.Errorf("%v", err)
	}
	if failed != 20 || syncs != 2 || len(reported) != 1 || !errors.Is(reported[0], syscall.EIO) {
		t.Errorf("%d items failed, %d syncs, told %v", failed, syncs, reported)
	}
}

// roomy takes room bytes, then says that the disk is full until it is given more.
type roomy struct {
	to   *os.File
	room int
}

func (r *roomy) Write(p []byte) (int, error) {
	n, err := r.to.Write(p[:min(len(p), r.room)])
	r.room -= n
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// On a full disk the file ends whole, waiting callers hear of it at the end, and unsaved
// lines are named. Lines that did fit are saved.
func TestFullDisk(t *testing.T) {
	for room := range 3 * len(lineText(1)) {
		fault := make(chan error, 1)
		s, path := newSaver(t, Config{Durability: OS, Fault: func(err error) { fault <- err }}, func(s *Saver) {
			s.keeper.w.out = &roomy{s.keeper.w.file, room}
		})
		saved, unsaved := 0, 0
		for n := range 3 {
			s.Save(savedLine(n+1), func(err error) {
				if err == nil {
					saved++
				} else {
					unsaved++
				}
			})
		}
		err := s.Close()
		var e *Error
		if !errors.As(err, &e) || e.Lines != unsaved || saved+unsaved != 3 || !errors.Is(<-fault, syscall.ENOSPC) {
			t.Fatalf("room for %d bytes: %d saved, %d not, %v", room, saved, unsaved, err)
		}
		if j, err := journal.ReadJournal(path); err != nil || j.Lines != saved || j.Torn != 0 || saved != room/len(lineText(1)) {
			t.Fatalf("room for %d bytes: %d saved, the file has %+v, %v", room, saved, j, err)
		}
	}
}

// behindOneLine is the end of a file in which an earlier run has left one line.
func behindOneLine(t *testing.T, path string) *journal.Tail {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(lineText(1)), 0o600))
	tail := must.Get(made(path))(t)
	return tail
}

func lineText(n int) string {
	l := savedLine(n)
	return string(journal.AppendLine(nil, &l))
}

// What a full disk refused is written at the end, if there is room again.
func TestRoomReturns(t *testing.T) {
	fault := make(chan error)
	var disk *roomy
	s, path := newSaver(t, Config{Fault: func(err error) { fault <- err }}, func(s *Saver) {
		disk = &roomy{s.keeper.w.file, 10}
		s.keeper.w.out = disk
	})
	saved := 0
	for n := range 5 {
		s.Save(savedLine(n), func(err error) {
			if err == nil {
				saved++
			}
		})
	}
	<-fault
	disk.room = 1 << 20
	if err := s.Close(); err != nil || saved != 5 {
		t.Errorf("%d saved, %v", saved, err)
	}
	if j, err := journal.ReadJournal(path); err != nil || j.Lines != 5 {
		t.Errorf("%+v, %v", j, err)
	}
}

// An output that is deleted, replaced or cut while it is written to is noticed with
// the next line, and at the end if there is none.
func TestOutputTakenAway(t *testing.T) {
	meddle := map[string]func(string) error{
		"deleted": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".2", []byte(lineText(0)), 0o600), os.Rename(path+".2", path))
		},
		"cut":         func(path string) error { return os.Truncate(path, 0) },
		"appended to": func(path string) error { return os.WriteFile(path, []byte(lineText(0)+"note"), 0o600) },
	}
	for name, spoil := range meddle {
		for _, more := range []int{0, 1} {
			s, path := newSaver(t, Config{}, nil)
			done := make(chan error)
			s.Save(savedLine(0), func(err error) { done <- err })
			must.Do(t, errors.Join(<-done, spoil(path)))
			for n := range more {
				s.Save(savedLine(n+1), nil)
			}
			err := s.Close()
			var unsaved *Error
			if !errors.Is(err, ErrReplaced) || errors.As(err, &unsaved) != (more > 0) {
				t.Errorf("%s, then %d lines: %v", name, more, err)
			}
		}
	}
}

// Standard output and the errors file that nobody needs are savers' files too.
func TestSaverWithoutAFile(t *testing.T) {
	var out strings.Builder
	s := To(&out, "standard output", Config{})
	s.Save(savedLine(1), nil)
	if err := s.Close(); err != nil || out.String() != lineText(1) {
		t.Errorf("%q, %v", out.String(), err)
	}
	path := filepath.Join(t.TempDir(), "errors")
	w := must.Get(lazily(path))(t)
	if err := New(w, Config{}).Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an errors file without errors: %v", err)
	}
}

// A closed pipe returns EPIPE, so the caller can tell a reader that has gone from a fault.
func TestClosedPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer func() { _ = w.Close() }()
	s := To(w, "standard output", Config{})
	s.Save(savedLine(1), nil)
	if err := s.Close(); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
}

// One huge line does not hold its memory, and does not hold up others.
func TestHugeLines(t *testing.T) {
	s := To(io.Discard, "none", Config{})
	l := savedLine(1)
	l.Response = &journal.Response{StatusCode: 200, Body: []byte(`"` + strings.Repeat("a", 3*commitBytes) + `"`)}
	for range 4 {
		s.Save(l, nil)
	}
	done := make(chan error)
	s.Save(savedLine(2), func(err error) { done <- err })
	if err := errors.Join(<-done, s.Close()); err != nil {
		t.Error(err)
	}
	for len(s.spare) > 0 {
		if b := <-s.spare; cap(b.buf) > 2*commitBytes {
			t.Errorf("%d bytes are still held", cap(b.buf))
		}
	}
}

// One result is not several.
func TestUnsavedAreCountedInWords(t *testing.T) {
	full := errors.New("saver: write out: no space left on device")
	for want, e := range map[string]*Error{
		"saver: write out: no space left on device: 1 result is not saved: a":                {Lines: 1, IDs: []string{"a"}, Err: full},
		"saver: write out: no space left on device: 12 results are not saved: a and 11 more": {Lines: 12, IDs: []string{"a"}, Err: full},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
