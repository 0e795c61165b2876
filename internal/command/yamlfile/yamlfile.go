package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/disk"
)

// A Form is a kind of file, in the words of complaints.
type Form struct {
	Flag  string // that names the file, such as --config
	Is    string // such as "a YAML file of flags"
	Entry string // such as "a flag and its value"
	Write string // how an entry looks, such as `write one flag a line, as in "rpm: 600"`
}

// maxBytes is the greatest length of a file, in bytes: every flag with a page of text for a template,
// many times over.
const maxBytes = 1 << 20

// The parser takes time by the square of what follows. It is asked only about files for which that
// is a few seconds at the very most.
const (
	mostNested = 64     // lists and maps in each other; a file of flags, lanes and pools has 5
	mostTokens = 50_000 // 256 lanes of 40 words have 31,000
)

// A File is one of a user's, and what is wrong with it.
type File struct {
	Name   string
	Faults []error
	form   Form
	docs   []*ast.DocumentNode
}

// Read reads the file of that name. It refuses one that is longer than most, and reads no more
// than that: a device may have no end.
func (f Form) Read(path string) (*File, error) {
	in, err := os.Open(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, f.unreadable(path, err)
	}
	defer func() { _ = in.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	switch {
	case err != nil:
		return nil, f.unreadable(path, err)
	case len(text) > maxBytes:
		return nil, exit.Refuse("%s:%d: the file is longer than %d bytes: name %s", path, 1+bytes.Count(text, []byte("\n")), maxBytes, f.Is)
	}
	return f.Parse(path, string(text))
}

// Parse reads the text of a file of that name. Editors of Windows begin it with a byte order mark, which
// is no part of the first word.
func (f Form) Parse(name, text string) (*File, error) {
	tokens := lexer.Tokenize(strings.TrimPrefix(text, "\ufeff"))
	if err := f.checkSize(name, tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, f.syntaxFault(name, err)
	}
	return &File{Name: name, form: f, docs: file.Docs}, nil
}

// checkSize refuses a file that would keep the parser busy for minutes.
func (f Form) checkSize(name string, tokens token.Tokens) error {
	if len(tokens) > mostTokens {
		return exit.Refuse("%s:%d: the file has more than %d words and marks: name %s", name, tokens[mostTokens].Position.Line, mostTokens, f.Is)
	}
	brackets, dashes := 0, 0
	for _, t := range tokens {
		dashes++
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets, dashes = brackets+1, 0
		case token.SequenceEndType, token.MappingEndType:
			brackets, dashes = max(0, brackets-1), 0
		case token.SequenceEntryType:
		default:
			dashes = 0
		}
		if max(brackets, dashes) > mostNested {
			return exit.Refuse("%s:%d: more than %d lists or maps are in each other: close the brackets, and %s", name, t.Position.Line, mostNested, f.Write)
		}
	}
	return nil
}

// unreadable returns a refusal that says why a file cannot be read.
func (f Form) unreadable(path string, err error) error {
	switch err = disk.Bare(err); {
	case errors.Is(err, fs.ErrNotExist):
		return exit.Refuse("%s: %s: there is no such file: check the name", f.Flag, path)
	case errors.Is(err, syscall.EISDIR):
		return exit.Refuse("%s: %s: it is a directory: name %s", f.Flag, path, f.Is)
	}
	return exit.Refuse("%s: %s: %v: check the permissions", f.Flag, path, err)
}

// syntaxFault returns a refusal that names the line. It leaves out the parser's own text, which would repeat lines
// around it and any secret in them.
func (f Form) syntaxFault(name string, err error) error {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return exit.Refuse("%s:%d: not YAML: %s: %s", name, at.GetToken().Position.Line, exit.OneLine(at.GetMessage()), f.Write)
	}
	return exit.Refuse("%s: not YAML: %s", name, f.Write)
}

// Complain notes what is wrong at a place of the file, and what to do.
func (f *File) Complain(at ast.Node, what, advice string) {
	f.Faults = append(f.Faults, fmt.Errorf("%s:%d: %s: %s", f.Name, LineOf(at), what, advice))
}

// LineOf returns the line of a node.
func LineOf(at ast.Node) int {
	if at == nil || at.GetToken() == nil {
		return 1
	}
	return at.GetToken().Position.Line
}

// Entries returns the names and values of the file; none if it is empty or holds only comments.
func (f *File) Entries() (all []*ast.MappingValueNode) {
	for i, doc := range f.docs {
		if i > 0 {
			f.Complain(doc.Body, "a second YAML document begins", "keep one, without a --- line")
			break
		}
		switch body := doc.Body.(type) {
		case nil:
		case *ast.CommentGroupNode, *ast.NullNode:
		case *ast.MappingValueNode:
			all = append(all, body)
		case *ast.MappingNode:
			all = append(all, body.Values...)
		default:
			f.Complain(body, "not "+f.form.Entry, f.form.Write)
		}
	}
	return all
}

// Plain returns the text of a scalar; false for an anchor, alias, tag, list or map, which have no meaning there.
func Plain(v ast.Node) (string, bool) {
	switch v := v.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return v.GetToken().Value, true
	}
	return "", false
}

// Section returns the entries below an entry; nil if it has none.
func Section(s *ast.MappingValueNode) []*ast.MappingValueNode {
	switch v := s.Value.(type) {
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}
	case *ast.MappingNode:
		return v.Values
	}
	return nil
}

// List reads a list of words, or a single one.
func (f *File) List(s *ast.MappingValueNode, of string) (words []string) {
	name := s.Key.GetToken().Value
	if one, ok := Plain(s.Value); ok && one != "" {
		return []string{one}
	}
	sequence, is := s.Value.(*ast.SequenceNode)
	if !is || len(sequence.Values) == 0 {
		f.Complain(s.Key, name+" is not a list of "+of, fmt.Sprintf("write it as in \"%s: [a, b]\"", name))
		return nil
	}
	for _, v := range sequence.Values {
		word, ok := Plain(v)
		if !ok || word == "" {
			f.Complain(v, name+" has an entry that is not a name", fmt.Sprintf("write it as in \"%s: [a, b]\"", name))
			continue
		}
		words = append(words, word)
	}
	return words
}

// Clipped shortens a text of the file to what helps to find it.
func Clipped(s string) string {
	const shown = 40
	if r := []rune(s); len(r) > shown {
		return string(r[:shown]) + "…"
	}
	return s
}
