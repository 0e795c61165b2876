package promptfile

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
)

// The output line of a request takes over what the request knows.
func TestLineForRequest(t *testing.T) {
	req := prompts.Request{Line: 3, ID: "a", Key: "0123456789abcdef0123456789abcdef", Model: "m", Metadata: json.RawMessage(`{}`)}
	want := journal.Line{
		ID: "hr-0123456789abcdef01234567", CustomID: "a",
		Headrace: journal.Headrace{Line: 3, Key: req.Key, Model: "m", Metadata: req.Metadata},
	}
	if got := LineFor(&req); !reflect.DeepEqual(got, want) {
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
		l := FailedLine(b)
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
