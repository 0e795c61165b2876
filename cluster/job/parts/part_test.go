package parts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
)

// A part has the lines of its chunk in the order of the input, and is read back as it was written:
// all of it, or its sums alone.
func TestPart(t *testing.T) {
	s := storetest.NewMemory()
	lines := some(7, 20)
	sums := write(t, s, 3, 0, shuffled(rand.New(rand.NewPCG(1, 2)), lines)...)
	want := Sums{
		Lines: 20, Done: 11, Failed: 5, Skipped: 4, Attempts: 32, Priced: 16, CostUSD: sums.CostUSD,
		Usage: sums.Usage,
	}
	if sums != want || sums.Usage.InputTokens != 48 || sums.CostUSD == 0 {
		t.Errorf("%+v", sums)
	}
	var got bytes.Buffer
	for l, err := range Read(t.Context(), s, "j", 3, 0) {
		if err != nil {
			t.Fatal(err)
		}
		got.Write(l.Text)
	}
	if got.String() != joined(lines) {
		t.Errorf("%s", got.String())
	}
	for o := range s.List(t.Context(), job.PartsFolder("j"), "") {
		read, err := sumsOf(t.Context(), s, "j", 3, 0, o.Size)
		if err != nil || read != sums || o.Name != "jobs/j/parts/000000/003" {
			t.Errorf("%s: %+v, %v", o.Name, read, err)
		}
	}
}

// Who comes second leaves the part as it is; who has not all lines makes none.
func TestPartIsWrittenOnceAndWhole(t *testing.T) {
	s := storetest.NewMemory()
	j, _ := Join(0, journalOf(some(1, 3)...))
	for _, lines := range []int{2, 4} {
		if _, err := Write(t.Context(), s, chunkOf(0, 0), lines, j); !errors.Is(err, ErrIncomplete) {
			t.Errorf("%d lines: %v", lines, err)
		}
	}
	write(t, s, 0, 0, some(1, 3)...)
	other, _ := Join(0, journalOf(text(1, "", "another"), text(2, "", "another"), text(3, "", "another")))
	if _, err := Write(t.Context(), s, chunkOf(0, 0), 3, other); !errors.Is(err, store.ErrExists) {
		t.Error(err)
	}
	for l, err := range Read(t.Context(), s, "j", 0, 0) {
		if err != nil || bytes.Contains(l.Text, []byte("another")) {
			t.Errorf("%s, %v", l.Text, err)
		}
	}
	if _, err := Write(t.Context(), s, chunkOf(1, 0), 0, &Joined{}); err != nil {
		t.Error(err) // no lines are all there are
	}
}

// raw is one object, whatever is asked for.
type raw struct {
	store.Store
	text []byte
}

