package promptfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

func askModel(id, model, prompt string) string {
	return fmt.Sprintf(`{"id":%q,"prompt":%q,"model":%q}`, id, prompt, model)
}

// bodies returns the total length of the bodies of a file's items, in bytes, for the items
// that belong.
func (d *jobFixture) bodies(belongs func(*prompts.Request) bool) (n int64) {
	d.t.Helper()
	in := must.Get(File(d.in))(d.t)
	must.Get(Scan(in, prompts.Config{}, nil, func(r prompts.Request) {
		if belongs(&r) {
			n += int64(len(r.Body))
		}
	}))(d.t)
	return n
}

// A plan tells what is left by lane, in items and in bytes of their bodies: two models may
// share one, and what has ended in an earlier run does not count, unless it failed and is
// tried again.
func TestPlanTellsWorkByLane(t *testing.T) {
	d := newFixture(t,
		askModel("a", "big-1", "p"), askModel("b", "small", strings.Repeat("long ", 100)),
		askModel("c", "big-2", "pp"), askModel("d", "small", "q"), askModel("e", "big-1", "ppp"))
	d.cfg.Lane = func(model string) string { return "at/" + strings.SplitN(model, "-", 2)[0] }
	size := func(ids string) int64 {
		return d.bodies(func(r *prompts.Request) bool { return strings.Contains(ids, r.ID) })
	}
	plan := func() []Work {
		t.Helper()
		job := d.open()
		p, err := job.Plan()
		if err != nil || job.Close() != nil {
			t.Fatal(err)
		}
		items := 0
		for _, w := range p.Work {
			items += w.Items
		}
		if items != p.Left() {
			t.Errorf("%d items in %+v, %d left", items, p.Work, p.Left())
		}
		return p.Work
	}
	want := []Work{{"at/big", 3, size("ace")}, {"at/small", 2, size("bd")}}
	if got := plan(); !slices.Equal(got, want) {
		t.Errorf("at first: %+v, want %+v", got, want)
	}
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "d" {
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400}
		}
		return good, nil
	}
	d.cfg.Reader.Limit = 4
	_, _, _ = d.run() // one fails, as it is to
	d.cfg.Reader.Limit = 0
	if got, want := plan(), []Work{{"at/big", 1, size("e")}}; !slices.Equal(got, want) {
		t.Errorf("after all but the last: %+v, want %+v", got, want)
	}
	d.cfg.RetryFailed = true
	if got, want := plan(), []Work{{"at/small", 1, size("d")}, {"at/big", 1, size("e")}}; !slices.Equal(got, want) {
		t.Errorf("with what failed: %+v, want %+v", got, want)
	}
}

// However many models an input names, the plan counts the first 32 lanes apart, and the
// sums are whole. A lane that is itself called other is part of OtherLanes.
func TestPlanBoundsLanes(t *testing.T) {
	var lines []string
	for n := range 3 {
		for model := range 100 {
			lines = append(lines, askModel(fmt.Sprint(n, "-", model), fmt.Sprint("m", model), "p"))
		}
	}
	lines = append(lines, askModel("x", "other", "p"))
	d := newFixture(t, lines...)
	job := d.open()
	defer func() { _ = job.Close() }()
	p, err := job.Plan()
	if err != nil || len(p.Work) != 33 {
		t.Fatalf("%d lanes, %v", len(p.Work), err)
	}
	var bytes int64
	for i, w := range p.Work[:32] {
		if w.Lane != fmt.Sprint("m", i) || w.Items != 3 {
			t.Errorf("lane %d is %+v", i, w)
		}
		bytes += w.Bytes
	}
	other := p.Work[32]
	if other.Lane != OtherLanes || other.Items != 3*68+1 || bytes+other.Bytes != d.bodies(func(*prompts.Request) bool { return true }) {
		t.Errorf("%+v, and %d bytes", other, bytes)
	}
}

