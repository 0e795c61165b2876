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
	w.index(rand.New(rand.NewPCG(1, 1)))
	if err := w.merge(1); err != nil {
		t.Fatal(err)
	}
	return w
}

// replace makes another object of a name.
func (w *world) replace(name string, text []byte) {
	w.t.Helper()
	if err := w.store.Delete(w.t.Context(), name); err != nil {
		w.t.Fatal(err)
	}
	if err := store.CreateBytes(w.t.Context(), w.store, name, text); err != nil {
		w.t.Fatal(err)
	}
}

// An input that is not what was submitted is found out: when it is indexed, and at each chunk.
func TestInputThatChanges(t *testing.T) {
	w := steady(t, 40)
	chunks := w.chunks(rand.New(rand.NewPCG(1, 1)))
	object := w.src.Record.Inputs[0].Objects[0].Name
	text, err := store.ReadAll(t.Context(), w.store, object, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	w.replace(object, text)
	for _, c := range chunks {
		got := w.read(t.Context(), []job.Chunk{c})
		if len(got) != 1 || !strings.Contains(got[0].Bad, store.ErrChanged.Error()) || !strings.Contains(got[0].Bad, c.String()) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	w.src.Record.Job = "other"
	if _, err := w.src.Write(t.Context(), Segments(&w.src.Record)[0], "w"); !errors.Is(err, store.ErrChanged) || !strings.Contains(err.Error(), "in:") {
		t.Error(err)
	}
	w.replace(object, text[:10])
	if _, err := w.src.Write(t.Context(), Segments(&w.src.Record)[1], "w"); !errors.Is(err, store.ErrChanged) {
		t.Error(err)
	}
}

// changesAtEnd is a store whose objects turn out to have changed once they were read to their end.
type changesAtEnd struct{ store.Store }

func (s changesAtEnd) Identity(ctx context.Context, name string) (string, int64, error) {
	return store.Identity(ctx, s.Store, name)
}

func (s changesAtEnd) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	in, err := store.OpenSame(ctx, s.Store, name, identity, offset, length)
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
		w.src.heldBytes = held
		for _, c := range chunks {
			c.Marks = "" // those do not change
			got := w.read(t.Context(), []job.Chunk{c})
			if last := got[len(got)-1]; !strings.Contains(last.Bad, store.ErrChanged.Error()) || held == 0 && len(got) > 1 {
				t.Errorf("%+v", got)
			}
		}
	}
}

// Traces are sent again from their beginning on, as often as a store asks for it.
func TestTracesAreSentAgain(t *testing.T) {
	all := make([]trace, 5)
	for i := range all {
		all[i][0] = byte(i)
	}
	r := &traceReader{all: all}
	want, err := io.ReadAll(r)
	if err != nil || len(want) != 5*traceSize || want[3*traceSize] != 3 {
		t.Fatal(len(want), err)
	}
	for _, from := range []int64{0, 1, traceSize, 50, 5 * traceSize} {
		if at, err := r.Seek(from, io.SeekStart); at != from || err != nil {
			t.Error(at, err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want[from:]) {
			t.Errorf("from %d on: %v", from, err)
		}
	}
	if at, err := r.Seek(-traceSize, io.SeekEnd); at != 4*traceSize || err != nil {
		t.Error(at, err)
	}
	if at, err := r.Seek(-5*traceSize, io.SeekCurrent); at != 4*traceSize || err == nil {
		t.Error(at, err)
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
		w.src.heldBytes = 1 - w.src.heldBytes // one or the other way to read it, by turns
		got := append(w.read(t.Context(), []job.Chunk{c}), w.read(t.Context(), []job.Chunk{bad})...)
		if last := got[len(got)-1]; !strings.HasPrefix(last.Bad, "broke: index: chunk j/2: ") {
			t.Errorf("%s: %+v", name, last)
		}
	}
}

// Who is second to index a segment leaves nothing behind, and gets what is there.
func TestTwoIndexOneSegment(t *testing.T) {
	w := steady(t, 40)
	seg := Segments(&w.src.Record)[1]
	before := w.objects()
	late := *w.src
	late.Store = &afterLook{Store: w.store}
	idx, err := late.Write(t.Context(), seg, "late")
	if err != nil || idx.Lines == 0 || len(idx.Traces) != 1 || strings.Contains(idx.Traces[0].Name, "late") {
		t.Errorf("%+v, %v", idx, err)
	}
	if after := w.objects(); after != before {
		t.Errorf("it has left something:\n%s\n%s", before, after)
	}
}

// afterLook shows an index only to who looks for it the second time.
type afterLook struct {
	store.Store
	looked bool
}

func (s *afterLook) Open(ctx context.Context, name string, offset, length int64) (in io.ReadCloser, err error) {
	if !s.looked {
		s.looked = true
		return nil, store.ErrMissing
	}
	return s.Store.Open(ctx, name, offset, length)
}

func (s *afterLook) Identity(ctx context.Context, name string) (string, int64, error) {
	return store.Identity(ctx, s.Store, name)
}

func (s *afterLook) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	return store.OpenSame(ctx, s.Store, name, identity, offset, length)
}

