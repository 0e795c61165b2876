package command

import (
	"strings"
	"testing"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/limiter"
)

// It is a topic of the help.
func TestHelpHasNetwork(t *testing.T) {
	code, help, errs := inWorld(t, nil, nil, "help", "network")
	if code != exit.OK || errs != "" || !strings.HasPrefix(help, "How calls reach the provider. ") {
		t.Error(code, errs, help)
	}
	if _, all, _ := inWorld(t, nil, nil, "help"); !strings.Contains(all, "headrace network ") {
		t.Errorf("it is not listed in\n%s", all)
	}
}

// "headrace help time" has a line for each word that the sum of a run's time may have.
func TestHelpOfTimeHasEachWord(t *testing.T) {
	code, help, errs := inWorld(t, nil, nil, "help", "time")
	if code != exit.OK || errs != "" {
		t.Fatal(code, errs)
	}
	words := []string{limiter.BoundOutput.String()}
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
