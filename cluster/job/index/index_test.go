package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
)

// seeds returns the number of worlds that a test tries: n, or SEEDS in the environment.
func seeds(n int) uint64 {
	if said, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		n = said
	}
	return uint64(n)
}

// Whatever a file holds and wherever it is cut, its chunks give line for line what one reader of
// the whole gives: numbers, ids, keys, bodies, metadata and complaints. What a run refuses is
// refused in the same words.
func TestChunksGiveWhatTheWholeGives(t *testing.T) {
	for seed := range seeds(600) {
		rng := rand.New(rand.NewPCG(seed, 9))
		faulty := max(0, rng.IntN(14)-4)
		text := someLines(rng, rng.IntN(60), faulty)
		reading := job.Reading{SkipBad: rng.IntN(3) > 0, SkipUntranslatable: rng.IntN(3) > 0}
		checkWorld(t, rng, text, []string{job.JSONL, job.Text}[rng.IntN(2)], someCut(rng), reading)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Lines whose ids others give by chance, above them and below, are bad, alike, and all the same told
// apart.
func TestLinesThatAreTakenAndAlike(t *testing.T) {
	given := func(line int) string { return fmt.Sprintf("{\"id\":%q,\"prompt\":\"given\"}\n", prompts.LineID(line)) }
	bare, refused := "{\"prompt\":\"q\"}\n", "{\"prompt\":\"refused\"}\n"
	for name, text := range map[string]string{
		"three taken":          given(5) + given(6) + given(7) + bare + bare + bare + bare + bare,
		"taken and refused":    given(4) + given(6) + refused + refused + refused + refused,
		"below":                bare + bare + given(1) + given(2) + given(2) + given(1),
		"above and below":      given(4) + bare + given(2) + bare + given(4) + given(2),
		"of no line":           given(99) + given(99) + given(2),
		"of itself":            given(1) + bare + given(3),
		"the same and refused": strings.Repeat("{\"id\":\"a\",\"prompt\":\"refused\"}\n", 3) + bare + strings.Repeat(refused, 2),
		"the same and foreign": strings.Repeat("{\"id\":\"a\",\"prompt\":\"foreign\"}\n", 3) + strings.Repeat("{\"prompt\":\"foreign\"}\n", 2),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(40) {
				rng := rand.New(rand.NewPCG(seed, 13))
				checkWorld(t, rng, []byte(text), job.JSONL, someCut(rng), job.Reading{SkipBad: seed%4 > 0, SkipUntranslatable: seed%3 > 0})
			}
		})
	}
}

func checkWorld(t testing.TB, rng *rand.Rand, text []byte, format string, cut job.Cut, reading job.Reading) {
	t.Helper()
	w := newWorld(t, cut, reading)
	if rng.IntN(2) == 0 {
		w.src.heldBytes = 1 + rng.Int64N(300)
	}
	w.input("in.jsonl", format, 0, text)
	w.create()
	refused := w.cut(rng.IntN(3))

	cfg, err := w.src.config(&w.src.Record.Inputs[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := scanned(text, cfg, reading); messageOf(refused) != want {
		t.Errorf("%q is refused:\n got %v\nwant %s", text, refused, want)
	}
	if refused != nil {
		return
	}
	chunks := w.chunks(rng)
	covers(t, text, chunks)
	bounded(t, text, chunks, w.plan.ChunkLines, &w.src.Record.Cut)
	want := whole(text, cfg)
	if diff := difference(w.read(t.Context(), chunks), want); diff != "" {
		t.Errorf("%q: %s", text, diff)
	}
	checkCounts(t, w.plan, want)
}

// checkCounts holds a plan to what a reader of the whole has counted.
func checkCounts(t testing.TB, p *Plan, want []outcome) {
	t.Helper()
	items := 0
	for _, o := range want {
		if o.Bad == "" {
			items++
		}
	}
	if p.Items != items || p.Bad+p.Untranslatable != len(want)-items {
		t.Errorf("%d items, %d bad, %d untranslatable of %d lines with %d items", p.Items, p.Bad, p.Untranslatable, len(want), items)
	}
}

// Several files are numbered as one, and each is named in complaints by its own lines. What is
// added later goes on where the rest has ended, and leaves that as it is.
func TestFilesGiveWhatOneGives(t *testing.T) {
	for seed := range seeds(250) {
		rng := rand.New(rand.NewPCG(seed, 10))
		reading := job.Reading{SkipBad: true, SkipUntranslatable: true}
		w := newWorld(t, someCut(rng), reading)
		var text []byte
		var starts []int
		var before []job.Chunk
		for added := range 1 + rng.IntN(3) {
			for range 1 + rng.IntN(3) {
				file := bytes.TrimPrefix(someLines(rng, rng.IntN(20), rng.IntN(8)), []byte("\xEF\xBB\xBF"))
				if len(file) > 0 && file[len(file)-1] != '\n' {
					file = append(file, '\n')
				}
				starts = append(starts, bytes.Count(text, []byte{'\n'}))
				text = append(text, file...)
				w.input(fmt.Sprintf("f%d", len(starts)), job.JSONL, added, inPieces(rng, file)...)
			}
			if added == 0 {
				w.create()
			}
			if err := w.cut(1); err != nil {
				t.Fatal(err)
			}
			chunks := w.chunks(rng)
			if len(chunks) < len(before) || !slices.Equal(chunks[:len(before)], before) {
				t.Fatalf("seed %d: what was added has changed the chunks before", seed)
			}
			before = chunks
		}
		w.agrees(before, text, starts)
	}
}

// inPieces cuts a file behind some of its lines that are not blank, as one that was unpacked is.
func inPieces(rng *rand.Rand, file []byte) (pieces [][]byte) {
	from, rest := 0, file
	for line := range bytes.Lines(file) {
		filled := len(bytes.Trim(line, " \t\r\n")) > 0
		if end := len(file) - len(rest) + len(line); filled && rng.IntN(4) == 0 {
			pieces, from = append(pieces, file[from:end]), end
		}
		rest = rest[len(line):]
	}
	return append(pieces, file[from:])
}

// forgetLong leaves the keys of lines away that are too long, which have their file's name in them.
func forgetLong(all []outcome) {
	for i := range all {
		if strings.Contains(all[i].Bad, "longer than") {
			all[i].Key = ""
		}
	}
}

var places = regexp.MustCompile(`used on line (\d+)`)

// placeIn makes complaints about lines of all files, one behind the other, such of the files.
func placeIn(all []outcome, starts []int) {
	file := func(line int) int { return sort.SearchInts(starts, line) - 1 }
	for i, o := range all {
		if o.Bad == "" {
			continue
		}
		line, _ := strconv.Atoi(strings.TrimPrefix(o.ID, "line-"))
		in := file(line)
		_, rest, _ := strings.Cut(o.Bad, ":")
		_, rest, _ = strings.Cut(rest, ":")
		rest = places.ReplaceAllStringFunc(rest, func(said string) string {
			by, _ := strconv.Atoi(places.FindStringSubmatch(said)[1])
			if of := file(by); of != in {
				return fmt.Sprintf("used on line %d of f%d", by-starts[of], of+1)
			}
			return fmt.Sprintf("used on line %d", by-starts[in])
		})
		all[i].Bad = fmt.Sprintf("f%d:%d:%s", in+1, line-starts[in], rest)
	}
}