func (w *world) objects() string {
	var names []string
	for o := range w.store.List(w.t.Context(), "", "") {
		names = append(names, o.Name)
	}
	return strings.Join(names, "\n")
}

// Sorting in pieces leaves nothing behind, and neither does a merge that fails.
func TestMergeLeavesNothingBehind(t *testing.T) {
	w := steady(t, 60)
	w.src.marksHeld, w.src.traces = 3, 3
	before := w.objects()
	w.plan = &Plan{Job: "j"}
	if err := w.merge(1); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Split(w.objects(), "\n") {
		if !strings.Contains(before, name) && !strings.Contains(name, ".marks-k") {
			t.Errorf("%s was left", name)
		}
	}
	if err := w.store.Delete(t.Context(), indexName("j", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.src.Merge(t.Context(), &Plan{Job: "j"}, 1, "k3"); !errors.Is(err, store.ErrMissing) {
		t.Error(err)
	}
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
	w.index(rand.New(rand.NewPCG(1, 1)))
	want := `promptfile: 4 bad lines, nothing was called
b:4: custom_id "x" is already used on line 1 of a: give each line its own id
b:5: not JSON: unexpected 'x' at byte 2: fix the line or remove it
b:6: n cannot be translated for other: has no place there: remove it, or choose a provider that takes the line as it is
b:7: custom_id "y" is already used on line 3: give each line its own id`
	if refused := w.merge(1); messageOf(refused) != want || !errors.Is(w.refused.First[2], prompts.ErrUntranslatable) {
		t.Errorf("%v", refused)
	}
}

// A chunk has so many lines as the workers are many, within bounds; and a plan is read as it was saved.
func TestPlan(t *testing.T) {
	w := steady(t, 40)
	name, err := w.plan.Save(t.Context(), w.store, "k")
	if err != nil {
		t.Fatal(err)
	}
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
		w.index(rand.New(rand.NewPCG(1, 1)))
		if err := w.merge(1); err != nil {
			t.Fatal(err)
		}
		if want := (20 + lines - 1) / lines; w.plan.Chunks != want {
			t.Errorf("%d chunks of at most %d lines, want %d", w.plan.Chunks, lines, want)
		}
	}
}

// What a newer program has written is not read.
func TestNewerIndex(t *testing.T) {
	w := steady(t, 40)
	w.replace(indexName("j", 1), []byte(fmt.Sprintf(`{"format":%d,"n":1}`, job.RecordFormat+1)))
	if _, err := LoadIndex(t.Context(), w.store, "j", 1); !errors.Is(err, job.ErrNewer) {
		t.Error(err)
	}
	w.replace(indexName("j", 1), []byte(`{"format":1,"n":2}`))
	if _, err := LoadIndex(t.Context(), w.store, "j", 1); err == nil || errors.Is(err, job.ErrNewer) {
		t.Error(err)
	}
}

// Which segments have their index is listed, whatever else stands there.
func TestIndexed(t *testing.T) {
	w := steady(t, 40)
	got, err := Indexed(t.Context(), w.store, "j")
	if want := len(Segments(&w.src.Record)); err != nil || len(got) != want || got[0] != 0 || got[want-1] != want-1 {
		t.Errorf("%v, %v, of %d", got, err, want)
	}
}

// A segment or a chunk of an input that was added after the record was read is an error, and no worker dies of it.
func TestRecordIsOlderThanAnInput(t *testing.T) {
	w := steady(t, 20)
	for _, st := range []Stretch{{Input: 1, Bytes: 5}, {Piece: 1, Bytes: 5}, {Input: -1, Bytes: 5}, {Piece: -1, Bytes: 5}} {
		want := fmt.Sprintf("version 0 of the job's record names no object %d of input %d", st.Piece, st.Input)
		_, err := w.src.Write(t.Context(), Segment{Job: "j", Number: 99, Stretches: []Stretch{st}}, "w")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("segment of %+v: %v", st, err)
		}
		for _, err = range w.src.Read(t.Context(), &job.Chunk{Job: "j", Input: st.Input, Piece: st.Piece, Lines: 1, Bytes: 5}) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("chunk of %+v: %v", st, err)
			}
		}
	}
}
