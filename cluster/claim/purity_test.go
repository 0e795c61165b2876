package claim

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

// allowed is all that claims may know of the world: nothing on the list can start something, wait for
// something, or draw lots.
var allowed = []string{"cmp", "errors", "fmt", "slices", "strconv", "strings", "time"}

// impure are the parts of package time that look at a clock or wait for one.
var impure = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// The machine imports nothing that acts, starts no goroutine, has no channel, and asks no clock.
func TestPure(t *testing.T) {
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
		for _, fault := range impurities(t, name, nil) {
			t.Error(fault)
		}
	}
	if looked < 9 {
		t.Errorf("only %d files were looked at", looked)
	}
}

// The test above sees what it forbids.
func TestPureSees(t *testing.T) {
	for _, body := range []string{
		`import "sync"; var m sync.Mutex`,
		`import "math/rand/v2"; var n = rand.Int()`,
		`import "time"; var now = time.Now`,
		`func f() { go f() }`,
		`var c chan int`,
		`func f() { select {} }`,
	} {
		if len(impurities(t, "x.go", "package x;"+body)) == 0 {
			t.Errorf("not seen: %s", body)
		}
	}
	if got := impurities(t, "x.go", `package x; import "time"; const d = time.Second`); len(got) > 0 {
		t.Errorf("durations are fine, but: %v", got)
	}
}

func impurities(t *testing.T, name string, src any) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	say := func(n ast.Node, what string) { faults = append(faults, set.Position(n.Pos()).String()+": "+what) }
	for _, i := range file.Imports {
		if path, _ := strconv.Unquote(i.Path.Value); !slices.Contains(allowed, path) {
			say(i, "imports "+path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say(n, "starts a goroutine")
		case *ast.ChanType:
			say(n, "has a channel")
		case *ast.SelectStmt:
			say(n, "waits")
		case *ast.SelectorExpr:
			if of, _ := n.X.(*ast.Ident); of != nil && of.Name == "time" && slices.Contains(impure, n.Sel.Name) {
				say(n, "asks the clock: time."+n.Sel.Name)
			}
		}
		return true
	})
	return faults
}
