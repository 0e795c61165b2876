package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/must"
)

// The summary counts such lines apart, and keeps the contract with and without them.
func TestSummaryOfUntranslatableLines(t *testing.T) {
	c := must.Get(newContract(schemaFile))(t)
	for _, n := range []int{0, 3} {
		rep := &progress.Report{Untranslatable: n, ErrorsFile: "e"}
		text := must.Get(json.Marshal(rep.Event()))(t)
		v := must.Get(jsonschema.UnmarshalJSON(strings.NewReader(string(text))))(t)
		if err := c.schema.Validate(v); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		if strings.Contains(string(text), `"untranslatable":3`) != (n == 3) {
			t.Errorf("%d: %s", n, text)
		}
	}
}
