package batch

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/must"
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
	files := must.Get(filepath.Glob("*.go"))(t)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments))(t)
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
	file := must.Get(parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments))(t)
	if text := strings.Join(strings.Fields(file.Doc.Text()), " "); !strings.Contains(text, "Durable resume is the package batch/promptfile") {
		t.Error("the package's documentation does not say what durable resume is")
	}
}

var rewrite = flag.Bool("rewrite", false, "write the fields of aliases into their comments anew")

// aliased are the packages whose types have a name here.
var aliased = map[string]string{"limiter": "../limiter", "machine": "../coordinator/machine", "provider": "../provider"}

// A source is a file, and where its syntax stands in it.
type source struct {
	path string
	text []byte
	at   *token.FileSet
	*ast.File
}

func sourcesIn(t *testing.T, dir string) (all []source) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(dir, err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text := must.Get(os.ReadFile(path))(t)
		at := token.NewFileSet()
		file := must.Get(parser.ParseFile(at, path, text, parser.ParseComments))(t)
		all = append(all, source{path, text, at, file})
	}
	return all
}

// types calls f with each type of a file, and with its comment.
func (s *source) types(f func(spec *ast.TypeSpec, doc *ast.CommentGroup)) {
	for _, d := range s.Decls {
		if group, is := d.(*ast.GenDecl); is && group.Tok == token.TYPE {
			for _, one := range group.Specs {
				spec := one.(*ast.TypeSpec)
				f(spec, cmp.Or(spec.Doc, group.Doc))
			}
		}
	}
}

func (s *source) offset(p token.Pos) int { return s.at.Position(p).Offset }

// made returns the Go text of a type's fields or elements. It returns "" for another basic
// type or an interface.
func (s *source) made(spec *ast.TypeSpec) string {
	switch spec.Type.(type) {
	case *ast.StructType, *ast.ArrayType:
	default:
		return ""
	}
	text := string(s.text[s.offset(spec.Type.Pos()):s.offset(spec.Type.End())])
	if fields, is := spec.Type.(*ast.StructType); is {
		for _, field := range fields.Fields.List {
			if len(field.Names) > 0 && !field.Names[0].IsExported() {
				text = withoutLine(text, string(s.text[s.offset(field.Pos()):s.offset(field.End())]))
			}
		}
	}
	closing := text[strings.LastIndex(text, "\n")+1:]
	indent := closing[:len(closing)-len(strings.TrimLeft(closing, "\t"))]
	return strings.ReplaceAll(text, "\n"+indent, "\n")
}

// withoutLine leaves out the line that begins with a field, and an empty one before it. A
// struct that is one line stays as it is.
func withoutLine(text, field string) string {
	at := strings.Index(text, "\t"+field)
	if at < 0 {
		return text
	}
	before := strings.TrimRight(text[:at], "\t\n")
	return before + text[at+strings.IndexByte(text[at:], '\n'):]
}

// commented is a comment with a type's fields behind what it says, as lines of a file.
func commented(doc *ast.CommentGroup, fields, indent string) string {
	var lines []string
	for _, c := range doc.List {
		if !strings.HasPrefix(c.Text, "//\t") {
			lines = append(lines, c.Text)
		}
	}
	for len(lines) > 0 && lines[len(lines)-1] == "//" {
		lines = lines[:len(lines)-1]
	}
	lines = append(lines, "//")
	for line := range strings.SplitSeq(fields, "\n") {
		lines = append(lines, strings.TrimRight("//\t"+line, "\t"))
	}
	return strings.Join(lines, "\n"+indent)
}

// "go doc batch LaneConfig" shows what an alias says of itself, and nothing of the type for
// which it stands. So each alias of a struct says in its comment what fields it has, as they
// stand where they are declared.
func TestAliasesShowTheirFields(t *testing.T) {
	made := map[string]string{}
	for name, dir := range aliased {
		for _, s := range sourcesIn(t, dir) {
			s.types(func(spec *ast.TypeSpec, _ *ast.CommentGroup) { made[name+"."+spec.Name.Name] = s.made(spec) })
		}
	}
	shown := map[string]bool{}
	for _, s := range sourcesIn(t, ".") {
		var edits []func()
		s.types(func(spec *ast.TypeSpec, doc *ast.CommentGroup) {
			of, is := spec.Type.(*ast.SelectorExpr)
			if !is || !spec.Assign.IsValid() {
				return
			}
			fields := made[fmt.Sprint(of.X, ".", of.Sel)]
			if fields == "" {
				return
			}
			shown[spec.Name.Name] = true
			from, to := s.offset(doc.Pos()), s.offset(doc.End())
			indent := string(s.text[bytes.LastIndexByte(s.text[:from], '\n')+1 : from])
			is, want := string(s.text[from:to]) == commented(doc, fields, indent), commented(doc, fields, indent)
			if !is && !*rewrite {
				t.Errorf("%s: the comment of %s does not show its fields as they are: go test ./batch -run %s -rewrite", s.path, spec.Name, t.Name())
			}
			edits = append(edits, func() { s.text = slices.Concat(s.text[:from], []byte(want), s.text[to:]) })
		})
		if slices.Reverse(edits); *rewrite && len(edits) > 0 {
			for _, edit := range edits {
				edit()
			}
			if err := os.WriteFile(s.path, s.text, 0o644); err != nil { //nolint:gosec // as all sources are
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"Limits", "LaneConfig", "Error", "Ledger"} {
		if !shown[name] {
			t.Errorf("%s is no alias that was looked at", name)
		}
	}
}
