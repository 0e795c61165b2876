package promptfile

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
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
	_, bad, err := prompts.Check(prompts.NewReader(strings.NewReader(text), prompts.Config{Name: "prompts.jsonl", DefaultModel: "m", MaxLine: 100}))
	if err != nil {
		t.Fatal(err)
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
