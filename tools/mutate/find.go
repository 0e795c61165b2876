package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// A mutant is one edit of one file.
type mutant struct {
	pkg      *target
	file     string // from the root
	line     int
	from, to int // bytes of the file that are replaced
	text     string
	was      string
	operator string
	within   string // the function
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s: %s → %s", m.file, m.line, m.within, m.operator, short(m.was), short(m.text))
}

// short keeps an edit on one line.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return "nothing"
	}
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

// findAll finds every mutant of the targets, or those in one package, file or line.
func findAll(root, in string) ([]mutant, error) {
	var all []mutant
	for i := range targets {
		pkg := &targets[i]
		files, err := filepath.Glob(filepath.Join(root, pkg.dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			file, _ := filepath.Rel(root, path)
			if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "doc.go") {
				continue
			}
			found, err := findIn(path, pkg, filepath.ToSlash(file))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	all = slices.DeleteFunc(all, func(m mutant) bool { return !m.isIn(in) })
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing to break in %q", in)
	}
	return all, nil
}

func (m mutant) isIn(in string) bool {
	return in == "" || in == m.pkg.dir || in == m.file || in == fmt.Sprintf("%s:%d", m.file, m.line)
}

// findIn returns every mutant of one file, in the order of its declarations.
func findIn(path string, pkg *target, file string) ([]mutant, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := finder{source: source, file: fset.File(tree.Pos()), base: mutant{pkg: pkg, file: file}}
	for _, d := range tree.Decls {
		f.decl(d)
	}
	return f.found, nil
}

// choose puts the mutants in the order of the trials. The packages take turns, so do the
// operators in each, and chance chooses among one operator's. Otherwise half of all mutants
// would be about numbers.
func choose(all []mutant, seed uint64) []mutant {
	rng := rand.New(rand.NewPCG(seed, 1))
	groups := map[string]map[string][]mutant{}
	for _, m := range all {
		if groups[m.pkg.dir] == nil {
			groups[m.pkg.dir] = map[string][]mutant{}
		}
		groups[m.pkg.dir][m.operator] = append(groups[m.pkg.dir][m.operator], m)
	}
	var lines [][]mutant
	for _, pkg := range sortedKeys(groups) {
		var line [][]mutant
		for _, operator := range sortedKeys(groups[pkg]) {
			g := groups[pkg][operator]
			rng.Shuffle(len(g), func(i, j int) { g[i], g[j] = g[j], g[i] })
			line = append(line, g)
		}
		lines = append(lines, inTurn(line))
	}
	return inTurn(lines)
}

// inTurn takes one of each line in turn, until all are empty.
func inTurn(lines [][]mutant) (all []mutant) {
	for more := true; more; {
		more = false
		for i, l := range lines {
			if len(l) > 0 {
				all, lines[i], more = append(all, l[0]), l[1:], true
			}
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// A finder walks through one file.
type finder struct {
	source []byte
	file   *token.File
	base   mutant
	found  []mutant
	result *ast.FieldList // of the function that it is in
}

// decl looks at the declarations that decide something: named numbers, and functions, except
// those that only return words or have no effect.
func (f *finder) decl(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Body == nil || harmless(d.Name.Name) {
			return
		}
		f.base.within, f.result = d.Name.Name, d.Type.Results
		f.walk(d.Body)
	case *ast.GenDecl:
		if d.Tok == token.CONST {
			f.base.within, f.result = "const", nil
			f.walk(d)
		}
	}
}

// harmless reports whether a function cannot decide anything: it makes words for people, or
// warms the processor's memory.
func harmless(name string) bool {
	name = strings.ToLower(name)
	return name == "string" || name == "error" || name == "warm" || strings.HasSuffix(name, "words")
}

// walk finds the mutants of a node and of all below it, except in panics. Within a function literal
// result is the literal's own, for the zeros that it may return.
func (f *finder) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok {
			outer := f.result
			f.result = lit.Type.Results
			f.walk(lit.Body)
			f.result = outer
			return false
		}
		if n == nil || isPanic(n) {
			return false
		}
		f.node(n)
		return true
	})
}

// isPanic reports a panic: a fault that cannot happen is not worth a test.
func isPanic(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "panic"
}

// add notes a mutant that replaces the text between two places.
func (f *finder) add(operator string, from, to token.Pos, text string) {
	m := f.base
	m.operator, m.text = operator, text
	m.from, m.to = f.file.Offset(from), f.file.Offset(to)
	m.line, m.was = f.file.Line(from), string(f.source[m.from:m.to])
	f.found = append(f.found, m)
}

func (f *finder) textOf(n ast.Node) string {
	return string(f.source[f.file.Offset(n.Pos()):f.file.Offset(n.End())])
}
