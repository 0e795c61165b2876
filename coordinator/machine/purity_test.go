package machine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// allowed is all that a machine may know of the world. What is not on the list can
// start something, wait for something, or ask for the time.
var allowed = []string{
	"cmp", "errors", "fmt", "maps", "math", "math/rand/v2", "runtime/debug", "slices", "strings", "time",
	"github.com/headrace/headrace/limiter", "github.com/headrace/headrace/limiter/laws",
}

// impure are the parts of package time that look at a clock or wait for one.
var impure = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// seeded are the parts of package math/rand/v2 that draw from a given seed.
var seeded = []string{"New", "NewPCG", "Rand"}

// The machine imports nothing that acts, starts no goroutine, has no channel, asks
// no clock, and draws no chance that was not seeded.
func TestPure(t *testing.T) {
	files := token.NewFileSet()
	for _, f := range sources(t, files) {
		for _, i := range f.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s: imports %s", files.Position(i.Pos()), path)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if what := impurity(n); what != "" {
				t.Errorf("%s: %s", files.Position(n.Pos()), what)
			}
			return true
		})
	}
}

// sources parses the files of the package that are not tests.
func sources(t *testing.T, files *token.FileSet) (parsed []*ast.File) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	if len(parsed) < 10 {
		t.Fatalf("only %d files were looked at", len(parsed))
	}
	return parsed
}

func impurity(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "starts a goroutine"
	case *ast.ChanType:
		return "has a channel"
	case *ast.SelectStmt:
		return "waits"
	case *ast.SelectorExpr:
		of, _ := n.X.(*ast.Ident)
		if of != nil && of.Name == "time" && slices.Contains(impure, n.Sel.Name) {
			return "asks the clock: time." + n.Sel.Name
		}
		if of != nil && of.Name == "debug" && n.Sel.Name != "Stack" {
			return "changes the runtime: debug." + n.Sel.Name
		}
		if of != nil && of.Name == "rand" && !slices.Contains(seeded, n.Sel.Name) {
			return "draws unseeded chance: rand." + n.Sel.Name
		}
	}
	return ""
}
