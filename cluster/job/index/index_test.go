package index

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
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
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
	"go.uber.org/goleak"
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
		w.src.bufferedBytes = 1 + rng.Int64N(300)
	}
	w.input("in.jsonl", format, 0, text)
	w.create()
	refused := w.cut(rng.IntN(3))

	cfg := must.Get(w.src.config(&w.src.Record.Inputs[0]))(t)
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
			must.Do(t, w.cut(1))
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

// BenchmarkIndex: what an input of 20,000 prompts is read through and cut with, a line.
func BenchmarkIndex(b *testing.B) {
	const lines = 20_000
	for name, format := range map[string]string{
		"ids":    "{\"custom_id\":\"item-%09d\",\"prompt\":\"Which rivers does it cross on its way down, and where are they?\"}\n",
		"no ids": "{\"prompt\":\"Which rivers does %09d cross on its way down to the sea, and where are they met?\"}\n",
	} {
		var text bytes.Buffer
		for i := range lines {
			fmt.Fprintf(&text, format, i)
		}
		w := newWorld(b, job.Cut{}, job.Reading{})
		w.input("in", job.JSONL, 0, text.Bytes())
		w.create()
		tries := 0
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()) / lines)
			b.ReportAllocs()
			for n := 0; n < b.N; n += lines {
				tries++
				must.Get(w.src.Plan(b.Context(), 1, fmt.Sprint(tries)))(b)
			}
		})
	}
}

// FuzzChunks: whatever a file holds and wherever it is cut, its chunks give what the whole gives.
func FuzzChunks(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 9))
		f.Add(someLines(rng, 12, int(seed)), seed, seed%2 == 0, seed%3 == 0, seed%4 == 0)
	}
	f.Add([]byte("{\"prompt\":\"a\"}\r\n\n{\"id\":\"line-000001\",\"prompt\":\"\"}"), uint64(3), true, true, false)
	f.Add([]byte("\n\n\n"), uint64(4), false, false, false)
	f.Fuzz(func(t *testing.T, text []byte, seed uint64, skipBad, skipUntranslatable, plain bool) {
		if prompts.Packed(text) != "" || len(text) > 10_000 {
			t.Skip() // it would not be read as it is; a long one takes long
		}
		format := job.JSONL
		if plain {
			format = job.Text
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		checkWorld(t, rng, bytes.Clone(text), format, someCut(rng), job.Reading{SkipBad: skipBad, SkipUntranslatable: skipUntranslatable})
	})
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A job that an older program has cut has the chunks that it had, and they give what one reader of the whole gives.
// What is added to it is cut behind them.
func TestAJobOfFormat1GoesOn(t *testing.T) {
	text, err := os.ReadFile("testdata/format1.json")
	if err != nil {
		t.Fatal(err)
	}
	var old struct {
		Objects map[string][]byte `json:"objects"`
		Chunks  []job.Chunk       `json:"chunks"`
	}
	must.Do(t, json.Unmarshal(text, &old))
	w := newWorld(t, job.Cut{}, job.Reading{})
	for name, object := range old.Objects {
		must.Do(t, store.CreateBytes(t.Context(), w.store, name, object))
	}
	if w.src.Record, err = job.Load(t.Context(), w.store, "j"); err != nil {
		t.Fatal(err)
	}
	var whole []byte
	for i := range w.src.Record.Inputs {
		in := &w.src.Record.Inputs[i].Objects[0]
		if in.Identity, _, err = w.store.Identity(t.Context(), in.Name); err != nil {
			t.Fatal(err)
		}
		whole = append(whole, withoutMark(old.Objects[in.Name])...)
	}
	if w.plan, err = LoadPlan(t.Context(), w.store, &w.src.Record); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	chunks := w.chunks(rng)
	if !slices.Equal(chunks, old.Chunks) {
		t.Errorf("the chunks were %+v, and are %+v", old.Chunks, chunks)
	}
	starts := []int{0, bytes.Count(old.Objects["in/f1-0"], []byte("\n"))}
	w.agrees(chunks, whole, starts)

	added := someLines(rng, 30, 3)
	w.input("f3", job.JSONL, 1, added)
	must.Do(t, w.cut(1))
	starts = append(starts, bytes.Count(whole, []byte("\n")))
	chunks = w.chunks(rng)
	if before := len(old.Chunks); len(chunks) <= before || !slices.Equal(chunks[:before], old.Chunks) {
		t.Errorf("the chunks were %+v, and are %+v", old.Chunks, chunks)
	}
	w.agrees(chunks, append(whole, withoutMark(added)...), starts)
}

func withoutMark(file []byte) []byte { return bytes.TrimPrefix(file, []byte("\xEF\xBB\xBF")) }

// agrees holds chunks to what one reader of all files gives, which begin behind so many lines.
func (w *world) agrees(chunks []job.Chunk, text []byte, starts []int) {
	w.t.Helper()
	cfg := must.Get(w.src.config(&w.src.Record.Inputs[0]))(w.t)
	want, got := whole(text, cfg), w.read(w.t.Context(), chunks)
	placeIn(want, starts)
	forgetLong(want)
	forgetLong(got)
	if diff := difference(got, want); diff != "" {
		w.t.Fatalf("%q, files behind lines %v: %s", text, starts, diff)
	}
	checkCounts(w.t, w.plan, want)
}

func gzipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	must.Get(w.Write(text))(t)
	must.Do(t, w.Close())
	return packed.Bytes()
}

