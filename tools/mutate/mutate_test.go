package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const sample = `package p

const share = 0.5

func f(a, b int) bool {
	if a < b {
		a++
	}
	panic("a" + "b")
	return a == 2
}

func (t T) String() string { return "a" }
`

// Of a file each mutant is found that its operators make, none in what only says words, and
// the same seed chooses the same order.
func TestMutantsAreFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := findIn(path, &targets[0], "p.go")
	if err != nil {
		t.Fatal(err)
	}
	var reported []string
	for _, m := range found {
		reported = append(reported, m.String())
	}
	want := []string{
		"p.go:3 const: number: 0.5 → (0.5 / 2)",
		"p.go:6 f: negate: a < b → !(a < b)",
		"p.go:6 f: edge: < → <=",
		"p.go:7 f: drop: a++ → nothing",
		"p.go:9 f: drop: panic(\"a\" + \"b\") → nothing",
		"p.go:10 f: return zero: return a == 2 → return *new(bool)",
		"p.go:10 f: negate: == → !=",
		"p.go:10 f: number: 2 → (2 + 1)",
	}
	if !slices.Equal(reported, want) {
		t.Errorf("found\n%q, want\n%q", reported, want)
	}
	if !slices.Equal(choose(slices.Clone(found), 3), choose(slices.Clone(found), 3)) {
		t.Error("one seed chooses two orders")
	}
}

// Each package that is promised to be broken has something to break: the four that decide,
// and observe, which says what they did.
func TestPackagesAreTargets(t *testing.T) {
	root, err := findRoot("")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"limiter", "limiter/model", "limiter/plain", "limiter/internal/measure", "limiter/internal/window", "coordinator/machine", "coordinator", "batch", "batch/serve/internal/line", "batch/serve/internal/queue", "observe"} {
		if _, err := findAll(root, dir); err != nil {
			t.Error(err)
		}
	}
}
