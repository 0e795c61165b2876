package job_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
)

// asker is a provider that some items cannot be asked, until they are tried again.
type asker struct {
	client *openai.Client
	kind   bool // nothing fails any more
}

func newAsker(t testing.TB) *asker {
	server := sim.New(sim.Config{}, clockwork.NewRealClock())
	client := must.Get(openai.New(openai.Config{BaseURL: "http://sim.invalid/v1", HTTPClient: &http.Client{Transport: sim.NewTransport(server)}}))(t)
	return &asker{client: client}
}

func (a *asker) call(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
	switch {
	case bytes.Contains(it.Body, []byte("never")), bytes.Contains(it.Body, []byte("not yet")) && !a.kind:
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400, Message: "no", Body: []byte(`{"error":"no"}`)}
	}
	return a.client.Do(ctx, it.Asks())
}

func takes(r *prompts.Request) error {
	if bytes.Contains(r.Body, []byte("foreign")) {
		return &provider.Untranslatable{Field: "x", Dialect: "other", Why: "why"}
	}
	return nil
}

// somePrompts are a file of which some lines are alike, bad, foreign, or fail.
func somePrompts(rng *rand.Rand, n int) []byte {
	var text bytes.Buffer
	for i := range n {
		switch rng.IntN(14) {
		case 0:
			text.WriteString("{x\n")
		case 1:
			text.WriteString("\n")
		case 2:
			fmt.Fprintf(&text, "{\"prompt\":\"foreign %d\"}\n", rng.IntN(3))
		case 3:
			fmt.Fprintf(&text, "{\"prompt\":\"never %d\"}\r\n", rng.IntN(3))
		case 4:
			fmt.Fprintf(&text, "{\"id\":\"n%d\",\"prompt\":\"not yet\",\"metadata\":{\"n\":[%d]}}\n", i, i)
		case 5:
			fmt.Fprintf(&text, "{\"id\":\"again%d\",\"prompt\":\"twice\"}\n", rng.IntN(10))
		case 6:
			fmt.Fprintf(&text, "{\"id\":\"line-%06d\",\"prompt\":\"of another\"}\n", rng.IntN(n))
		case 7, 8, 9:
			fmt.Fprintf(&text, "{\"prompt\":\"the same %d\"}\n", rng.IntN(4))
		default:
			fmt.Fprintf(&text, `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"%d"}]}}`+"\n", i, i)
		}
	}
	return text.Bytes()
}

// alone returns what one process makes of a file: in a first run, and in a retry of the failed items.
func alone(t *testing.T, in string) (output, failed [2]string) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	a := newAsker(t)
	for round := range 2 {
		input := must.Get(promptfile.File(in))(t)
		j := must.Get(promptfile.Open(promptfile.Config{
			Input: input, Output: out, InputOrder: true, SkipBad: true, SkipUntranslatable: true, RetryFailed: round > 0,
			Reader: prompts.Config{DefaultModel: "m", Takes: takes}, Simulated: true,
		}))(t)
		must.Get(j.Run(t.Context(), a.call))(t)
		must.Do(t, j.Close())
		output[round], failed[round] = canonical(t, out), sorted(canonical(t, journal.ErrorsPath(out)))
		a.kind = true
	}
	return output, failed
}

// canonical is a result file without what differs from run to run: times, attempts, and what the
// provider numbers.
func canonical(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	var out strings.Builder
	for l := range bytes.Lines(text) {
		var line map[string]map[string]any
		_ = json.Unmarshal(l, &line) // of the members that are no objects, nothing is changed
		for name, of := range map[string]string{
			"request_id": "response", "attempts": "headrace", "queued_ms": "headrace", "waited_ms": "headrace", "latency_ms": "headrace",
			"sum": "headrace", "output": "headrace", // parts of a job have no output yet
		} {
			delete(line[of], name)
		}
		if body, ok := line["response"]["body"].(map[string]any); ok {
			delete(body, "id")
			delete(body, "created")
		}
		var whole map[string]any
		must.Do(t, json.Unmarshal(l, &whole))
		for name, members := range line {
			if members != nil {
				whole[name] = members
			}
		}
		clean, _ := json.Marshal(whole)
		out.Write(append(clean, '\n'))
	}
	return out.String()
}

// sorted puts the lines of an errors file in order: one process writes them as they come.
func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// fleet is a job in a folder, and those who work on it.
type fleet struct {
	t     *testing.T
	rng   *rand.Rand
	store store.Store
	src   *index.Source
	plan  *index.Plan
	ask   *asker
	turns int
}

