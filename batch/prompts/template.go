package prompts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	template "github.com/DataDog/datadog-agent/pkg/template/text"

	"github.com/headrace/headrace/batch/internal/lines"
)

// ParseTemplate reads a template that makes a prompt from an item's fields. These are the
// fields of the object, or the cells of the row by the names of their columns, or, for
// text, the field prompt. Templates can neither read files nor run anything: they know
// only the functions of the language. An item fails if it lacks a field, or if a null
// would be printed. Objects and lists are printed as JSON.
func ParseTemplate(text string) (*template.Template, error) {
	t, err := template.New("template").Option("missingkey=error").Funcs(printers()).Parse(text)
	if err != nil {
		return nil, parseFault(err)
	}
	for _, one := range t.Templates() {
		printJSON(one.Tree, one.Root)
	}
	return t, nil
}

// ErrTemplate says that the template cannot be filled from a line.
var ErrTemplate = errors.New("template does not fit")

// errPromptTooLong stops a template that writes without end.
var errPromptTooLong = errors.New("the prompt becomes longer than a line may be")

// boundedBuffer collects at most max bytes.
type boundedBuffer struct {
	bytes.Buffer
	max int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		return 0, errPromptTooLong
	}
	return b.Buffer.Write(p)
}

// The messages of package text/template. Messages that do not match are passed on as they
// are.
var (
	parsing   = regexp.MustCompile(`^template: template:(\d+)(?::\d+)?: (.*)$`)
	executing = regexp.MustCompile(`^template: template:[\d:]+ executing "[^"]*" at <(.*?)>: (.*)$`)
)

// parseFault returns the error for a template that does not parse, with its line if it is not the first.
func parseFault(err error) error {
	match := parsing.FindStringSubmatch(err.Error())
	switch {
	case match == nil:
		return fmt.Errorf("prompts: %w", err)
	case match[1] != "1":
		return fmt.Errorf("prompts: line %s: %s", match[1], match[2])
	}
	return fmt.Errorf("prompts: %s", match[2])
}

// templateFault returns the complaint about a template that cannot be filled from these fields. For a missing field
// it lists the fields that there are.
func (r *Reader) templateFault(err error, fields map[string]any) *LineError {
	advice := "give the line this field, or change the template"
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	match := executing.FindStringSubmatch(text)
	if null, is := errors.AsType[*nullError](err); is && match != nil {
		if null.at == "" {
			null.at = match[1]
		}
		return newLineError(ErrTemplate, "give the line a value, or ask for it first, as in {{if .n}}{{.n}}{{end}}",
			"the template at {{%s}}: %v", null.at, null)
	}
	if match == nil {
		return newLineError(ErrTemplate, advice, "%s", strings.TrimPrefix(text, "template: "))
	}
	action, why := match[1], strings.TrimSuffix(match[2], " in type interface {}")
	if !strings.HasPrefix(why, "map has no entry") || strings.Count(action, ".") != 1 {
		return newLineError(ErrTemplate, advice, "the template at {{%s}}: %s", action, why)
	}
	names, noun := slices.Sorted(maps.Keys(fields)), "field"
	//exhaustive:enforce
	switch r.cfg.Format {
	case FormatCSV:
		names, noun, advice = r.columns, "column", "change the template or the header"
	case FormatText:
		advice = "change the template"
	case FormatJSONL:
	}
	return newLineError(ErrTemplate, advice, "the template asks for {{%s}}, but %s", action, thereAre(names, noun))
}

// shownNames bounds the columns or fields that a complaint names: a longer list helps
// nobody to find a slip.
const shownNames = 20

// thereAre lists the names that there are: the columns are a, b, c.
func thereAre(names []string, noun string) string {
	switch len(names) {
	case 0:
		return fmt.Sprintf("there are no %ss", noun)
	case 1:
		return fmt.Sprintf("the only %s is %s", noun, lines.Clip(names[0]))
	}
	var shown []string
	for _, name := range names[:min(shownNames, len(names))] {
		shown = append(shown, lines.Clip(name))
	}
	text := fmt.Sprintf("the %ss are %s", noun, strings.Join(shown, ", "))
	if more := len(names) - shownNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// nullError says that a template prints a null.
type nullError struct{ at string } // the action; "" for a function that prints by itself

func (*nullError) Error() string { return "it is null" }

// printable returns a value as a template prints it: objects and lists as JSON. It returns an error for a null. at
// names the action, for that error.
func printable(at string, value any) (any, error) {
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

// printer is the name by which templates call printable.
const printer = "_printed"

// printers returns the functions of a template: printable, and those of the language that make a text from their
// arguments.
func printers() template.FuncMap {
	all := template.FuncMap{
		printer: printable,
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

// printAll replaces each argument by its printable form.
func printAll(args []any) (err error) {
	for i, value := range args {
		if args[i], err = printable("", value); err != nil {
			return err
		}
	}
	return nil
}

// printJSON makes every action that prints pass its value to printable first. text/template has no other way to say
// how values of a type are printed.
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
		action := n.Pipe.String()
		n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{
			parse.NewIdentifier(printer).SetTree(tree).SetPos(n.Pos),
			&parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Quoted: strconv.Quote(action), Text: action},
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
