package prompts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"text/template"
	"text/template/parse"
)

// nullError says that a template prints a null.
type nullError struct{ at string } // the action; "" for a function that prints by itself

func (*nullError) Error() string { return "it is null" }

// printed returns a value as a template prints it.
func printed(at string, value any) (any, error) {
	switch value.(type) {
	case nil:
		return nil, &nullError{at}
	case map[string]any, []any:
	default:
		return value, nil
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a prompt goes out as it was written
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return string(bytes.TrimSpace(out.Bytes())), nil
}

// printer is the name by which templates call printed.
const printer = "_printed"

// printers returns printed, and the functions of the language that make a text from their
// arguments.
func printers() template.FuncMap {
	all := template.FuncMap{
		printer: printed,
		"printf": func(format string, args ...any) (string, error) {
			err := printAll(args)
			return fmt.Sprintf(format, args...), err
		},
	}
	for name, text := range map[string]func(...any) string{
		"print": fmt.Sprint, "println": fmt.Sprintln, "html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	} {
		all[name] = func(args ...any) (string, error) {
			err := printAll(args)
			return text(args...), err
		}
	}
	return all
}

// printAll turns each argument into its printed form.
func printAll(args []any) (err error) {
	for i, value := range args {
		if args[i], err = printed("", value); err != nil {
			return err
		}
	}
	return nil
}

// printJSON makes every action that prints pass its value to printed first. text/template
// has no other way to say how values of a type are printed.
func printJSON(tree *parse.Tree, node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, one := range n.Nodes {
			printJSON(tree, one)
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			return // it sets a variable
		}
		at := n.Pipe.String()
		n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{
			parse.NewIdentifier(printer).SetTree(tree).SetPos(n.Pos),
			&parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Quoted: strconv.Quote(at), Text: at},
		}})
	case *parse.IfNode:
		printJSON(tree, n.List)
		printJSON(tree, n.ElseList)
	case *parse.RangeNode:
		printJSON(tree, n.List)
		printJSON(tree, n.ElseList)
	case *parse.WithNode:
		printJSON(tree, n.List)
		printJSON(tree, n.ElseList)
	}
}
