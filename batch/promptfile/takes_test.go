package promptfile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// seeded is a prompt with a field that not every dialect has.
func seeded(id string) string {
	return fmt.Sprintf(`{"id":%q,"prompt":"p","model":"m","seed":1,"metadata":{"of":%q}}`, id, id)
}

// seedless notes which lines it is asked about, and takes those without a seed.
func (d *desk) seedless() *[]int {
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
	d := newDesk(t, append(lines, ask("good"))...)
	d.seedless()
	for _, c := range []struct {
		skipBad, skipForeign bool
		all, first           int
	}{{false, false, 160, prompts.MaxComplaints}, {true, false, 80, 80}, {false, true, 80, 80}} {
		d.cfg.SkipBad, d.cfg.SkipUntranslatable = c.skipBad, c.skipForeign
		sums, asked, err := d.run()
		var bad *BadLines
		if !errors.As(err, &bad) || asked != "" || bad.All != c.all || len(bad.First) != c.first || sums.Items() != 0 {
			t.Fatalf("%+v: asked %q, %v", c, asked, err)
		}
		if !slices.IsSortedFunc(bad.First, func(a, b *prompts.LineError) int { return a.Line - b.Line }) {
			t.Errorf("%+v: not in the order of the file", c)
		}
		if want := "seed cannot be translated for anthropic"; strings.Contains(err.Error(), want) == c.skipForeign {
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
	d := newDesk(t, ask("a"), seeded("b"), "[]", ask("c"), seeded("d"))
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
	d := newDesk(t, seeded("a"), ask("b"), ask("c"))
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
		d := newDesk(t)
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
	d := newDesk(t, ask("a"), `{"id":"b","messages":[],"model":"m"}`)
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

// A set of lines has those that were added, and no neighbour of theirs.
func TestLineSet(t *testing.T) {
	var s lineSet
	for _, line := range []int{1, 63, 64, 1000} {
		s.add(line)
	}
	for line, want := range map[int]bool{0: false, 1: true, 2: false, 62: false, 63: true, 64: true, 65: false, 999: false, 1000: true, 1 << 20: false} {
		if s.has(line) != want {
			t.Errorf("line %d: not %t", line, want)
		}
	}
}
