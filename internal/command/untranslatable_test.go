package command

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/command/progress"
)

// Lines that were skipped make the run one that has not all its results, whatever they were
// skipped for.
func TestSkippedLinesAreAnExitCode(t *testing.T) {
	for text, s := range map[string]promptfile.Sums{
		"1 untranslatable line skipped: see ":                                              {Untranslatable: 1},
		"2 bad lines and 3 untranslatable lines skipped: see ":                             {Skipped: 2, Untranslatable: 3},
		"1 item failed for good: see results.errors.jsonl; 3 untranslatable lines skipped": {Summary: batch.Summary{Failed: 1}, Untranslatable: 3},
	} {
		r := &runner{World: &World{}, flags: &runFlags{errors: "results.errors.jsonl"}, backend: &backend{}}
		var end *ending
		if err := r.itemsFailed(&s); !errors.As(err, &end) || end.code != ExitItemsFailed || !strings.HasPrefix(end.text, text) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// The summary counts such lines apart, and keeps the contract with and without them.
func TestSummaryOfUntranslatableLines(t *testing.T) {
	c, err := newContract(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3} {
		rep := &progress.Report{Untranslatable: n, ErrorsFile: "e"}
		text, err := json.Marshal(rep.Event())
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.schema.Validate(v); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		if strings.Contains(string(text), `"untranslatable":3`) != (n == 3) {
			t.Errorf("%d: %s", n, text)
		}
	}
}
