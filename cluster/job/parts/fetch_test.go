package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store/storetest"
)

// job of some chunks of ten lines each; the second round has tried again what failed in some.
func fetchable(t *testing.T, chunks int) (s *storetest.Memory, results, failures string) {
	s = storetest.NewMemory()
	for n := range chunks {
		lines := some(1+n*10, 10)
		write(t, s, n, 0, shuffled(rand.New(rand.NewPCG(uint64(n), 0)), lines)...)
		var again [][]byte
		for i, l := range lines {
			if e := entryOf(l); n%3 == 0 && e.Code == "timeout" {
				again = append(again, text(e.Line, map[bool]string{true: "server"}[e.Line%2 == 0], "again"))
				lines[i] = again[len(again)-1]
			}
		}
		if len(again) > 0 {
			write(t, s, n, 1, again...)
		}
		for _, l := range lines {
			if entryOf(l).Failed {
				failures += string(l)
			} else {
				results += string(l)
			}
		}
	}
	return s, results, failures
}

// All lines come in the order of the input, and of each that of its last round.
func TestFetchTo(t *testing.T) {
	s, results, failures := fetchable(t, 60)
	var out, failed bytes.Buffer
	f := &Fetch{Store: s, Job: "j", Chunks: 60}
	all, err := f.To(t.Context(), &out, &failed)
	if err != nil || out.String() != results || failed.String() != failures {
		t.Fatalf("%v: %d and %d bytes, not %d and %d", err, out.Len(), failed.Len(), len(results), len(failures))
	}
	if all.Chunks != 60 || all.Lines != 600 || all.Done != strings.Count(results, "\n") || all.Failed+all.Skipped != strings.Count(failures, "\n") {
		t.Errorf("%+v", all)
	}
	if _, err := f.To(t.Context(), io.Discard, nil); err != nil {
		t.Error(err)
	}
}