// A stream is not read ahead: what there is to do is not known.
func TestPlanOfAStreamTellsNoWork(t *testing.T) {
	d := newFixture(t)
	d.cfg.Input = Stream("in", strings.NewReader(ask("a")))
	job := d.open()
	defer func() { _ = job.Close() }()
	if p, err := job.Plan(); err != nil || p.Work != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// A scan gives each request, counts lines and bad ones, and says which line of a file had
// an id first, however far back; of a stream it cannot.
func TestScan(t *testing.T) {
	var text strings.Builder
	for i := range 5000 { // more than a reader remembers the lines of
		fmt.Fprintln(&text, ask(fmt.Sprint(i)))
	}
	text.WriteString("\n[]\n" + ask("4700") + "\n")
	path := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, path, text.String())
	file := must.Get(File(path))(t)
	stream := Stream("in", &readOnce{in: strings.NewReader(text.String())})
	for want, in := range map[string]Input{"already used on line 4701": file, "already used on an earlier line": stream} {
		items := 0
		got, err := Scan(in, prompts.Config{}, nil, func(prompts.Request) { items++ })
		if err != nil || items != 5000 || got.Lines != 5003 || got.Bad.All != 2 || !strings.Contains(got.Bad.First[1].Error(), want) {
			t.Errorf("%s: %d items, %+v, %v", in.Name, items, got, err)
		}
	}
}

// readOnce is a stream beyond whose end nobody may read: a terminal would wait there.
type readOnce struct {
	in    io.Reader
	ended bool
}

func (r *readOnce) Read(p []byte) (int, error) {
	if r.ended {
		return 0, errors.New("read beyond the end")
	}
	n, err := r.in.Read(p)
	r.ended = err == io.EOF
	return n, err
}

// A scan reads no further than its limit, and no further once it must halt. If a file
// cannot be opened, the error says that it is the input.
func TestScanEnds(t *testing.T) {
	d := newFixture(t, ask("a"), "", ask("b"), ask("c"))
	in, err := File(d.in)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	note := func(q prompts.Request) { ids = append(ids, q.ID) }
	if got, err := Scan(in, prompts.Config{Limit: 2}, nil, note); err != nil || got.Lines != 3 || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("%v, %+v, %v", ids, got, err)
	}
	halt := make(chan struct{})
	ids = nil
	_, err = Scan(in, prompts.Config{}, halt, func(q prompts.Request) { note(q); close(halt) })
	if !errors.Is(err, ErrHalted) || !slices.Equal(ids, []string{"a"}) {
		t.Errorf("%v, %v", ids, err)
	}
	must.Do(t, os.Remove(d.in))
	if _, err := Scan(in, prompts.Config{}, nil, note); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
}

// seeded is a prompt with a field that not every dialect has.
func seeded(id string) string {
	return fmt.Sprintf(`{"id":%q,"prompt":"p","model":"m","seed":1,"metadata":{"of":%q}}`, id, id)
}

// seedless notes which lines it is asked about, and takes those without a seed.
func (d *jobFixture) seedless() *[]int {
	asked := new([]int)
	d.cfg.Reader.Takes = func(r *prompts.Request) error {
		*asked = append(*asked, r.Line)
		if strings.Contains(string(r.Body), `"seed"`) {
			return &provider.Untranslatable{Dialect: "anthropic", Field: "seed", Why: "it has no seed"}
		}
		return nil
	}
	return asked
}

