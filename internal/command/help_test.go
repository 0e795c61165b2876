package command

import (
	"strings"
	"testing"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/observe"
)

// "headrace help time" has a line for each word that the sum of a run's time may have.
func TestHelpOfTimeHasEachWord(t *testing.T) {
	code, help, errs := inWorld(t, nil, nil, "help", "time")
	if code != ExitOK || errs != "" {
		t.Fatal(code, errs)
	}
	words := []string{string(observe.Output)}
	for b := range machine.Bound(machine.Bounds) {
		if b != machine.BoundNone {
			words = append(words, strings.ReplaceAll(b.String(), "_", " "))
		}
	}
	for _, word := range words {
		if !strings.Contains(help, "\n  "+word+" ") && !strings.Contains(help, ", "+word) && !strings.Contains(help, "\n  "+word+",") {
			t.Errorf("no line for %q in\n%s", word, help)
		}
	}
}