// inspect adds a file as who submits a job does.
func (w *world) inspect(name, format string, limit int, text []byte) error {
	w.t.Helper()
	must.Do(w.t, store.CreateBytes(w.t.Context(), w.store, "in/"+name, text))
	w.tries++
	in, err := w.src.Inspect(w.t.Context(), File{Name: name, Format: format, Object: "in/" + name, Limit: limit}, fmt.Sprintf("s%d", w.tries))
	if err == nil {
		w.src.Record.Inputs = append(w.src.Record.Inputs, in)
	}
	return err
}

// someRows are a CSV some of whose rows have several lines, and some of which are bad.
func someRows(rng *rand.Rand, n, faulty int) []byte {
	var text bytes.Buffer
	text.WriteString([]string{"", "\xEF\xBB\xBF", "\n\n"}[rng.IntN(3)])
	feed := []string{"\n", "\r\n"}[rng.IntN(2)]
	text.WriteString([]string{"id,prompt,topic", "prompt,id,topic"}[rng.IntN(2)] + feed)
	for range n {
		switch kind := rng.IntN(6); {
		case rng.IntN(10) < faulty:
			text.WriteString([]string{"a,b", "\"x\"y,z,w", "same,q,\"t\nu\""}[rng.IntN(3)])
		case kind == 0:
			fmt.Fprintf(&text, ",\"q%d\ntwo, three\n\",", rng.IntN(2))
		case kind == 1:
			text.WriteString(feed)
		default:
			fmt.Fprintf(&text, "%d,%d,é", rng.Uint32(), rng.Uint32())
		}
		text.WriteString(feed)
	}
	if rng.IntN(5) == 0 {
		text.WriteString("a,\"never closed\nb,c,d\n")
	}
	return text.Bytes()
}

// A CSV is cut behind any of its rows, packed or not: what its chunks give is what the whole gives.
func TestChunksOfCSV(t *testing.T) {
	for seed := range seeds(250) {
		rng := rand.New(rand.NewPCG(seed, 11))
		text := someRows(rng, rng.IntN(30), max(0, rng.IntN(9)-4))
		checkFile(t, rng, seed, job.CSV, text)
	}
}

// A file that is packed gives what it holds, wherever it is cut.
func TestChunksOfPackedFiles(t *testing.T) {
	for seed := range seeds(120) {
		rng := rand.New(rand.NewPCG(seed, 12))
		checkFile(t, rng, seed, job.JSONL, someLines(rng, 1+rng.IntN(40), max(0, rng.IntN(9)-4)))
	}
}

// checkFile submits a file, perhaps packed, perhaps its first items alone.
func checkFile(t *testing.T, rng *rand.Rand, seed uint64, format string, text []byte) {
	t.Helper()
	reading := job.Reading{SkipBad: rng.IntN(3) > 0, SkipUntranslatable: true}
	w := newWorld(t, someCut(rng), reading)
	w.src.pieceBytes = 1 + rng.Int64N(500)
	w.src.Record.Job, w.src.Record.Cut = "j", job.Cut{}
	file, limit := text, 0
	if rng.IntN(2) == 0 {
		file = gzipped(t, text)
	}
	if rng.IntN(3) == 0 {
		limit = 1 + rng.IntN(20)
	}
	looked := w.inspect("in", format, limit, file)
	w.src.Record.Cut = someCut(rng)
	w.create()
	in := job.Input{Name: "in", Format: format}
	cfg, _ := w.src.config(&in)
	cfg.Limit = limit
	want := whole(text, cfg)
	if looked != nil {
		if !errors.Is(looked, prompts.ErrHeader) || len(want) != 1 || !strings.Contains(looked.Error(), strings.TrimPrefix(want[0].Bad, "broke: ")) {
			t.Fatalf("seed %d, %q: %v, not %v", seed, text, looked, want)
		}
		return
	}
	refused := w.cut(1)
	if said := scanned(text, cfg, reading); messageOf(refused) != said {
		t.Fatalf("seed %d: %q is refused:\n got %v\nwant %s", seed, text, refused, said)
	}
	if refused != nil {
		return
	}
	chunks := w.chunks(rng)
	if diff := difference(w.read(t.Context(), chunks), want); diff != "" {
		t.Fatalf("seed %d, limit %d, %q: %s", seed, limit, text, diff)
	}
	checkCounts(t, w.plan, want)
}

// A header that cannot be used is said at once, in the words of a run.
func TestHeaderThatCannotBeUsed(t *testing.T) {
	w := newWorld(t, job.Cut{}, job.Reading{})
	w.src.Record.Job = "j"
	err := w.inspect("in.csv", job.CSV, 0, []byte("a,b\n1,2\n"))
	if !errors.Is(err, prompts.ErrHeader) || !strings.Contains(err.Error(), "in.csv:1: the header cannot be used: no column is named prompt") {
		t.Error(err)
	}
	if err := w.inspect("empty.csv", job.CSV, 0, nil); err != nil {
		t.Error(err)
	}
	if err := w.inspect("cut.gz", job.JSONL, 0, gzipped(t, someLines(rand.New(rand.NewPCG(1, 1)), 50, 0))[:100]); !errors.Is(err, prompts.ErrPacked) {
		t.Error(err)
	}
	if _, err := w.src.Inspect(t.Context(), File{Name: "x", Object: "nowhere", Format: job.JSONL}, "s"); !errors.Is(err, store.ErrMissing) {
		t.Error(err)
	}
}

// A line that is too long to be held is said, and not held.
func TestPackedLineWithoutEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("it unpacks 150 MB")
	}
	w := newWorld(t, job.Cut{}, job.Reading{})
	w.src.Record.Job, w.src.Record.Reading.MaxLine = "j", 0
	err := w.inspect("in.gz", job.JSONL, 0, gzipped(t, bytes.Repeat([]byte("long "), 35_000_000)))
	if !errors.Is(err, ErrLongLine) {
		t.Error(err)
	}
}
