package index

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

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
	if err := json.Unmarshal(text, &old); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, job.Cut{}, job.Reading{})
	for name, object := range old.Objects {
		if err := store.CreateBytes(t.Context(), w.store, name, object); err != nil {
			t.Fatal(err)
		}
	}
	if w.src.Record, err = job.Load(t.Context(), w.store, "j"); err != nil {
		t.Fatal(err)
	}
	var whole []byte
	for i := range w.src.Record.Inputs {
		in := &w.src.Record.Inputs[i].Objects[0]
		if in.Identity, _, err = store.Identity(t.Context(), w.store, in.Name); err != nil {
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
	if err := w.cut(1); err != nil {
		t.Fatal(err)
	}
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
	cfg, err := w.src.config(&w.src.Record.Inputs[0])
	if err != nil {
		w.t.Fatal(err)
	}
	want, got := whole(text, cfg), w.read(w.t.Context(), chunks)
	placeIn(want, starts)
	forgetLong(want)
	forgetLong(got)
	if diff := difference(got, want); diff != "" {
		w.t.Fatalf("%q, files behind lines %v: %s", text, starts, diff)
	}
	checkCounts(w.t, w.plan, want)
}
