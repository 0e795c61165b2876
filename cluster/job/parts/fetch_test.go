package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
	"go.uber.org/goleak"
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

// to writes all results to one writer, and all failures to another.
func (f *Fetch) to(ctx context.Context, results, failures io.Writer) (Fetched, error) {
	return f.visitLines(ctx, func(l *Line) error {
		out := results
		if l.Failed {
			out = failures
		}
		_, err := out.Write(l.Text)
		return err
	})
}

// All lines come in the order of the input, and of each that of its last round.
func TestFetchTo(t *testing.T) {
	s, results, failures := fetchable(t, 60)
	var out, failed bytes.Buffer
	f := &Fetch{Store: s, Job: "j", Chunks: 60}
	all, err := f.to(t.Context(), &out, &failed)
	if err != nil || out.String() != results || failed.String() != failures {
		t.Fatalf("%v: %d and %d bytes, not %d and %d", err, out.Len(), failed.Len(), len(results), len(failures))
	}
	if all.Chunks != 60 || all.Lines != 600 || all.Done != strings.Count(results, "\n") || all.Failed+all.Skipped != strings.Count(failures, "\n") {
		t.Errorf("%+v", all)
	}
}

// The first failures come with the sums, in the order of the input: of the last round, and no line that was never asked.
func TestFetchNamesTheFirstFailures(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, text(1, "timeout", "first"), text(2, "timeout", "answered later"), text(3, promptfile.CodeInvalidLine, "bad"), text(4, "server", "once"))
	write(t, s, 0, 1, text(1, "timeout", "again"), text(2, "", "yes"))
	write(t, s, 1, 0, text(5, "server", "five"), text(6, "server", "six"))
	all, err := (&Fetch{Store: s, Job: "j", Chunks: 2}).to(t.Context(), io.Discard, io.Discard)
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
	if _, err := (&Fetch{Store: s, Job: "j", Chunks: 1}).to(t.Context(), io.Discard, &failed); err != nil || failed.String() != string(text(1, "timeout", "10")) {
		t.Errorf("%v: %s", err, failed.String())
	}
}

// A part that is missing is said, unless a part of all will do; one that is damaged always is.
func TestFetchWhatIsNotWhole(t *testing.T) {
	s, _, _ := fetchable(t, 60)
	for _, missing := range []int{0, 30, 59} {
		must.Do(t, s.Delete(t.Context(), job.PartName("j", missing, 0)))
		_ = s.Delete(t.Context(), job.PartName("j", missing, 1))
		f := &Fetch{Store: s, Job: "j", Chunks: 60}
		if _, err := f.to(t.Context(), io.Discard, io.Discard); !errors.Is(err, ErrUnfinished) {
			t.Errorf("without chunk %d: %v", missing, err)
		}
		f.Partial = true
		if all, err := f.to(t.Context(), io.Discard, io.Discard); err != nil || all.Chunks != 59 || all.Lines != 590 {
			t.Errorf("without chunk %d: %+v, %v", missing, all, err)
		}
		write(t, s, missing, 0, some(1+missing*10, 10)...)
	}
	must.Do(t, s.Delete(t.Context(), job.PartName("j", 20, 0)))
	put(t, s, 20, 0)
	f := &Fetch{Store: s, Job: "j", Chunks: 60, Partial: true}
	if _, err := f.to(t.Context(), io.Discard, io.Discard); !errors.Is(err, ErrDamaged) {
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
		_, err := (&Fetch{Store: s, Job: "j", Chunks: 60}).visitLines(t.Context(), func(*Line) error {
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

// fetchFixture is a folder with what is fetched.
type fetchFixture struct {
	t              *testing.T
	output, failed string
}

func newFetchFixture(t *testing.T) *fetchFixture {
	dir := t.TempDir()
	return &fetchFixture{t, filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "out.errors.jsonl")}
}

func (d *fetchFixture) is(output, failed string) {
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
	d := newFetchFixture(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 12, Partial: true}
	must.Get(f.Files(t.Context(), d.output, d.failed))(t)
	d.is(results, failures)
	write(t, s, 1, 1, text(12, "", "at last"), text(18, "", "at last"))
	write(t, s, 10, 0, some(101, 10)...) // six of them results
	must.Get(f.Files(t.Context(), d.output, d.failed))(t)
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
	d := newFetchFixture(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 1}
	for range 2 {
		must.Get(f.Files(t.Context(), d.output, d.failed))(t)
		d.is(joined([][]byte{text(1, "", "a"), text(2, "", "b")}), "-")
	}
}

// One that has only lines that were never asked is.
func TestFetchWithSkippedLines(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, text(1, "", "a"), text(2, promptfile.CodeInvalidLine, "b"))
	d := newFetchFixture(t)
	must.Get((&Fetch{Store: s, Job: "j", Chunks: 1}).Files(t.Context(), d.output, d.failed))(t)
	d.is(string(text(1, "", "a")), string(text(2, promptfile.CodeInvalidLine, "b")))
}

// Where nothing has failed any more, nothing is left in the errors file.
func TestFetchWhatHasFailedNoMore(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, text(1, "", "a"), text(2, "timeout", "b"))
	d := newFetchFixture(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 1}
	must.Get(f.Files(t.Context(), d.output, d.failed))(t)
	write(t, s, 0, 1, text(2, "", "now"))
	must.Get(f.Files(t.Context(), d.output, d.failed))(t)
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
		d := newFetchFixture(t)
		for path, text := range map[string]string{d.output: c.output, d.failed: c.failed} {
			if text == "-" {
				continue
			}
			must.Do(t, os.WriteFile(path, []byte(text), 0o600))
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
	d := newFetchFixture(t)
	f := &Fetch{Store: s, Job: "j", Chunks: 4}
	must.Get(f.Files(t.Context(), d.output, d.failed))(t)
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

func numbers(n int, last error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
		if last != nil {
			yield(0, last)
		}
	}
}

// So many are under way at a time as are to be, and what comes of them comes in order.
func TestAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var got []int
		slower := func(_ context.Context, i int) (int, error) {
			time.Sleep(time.Second + time.Duration(5-i%5)*time.Millisecond)
			return 2 * i, nil
		}
		for r, err := range inParallel(t.Context(), 4, numbers(12, nil), slower, func(int) {}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r)
		}
		if len(got) != 12 || !slices.IsSorted(got) || got[11] != 22 {
			t.Errorf("%v", got)
		}
		if took := time.Since(began); took < 3*time.Second || took >= 4*time.Second {
			t.Errorf("twelve seconds, four at a time, took %v", took)
		}
	})
}