// The first failures come with the sums, in the order of the input: of the last round, and no line that was never asked.
func TestFetchNamesTheFirstFailures(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, text(1, "timeout", "first"), text(2, "timeout", "answered later"), text(3, promptfile.CodeInvalidLine, "bad"), text(4, "server", "once"))
	write(t, s, 0, 1, text(1, "timeout", "again"), text(2, "", "yes"))
	write(t, s, 1, 0, text(5, "server", "five"), text(6, "server", "six"))
	all, err := (&Fetch{Store: s, Job: "j", Chunks: 2}).To(t.Context(), io.Discard, nil)
	if err != nil || all.Failed != 4 {
		t.Fatalf("%+v, %v", all.Sums, err)
	}
	var got []string
	for i := range all.First {
		got = append(got, all.First[i].CustomID+" "+all.First[i].Error.Message)
	}
	if want := []string{prompts.LineID(1) + " again", prompts.LineID(4) + " once", prompts.LineID(5) + " five"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The last round counts, however many there were.
func TestFetchTheLastRound(t *testing.T) {
	s := storetest.NewMemory()
	for _, round := range []int{0, 2, 10} {
		write(t, s, 0, round, text(1, "timeout", fmt.Sprint(round)))
	}
	var failed bytes.Buffer
	if _, err := (&Fetch{Store: s, Job: "j", Chunks: 1}).To(t.Context(), io.Discard, &failed); err != nil || failed.String() != string(text(1, "timeout", "10")) {
		t.Errorf("%v: %s", err, failed.String())
	}
}

// A part that is missing is said, unless a part of all will do; one that is damaged always is.
func TestFetchWhatIsNotWhole(t *testing.T) {
	s, _, _ := fetchable(t, 60)
	for _, missing := range []int{0, 30, 59} {
		if err := s.Delete(t.Context(), job.PartName("j", missing, 0)); err != nil {
			t.Fatal(err)
		}
		_ = s.Delete(t.Context(), job.PartName("j", missing, 1))
		f := &Fetch{Store: s, Job: "j", Chunks: 60}
		if _, err := f.To(t.Context(), io.Discard, nil); !errors.Is(err, ErrUnfinished) {
			t.Errorf("without chunk %d: %v", missing, err)
		}
		f.Partial = true
		if all, err := f.To(t.Context(), io.Discard, nil); err != nil || all.Chunks != 59 || all.Lines != 590 {
			t.Errorf("without chunk %d: %+v, %v", missing, all, err)
		}
		write(t, s, missing, 0, some(1+missing*10, 10)...)
	}
	if err := s.Delete(t.Context(), job.PartName("j", 20, 0)); err != nil {
		t.Fatal(err)
	}
	put(t, s, 20, 0)
	f := &Fetch{Store: s, Job: "j", Chunks: 60, Partial: true}
	if _, err := f.To(t.Context(), io.Discard, nil); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// limited lets so many objects be open at a time, and counts those that are.
type limited struct {
	*storetest.Memory
	open chan int
}

type closing struct {
	io.ReadCloser
	of *limited
}

func (c closing) Close() error {
	c.of.open <- <-c.of.open - 1
	return c.ReadCloser.Close()
}

func (l *limited) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	in, err := l.Memory.Open(ctx, name, offset, length)
	if err != nil {
		return nil, err
	}
	l.open <- <-l.open + 1
	return closing{in, l}, nil
}

// However a fetch ends, nothing stays open, and nothing runs.
func TestFetchLeavesNothingOpen(t *testing.T) {
	memory, _, _ := fetchable(t, 60)
	s := &limited{memory, make(chan int, 1)}
	s.open <- 0
	broken := errors.New("broken")
	for _, after := range []int{0, 1, 5, 300, 1_000_000} {
		n := 0
		_, err := (&Fetch{Store: s, Job: "j", Chunks: 60}).each(t.Context(), func(*Line) error {
			if n++; n > after {
				return broken
			}
			return nil
		})
		if (err == nil) != (after > 600) || err != nil && !errors.Is(err, broken) {
			t.Errorf("after %d lines: %v", after, err)
		}
		if open := <-s.open; open != 0 {
			t.Errorf("after %d lines: %d parts are open", after, open)
		}
		s.open <- 0
	}
}

// desk is a folder with what is fetched.
type desk struct {
	t              *testing.T
	output, failed string
}

func newDesk(t *testing.T) *desk {
	dir := t.TempDir()
	return &desk{t, filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "out.errors.jsonl")}
}

func (d *desk) is(output, failed string) {
	d.t.Helper()
	for path, want := range map[string]string{d.output: output, d.failed: failed} {
		got, err := os.ReadFile(path)
		if want == "-" && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || string(got) != want {
			d.t.Errorf("%s: %v, %d bytes, not %d", path, err, len(got), len(want))
		}
	}
	entries, _ := os.ReadDir(filepath.Dir(d.output))
	for _, e := range entries {
		if e.Name() != filepath.Base(d.output) && e.Name() != filepath.Base(d.failed) {
			d.t.Errorf("%s was left", e.Name())
		}
	}
}

// Files are made as a whole, and made anew when there is more; what failed and is done by now has
// moved from one to the other.
func TestFetchIntoFiles(t *testing.T) {
	s, results, failures := fetchable(t, 9)
	d := newDesk(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 12, Partial: true}
	if _, err := f.Files(t.Context(), d.output, d.failed); err != nil {
		t.Fatal(err)
	}
	d.is(results, failures)
	write(t, s, 1, 1, text(12, "", "at last"), text(18, "", "at last"))
	write(t, s, 10, 0, some(101, 10)...) // six of them results
	if _, err := f.Files(t.Context(), d.output, d.failed); err != nil {
		t.Fatal(err)
	}
	now, _ := os.ReadFile(d.output)
	if strings.Count(string(now), "at last") != 2 || strings.Count(string(now), "\n") != strings.Count(results, "\n")+2+6 {
		t.Errorf("%d lines, there were %d", strings.Count(string(now), "\n"), strings.Count(results, "\n"))
	}
	if _, err := os.Stat(d.output + ".lock"); err == nil {
		t.Error("the lock is still there")
	}
}