func newFleet(t *testing.T, in string, rng *rand.Rand) *fleet {
	t.Helper()
	folder, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	inputs := must.Get(store.Open(t.Context(), filepath.Dir(in)))(t)
	f := &fleet{t: t, rng: rng, store: folder, ask: newAsker(t)}
	f.src = &index.Source{Store: folder, Takes: takes, Open: func(context.Context, string) (store.Store, error) { return inputs, nil }}
	f.src.Record = job.Record{
		Job: "j", Reading: job.Reading{Model: "m", SkipBad: true, SkipUntranslatable: true},
		Cut: job.Cut{SegmentBytes: 1 + rng.Int64N(5000), StepLines: 1 + rng.IntN(9), ChunkLines: 10 + rng.IntN(30)},
	}
	file := index.File{Name: in, Format: job.JSONL, Store: "elsewhere", Object: filepath.Base(in)}
	input := must.Get(f.src.Inspect(t.Context(), file, "s"))(t)
	f.src.Record.Inputs = []job.Input{input}
	if f.src.Record, err = job.Create(t.Context(), folder, f.src.Record); err != nil {
		t.Fatal(err)
	}
	return f
}

// cut makes the plan, and takes the plan into the record.
func (f *fleet) cut() {
	f.t.Helper()
	plan, err := f.src.Plan(f.t.Context(), 3, "k")
	if err != nil || plan.Refused() != nil {
		f.t.Fatal(err, plan.Refused())
	}
	name := must.Get(plan.Save(f.t.Context(), f.store, "k"))(f.t)
	f.change(func(r *job.Record) { r.Plan, r.State = name, job.Running })
	if f.plan, err = index.LoadPlan(f.t.Context(), f.store, &f.src.Record); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) change(how func(*job.Record)) {
	f.t.Helper()
	r := must.Get(job.Change(f.t.Context(), f.store, "j", func(r *job.Record) error { how(r); return nil }))(f.t)
	f.src.Record = r
}

// round works off the chunks of a round, in any order, and some of them twice over.
func (f *fleet) round(want []int) parts.Done {
	f.t.Helper()
	ledger := parts.NewLedger(f.store, "j", f.src.Record.Round, f.plan.Chunks, want)
	missing := slices.Collect(ledger.Missing(0))
	f.rng.Shuffle(len(missing), func(i, k int) { missing[i], missing[k] = missing[k], missing[i] })
	chunks := index.NewChunks(f.store, &f.src.Record, f.plan)
	for _, n := range missing {
		c := must.Get(chunks.At(f.t.Context(), n))(f.t)
		c.Round = f.src.Record.Round
		for f.rng.IntN(3) == 0 {
			f.claim(&c, f.rng.IntN(20)) // and then its worker dies
		}
		f.claim(&c, 1<<30)
		f.finish(&c)
	}
	must.Do(f.t, ledger.Refresh(f.t.Context()))
	done := must.Get(ledger.Finish(f.t.Context(), f.plan.Items+f.plan.Bad+f.plan.Untranslatable))(f.t)
	return done
}

// journals are those of a chunk, the oldest first.
func (f *fleet) journals(c *job.Chunk) (all []iter.Seq2[[]byte, error]) {
	for name, err := range store.Journals(f.t.Context(), f.store, job.WorkFolder(c.Job, c.Number, c.Round)) {
		if err != nil {
			f.t.Fatal(err)
		}
		all = append(all, store.ReadJournal(f.t.Context(), f.store, name))
	}
	return all
}

func (f *fleet) join(c *job.Chunk) *parts.Joined {
	f.t.Helper()
	j := must.Get(parts.Join(int64(1+f.rng.IntN(5000)), f.journals(c)...))(f.t)
	return j
}