// The first error is the last thing, wherever it comes from; what is done behind it is dropped.
func TestAheadThatFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		all  iter.Seq2[int, error]
		do   func(context.Context, int) (int, error)
		want int
	}{
		"at its work":      {numbers(10, nil), func(_ context.Context, i int) (int, error) { return i, map[bool]error{true: broken}[i == 3] }, 3},
		"in what is there": {numbers(5, broken), func(_ context.Context, i int) (int, error) { return i, nil }, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			dropped, given := 0, 0
			for _, err := range inParallel(t.Context(), 3, c.all, c.do, func(int) { dropped++ }) {
				if err == nil {
					given++
				} else if !errors.Is(err, broken) {
					t.Error(err)
				}
			}
			if given != c.want || dropped > 2 {
				t.Errorf("%s: %d given, %d dropped", name, given, dropped)
			}
		})
	}
}

// Who leaves does not wait for what would take for ever.
func TestAheadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := func(ctx context.Context, i int) (int, error) {
			if i == 0 {
				return 0, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		for range inParallel(t.Context(), 3, numbers(10, nil), waits, func(int) { t.Error("nothing was done that could be dropped") }) {
			break
		}
	})
}

// text is a line as a worker writes it into its journal: of a result, or, with a code, of a failure.
func text(line int, code, body string) []byte {
	key := prompts.Key("/v1/x", []byte(`{}`), fmt.Sprint(line))
	cost := float64(line) / 8
	l := journal.LineOf(prompts.LineID(line), journal.Headrace{
		Line: line, Key: key, Attempts: 2, Usage: journal.Usage{InputTokens: 3, OutputTokens: int64(line)}, CostUSD: &cost,
	})
	quoted, _ := json.Marshal(body)
	l.Response = &journal.Response{StatusCode: 200, Body: quoted}
	if code != "" {
		l.Response, l.Error = nil, &journal.Failure{Code: code, Message: body}
	}
	if code == promptfile.CodeInvalidLine {
		l.Headrace.CostUSD, l.Headrace.Attempts, l.Headrace.Usage = nil, 0, journal.Usage{}
	}
	return journal.AppendLine(nil, &l)
}

// journalOf gives lines as a store reads them from a journal, each in the same memory.
func journalOf(lines ...[]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var room []byte
		for _, l := range lines {
			room = append(room[:0], bytes.TrimSuffix(l, []byte("\n"))...)
			if !yield(room, nil) {
				return
			}
			for i := range room {
				room[i] = 'x'
			}
		}
	}
}

func chunkOf(n, round int) *job.Chunk { return &job.Chunk{Job: "j", Number: n, Round: round} }

// write makes a part of lines.
func write(t testing.TB, s store.Store, n, round int, lines ...[]byte) Sums {
	t.Helper()
	j := must.Get(Join(0, journalOf(lines...)))(t)
	sums := must.Get(Write(t.Context(), s, chunkOf(n, round), len(lines), j))(t)
	return sums
}

// some are lines of a chunk that has lines from one on; every third has failed, every fifth is bad.
func some(first, n int) (lines [][]byte) {
	for i := first; i < first+n; i++ {
		switch {
		case i%5 == 0:
			lines = append(lines, text(i, promptfile.CodeInvalidLine, "bad"))
		case i%3 == 0:
			lines = append(lines, text(i, "timeout", "slow"))
		default:
			lines = append(lines, text(i, "", strings.Repeat("é", i%7)))
		}
	}
	return lines
}

func shuffled(rng *rand.Rand, lines [][]byte) [][]byte {
	lines = slices.Clone(lines)
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return lines
}

func all(t testing.TB, lines iter.Seq2[[]byte, error]) string {
	t.Helper()
	var out bytes.Buffer
	for l, err := range lines {
		if err != nil {
			t.Fatal(err)
		}
		out.Write(l)
	}
	return out.String()
}

func joined(lines [][]byte) string { return string(bytes.Join(lines, nil)) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
