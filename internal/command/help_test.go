package command

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// "headrace help time" has a line for each word that the sum of a run's time may have.
func TestHelpOfTimeHasEachWord(t *testing.T) {
	code, help, errs := inWorld(t, nil, nil, "help", "time")
	if code != ExitOK || errs != "" {
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

// "headrace help network" names each flag and variable of the network, and each header that is
// refused or has the key's place. It fits 80 columns, and headrace help lists it.
func TestHelpOfNetwork(t *testing.T) {
	code, help, errs := inWorld(t, nil, nil, "help", "network")
	if code != ExitOK || errs != "" {
		t.Fatal(code, errs)
	}
	words := strings.Fields(flagsIn[Net] + " timeout stream stream-idle item-timeout deadline insecure-http first-answer outage-patience api-key-env")
	for i, name := range words {
		words[i] = "--" + name
	}
	words = append(words, "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "HTTP/2", "User-Agent", "env:", "file:")
	for name := range notForUsers {
		words = append(words, strings.TrimPrefix(name, "X-"))
	}
	for _, word := range append(words, ofKeys...) {
		if !strings.Contains(strings.ToLower(help), strings.ToLower(word)) {
			t.Errorf("no %s", word)
		}
	}
	for line := range strings.Lines(help) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if _, all, _ := inWorld(t, nil, nil, "help"); !strings.Contains(all, "headrace network ") {
		t.Errorf("it is not listed in\n%s", all)
	}
}
