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

// forbidden lists, by package, the functions that use the world: they read a clock or wait for
// one, draw chance that nobody seeded, or change the runtime.
var forbidden = map[string]func(name string) bool{
	"time":  oneOf("Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"),
	"rand":  func(name string) bool { return !oneOf("New", "NewPCG", "Rand")(name) },
	"debug": func(name string) bool { return name != "Stack" },
}

// oneOf returns a function that reports whether a name is among these.
func oneOf(names ...string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// Check fails the test for everything impure in the test's own package. The package may import only allowed. Check
// also fails if it finds fewer than the given number of files.
func Check(t *testing.T, files int, allowed ...string) {
	t.Helper()
	Each(t, ".", files, func(name string) ([]string, error) { return Pure(name, nil, oneOf(allowed...)) })
}

// Each fails the test for the faults that find returns for the files of a folder, tests excepted.
// It also fails if there are fewer than the given number of files.
func Each(t *testing.T, dir string, files int, find func(name string) ([]string, error)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(names) < files {
		t.Errorf("%s: only %d files were checked", dir, len(names))
	}
	for _, name := range names {
		faults, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	}
}

// Pure returns the impurities of a file: the one of that name, or src as parser.ParseFile takes
// it. allowed reports whether the file may import a package.
func Pure(name string, src any, allowed func(path string) bool) ([]string, error) {
	return faultsIn(name, src, func(n ast.Node) string {
		switch n := n.(type) {
		case *ast.ImportSpec:
			path, _ := strconv.Unquote(n.Path.Value)
			if !allowed(path) {
				return "imports " + path
			}
			if n.Name != nil { // another name would hide forbidden uses
				return "calls " + path + " by another name"
			}
		case *ast.GoStmt:
			return "starts a goroutine"
		case *ast.ChanType:
			return "has a channel"
		case *ast.SelectStmt, *ast.SendStmt:
			return "waits"
		}
		return worldUse(n)
	})
}

// LockFree returns the locks, atomics and clocks of a file, as Pure does.
func LockFree(name string, src any) ([]string, error) {
	return faultsIn(name, src, func(n ast.Node) string {
		if i, is := n.(*ast.ImportSpec); is {
			switch path, _ := strconv.Unquote(i.Path.Value); {
			case path == "sync", path == "sync/atomic":
				return "imports " + path
			case path == "time" && i.Name != nil:
				return "calls time by another name"
			}
		}
		if of, is := n.(*ast.SelectorExpr); is && !isPackage(of, "time") {
			return ""
		}
		return worldUse(n)
	})
}

// worldUse returns how a node uses the world; "" if it does not.
func worldUse(n ast.Node) string {
	if of, is := n.(*ast.SelectorExpr); is {
		for pkg, bad := range forbidden {
			if isPackage(of, pkg) && bad(of.Sel.Name) {
				return "uses " + pkg + "." + of.Sel.Name
			}
		}
	}
	return ""
}

func isPackage(n *ast.SelectorExpr, name string) bool {
	of, is := n.X.(*ast.Ident)
	return is && of.Name == name
}

// faultsIn parses a file, and returns what fault says of its nodes, each with its place.
func faultsIn(name string, src any, fault func(n ast.Node) string) (faults []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n != nil {
			if what := fault(n); what != "" {
				faults = append(faults, set.Position(n.Pos()).String()+": "+what)
			}
		}
		return true
	})
	return faults, nil
}
