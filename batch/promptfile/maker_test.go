package promptfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A program that reads and writes on its own, with a Maker in between, writes what a job
// writes, to the byte, and comes to the same sums.
func TestMakerMakesWhatAJobWrites(t *testing.T) {
	d := newFixture(t, ask("a"), ask("fails"), `{"id":"cut","prompt":"p","model":"other"}`, `{x`, `{"prompt":"foreign","model":"m"}`, ask("b"))
	d.cfg = Config{
		SkipBad: true, SkipUntranslatable: true, InputOrder: true, MaxTokens: 5, MaxTokensOfPrompts: 7,
		Lane:   func(model string) string { return "lane/" + model },
		Price:  func(model string, u provider.Usage) (float64, bool) { return float64(u.OutputTokens) / 8, model == "m" },
		Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "…") },
		Fields: Fields{Provider: "p", Text: true}, Simulated: true,
		Reader: prompts.Config{Takes: func(r *prompts.Request) error {
			if strings.Contains(string(r.Body), "foreign") {
				return &provider.Untranslatable{Field: "x", Dialect: "d", Why: "why"}
			}
			return nil
		}},
	}
	call := func(ctx context.Context, it *Item) (provider.Reply, error) {
		switch rec := provider.RecorderFrom(ctx); it.ID {
		case "fails":
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: 400, Message: "secret", Body: []byte(`{}`)}
		case "cut":
			rec.Usage(provider.Usage{OutputTokens: 3})
			rec.Finish("length")
			return provider.Reply{Status: 200, Body: []byte(`{"cut":1}`)}, nil
		default:
			rec.Usage(provider.Usage{OutputTokens: 2})
		}
		return provider.Reply{Status: 200, Body: []byte(`{"asks":` + string(rune('0'+it.Asks().MaxTokens)) + `}`), HasText: true, Text: "t"}, nil
	}
	var theirs Sums
	synctest.Test(t, func(t *testing.T) {
		var err error
		if theirs, err = d.open().Run(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	})
	want := d.text(d.out) + d.text(journal.ErrorsPath(d.out))
	if !strings.Contains(want, `"lane":"lane/other"`) || strings.Count(want, `"lane":"lane/m"`) != 3 {
		t.Errorf("lanes are not those of the models:\n%s", want)
	}
	var ours Sums
	var got string
	synctest.Test(t, func(t *testing.T) { got = byHand(t, d, call, &ours) })
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if ours.CostUSD != theirs.CostUSD || ours.Priced != theirs.Priced || ours.Unpriced != theirs.Unpriced ||
		ours.Truncated != theirs.Truncated || !reflect.DeepEqual(ours.Kinds, theirs.Kinds) {
		t.Errorf("got %+v, want %+v", ours, theirs)
	}
	if ours.Truncated != 1 || ours.Priced != 2 || ours.Unpriced != 1 || len(ours.Kinds) != 1 {
		t.Errorf("it has shown nothing: %+v", ours)
	}
}

func (d *jobFixture) text(path string) string {
	d.t.Helper()
	text := must.Get(os.ReadFile(path))(d.t)
	return string(text)
}

// byHand does without a job, and gives results and failures as they should stand.
func byHand(t *testing.T, d *jobFixture, call batch.Func[*Item, provider.Reply], sums *Sums) string {
	m := NewMaker(d.cfg)
	cfg := d.cfg.Reader
	cfg.Name = d.in
	file := must.Get(os.Open(d.in))(t)
	defer file.Close()
	var results, failures []journal.Line
	items := func(yield func(*Item) bool) {
		for req, err := range prompts.NewReader(file, cfg).All() {
			var bad *prompts.LineError
			if errors.As(err, &bad) {
				failures = append(failures, m.BadLine(bad))
			} else if !yield(m.Item(req)) {
				return
			}
		}
	}
	for res, err := range batch.Stream(t.Context(), items, call, m.Options()...) {
		if err != nil {
			t.Fatal(err)
		}
		if l, ended := m.Line(&res, sums); ended && l.Error != nil {
			failures = append(failures, l)
		} else if ended {
			results = append(results, l)
		}
	}
	slices.SortFunc(results, func(a, b journal.Line) int { return a.Headrace.Line - b.Headrace.Line })
	var text []byte
	for _, l := range append(results, failures...) {
		text = journal.AppendLine(text, &l)
	}
	return string(text)
}

