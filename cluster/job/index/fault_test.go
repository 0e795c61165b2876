package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
)

// steady is a job of some good lines, indexed and merged.
func steady(t *testing.T, lines int) *world {
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "{\"prompt\":\"q%d\"}\n", i%7)
	}
	w := newWorld(t, job.Cut{SegmentBytes: 100, StepLines: 2, ChunkLines: 5}, job.Reading{})
	w.input("in", job.JSONL, 0, text.Bytes())
	w.create()
	must.Do(t, w.cut(1))
	return w
}

// replace makes another object of a name.
func (w *world) replace(name string, text []byte) {
	w.t.Helper()
	must.Do(w.t, w.store.Delete(w.t.Context(), name))
	must.Do(w.t, store.CreateBytes(w.t.Context(), w.store, name, text))
}

// A changed input is detected: when it is indexed, and at each chunk.
func TestInputThatChanges(t *testing.T) {
	w := steady(t, 40)
	chunks := w.chunks(rand.New(rand.NewPCG(1, 1)))
	object := w.src.Record.Inputs[0].Objects[0].Name
	text := must.Get(store.ReadAll(t.Context(), w.store, object, 1<<20))(t)
	w.replace(object, text)
	for _, c := range chunks {
		got := w.read(t.Context(), []job.Chunk{c})
		if len(got) != 1 || !strings.Contains(got[0].Bad, store.ErrChanged.Error()) || !strings.Contains(got[0].Bad, c.String()) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	w.src.Record.Plan = ""
	for _, size := range []int{len(text), 10} {
		w.replace(object, text[:size])
		if _, err := w.src.Plan(t.Context(), 1, "w"); !errors.Is(err, store.ErrChanged) || !strings.Contains(err.Error(), "in") {
			t.Error(err)
		}
	}
}

// changesAtEnd is a store whose objects turn out to have changed once they were read to their end.
type changesAtEnd struct{ store.Store }

func (s changesAtEnd) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	in, err := s.Store.OpenSame(ctx, name, identity, offset, length)
	return atEnd{in}, err
}

type atEnd struct{ io.ReadCloser }

func (r atEnd) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		err = store.ErrChanged
	}
	return n, err
}

// That an input has changed may be known only at the end of what is read of it.
func TestInputThatChangesWhileItIsRead(t *testing.T) {
	w := steady(t, 40)
	chunks := w.chunks(rand.New(rand.NewPCG(1, 1)))
	w.src.Store = changesAtEnd{w.store}
	for _, held := range []int64{0, 1} {
		w.src.bufferedBytes = held
		for _, c := range chunks {
			c.Marks = "" // those do not change
			got := w.read(t.Context(), []job.Chunk{c})
			if last := got[len(got)-1]; !strings.Contains(last.Bad, store.ErrChanged.Error()) || held == 0 && len(got) > 1 {
				t.Errorf("%+v", got)
			}
		}
	}
}

// Where no line was refused, nobody is asked once more whether the lines can be asked.
func TestTakesIsAskedWhereItMatters(t *testing.T) {
	w := steady(t, 40)
	asked := 0
	w.src.Takes = func(*prompts.Request) error { asked++; return nil }
	chunks := w.chunks(rand.New(rand.NewPCG(1, 1)))
	w.read(t.Context(), chunks)
	if asked > 0 {
		t.Errorf("it was asked %d times", asked)
	}
	chunks[0].Refused = true
	if w.read(t.Context(), chunks); asked != 4 {
		t.Errorf("it was asked %d times of four lines", asked)
	}
}

