package keeper

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

// allowed is all that a keeper may know of the world. What is not on the list can start
// something, wait for something, or ask for the time.
var allowed = []string{
	"cmp", "errors", "fmt", "maps", "math", "slices", "time",
	"github.com/headrace/headrace/coordinator/machine", "github.com/headrace/headrace/limiter", "github.com/headrace/headrace/cluster/permit",
}

// The package imports nothing that acts, starts no goroutine, has no channel, asks no clock,
// and draws no chance.
func TestPure(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) < 7 {
		t.Fatalf("only %d files are looked at: %v", len(names), err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			for _, fault := range impurities(t, name, nil) {
				t.Error(fault)
			}
		}
	}
}

// The test above sees what it forbids: without this it could pass by blindness.
func TestPureSees(t *testing.T) {
	for _, body := range []string{
		`import "sync"`, `import "context"`, `import "os"`, `func f() { go f() }`, `var c chan int`, `func f() { select {} }`,
		`import "time"; var x = time.Now`, `import "math/rand/v2"; var x = rand.Int()`,
	} {
		if len(impurities(t, "x.go", "package x;"+body)) == 0 {
			t.Errorf("not seen: %s", body)
		}
	}
}

func impurities(t *testing.T, name string, src any) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	fault := func(n ast.Node, what string) { faults = append(faults, set.Position(n.Pos()).String()+": "+what) }
	for _, i := range file.Imports {
		if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(allowed, path) || i.Name != nil {
			fault(i, "imports "+path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			fault(n, "starts a goroutine")
		case *ast.ChanType:
			fault(n, "has a channel")
		case *ast.SelectStmt:
			fault(n, "waits")
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			if of != nil && of.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, n.Sel.Name) {
				fault(n, "asks the clock: time."+n.Sel.Name)
			}
			if of != nil && of.Name == "rand" && n.Sel.Name != "Rand" {
				fault(n, "draws chance: rand."+n.Sel.Name)
			}
		}
		return true
	})
	return faults
}