// The output line of a request takes over what the request knows.
func TestLineForRequest(t *testing.T) {
	req := prompts.Request{Line: 3, ID: "a", Key: "0123456789abcdef0123456789abcdef", Model: "m", Metadata: json.RawMessage(`{}`)}
	want := journal.Line{
		ID: "hr-0123456789abcdef01234567", CustomID: "a",
		Headrace: journal.Headrace{Line: 3, Key: req.Key, Model: "m", Metadata: req.Metadata},
	}
	if got := lineFor(&req); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// badLines gives the complaints about a text.
func badLines(t *testing.T, text string) (bad []*prompts.LineError) {
	t.Helper()
	for _, err := range prompts.NewReader(strings.NewReader(text), prompts.Config{Name: "prompts.jsonl", DefaultModel: "m", MaxLine: 100}).All() {
		if c, is := errors.AsType[*prompts.LineError](err); is {
			bad = append(bad, c)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return bad
}

// A bad line that is skipped has a line in the errors file, which a later run knows
// again by what it holds, wherever it stands; two that are alike are two.
func TestSkippedLines(t *testing.T) {
	path, file := filepath.Join(t.TempDir(), "errors"), ""
	for _, b := range badLines(t, "{x\n{x\n[]\n"+strings.Repeat("a", 200)+"\n") {
		l := badLine(b)
		file += string(journal.AppendLine(nil, &l))
	}
	write(t, path, file)
	j, err := journal.ReadErrorsJournal(path)
	if err != nil || j.Keys.Len() != 4 {
		t.Fatalf("%+v, %v in %s", j, err, file)
	}
	for _, b := range badLines(t, `{"prompt":"a"}`+"\n"+`{"prompt":"b"}`+"\n[]\n\n{x\n"+strings.Repeat("a", 200)+"\n{x") {
		if !j.Keys.Has(b.Key()) {
			t.Errorf("not known again: %v", b)
		}
	}
	if !strings.Contains(file, `"error":{"code":"invalid_line","message":"prompts.jsonl:1: not JSON`) {
		t.Error(file)
	}
}

// A bad line keeps its own id in the errors file; without one that can be read it has that of its number.
func TestABadLineKeepsItsID(t *testing.T) {
	d := newFixture(t, ask("a"), `{"custom_id":"b","prompt":[],"model":"m"}`, `{"id":7}`, ask("a"), "{x", `{"prompt":1}`)
	d.cfg.SkipBad = true
	if sums, asked, err := d.run(); err != nil || asked != "a" || sums.Skipped != 5 {
		t.Fatalf("%q, %+v, %v", asked, sums, err)
	}
	got := idsIn(t, journal.ErrorsPath(d.out))
	if want := []string{"b", "7", "a", "line-000005", "line-000006"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A panic is a failed item, without its stack in the file.
func TestLineOfAPanic(t *testing.T) {
	l, ended := NewMaker(Config{}).Line(&Result{Item: &Item{Request: prompts.Request{ID: "a"}}, Err: &batch.PanicError{Value: "oh", Stack: []byte("goroutine 1")}}, &Sums{})
	if !ended || l.Error == nil || l.Error.Code != "panic" || l.Error.Message != "panic: oh" || l.Response != nil {
		t.Errorf("%+v", l.Error)
	}
}

// An item that was not run has no line, whatever kept it from being run.
func TestNotRunHasNoLine(t *testing.T) {
	err := fmt.Errorf("%w: %w", batch.ErrNotRun, &provider.Error{Kind: provider.QuotaExhausted, Status: 429})
	if l, ended := NewMaker(Config{}).Line(&Result{Item: &Item{}, Err: err}, &Sums{}); ended {
		t.Errorf("%+v", l)
	}
}

// spoken is an answer of which everything is known.
func spoken() *Result {
	return &Result{
		Item: &Item{Request: prompts.Request{ID: "a", Model: "m", Line: 1, Key: "00112233445566778899aabbccddeeff"}},
		Value: provider.Reply{
			Status: 200, RequestID: "r", Body: []byte(`{"ok":true}`), Text: "said", HasText: true,
			Dialect: "anthropic", Translated: true, Served: "claude",
		},
		Usage:  provider.Usage{InputTokens: 9, OutputTokens: 8, CachedTokens: 1, CacheWriteTokens: 2, ReasoningTokens: 3},
		Finish: "end_turn", Lane: "l", Attempts: 1,
	}
}

func (c Config) text(r *Result) string {
	l, _ := NewMaker(c).Line(r, &Sums{})
	return string(journal.AppendLine(nil, &l))
}

// A run of OpenAI's shape tells nothing of an answer's origin, whatever the client knows:
// its lines are to the byte what they are without that knowledge. They count tokens written
// to a cache, as these have a price of their own.
func TestLinesOfOpenAIShapedRuns(t *testing.T) {
	const want = `{"id":"hr-00112233445566778899aabb","custom_id":"a","response":{"status_code":200,"request_id":"r","body":{"ok":true}},"error":null,` +
		`"headrace":{"line":1,"key":"00112233445566778899aabbccddeeff","attempts":1,"lane":"l","model":"m",` +
		`"usage":{"input_tokens":9,"output_tokens":8,"cached_tokens":1,"cache_write_tokens":2},"queued_ms":0,"waited_ms":0,"latency_ms":0,"sum":"4c7aee90"}}` + "\n"
	if got := (Config{}).text(spoken()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	doubt := spoken()
	doubt.Failures = []batch.Failure{{Calls: 2, Doubtful: provider.Doubtful{Calls: 1}}, {Calls: 1, Doubtful: provider.Doubtful{Calls: 1, Usage: doubt.Usage}}}
	if got := (Config{}).text(doubt); !strings.Contains(got, `,"doubtful":{"calls":2,"input_tokens":9,"output_tokens":8,"cached_tokens":1,"cache_write_tokens":2},"queued_ms"`) {
		t.Errorf("with calls that were cut off: %s", got)
	}
	if doubt.Err = provider.Timeout; !strings.Contains((Config{}).text(doubt), `"doubtful":{"calls":2,"input_tokens":9`) {
		t.Error("a line of a failure does not tell of calls that were cut off")
	}
	if got := (Config{Fields: Fields{Provider: "p"}}).text(doubt); !strings.Contains(got, `"doubtful":{"calls":2,"input_tokens":9,"output_tokens":8,"cached_tokens":1,"cache_write_tokens":2,"reasoning_tokens":3},`) {
		t.Errorf("of another dialect: %s", got)
	}
	got := Config{Fields: Fields{Text: true}}.text(spoken())
	if !strings.Contains(got, `"latency_ms":0,"text":"said","sum"`) || strings.Contains(got, "anthropic") || strings.Contains(got, "reasoning") {
		t.Errorf("with its text alone: %s", got)
	}
}

// A run of other dialects tells all that is known: the model that was asked if it is another,
// the end in a word that holds for all, the text if the client has read it.
func TestLinesOfOtherRuns(t *testing.T) {
	c := Config{Fields: Fields{Provider: "bedrock", Text: true}}
	const want = `"model":"m","provider":"bedrock","dialect":"anthropic","served":"claude","translated":true,"finish":"stop",` +
		`"usage":{"input_tokens":9,"output_tokens":8,"cached_tokens":1,"cache_write_tokens":2,"reasoning_tokens":3},` +
		`"queued_ms":0,"waited_ms":0,"latency_ms":0,"text":"said","sum"`
	if got := c.text(spoken()); !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r := spoken()
	r.Value.HasText, r.Value.Served, r.Value.Translated, r.Finish, r.Usage = false, "m", false, "", provider.Usage{}
	if got := c.text(r); !strings.Contains(got, `"provider":"bedrock","dialect":"anthropic","usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0},`) || strings.Contains(got, `"text"`) {
		t.Errorf("of what is not known: %s", got)
	}
	r.Value.HasText, r.Value.Text, c.Fields.Text = true, "", false
	if got := c.text(r); strings.Contains(got, `"text"`) {
		t.Errorf("a text that is not wanted: %s", got)
	}
	if c.Fields.Text = true; !strings.Contains(c.text(r), `"text":""`) {
		t.Errorf("an answer of no words: %s", c.text(r))
	}
	failed := &Result{Item: r.Item, Err: &provider.Error{Kind: provider.Invalid, Status: 400}}
	if got := c.text(failed); !strings.Contains(got, `"provider":"bedrock","usage"`) || strings.Contains(got, "dialect") {
		t.Errorf("a failed item: %s", got)
	}
}

// An output that one dialect has begun another goes on with, in both directions and in any
// order of results: keys are of the lines, not of what was sent.
func TestOutputsAreGoneOnWithInOtherDialects(t *testing.T) {
	native := `{"custom_id":"n","params":{"model":"m","max_tokens":1,"messages":[]}}`
	for _, inOrder := range []bool{false, true} {
		d := newFixture(t, ask("a"), native, `{"prompt":"p"}`, ask("b"), `{"prompt":"p"}`, ask("c"))
		d.cfg.Reader = prompts.Config{DefaultModel: "m", Serves: prompts.Operations()}
		d.cfg.InputOrder = inOrder
		for n, step := range []struct {
			fields Fields
			limit  int
			called string
		}{
			{Fields{Provider: "anthropic", Text: true}, 2, "a n"},
			{Fields{}, 3, "line-000003"},
			{Fields{Provider: "gemini"}, 4, "b"},
			{Fields{Provider: "anthropic", Text: true}, 0, "line-000005 c"},
			{Fields{}, 0, ""},
		} {
			d.answer = func(*Item) (provider.Reply, error) { return spoken().Value, nil }
			d.cfg.Fields, d.cfg.Reader.Limit = step.fields, step.limit
			if sums, called, err := d.run(); err != nil || called != step.called || sums.Failed != 0 {
				t.Fatalf("step %d, in order %t: called %q, %+v, %v", n, inOrder, called, sums, err)
			}
		}
		if p := d.progress(); p.Done != 6 || p.Failed != 0 {
			t.Errorf("%+v", p)
		}
		text, err := os.ReadFile(d.out)
		if err != nil || strings.Count(string(text), `"provider":"anthropic","dialect":"anthropic","served":"claude","translated":true,`) != 4 ||
			strings.Count(string(text), `"text":"said"`) != 4 || strings.Count(string(text), `"provider":`) != 5 {
			t.Errorf("in order %t: %v\n%s", inOrder, err, text)
		}
	}
}

// Made-up answers and real ones do not mix, whatever their dialect.
func TestSimulatedDialectsDoNotMix(t *testing.T) {
	d := newFixture(t, ask("a"), seeded("b"), "[]")
	d.seedless()
	d.cfg.Fields, d.cfg.Simulated, d.cfg.SkipBad, d.cfg.SkipUntranslatable = Fields{Provider: "sim", Text: true}, true, true, true
	if sums, _, err := d.run(); err != nil || sums.Untranslatable != 1 {
		t.Fatalf("%+v, %v", sums, err)
	}
	if text := d.files(); strings.Count(text, `"simulated":true,"provider":"sim"`) != 3 {
		t.Errorf("lines that do not say that they are simulated, or by whom:\n%s", text)
	}
	d.cfg.Simulated, d.cfg.Fields = false, Fields{Provider: "anthropic"}
	if _, err := Open(d.cfg); !errors.Is(err, ErrSimulated) {
		t.Errorf("%v", err)
	}
}

// A job without Config.Cost estimates costs, and its lanes charge the greater of prompt and
// output, unless an option overrides that. Costs from Config.Cost are taken as they are.
func TestLanesOfAJobCharge(t *testing.T) {
	word := strings.Repeat("river ", 2000)
	line := func(i int) string {
		return fmt.Sprintf(`{"id":"%d","prompt":%q,"max_tokens":2000,"model":"m"}`, i, word)
	}
	took := func(shares bool, cost func(*prompts.Request) batch.Cost, opts ...batch.Option) (d time.Duration) {
		var lines []string
		for i := range 31 {
			lines = append(lines, line(i))
		}
		fixture := newFixture(t, lines...)
		fixture.cfg.Cost = cost
		synctest.Test(t, func(t *testing.T) {
			if shares {
				shared := must.Get(batch.NewShared(batch.WithPlainLaw(), batch.WithLimits(batch.Limits{TPM: 6000})))(t)
				defer shared.Close()
				opts = []batch.Option{batch.WithShared(shared)}
			} else {
				opts = append([]batch.Option{batch.WithPlainLaw(), batch.WithLimits(batch.Limits{TPM: 6000})}, opts...)
			}
			sums, err := fixture.open().Run(t.Context(), func(_ context.Context, it *Item) (provider.Reply, error) { return fixture.answer(it) }, opts...)
			if err != nil || sums.Succeeded != 31 {
				t.Errorf("%v: %+v", err, sums.Summary)
			}
			d = sums.Elapsed
		})
		return d
	}
	both := limiter.Charge{Rule: limiter.ChargeBoth}
	asBoth := took(false, nil, batch.WithCharge(both))
	for name, tt := range map[string]struct {
		took time.Duration
		half bool
	}{
		"told nothing":            {took(false, nil), true},
		"both, by the lane":       {took(false, nil, batch.WithLaneDefaults(batch.LaneConfig{Charge: both})), false},
		"the prompt alone":        {took(false, nil, batch.WithCharge(limiter.Charge{Rule: limiter.ChargePromptOnly})), true},
		"lanes of another's":      {took(true, nil), false}, // who has said nothing: as told
		"told what it is to draw": {took(false, func(*prompts.Request) batch.Cost { return batch.Cost{Requests: 1, Input: 2000, Output: 2000} }), false},
	} {
		if share := tt.took.Seconds() / asBoth.Seconds(); tt.half != (share < 0.6) || !tt.half && (share < 0.9 || share > 1.1) {
			t.Errorf("%s: %v, and where both are charged %v", name, tt.took, asBoth)
		}
	}
}

// An answer that nests as deep as a client takes is saved, is no damage to its file, and is
// not bought again, as the answers come or in the order of the input.
func TestDeepAnswersAreBoughtOnce(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		d := newFixture(t, ask("a"), ask("b"), ask("c"))
		d.cfg.InputOrder, d.cfg.Checked = ordered, true
		deep := map[string]int{"a": 9998, "b": 9999, "c": 10_000}
		d.answer = func(it *Item) (provider.Reply, error) {
			n := deep[it.ID]
			return provider.Reply{Status: 200, Body: []byte(strings.Repeat("[", n) + strings.Repeat("]", n))}, nil
		}
		sums, _, err := d.run()
		if err != nil || sums.Succeeded != 3 {
			t.Fatalf("ordered %t: %+v, %v", ordered, sums, err)
		}
		sums, asked, err := d.run()
		if err != nil || sums.EarlierDone != 3 || asked != "" {
			t.Errorf("ordered %t: once more %+v, %v, asked %s", ordered, sums, err, asked)
		}
	}
}