// A chunk that is not where its index says it is, is as bad as an input that has changed.
func TestChunkThatIsElsewhere(t *testing.T) {
	w := steady(t, 40)
	c := w.chunks(rand.New(rand.NewPCG(1, 1)))[2]
	for name, change := range map[string]func(*job.Chunk){
		"shorter":     func(c *job.Chunk) { c.Bytes -= 16 },
		"longer":      func(c *job.Chunk) { c.Bytes += 16 },
		"at the end":  func(c *job.Chunk) { c.Offset = w.src.Record.Inputs[0].Objects[0].Bytes - 5 },
		"other lines": func(c *job.Chunk) { c.Lines++ },
		"other input": func(c *job.Chunk) { c.Input = 1 },
		"other piece": func(c *job.Chunk) { c.Piece = 1 },
		"no marks":    func(c *job.Chunk) { c.Marks = "jobs/j/index/nowhere" },
		"half a mark": func(c *job.Chunk) { c.MarksBytes-- },
	} {
		bad := c
		change(&bad)
		w.src.bufferedBytes = 1 - w.src.bufferedBytes // one or the other way to read it, by turns
		got := append(w.read(t.Context(), []job.Chunk{c}), w.read(t.Context(), []job.Chunk{bad})...)
		if last := got[len(got)-1]; !strings.HasPrefix(last.Bad, "broke: index: chunk j/2: ") {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// Who fails or refuses leaves nothing behind.
func TestAPassThatFailsLeavesNothingBehind(t *testing.T) {
	w := steady(t, 60)
	before := w.objects()
	w.src.Record.Plan = ""
	w.input("bad", job.JSONL, 0, []byte("{x\n"))
	inputs := w.objects()
	if err := w.cut(1); err == nil {
		t.Error("a bad line is taken")
	}
	w.src.Store = changesAtEnd{w.store}
	if _, err := w.src.Plan(t.Context(), 1, "k9"); err == nil {
		t.Error("an input that has changed is taken")
	}
	if after := w.objects(); after != inputs || after == before {
		t.Errorf("something was left:\n%s\n%s", inputs, after)
	}
}

func (w *world) objects() string {
	var names []string
	for o := range w.store.List(w.t.Context(), "", "") {
		names = append(names, o.Name)
	}
	return strings.Join(names, "\n")
}

// Where many ids are given, complaints name the line of those that a reader of the whole remembers.
func TestFirstIDsAreNamed(t *testing.T) {
	var text bytes.Buffer
	const ids = 2*prompts.NamedIDs + 500
	for i := range ids {
		if i%9 == 0 {
			text.WriteString("{\"prompt\":\"without\"}\n")
		}
		fmt.Fprintf(&text, "{\"id\":\"%x\",\"prompt\":\"q\"}\n", i*2654435761%(1<<32))
	}
	for _, i := range []int{0, 100, prompts.NamedIDs - 1, prompts.NamedIDs, prompts.NamedIDs + 1, ids - 1} {
		fmt.Fprintf(&text, "{\"id\":\"%x\",\"prompt\":\"again\"}\n", i*2654435761%(1<<32))
	}
	lines := func() int { return bytes.Count(text.Bytes(), []byte("\n")) }
	bare := 10*(lines()/10-1) + 1 // of ten lines the first gives no id
	fmt.Fprintf(&text, "{\"id\":\"%s\",\"prompt\":\"the id of a line without\"}\n", prompts.LineID(bare))
	fmt.Fprintf(&text, "{\"id\":\"%s\",\"prompt\":\"the id of a line that comes\"}\n", prompts.LineID(lines()+2))
	text.WriteString("{\"prompt\":\"it\"}\n")
	rng := rand.New(rand.NewPCG(1, 1))
	checkWorld(t, rng, text.Bytes(), job.JSONL, job.Cut{SegmentBytes: 50_000}, job.Reading{SkipBad: true})
	checkWorld(t, rng, text.Bytes(), job.JSONL, job.Cut{SegmentBytes: 50_000}, job.Reading{})
}

// Where lines of several files are refused, each is named by its file, and so is the one that it is like.
func TestRefusedLinesOfSeveralFiles(t *testing.T) {
	w := newWorld(t, job.Cut{SegmentBytes: 30}, job.Reading{})
	w.input("a", job.JSONL, 0, []byte("{\"id\":\"x\",\"prompt\":\"1\"}\n{\"prompt\":\"2\"}\n"))
	w.input("b", job.JSONL, 0, []byte("\n\n{\"id\":\"y\",\"prompt\":\"1\"}\n{\"id\":\"x\",\"prompt\":\"3\"}\n{x\n{\"prompt\":\"foreign\"}\n{\"id\":\"y\",\"prompt\":\"4\"}\n"))
	w.create()
	want := `promptfile: 4 bad lines, nothing was called
b:4: custom_id "x" is already used on line 1 of a: give each line its own id
b:5: not JSON: unexpected 'x' at byte 2: fix the line or remove it
b:6: n cannot be translated for other: has no place there: remove it, or choose a provider that takes the line as it is
b:7: custom_id "y" is already used on line 3: give each line its own id`
	if refused := w.cut(1); messageOf(refused) != want || !errors.Is(w.refused.First[2], prompts.ErrUntranslatable) {
		t.Errorf("%v", refused)
	}
}

// A chunk has so many lines as the workers are many, within bounds; and a plan is read as it was saved.
func TestPlan(t *testing.T) {
	w := steady(t, 40)
	name := must.Get(w.plan.Save(t.Context(), w.store, "k"))(t)
	w.src.Record.Plan = name
	again, err := LoadPlan(t.Context(), w.store, &w.src.Record)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(w.plan) {
		t.Errorf("%v, %v, not %v", again, err, w.plan)
	}
	for _, c := range []struct{ lines, workers, want int }{{0, 0, 50}, {7_999, 1, 999}, {8_000_000, 1, 1000}, {160_000, 200, 100}, {1000, 200, 50}} {
		if got := (job.Cut{ChunkLines: 1000}).ChunkSize(c.lines, c.workers); got != c.want {
			t.Errorf("%d lines, %d workers: %d, not %d", c.lines, c.workers, got, c.want)
		}
	}
	cursor := NewChunks(w.store, &w.src.Record, w.plan)
	for _, n := range []int{-1, cursor.Len()} {
		if _, err := cursor.At(t.Context(), n); err == nil {
			t.Errorf("there is a chunk %d", n)
		}
	}
}

// A chunk has no more lines than its job's user asked for, down to one.
func TestFewLinesAChunk(t *testing.T) {
	for _, lines := range []int{1, 3} {
		var text bytes.Buffer
		for i := range 20 {
			fmt.Fprintf(&text, "{\"prompt\":\"q%d\"}\n", i)
		}
		w := newWorld(t, job.Cut{ChunkLines: lines}, job.Reading{})
		w.input("in", job.JSONL, 0, text.Bytes())
		w.create()
		must.Do(t, w.cut(1))
		if want := (20 + lines - 1) / lines; w.plan.Chunks != want {
			t.Errorf("%d chunks of at most %d lines, want %d", w.plan.Chunks, lines, want)
		}
	}
}

// What a newer program has written is not read.
func TestNewerIndex(t *testing.T) {
	w := steady(t, 40)
	for text, newer := range map[string]bool{fmt.Sprintf(`{"format":%d,"n":1}`, Format+1): true, `{"format":1,"n":2}`: false} {
		w.replace(w.plan.Segments[1].Index, []byte(text))
		if _, err := w.plan.loadIndex(t.Context(), w.store, 1); err == nil || errors.Is(err, job.ErrNewer) != newer {
			t.Error(err)
		}
	}
	w.replace(w.src.Record.Plan, []byte(fmt.Sprintf(`{"format":%d}`, Format+1)))
	if _, err := w.src.Plan(t.Context(), 1, "k2"); !errors.Is(err, job.ErrNewer) {
		t.Error(err)
	}
}

// A chunk of an input that was added after the record was read is an error, and no worker dies of it.
func TestRecordIsOlderThanAnInput(t *testing.T) {
	w := steady(t, 20)
	for _, c := range []job.Chunk{{Input: 1}, {Piece: 1}, {Input: -1}, {Piece: -1}} {
		c.Job, c.Lines, c.Bytes = "j", 1, 5
		want := fmt.Sprintf("version 0 of the job's record names no object %d of input %d", c.Piece, c.Input)
		for _, err := range w.src.Read(t.Context(), &c) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("chunk of %+v: %v", c, err)
			}
		}
	}
}
