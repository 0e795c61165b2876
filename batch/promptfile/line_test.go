package promptfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

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
	d := newDesk(t, ask("a"), `{"custom_id":"b","prompt":[],"model":"m"}`, `{"id":7}`, ask("a"), "{x", `{"prompt":1}`)
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
	c := Config{}.withDefaults()
	l, ended := c.lineOf(&Result{Item: &Item{Request: prompts.Request{ID: "a"}}, Err: &batch.PanicError{Value: "oh", Stack: []byte("goroutine 1")}})
	if !ended || l.Error == nil || l.Error.Code != "panic" || l.Error.Message != "panic: oh" || l.Response != nil {
		t.Errorf("%+v", l.Error)
	}
}

// An item that was not run has no line, whatever kept it from being run.
func TestNotRunHasNoLine(t *testing.T) {
	c := Config{}.withDefaults()
	err := fmt.Errorf("%w: %w", batch.ErrNotRun, &provider.Error{Kind: provider.QuotaExhausted, Status: 429})
	if l, ended := c.lineOf(&Result{Item: &Item{}, Err: err}); ended {
		t.Errorf("%+v", l)
	}
}
