package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// otherwise maps an operator to the one that replaces it.
var otherwise = map[token.Token]struct {
	text, operator string
}{
	token.LSS: {"<=", "edge"}, token.LEQ: {"<", "edge"}, token.GTR: {">=", "edge"}, token.GEQ: {">", "edge"},
	token.EQL: {"!=", "negate"}, token.NEQ: {"==", "negate"},
	token.LAND: {"||", "and or"}, token.LOR: {"&&", "and or"},
	token.ADD: {"-", "arithmetic"}, token.SUB: {"+", "arithmetic"}, token.MUL: {"/", "arithmetic"}, token.QUO: {"*", "arithmetic"},
}

// words maps names to those that replace them.
var words = map[string]string{"min": "max", "max": "min", "true": "false", "false": "true"}

// node notes the mutants of one node itself.
func (f *finder) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if o, ok := otherwise[n.Op]; ok && !hasText(n) {
			f.add(o.operator, n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), o.text)
		}
	case *ast.IfStmt:
		f.negate(n.Cond)
	case *ast.CaseClause:
		for _, e := range n.List {
			if _, compares := e.(*ast.BinaryExpr); compares {
				f.negate(e)
			}
		}
	case *ast.BasicLit:
		f.number(n)
	case *ast.Ident:
		if to, ok := words[n.Name]; ok {
			f.add("word", n.Pos(), n.End(), to)
		}
	case *ast.ReturnStmt:
		f.zero(n)
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
		f.add("drop", n.Pos(), n.End(), "")
	case *ast.AssignStmt:
		f.assign(n)
	}
}

// negate negates a condition. A single comparison of == or != has such a mutant already.
func (f *finder) negate(e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	f.add("negate", e.Pos(), e.End(), "!("+f.textOf(e)+")")
}

// number changes a number: an integer by one, a fraction by half.
func (f *finder) number(n *ast.BasicLit) {
	switch n.Kind {
	case token.INT:
		f.add("number", n.Pos(), n.End(), "("+n.Value+" + 1)")
	case token.FLOAT:
		x, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64)
		if err != nil {
			return
		}
		text := fmt.Sprintf("(%s / 2)", n.Value)
		if x == 0 {
			text = "0.5"
		}
		f.add("number", n.Pos(), n.End(), text)
	}
}

// zero makes a function return zero values.
func (f *finder) zero(n *ast.ReturnStmt) {
	if f.result == nil || len(n.Results) == 0 {
		return
	}
	var zeros []string
	for _, field := range f.result.List {
		for range max(1, len(field.Names)) {
			zeros = append(zeros, "*new("+f.textOf(field.Type)+")")
		}
	}
	text := "return " + strings.Join(zeros, ", ")
	switch was := f.textOf(n); was {
	case "return nil", "return 0", "return false", `return ""`: // it returns zero already
	default:
		f.add("return zero", n.Pos(), n.End(), text)
	}
}

// assign drops an assignment to an existing variable. The names on the right are still used,
// or it would not compile.
func (f *finder) assign(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return
	}
	blanks := make([]string, len(n.Lhs))
	for i := range blanks {
		blanks[i] = "_"
	}
	right := f.textOf(n.Rhs[0])
	if len(n.Rhs) > 1 {
		right = string(f.source[f.file.Offset(n.Rhs[0].Pos()):f.file.Offset(n.Rhs[len(n.Rhs)-1].End())])
	}
	f.add("drop", n.Pos(), n.End(), strings.Join(blanks, ", ")+" = "+right)
}

// hasText reports whether an expression joins words: they decide nothing.
func hasText(n ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		found = found || ok && lit.Kind == token.STRING
		return !found
	})
	return found
}