// An errors file that would be empty is not made.
func TestFetchWithoutFailures(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, text(1, "", "a"), text(2, "", "b"))
	d := newDesk(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 1}
	for range 2 {
		if _, err := f.Files(t.Context(), d.output, d.failed); err != nil {
			t.Fatal(err)
		}
		d.is(joined([][]byte{text(1, "", "a"), text(2, "", "b")}), "-")
	}
}

// One that has only lines that were never asked is.
func TestFetchWithSkippedLines(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, text(1, "", "a"), text(2, promptfile.CodeInvalidLine, "b"))
	d := newDesk(t)
	if _, err := (&Fetch{Store: s, Job: "j", Chunks: 1}).Files(t.Context(), d.output, d.failed); err != nil {
		t.Fatal(err)
	}
	d.is(string(text(1, "", "a")), string(text(2, promptfile.CodeInvalidLine, "b")))
}

// Where nothing has failed any more, nothing is left in the errors file.
func TestFetchWhatHasFailedNoMore(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, text(1, "", "a"), text(2, "timeout", "b"))
	d := newDesk(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 1}
	if _, err := f.Files(t.Context(), d.output, d.failed); err != nil {
		t.Fatal(err)
	}
	write(t, s, 0, 1, text(2, "", "now"))
	if _, err := f.Files(t.Context(), d.output, d.failed); err != nil {
		t.Fatal(err)
	}
	d.is(string(text(1, "", "a"))+string(text(2, "", "now")), "")
}

// What is there and is not this job's stays, to the byte.
func TestFetchSparesWhatIsThere(t *testing.T) {
	s, results, failures := fetchable(t, 4)
	lines := strings.SplitAfter(results, "\n")
	for name, c := range map[string]struct {
		output, failed string
		want           error
	}{
		"foreign":                  {"my notes\n", "-", journal.ErrForeign},
		"foreign errors":           {"-", "my notes\n", journal.ErrForeign},
		"damaged":                  {strings.Replace(results, "attempts", "attemptz", 1), "-", journal.ErrDamaged},
		"failures for results":     {failures, "-", journal.ErrOtherKind},
		"another's result":         {results + string(text(999, "", "")), "-", ErrOtherResults},
		"another answer":           {lines[0] + string(text(2, "", "another")), "-", ErrOtherResults},
		"results in another order": {lines[1] + lines[0], "-", ErrOtherResults},
		"some of them, and a torn": {lines[0] + lines[3] + lines[4][:40], "-", nil},
		"all of them":              {results, failures, nil},
		"old failures":             {lines[0], string(text(77, "timeout", "")), nil},
	} {
		d := newDesk(t)
		for path, text := range map[string]string{d.output: c.output, d.failed: c.failed} {
			if text == "-" {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := (&Fetch{Store: s, Job: "j", Chunks: 4}).Files(t.Context(), d.output, d.failed)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want == nil {
			d.is(results, failures)
		} else {
			d.is(c.output, c.failed)
		}
	}
}

// A fetch that fails leaves the files as they were.
func TestFetchThatFails(t *testing.T) {
	s, results, failures := fetchable(t, 4)
	d := newDesk(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 4}
	if _, err := f.Files(t.Context(), d.output, d.failed); err != nil {
		t.Fatal(err)
	}
	f.Chunks = 5
	if _, err := f.Files(t.Context(), d.output, d.failed); !errors.Is(err, ErrUnfinished) {
		t.Error(err)
	}
	d.is(results, failures)
	if _, err := f.Files(t.Context(), d.output, d.output); !errors.Is(err, journal.ErrSameFile) {
		t.Error(err)
	}
	if _, err := f.Files(t.Context(), d.output, d.failed, d.output); !errors.Is(err, journal.ErrSameFile) {
		t.Error(err)
	}
	d.is(results, failures)
}