func (r raw) Open(_ context.Context, _ string, offset, length int64) (io.ReadCloser, error) {
	text := r.text[min(offset, int64(len(r.text))):]
	if length >= 0 {
		text = text[:min(length, int64(len(text)))]
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

// Whatever is changed, cut off, added or left out is found out.
func TestDamagedParts(t *testing.T) {
	s := storetest.NewMemory()
	lines := some(1, 4)
	write(t, s, 3, 1, lines...)
	whole := must.Get(store.ReadAll(t.Context(), s, job.PartName("j", 3, 1), 1<<20))(t)
	check := func(what string, text []byte, good bool) {
		t.Helper()
		var fault error
		for _, err := range Read(t.Context(), raw{text: text}, "j", 3, 1) {
			fault = err
		}
		if good != (fault == nil) || !good && !errors.Is(fault, ErrDamaged) {
			t.Fatalf("%s: %v", what, fault)
		}
	}
	check("nothing", whole, true)
	for i := range whole {
		damaged := slices.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		check(fmt.Sprintf("bit %d of byte %d", i%8, i), damaged, false)
		check(fmt.Sprintf("%d bytes", i), whole[:i], false)
	}
	check("a line left out", whole[len(lines[0]):], false)
	check("a line twice", slices.Concat(lines[0], whole), false)
	check("two lines that have changed places", slices.Concat(lines[1], lines[0], whole[len(lines[0])+len(lines[1]):]), false)
	check("something behind it", append(slices.Clone(whole), '\n'), false)
	for _, err := range Read(t.Context(), raw{text: whole}, "j", 4, 1) {
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	}
	for what, err := range map[string]error{
		"round": errorOf(sumsOf(t.Context(), raw{text: whole}, "j", 3, 0, int64(len(whole)))),
		"job":   errorOf(sumsOf(t.Context(), raw{text: whole}, "k", 3, 1, int64(len(whole)))),
		"chunk": errorOf(sumsOf(t.Context(), raw{text: whole}, "j", 4, 1, int64(len(whole)))),
	} {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("the part of another %s: %v", what, err)
		}
	}
	swapped := &body{lines: inOrder(lines[1], lines[0]), footer: (&footer{Job: "j", Chunk: 3, Round: 1}).openText()}
	defer swapped.rewind()
	text, _ := io.ReadAll(swapped)
	check("two lines that were written in another order", text, false)
}

func errorOf(_ Sums, err error) error { return err }

// inOrder yields lines as a join does.
func inOrder(lines ...[]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

// What is not known of costs is counted where there could have been some.
func TestSumsOfCosts(t *testing.T) {
	cost, used := 0.5, journal.Usage{OutputTokens: 1}
	var s Sums
	for _, e := range []journal.Entry{
		{CostUSD: &cost},
		{},
		{Failed: true, Code: "timeout"},
		{Failed: true, Code: "timeout", Usage: used, Doubtful: journal.Doubtful{Calls: 1, Usage: used}},
		{Failed: true, Code: "timeout", Usage: used, CostUSD: &cost},
		{Failed: true, Code: promptfile.CodeUntranslatable},
		{Failed: true, Code: promptfile.CodeInvalidLine},
		{Simulated: true, CostUSD: &cost, Attempts: 3, Doubtful: journal.Doubtful{Calls: 2}},
	} {
		s.add(&e)
	}
	want := Sums{Lines: 8, Done: 3, Failed: 3, Skipped: 2, Simulated: 1, Attempts: 3, Usage: journal.Usage{OutputTokens: 2}, CostUSD: 1.5, Priced: 3, Unpriced: 2}
	if want.Doubtful = (journal.Doubtful{Calls: 3, Usage: used}); s != want {
		t.Errorf("%+v, not %+v", s, want)
	}
	if got := s.Plus(s).Doubtful; got != (journal.Doubtful{Calls: 6, Usage: journal.Usage{OutputTokens: 2}}) {
		t.Errorf("twice that: %+v", got)
	}
}

// A store may ask for a part again, from its beginning on.
func TestPartIsSentAgain(t *testing.T) {
	j, _ := Join(1, journalOf(some(1, 9)...))
	f := footer{Job: "j", Sums: j.Sums}
	b := &body{lines: j.All(), footer: f.openText()}
	defer b.rewind()
	want := must.Get(io.ReadAll(b))(t)
	for _, n := range []int64{0, 1, 500, int64(len(want))} {
		must.Get(b.Seek(0, io.SeekStart))(t)
		_, _ = io.CopyN(io.Discard, b, n)
		if at, err := b.Seek(0, io.SeekCurrent); at != n || err != nil {
			t.Errorf("at %d, %v, not %d", at, err, n)
		}
	}
	must.Get(b.Seek(0, io.SeekStart))(t)
	if again, err := io.ReadAll(b); err != nil || !bytes.Equal(again, want) {
		t.Errorf("%v:\n%s\n%s", err, again, want)
	}
	if _, err := b.Seek(5, io.SeekStart); err == nil {
		t.Error("it can be begun in the middle")
	}
}

// What a round tries again is what failed in the latest part before it, and no bad line.
func TestAgain(t *testing.T) {
	s := storetest.NewMemory()
	write(t, s, 0, 0, some(1, 12)...) // 3, 6, 9, 12 have failed
	keys := func(round int) (lines []int) {
		failed := must.Get(Again(t.Context(), s, chunkOf(0, round)))(t)
		for line := 1; line <= 12; line++ {
			if failed[entryOf(text(line, "", "")).Key] {
				lines = append(lines, line)
			}
		}
		if len(lines) != len(failed) {
			t.Errorf("%v", failed)
		}
		return lines
	}
	if got := keys(1); !reflect.DeepEqual(got, []int{3, 6, 9, 12}) {
		t.Error(got)
	}
	write(t, s, 0, 1, text(3, "", "now"), text(6, "timeout", ""), text(9, "", "now"), text(12, "timeout", ""))
	if got := keys(2); !reflect.DeepEqual(got, []int{6, 12}) {
		t.Error(got)
	}
	write(t, s, 0, 3, text(6, "", "now"), text(12, "", "now"))
	if got := keys(3); !reflect.DeepEqual(got, []int{6, 12}) {
		t.Errorf("round 2 has not tried it: %v", got)
	}
	if _, err := Again(t.Context(), s, chunkOf(1, 1)); !errors.Is(err, store.ErrMissing) {
		t.Error(err)
	}
}

// Whatever is in which journal, one line of each item comes out, of the first journal that has
// one, in the order of the input, however little can be held.
func TestJoin(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n := rng.IntN(20)
		var want [][]byte
		journals := make([][][]byte, 1+rng.IntN(4))
		for line := 1; line <= n; line++ {
			first := rng.IntN(len(journals))
			for i := first; i < len(journals); i++ {
				l := text(line, "", string(rune('a'+i)))
				if i == first {
					want = append(want, l)
				} else if rng.IntN(2) == 0 {
					continue
				}
				journals[i] = append(journals[i], l)
			}
		}
		var seqs []iter.Seq2[[]byte, error]
		for _, lines := range journals {
			lines = shuffled(rng, lines)
			if len(lines) > 0 && rng.IntN(2) == 0 {
				again := text(entryOf(lines[0]).Line, "timeout", "the second line of its item")
				lines = append(lines, []byte("torn"), again)
			}
			seqs = append(seqs, journalOf(lines...))
		}
		j := must.Get(Join(1+rng.Int64N(3000), seqs...))(t)
		if got := all(t, j.All()); got != joined(want) {
			t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, joined(want))
		}
		for from := range j.places {
			kept := int64(0)
			for _, p := range j.window(from) {
				kept += p.size
			}
			if n := len(j.window(from)); kept > j.hold && n > 1 {
				t.Fatalf("seed %d: %d lines of %d bytes are held, %d are the most", seed, n, kept, j.hold)
			}
		}
		if again := all(t, j.All()); again != joined(want) {
			t.Fatalf("seed %d: it cannot be read twice", seed)
		}
		if j.Lines != n || j.Done != n || j.bytes != int64(len(joined(want))) {
			t.Fatalf("seed %d: %+v of %d", seed, j.Sums, n)
		}
	}
}

// entryOf parses a line.
func entryOf(line []byte) journal.Entry {
	e, err := new(journal.Parser).Parse(line)
	if err != nil {
		panic(err)
	}
	return e
}

// A journal that cannot be read is no join, and neither are those of two inputs.
func TestJoinThatCannotBe(t *testing.T) {
	broken := errors.New("broken")
	breaks := func(yield func([]byte, error) bool) { yield(nil, broken) }
	if _, err := Join(0, journalOf(some(1, 3)...), breaks); !errors.Is(err, broken) {
		t.Error(err)
	}
	other := journal.LineOf("other", journal.Headrace{Line: 2, Key: prompts.Key("/v1/x", []byte(`{}`), "other")})
	if _, err := Join(0, journalOf(some(1, 3)...), journalOf(journal.AppendLine(nil, &other))); !errors.Is(err, ErrTwoKeys) {
		t.Error(err)
	}
	j := must.Get(Join(1, journalOf(some(1, 3)...)))(t)
	j.journals[0] = journalOf() // deleted meanwhile
	for _, err := range j.All() {
		if err == nil {
			t.Error("a line that is there no more was given")
		}
	}
}
