package promptfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/provider"
)

// idsIn are the custom ids of a result file, in order.
func idsIn(t *testing.T, path string) (ids []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var l journal.Line
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.CustomID)
	}
	return ids
}

// No id stands twice in an output, whatever became of the input between two runs. An item
// that has the id of another question's result gets a unique suffix, which is reported. If
// the same question comes again, nothing is reported.
func TestNoIDStandsTwice(t *testing.T) {
	bare := func(prompt, model string) string { return fmt.Sprintf(`{"prompt":%q,"model":%q}`, prompt, model) }
	d := newDesk(t)
	var told []string
	d.cfg.Watch.Renamed = func(req *prompts.Request, was string) { told = append(told, was+">"+req.ID) }
	for _, step := range []struct {
		what  string
		input []string
		asked string
		told  string
	}{
		{"the first run", []string{bare("a", "m"), bare("b", "m")}, "line-000001 line-000002", ""},
		{"again", []string{bare("a", "m"), bare("b", "m")}, "", ""},
		{"a line above", []string{bare("z", "m"), bare("a", "m"), bare("b", "m")}, "line-000001-2", "line-000001>line-000001-2"},
		{"again, moved", []string{bare("b", "m"), bare("a", "m"), bare("z", "m")}, "", ""},
		{"another model", []string{bare("a", "n")}, "line-000001-3", "line-000001>line-000001-3"},
		{"a given id that is a suffix, before", []string{ask("line-000002-2"), bare("q", "m")}, "line-000002-2 line-000002-3", "line-000002>line-000002-3"},
		{
			"a given id that is a suffix, behind",
			[]string{bare("r", "m"), ask("line-000001-4")},
			"line-000001-4 line-000001-4-2",
			"line-000001>line-000001-4 line-000001-4>line-000001-4-2",
		},
		{"a line of its own, changed", []string{strings.Replace(ask("line-000002-2"), `"p"`, `"p2"`, 1)}, "line-000002-2-2", "line-000002-2>line-000002-2-2"},
	} {
		write(t, d.in, strings.Join(step.input, "\n"))
		told = nil
		sums, asked, err := d.run()
		if err != nil || asked != step.asked || strings.Join(told, " ") != step.told || sums.Renamed != len(told) {
			t.Errorf("%s: asked %q, told %q, %+v, %v", step.what, asked, told, sums, err)
		}
	}
	seen := map[string]bool{}
	for _, id := range idsIn(t, d.out) {
		if seen[id] {
			t.Errorf("%s stands twice", id)
		}
		seen[id] = true
	}
	if len(seen) != 9 {
		t.Errorf("%v", seen)
	}
}

// An item that failed leaves its id to the corrected one; ids count in the output alone.
func TestFailedItemKeepsNoID(t *testing.T) {
	d := newDesk(t, ask("a"), ask("b"))
	d.answer = func(it *Item) (provider.Reply, error) {
		if it.ID == "a" {
			return provider.Reply{}, batch.Permanent(errors.New("no"))
		}
		return good, nil
	}
	d.run()
	d.answer = func(*Item) (provider.Reply, error) { return good, nil }
	write(t, d.in, strings.Replace(ask("a"), `"p"`, `"corrected"`, 1)+"\n"+ask("b"))
	if sums, asked, err := d.run(); err != nil || asked != "a" || sums.Renamed != 0 {
		t.Errorf("asked %q, %+v, %v", asked, sums, err)
	}
}
