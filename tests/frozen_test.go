package tests

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
)

var rewriteFrozen = flag.Bool("rewrite-frozen", false, "write the list of public names again")

// frozenPackages are those whose public names users' programs rely on.
var frozenPackages = []string{"batch", "batch/paced", "batch/promptfile", "batch/serve", "batch/serve/door", "provider", "provider/anthropic", "provider/auth", "provider/converse", "provider/fleet", "provider/gemini", "provider/openai", "provider/wire"}

// A public name that is added gets a line in testdata/names.txt (-rewrite-frozen writes it). A name that goes keeps a
// deprecated alias for one version, or gets a line in CHANGELOG.md.
func TestPublicNamesAreFrozen(t *testing.T) {
	var names []string
	for _, folder := range frozenPackages {
		set := token.NewFileSet()
		paths, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no source in %s: %v", folder, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file := must.Get(parser.ParseFile(set, path, nil, parser.SkipObjectResolution))(t)
			names = append(names, publicNames(set, folder, file)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)

	const path = "testdata/names.txt"
	if *rewriteFrozen {
		must.Do(t, os.WriteFile(path, []byte(strings.Join(names, "\n")+"\n"), 0o644))
	}
	text := must.Get(os.ReadFile(path))(t)
	frozen := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for _, name := range frozen {
		if !slices.Contains(names, name) {
			t.Errorf("gone or changed: %s", name)
		}
	}
	for _, name := range names {
		if !slices.Contains(frozen, name) {
			t.Errorf("new, and not in %s: %s", path, name)
		}
	}
}

// publicNames gives the exported functions, methods, types, fields, variables and constants of a file, a line each.
func publicNames(set *token.FileSet, folder string, file *ast.File) (names []string) {
	add := func(kind, name string, n ast.Node) {
		var b bytes.Buffer
		if n != nil {
			if err := printer.Fprint(&b, set, n); err != nil {
				panic(err)
			}
		}
		names = append(names, strings.TrimRight(folder+": "+kind+" "+name+" "+strings.Join(strings.Fields(b.String()), " "), " "))
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if receiver := receiverOf(d); d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver)) {
				add("func", strings.TrimPrefix(receiver+"."+d.Name.Name, "."), d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							add(d.Tok.String(), name.Name, nil)
						}
					}
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						publicType(s, add)
					}
				}
			}
		}
	}
	return names
}

// receiverOf names the type of a method's receiver; "" for a function.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func publicType(s *ast.TypeSpec, add func(kind, name string, n ast.Node)) {
	switch x := s.Type.(type) {
	case *ast.StructType:
		add("type", s.Name.Name, nil)
		for _, f := range x.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					add("field", s.Name.Name+"."+name.Name, f.Type)
				}
			}
		}
	default:
		add("type", s.Name.Name, s.Type)
	}
}
