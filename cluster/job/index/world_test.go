package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// outcome is all that is said of a line.
type outcome struct {
	Req prompts.Request
	Bad string
	Key string // of a bad line
	ID  string // and the id by which an errors file has it
}

func outcomeOf(req prompts.Request, err error) outcome {
	var bad *prompts.LineError
	switch {
	case errors.As(err, &bad):
		return outcome{Bad: bad.Error(), Key: bad.Key(), ID: prompts.LineID(bad.Line)}
	case err != nil:
		return outcome{Bad: "broke: " + err.Error()}
	}
	return outcome{Req: req}
}

// whole returns the outcomes of one reader of the whole text.
func whole(text []byte, cfg prompts.Config) (all []outcome) {
	for req, err := range prompts.NewReader(bytes.NewReader(text), cfg).All() {
		all = append(all, outcomeOf(req, err))
	}
	return all
}

// takesSome is a provider that cannot be asked everything.
func takesSome(r *prompts.Request) error {
	switch {
	case bytes.Contains(r.Body, []byte("refused")):
		return errors.New("not this one")
	case bytes.Contains(r.Body, []byte("foreign")):
		return &provider.Untranslatable{Field: "n", Dialect: "other", Why: "has no place there"}
	}
	return nil
}

// someLines are prompt lines of which many are alike, or take each other's ids. faulty says how
// many of them are bad, from 0 to 10.
func someLines(rng *rand.Rand, n, faulty int) []byte {
	good := []func() string{
		func() string { return fmt.Sprintf(`{"prompt":"q%d"}`, rng.IntN(3)) },
		func() string { return fmt.Sprintf(`{"prompt" : "q%d"}`, rng.IntN(3)) },
		func() string { return fmt.Sprintf(`{"id":"%x","prompt":"é☃%d"}`, rng.Uint64(), rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"custom_id":"%x","body":{"messages":[]}}`, rng.Uint64()) },
		func() string {
			return fmt.Sprintf(`{"messages":[{"role":"user","content":"%d"}],"metadata":{"n":%d}}`, rng.IntN(2), rng.IntN(2))
		},
		func() string { return `{"prompt":"` + strings.Repeat("long ", 10+rng.IntN(20)) + `"}` },
		func() string { return "" },
		func() string { return " \t" },
	}
	bad := []func() string{
		func() string { return fmt.Sprintf(`{"id":"i%d","prompt":"q%d"}`, rng.IntN(4), rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"id":"line-%06d","prompt":"q"}`, 1+rng.IntN(n+3)) },
		func() string { return fmt.Sprintf(`{x%d`, rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"prompt":"refused","n":%d}`, rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"id":"r%d","prompt":"refused"}`, rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"prompt":"foreign","n":%d}`, rng.IntN(2)) },
		func() string { return fmt.Sprintf(`{"id":"f%d","prompt":"foreign"}`, rng.IntN(2)) },
		func() string { return `{"prompt":"` + strings.Repeat("too long ", 30) + `"}` },
		func() string { return "\xff" },
	}
	var text bytes.Buffer
	if rng.IntN(3) == 0 {
		text.WriteString("\xEF\xBB\xBF")
	}
	for i := range n {
		kinds := good
		if rng.IntN(10) < faulty {
			kinds = bad
		}
		text.WriteString(kinds[rng.IntN(len(kinds))]())
		if i < n-1 || rng.IntN(2) == 0 {
			text.WriteString([]string{"\n", "\r\n"}[rng.IntN(2)])
		}
	}
	return text.Bytes()
}

// world is a job in a store of its own.
type world struct {
	t     testing.TB
	store *storetest.Memory
	src   *Source
	plan  *Plan
	tries int

	refused *promptfile.BadLines // of the last cut
}

const maxLine = 200

func newWorld(t testing.TB, cut job.Cut, reading job.Reading) *world {
	w := &world{t: t, store: storetest.NewMemory()}
	reading.Model, reading.MaxLine = "m", maxLine
	w.src = &Source{Store: w.store, Takes: takesSome}
	w.src.Record = job.Record{Job: "j", Cut: cut, Reading: reading}
	return w
}

// create makes the record, which fills in defaults.
func (w *world) create() {
	w.t.Helper()
	r := must.Get(job.Create(w.t.Context(), w.store, w.src.Record))(w.t)
	w.src.Record = r
}

// input adds a file that consists of these objects.
func (w *world) input(name, format string, added int, pieces ...[]byte) {
	w.t.Helper()
	in := job.Input{Name: name, Format: format, Added: added}
	for i, text := range pieces {
		object := fmt.Sprintf("in/%s-%d", name, i)
		must.Do(w.t, store.CreateBytes(w.t.Context(), w.store, object, text))
		identity, size, err := w.store.Identity(w.t.Context(), object)
		if err != nil {
			w.t.Fatal(err)
		}
		in.Objects = append(in.Objects, job.Object{Name: object, Identity: identity, Bytes: size})
	}
	w.src.Record.Inputs = append(w.src.Record.Inputs, in)
}

// cut makes the plan, and says what is refused.
func (w *world) cut(workers int) error {
	w.t.Helper()
	w.tries++
	plan, err := w.src.Plan(w.t.Context(), workers, fmt.Sprintf("k%d", w.tries))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.refused = plan.Refused(); w.refused != nil {
		return w.refused
	}
	if w.src.Record.Plan, err = plan.Save(w.t.Context(), w.store, fmt.Sprintf("k%d", w.tries)); err != nil {
		w.t.Fatal(err)
	}
	w.plan = plan
	return nil
}

// chunks are all there are, found one by one in any order.
func (w *world) chunks(rng *rand.Rand) []job.Chunk {
	w.t.Helper()
	cursor := NewChunks(w.store, &w.src.Record, w.plan)
	var all []job.Chunk
	for n := range cursor.Len() {
		c := must.Get(cursor.At(w.t.Context(), n))(w.t)
		all = append(all, c)
	}
	for range min(len(all), 20) {
		n := rng.IntN(len(all))
		if c, err := cursor.At(w.t.Context(), n); err != nil || !reflect.DeepEqual(c, all[n]) {
			w.t.Fatalf("chunk %d: %+v, %v, not %+v", n, c, err, all[n])
		}
	}
	return all
}

func (w *world) read(ctx context.Context, chunks []job.Chunk) (all []outcome) {
	for _, c := range chunks {
		for req, err := range w.src.Read(ctx, &c) {
			all = append(all, outcomeOf(req, err))
		}
	}
	return all
}

func difference(got, want []outcome) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("only %d, then %+v", len(got), want[i])
		case i >= len(want):
			return fmt.Sprintf("%d too many: %+v", len(got)-len(want), got[i])
		case !reflect.DeepEqual(got[i], want[i]):
			return fmt.Sprintf("%d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
	return ""
}

// scanned returns the reason why a run makes no call, as it says before the first one.
func scanned(text []byte, cfg prompts.Config, reading job.Reading) string {
	in := promptfile.Stream(cfg.Name, bytes.NewReader(text))
	found, err := promptfile.Scan(in, cfg, nil, func(prompts.Request) {})
	if err != nil {
		return err.Error()
	}
	if err := prompts.FirstLines(bytes.NewReader(text), cfg, found.Bad.First); err != nil {
		return err.Error()
	}
	if bad := found.Fatal(reading.SkipBad, reading.SkipUntranslatable); bad != nil {
		return bad.Error()
	}
	return ""
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// someCut cuts as finely as to single bytes and lines, or coarsely.
func someCut(rng *rand.Rand) job.Cut {
	scale := 1 + rng.IntN(2000)
	return job.Cut{
		SegmentBytes: 1 + rng.Int64N(int64(scale)), StepLines: 1 + rng.IntN(5), StepBytes: 1 + rng.Int64N(300),
		ChunkLines: 1 + rng.IntN(20), ChunkBytes: 1 + rng.Int64N(int64(scale)),
	}
}

// covers checks that chunks are the whole of an object, one behind the other, but for blank lines.
func covers(t testing.TB, text []byte, chunks []job.Chunk) {
	t.Helper()
	at, line := int64(0), 1
	for _, c := range chunks {
		gap := text[at:c.Offset]
		if len(bytes.Trim(bytes.TrimPrefix(gap, []byte("\xEF\xBB\xBF")), " \t\r\n")) > 0 || bytes.Count(gap, []byte("\n")) != c.FirstLine-line {
			t.Fatalf("%+v begins behind %q, line %d", c, gap, line)
		}
		at, line = c.Offset+c.Bytes, c.FirstLine+c.Lines
	}
	if rest := bytes.TrimPrefix(text[at:], []byte("\xEF\xBB\xBF")); len(bytes.Trim(rest, " \t\r\n")) > 0 {
		t.Fatalf("%q is in no chunk", rest)
	}
}

// bounded checks that chunks have no more lines and bytes than they may: but for one step.
func bounded(t testing.TB, text []byte, chunks []job.Chunk, lines int, cut *job.Cut) {
	t.Helper()
	for _, c := range chunks {
		filled := 0
		for l := range bytes.Lines(text[c.Offset : c.Offset+c.Bytes]) {
			if len(bytes.Trim(l, " \t\r\n\xEF\xBB\xBF")) > 0 {
				filled++
			}
		}
		if filled == 0 || filled > max(lines, cut.StepLines) || c.Bytes > cut.ChunkBytes && filled > cut.StepLines {
			t.Fatalf("%+v has %d lines, %d are the most, in steps of %d and %d bytes", c, filled, lines, cut.StepLines, cut.ChunkBytes)
		}
	}
}
