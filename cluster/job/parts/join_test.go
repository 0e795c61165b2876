package parts

import (
	"errors"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
)

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
		j, err := Join(1+rng.Int64N(3000), seqs...)
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, j.All()); got != joined(want) {
			t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, joined(want))
		}
		for from := range j.places {
			held := int64(0)
			for _, p := range j.window(from) {
				held += p.size
			}
			if n := len(j.window(from)); held > j.hold && n > 1 {
				t.Fatalf("seed %d: %d lines of %d bytes are held, %d are the most", seed, n, held, j.hold)
			}
		}
		if again := all(t, j.All()); again != joined(want) {
			t.Fatalf("seed %d: it cannot be read twice", seed)
		}
		if j.Lines != n || j.Done != n || j.Bytes() != int64(len(joined(want))) || j.Has(n+1) || n > 0 && !j.Has(n) {
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
	j, err := Join(1, journalOf(some(1, 3)...))
	if err != nil {
		t.Fatal(err)
	}
	j.journals[0] = journalOf() // deleted meanwhile
	for _, err := range j.All() {
		if err == nil {
			t.Error("a line that is there no more was given")
		}
	}
}
