package main

import (
	"strings"
	"testing"
)

// An expression that matches no world, or is none, is refused by the flag that it came from.
func TestPickNamesTheFlag(t *testing.T) {
	var b bankFlags
	for _, flag := range []string{"-trace", "-worlds"} {
		for _, expression := range []string{"no world has this title", "("} {
			if _, err := b.pick(flag, expression); err == nil || !strings.HasPrefix(err.Error(), flag+": ") {
				t.Errorf("%s %q: %v", flag, expression, err)
			}
		}
	}
}
