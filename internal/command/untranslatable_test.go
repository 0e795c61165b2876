package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headrace/headrace/internal/command/progress"
)

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