// Untranslatable lines keep a run from its first call. Each is named with its field, among
// the bad lines, in the order of the file and up to the bound of complaints.
func TestUntranslatableLinesFailTheRun(t *testing.T) {
	var lines []string
	for n := range 80 {
		lines = append(lines, seeded(fmt.Sprint(n)), "[]")
	}
	d := newFixture(t, append(lines, ask("good"))...)
	d.seedless()
	for _, c := range []struct {
		skipBad, skipUntranslatable bool
		all, first                  int
	}{{false, false, 160, prompts.MaxComplaints}, {true, false, 80, 80}, {false, true, 80, 80}} {
		d.cfg.SkipBad, d.cfg.SkipUntranslatable = c.skipBad, c.skipUntranslatable
		sums, asked, err := d.run()
		var bad *BadLines
		if !errors.As(err, &bad) || asked != "" || bad.All != c.all || len(bad.First) != c.first || sums.Items() != 0 {
			t.Fatalf("%+v: asked %q, %v", c, asked, err)
		}
		if !slices.IsSortedFunc(bad.First, func(a, b *prompts.LineError) int { return a.Line - b.Line }) {
			t.Errorf("%+v: not in the order of the file", c)
		}
		if want := "seed cannot be translated for anthropic"; strings.Contains(err.Error(), want) == c.skipUntranslatable {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if text := d.files(); text != "\x00\x00" {
		t.Errorf("files were written: %q", text)
	}
}

// Skipped, they go to the errors file with the id, key and metadata of their request, and
// are counted apart. A provider that takes them is asked when RetryFailed tries failed
// items again; then each has one line in both files. Takes is called once for each line,
// and once more for a line that it refused.
func TestUntranslatableLinesAreSkipped(t *testing.T) {
	d := newFixture(t, ask("a"), seeded("b"), "[]", ask("c"), seeded("d"))
	asked := d.seedless()
	d.cfg.SkipBad, d.cfg.SkipUntranslatable = true, true
	sums, called, err := d.run()
	if err != nil || called != "a c" || sums.Untranslatable != 2 || sums.Skipped != 1 || sums.Succeeded != 2 || sums.Failed != 0 {
		t.Fatalf("called %q, %+v, %v", called, sums, err)
	}
	if want := []int{1, 2, 4, 5, 2, 5}; !slices.Equal(*asked, want) {
		t.Errorf("asked about lines %v, want %v", *asked, want)
	}
	text, _ := os.ReadFile(journal.ErrorsPath(d.out))
	for _, want := range []string{
		`"custom_id":"b","response":null,"error":{"code":"untranslatable","message":"` + d.in + `:2: seed cannot be translated for anthropic: it has no seed`,
		`"model":"m","usage"`, `"metadata":{"of":"b"}`, `"code":"invalid_line"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	*asked = nil
	if sums, called, err = d.run(); err != nil || called != "" || sums.EarlierDone != 2 || sums.EarlierFailed != 3 || sums.Untranslatable != 0 {
		t.Errorf("gone on: %q, %+v, %v", called, sums, err)
	}
	if len(*asked) != 0 {
		t.Errorf("asked about lines that have ended: %v", *asked)
	}
	d.cfg.Reader.Takes, d.cfg.RetryFailed = nil, true
	if sums, called, err = d.run(); err != nil || called != "b d" || sums.EarlierDone != 2 {
		t.Errorf("by one who takes them: %q, %+v, %v", called, sums, err)
	}
	if p := d.progress(); p.Done != 4 || p.Failed != 1 || p.Failures[CodeInvalidLine] != 1 {
		t.Errorf("in the end: %+v", p)
	}
}

// An item that has its answer need not be translated: a second provider goes on with a file
// that the first has answered, whichever lines it takes, and nothing is bought again.
func TestAnsweredLinesNeedNotBeTranslated(t *testing.T) {
	d := newFixture(t, seeded("a"), ask("b"), ask("c"))
	d.cfg.Reader.Limit = 2
	if _, called, err := d.run(); err != nil || called != "a b" {
		t.Fatalf("%q, %v", called, err)
	}
	asked := d.seedless()
	d.cfg.Reader.Limit = 0
	if sums, called, err := d.run(); err != nil || called != "c" || sums.EarlierDone != 2 || !slices.Equal(*asked, []int{3}) {
		t.Errorf("%q, %+v, %v, asked about %v", called, sums, err, *asked)
	}
}

// A stream is asked about as it comes. What it brings that is not taken ends it, or is skipped.
func TestUntranslatableLinesOfAStream(t *testing.T) {
	for _, skip := range []bool{false, true} {
		d := newFixture(t)
		asked := d.seedless()
		d.cfg.Input = Stream("in", &readOnce{in: strings.NewReader(ask("a") + "\n" + seeded("b") + "\n" + ask("c") + "\n")})
		d.cfg.SkipUntranslatable = skip
		sums, called, err := d.run()
		if skip && (err != nil || called != "a c" || sums.Untranslatable != 1 || !slices.Equal(*asked, []int{1, 2, 3})) {
			t.Errorf("skipped: %q, %+v, %v, asked about %v", called, sums, err, *asked)
		}
		if !skip && (!errors.Is(sums.InputErr, prompts.ErrUntranslatable) || called != "a" || sums.Untranslatable != 0) {
			t.Errorf("not skipped: %q, %+v, %v", called, sums, err)
		}
	}
}

// The bound of a request that says none is that of its form: prompts have their own.
func TestBoundsByForm(t *testing.T) {
	c := Config{MaxTokens: 7, MaxTokensOfPrompts: 4096}
	for form, want := range map[prompts.Form]int{
		prompts.FormPrompt: 4096, prompts.FormTemplate: 4096, prompts.FormBody: 7, prompts.FormOpenAIBatch: 7, prompts.FormAnthropicBatch: 7,
	} {
		r := prompts.Request{Form: form, Endpoint: prompts.ChatCompletions, Model: "m", Body: []byte("{}")}
		got := c.Asks(&r)
		if got.MaxTokens != want || got.Endpoint != r.Endpoint || got.Model != r.Model || string(got.Body) != "{}" {
			t.Errorf("%s: %+v", form, got)
		}
	}
	d := newFixture(t, ask("a"), `{"id":"b","messages":[],"model":"m"}`)
	d.cfg.MaxTokens, d.cfg.MaxTokensOfPrompts = 7, 4096
	bounds := map[string]int{}
	d.answer = func(it *Item) (provider.Reply, error) {
		bounds[it.ID] = it.Asks().MaxTokens
		return good, nil
	}
	if _, _, err := d.run(); err != nil || bounds["a"] != 4096 || bounds["b"] != 7 {
		t.Errorf("%v, %v", bounds, err)
	}
}

// A sample is spread evenly over what is left, has as many items as it is to have, and the run after
// it asks the others alone.
func TestSamples(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 10, 13, 100} {
		for left := 1; left <= 40; left++ {
			in := &intake{Job: &Job{cfg: Config{Sample: n}, plan: Plan{Items: left}}}
			var at []int
			for i := range left {
				if in.sampled() {
					in.asked++
					at = append(at, i)
				} else {
					in.unsampled++
				}
			}
			if len(at) != min(n, left) {
				t.Fatalf("%d of %d: %v", n, left, at)
			}
			for i := 1; i < len(at); i++ {
				if gap := at[i] - at[i-1]; gap > (left+n-1)/n {
					t.Errorf("%d of %d: %v", n, left, at)
				}
			}
		}
	}
}

// Takes may be asked about a later line of a stream while the run lets the failures of earlier lines stand: the race detector
// watches, and each failure keeps its line.
func TestFailuresStandWhileAStreamIsRead(t *testing.T) {
	var lines []string
	for n := range 500 {
		lines = append(lines, ask(fmt.Sprint("item-", n)))
	}
	d := newFixture(t, lines...)
	d.answer = func(*Item) (provider.Reply, error) {
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400}
	}
	_, _, _ = d.run() // all fail, as they are to
	d.cfg.Reader.Takes = func(*prompts.Request) error { return errors.New("nothing is taken") }
	d.cfg.Input = Stream("in", strings.NewReader(strings.Join(lines, "\n")))
	if sums, called, err := d.run(); err != nil || called != "" || sums.EarlierFailed != len(lines) {
		t.Errorf("called %q, %+v, %v", called, sums, err)
	}
	if p := d.progress(); p.Failed != len(lines) {
		t.Errorf("%d failures stand, want %d", p.Failed, len(lines))
	}
}

// RetryFailed leaves out the items that the run before has just tried, and plans for the others alone.
func TestJustFailedItemsAreLeft(t *testing.T) {
	d := newFixture(t, ask("a"), ask("b"), ask("c"))
	keys := map[string]string{}
	d.answer = func(it *Item) (provider.Reply, error) {
		if keys[it.ID] = it.Key; it.ID == "c" {
			return good, nil
		}
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400}
	}
	_, _, _ = d.run() // two fail, as they are to
	d.cfg.RetryFailed, d.cfg.JustFailed = true, map[string]bool{keys["a"]: true, keys["c"]: true}
	job := d.open()
	p, err := job.Plan()
	if err = errors.Join(err, job.Close()); err != nil || len(p.Work) != 1 || p.Work[0].Items != 1 {
		t.Errorf("planned %+v, %v", p, err)
	}
	if sums, called, _ := d.run(); called != "b" || sums.EarlierFailed != 1 || sums.EarlierDone != 1 {
		t.Errorf("called %q, %+v", called, sums)
	}
	d.cfg.JustFailed = nil
	if _, called, _ := d.run(); called != "a b" {
		t.Errorf("called %q, want both that failed", called)
	}
}
