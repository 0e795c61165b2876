package purity

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

// clocks lists the functions of package time that read a clock, or wait for one.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// Check fails the test for everything impure in the test's own package. The package may import only allowed. Check
// also fails if it finds fewer than the given number of files.
func Check(t *testing.T, files int, allowed ...string) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		looked++
		faults, err := Faults(name, nil, allowed)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	}
	if looked < files {
		t.Errorf("only %d files were looked at", looked)
	}
}

// Faults returns the impurities of a file: the one of that name, or src as parser.ParseFile takes it.
func Faults(name string, src any, allowed []string) (faults []string, err error) {
	l := &look{set: token.NewFileSet()}
	file, err := parser.ParseFile(l.set, name, src, 0)
	if err != nil {
		return nil, err
	}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if !slices.Contains(allowed, path) {
			l.fault(i, "imports "+path)
		}
		if i.Name != nil { // another name would hide forbidden uses
			l.fault(i, "calls "+path+" by another name")
		}
	}
	ast.Inspect(file, l.visit)
	return l.faults, nil
}

// look is a walk through a file.
type look struct {
	set    *token.FileSet
	faults []string
}

func (l *look) fault(n ast.Node, what string) {
	l.faults = append(l.faults, l.set.Position(n.Pos()).String()+": "+what)
}

func (l *look) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		l.fault(n, "starts a goroutine")
	case *ast.ChanType:
		l.fault(n, "has a channel")
	case *ast.SelectStmt:
		l.fault(n, "waits")
	case *ast.SelectorExpr:
		l.selector(n)
	}
	return true
}

func (l *look) selector(n *ast.SelectorExpr) {
	of, is := n.X.(*ast.Ident)
	switch {
	case !is:
	case of.Name == "time" && slices.Contains(clocks, n.Sel.Name):
		l.fault(n, "asks the clock: time."+n.Sel.Name)
	case of.Name == "rand" && n.Sel.Name != "Rand":
		l.fault(n, "draws chance: rand."+n.Sel.Name)
	}
}
