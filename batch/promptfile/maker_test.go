package promptfile

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// A program that reads and writes on its own, with a Maker in between, writes what a job
// writes, to the byte, and comes to the same sums.
func TestMakerMakesWhatAJobWrites(t *testing.T) {
	d := newDesk(t, ask("a"), ask("fails"), `{"id":"cut","prompt":"p","model":"other"}`, `{x`, `{"prompt":"foreign","model":"m"}`, ask("b"))
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

func (d *desk) text(path string) string {
	d.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// byHand does without a job, and gives results and failures as they should stand.
func byHand(t *testing.T, d *desk, call batch.Func[*Item, provider.Reply], sums *Sums) string {
	m := NewMaker(d.cfg)
	cfg := d.cfg.Reader
	cfg.Name = d.in
	file, err := os.Open(d.in)
	if err != nil {
		t.Fatal(err)
	}
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
