package limiter

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var pureImports = []string{"cmp", "errors", "fmt", "math", "math/bits", "math/rand/v2", "slices", "strconv", "strings", "time"}

// ours are what a folder may import of this package's own, and which folders there are.
var ours = map[string][]string{
	".":                {"internal/measure"},
	"internal/measure": {},
	"internal/window":  {".", "internal/measure"},
	"plain":            {".", "internal/measure", "internal/window"},
	"model":            {".", "internal/measure", "internal/window"},
	"laws":             {".", "plain", "model"},
}

// home is the import path of this folder.
const home = "github.com/headrace/headrace/limiter"

// may reports whether a folder may import a package.
func may(dir, imported string) bool {
	return slices.Contains(pureImports, imported) || slices.ContainsFunc(ours[dir], func(own string) bool { return path.Join(home, own) == imported })
}

// The parts of allowed packages that read a clock, wait for one, or draw from a source
// that nobody seeded.
var impureNames = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"rand": {
		"Int", "IntN", "Int32", "Int32N", "Int64", "Int64N", "Uint32", "Uint32N", "Uint64", "Uint64N",
		"UintN", "Uint", "N", "Float32", "Float64", "NormFloat64", "ExpFloat64", "Perm", "Shuffle",
	},
}

// Nothing in this package or in those below it starts a goroutine, talks over a channel, reads a
// clock, or imports a package through which it could. What helps tests is left out.
func TestPackageIsPure(t *testing.T) {
	files := map[string]int{}
	err := filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "internal/parttest", e.Name() == "testdata":
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files[filepath.Dir(name)]++
		for _, fault := range impurities(t, name, string(src)) {
			t.Error(fault)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir := range ours {
		if files[dir] < 2 {
			t.Errorf("%s: only %d files were looked at", dir, files[dir])
		}
	}
	for dir := range files {
		if _, known := ours[dir]; !known {
			t.Errorf("%s: what may it import?", dir)
		}
	}
}

// The purity test sees each thing it forbids: without this it could pass by blindness.
func TestPurityTestSeesImpurity(t *testing.T) {
	for _, body := range []string{
		`import "sync"`,
		`import "context"`,
		`import "github.com/headrace/headrace/limiter/model"`,
		`func f() { go f() }`,
		`var c chan int`,
		`func f(c <-chan int) {}`,
		`func f() { select {} }`,
		`import "time"; var x = time.Now()`,
		`import "time"; var now = time.Now`,
		`import clock "time"; var x = clock.Since(clock.Time{})`,
		`import . "time"; var x = Now()`,
		`import "math/rand/v2"; var x = rand.Float64()`,
	} {
		if len(impurities(t, "x.go", "package x;"+body)) == 0 {
			t.Errorf("not seen: %s", body)
		}
	}
	const pure = `package x; import "math/rand/v2"; func f(r *rand.Rand) float64 { return r.Float64() }`
	if got := impurities(t, "x.go", pure); len(got) > 0 {
		t.Errorf("a seeded generator is pure, but: %v", got)
	}
}

func impurities(t *testing.T, name, src string) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	fault := func(n ast.Node, what string) {
		faults = append(faults, set.Position(n.Pos()).String()+": "+what)
	}
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !may(filepath.Dir(name), imported) {
			fault(spec, "import of "+imported)
		}
		if spec.Name != nil {
			fault(spec, "renamed import, under which this test would not know it")
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			fault(n, "go statement")
		case *ast.ChanType:
			fault(n, "channel")
		case *ast.SelectStmt, *ast.SendStmt:
			fault(n, "channel operation")
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && slices.Contains(impureNames[pkg.Name], n.Sel.Name) {
				fault(n, pkg.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return faults
}
