package index

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

func gzipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// look adds a file as who submits a job does.
func (w *world) look(name, format string, limit int, text []byte) error {
	w.t.Helper()
	if err := store.CreateBytes(w.t.Context(), w.store, "in/"+name, text); err != nil {
		w.t.Fatal(err)
	}
	w.tries++
	in, err := w.src.Look(w.t.Context(), File{Name: name, Format: format, Object: "in/" + name, Limit: limit}, fmt.Sprintf("s%d", w.tries))
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
	looked := w.look("in", format, limit, file)
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
	err := w.look("in.csv", job.CSV, 0, []byte("a,b\n1,2\n"))
	if !errors.Is(err, prompts.ErrHeader) || !strings.Contains(err.Error(), "in.csv:1: the header cannot be used: no column is named prompt") {
		t.Error(err)
	}
	if err := w.look("empty.csv", job.CSV, 0, nil); err != nil {
		t.Error(err)
	}
	if err := w.look("cut.gz", job.JSONL, 0, gzipped(t, someLines(rand.New(rand.NewPCG(1, 1)), 50, 0))[:100]); !errors.Is(err, prompts.ErrPacked) {
		t.Error(err)
	}
	if _, err := w.src.Look(t.Context(), File{Name: "x", Object: "nowhere", Format: job.JSONL}, "s"); !errors.Is(err, store.ErrMissing) {
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
	err := w.look("in.gz", job.JSONL, 0, gzipped(t, bytes.Repeat([]byte("long "), 35_000_000)))
	if !errors.Is(err, ErrLongLine) {
		t.Error(err)
	}
}
