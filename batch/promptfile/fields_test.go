package promptfile

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

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
	c = c.withDefaults()
	l, _ := c.lineOf(r)
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
		d := newDesk(t, ask("a"), native, `{"prompt":"p"}`, ask("b"), `{"prompt":"p"}`, ask("c"))
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
	d := newDesk(t, ask("a"), seeded("b"), "[]")
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
