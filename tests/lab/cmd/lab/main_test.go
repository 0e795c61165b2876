package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func lines(t *testing.T, args ...string) string {
	var out strings.Builder
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The bank is measured, saved, compared with and traced.
func TestBank(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures.json")
	pick := []string{"-bank", "-worlds", "W18 24 s, told", "-law", "headrace", "-seeds", "1"}
	if got := lines(t, append(pick, "-save", file)...); !strings.Contains(got, "| W18 24 s, told, windows 1 s |") {
		t.Error(got)
	}
	if got := lines(t, append(pick, "-against", file)...); !strings.Contains(got, "0 of 1 worlds differ") {
		t.Error(got)
	}
	if got := lines(t, "-trace", "W18 24 s, told", "-seeds", "1"); !strings.Contains(got, "in flight") {
		t.Error(got)
	}
}

func TestMistakes(t *testing.T) {
	for _, args := range [][]string{
		{"-bank", "-worlds", "no such world"},
		{"-bank", "-worlds", "("},
		{"-bank", "-status", "500"},
		{"-bank", "-rate", "0"},
		{"-law", "none"},
		{"-seeds", "x"},
		{"-scenario", "random:3-1"},
		{"-bank", "-worlds", "W18 24 s, told", "-against", "no such file"},
	} {
		if err := run(args, &strings.Builder{}); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
}
