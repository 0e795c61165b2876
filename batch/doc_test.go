package batch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// What Run says of itself names each error that errors.Is may find, and each kind of
// failure; and each kind has its name in this package.
func TestRunIsDocumented(t *testing.T) {
	said, vars, consts := runComment(t)
	for _, name := range vars {
		if strings.HasPrefix(name, "Err") && !strings.Contains(said, "["+name+"]") {
			t.Errorf("the documentation of Run does not speak of %s", name)
		}
	}
	kinds := 0
	for k := provider.Kind(0); k == 0 || k.String() != provider.Unknown.String(); k++ {
		kinds++
	}
	named := 0
	for _, name := range consts {
		if strings.Contains(said, name) {
			named++
		} else {
			t.Errorf("the documentation of Run does not speak of the kind %s", name)
		}
	}
	if kinds != named {
		t.Errorf("%d kinds have names here, of %d", named, kinds)
	}
}

// runComment is the comment on Run, the names of the package's exported variables, and of
// the constants that name kinds.
func runComment(t *testing.T) (comment string, vars, kinds []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "Run" && n.Recv == nil {
					comment = n.Doc.Text()
				}
				return false
			case *ast.GenDecl:
				for _, spec := range n.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok {
						continue
					}
					for i, id := range v.Names {
						switch {
						case n.Tok == token.VAR && id.IsExported():
							vars = append(vars, id.Name)
						case n.Tok == token.CONST && i < len(v.Values) && isKind(v.Values[i]):
							kinds = append(kinds, id.Name)
						}
					}
				}
			}
			return true
		})
	}
	return comment, vars, kinds
}

// isKind reports whether a value is one of package provider's, all of which are kinds.
func isKind(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "provider"
}

// Who looks for a run that survives a kill finds in the package's own words where it is.
func TestPackageNamesDurableResume(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(file.Doc.Text()), " "); !strings.Contains(text, "Durable resume is the package batch/promptfile") {
		t.Error("the package's documentation does not say what durable resume is")
	}
}