// claim asks what no journal has of a chunk, until its worker dies after so many answers.
func (f *fleet) claim(c *job.Chunk, dies int) {
	f.t.Helper()
	ended := map[int]bool{} // by line
	var parse journal.Parser
	for text, err := range f.join(c).All() {
		e, fault := parse.Parse(text)
		must.Do(f.t, errors.Join(err, fault))
		ended[e.Line] = true
	}
	f.turns++
	out, err := store.CreateJournal(f.t.Context(), f.store, fmt.Sprintf("%s%04d-w", job.WorkFolder(c.Job, c.Number, c.Round), f.turns), store.JournalConfig{})
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close(f.t.Context())
	maker := promptfile.NewMaker(promptfile.Config{Simulated: true})
	save := func(l journal.Line) bool {
		text := journal.AppendLine(nil, &l)
		must.Do(f.t, out.Write(f.t.Context(), text[:len(text)-1]))
		dies--
		return dies > 0
	}
	lines, bad := f.lines(c)
	for _, e := range bad {
		if !ended[e.Line] && !save(maker.BadLine(e)) {
			return
		}
	}
	items := func(yield func(*promptfile.Item) bool) {
		for _, req := range lines {
			if !ended[req.Line] && !yield(maker.Item(req)) {
				return
			}
		}
	}
	var sums promptfile.Sums
	for res, err := range batch.Stream(f.t.Context(), items, f.ask.call, append(maker.Options(), batch.WithConcurrency(4))...) {
		if err != nil {
			f.t.Fatal(err)
		}
		if l, ended := maker.Line(&res, &sums); ended && !save(l) {
			return
		}
	}
}

// lines are those of a chunk that are to have a line in its part.
func (f *fleet) lines(c *job.Chunk) (requests []prompts.Request, bad []*prompts.LineError) {
	f.t.Helper()
	var again map[string]bool
	if c.Round > 0 {
		var err error
		if again, err = parts.Again(f.t.Context(), f.store, c); err != nil {
			f.t.Fatal(err)
		}
	}
	for req, err := range f.src.Read(f.t.Context(), c) {
		var e *prompts.LineError
		switch {
		case errors.As(err, &e):
			if c.Round == 0 {
				bad = append(bad, e)
			}
		case err != nil:
			f.t.Fatal(err)
		case c.Round == 0 || again[req.Key]:
			requests = append(requests, req)
		}
	}
	return requests, bad
}

// finish makes the part of a chunk.
func (f *fleet) finish(c *job.Chunk) {
	f.t.Helper()
	requests, bad := f.lines(c)
	must.Get(parts.Write(f.t.Context(), f.store, c, len(requests)+len(bad), f.join(c)))(f.t)
}

// The files of a job that many have worked on are those of one process, but for times and
// attempts: when all items have ended, and when what failed was tried again.
func TestFilesAreThoseOfOneProcess(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 14))
		in := filepath.Join(t.TempDir(), "in.jsonl")
		must.Do(t, os.WriteFile(in, somePrompts(rng, 200), 0o600))
		output, failed := alone(t, in)
		f := newFleet(t, in, rng)
		f.cut()
		first := f.round(nil)
		out := filepath.Join(t.TempDir(), "out.jsonl")
		f.compare(out, output[0], failed[0])

		ledger := parts.NewLedger(f.store, "j", 0, f.plan.Chunks, nil)
		must.Do(t, ledger.Refresh(t.Context()))
		sums, err := ledger.SettleWhole(t.Context())
		if err != nil || sums.Failed != first.Failed || first.Failed == 0 || first.Skipped == 0 {
			t.Fatalf("%+v, %v, %+v", sums, err, first)
		}
		f.change(func(r *job.Record) { r.Round++ })
		f.ask.kind = true
		second := f.round(sums.Failing)
		if second.Failed >= first.Failed || second.Failed == 0 || second.Lines != first.Lines {
			t.Errorf("%+v after %+v", second, first)
		}
		f.compare(out, output[1], failed[1])
	}
}

func (f *fleet) compare(out, output, failed string) {
	f.t.Helper()
	fetch := &parts.Fetch{Store: f.store, Job: "j", Chunks: f.plan.Chunks}
	fetched := must.Get(fetch.Files(f.t.Context(), out, journal.ErrorsPath(out)))(f.t)
	if got := canonical(f.t, out); got != output {
		f.t.Errorf("results differ in line %s", firstDifference(got, output))
	}
	if got := sorted(canonical(f.t, journal.ErrorsPath(out))); got != failed {
		f.t.Errorf("failures differ in line %s", firstDifference(got, failed))
	}
	alone, err := promptfile.Open(promptfile.Config{Input: promptfile.Stream("x", nil), Output: out, Simulated: true})
	if err != nil {
		f.t.Fatalf("one process could not go on with it: %v", err)
	}
	if err := alone.Close(); err != nil {
		f.t.Error(err)
	}
	if n := strings.Count(output, "\n"); fetched.Done != n {
		f.t.Errorf("%d results, not %d", fetched.Done, n)
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return fmt.Sprintf("%d of %d and %d:\n got %.600s\nwant %.600s", i, len(a), len(b), a[min(i, len(a)-1)], b[min(i, len(b)-1)])
		}
	}
	return "none"
}
