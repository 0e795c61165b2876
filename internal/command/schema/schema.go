package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/headrace/headrace/provider"
)

// A Schema says which answers fit. Many goroutines may use it.
type Schema struct {
	compiled *jsonschema.Schema
}

// Load reads the schema in a file. Files that it refers to must lie in the same folder, or below it.
func Load(file string) (*Schema, error) {
	return load(inFolderOf(file))
}

// load compiles the schema in one of the files.
func load(of *files, name string) (*Schema, error) {
	doc, err := of.readDoc(name)
	if err != nil {
		return nil, err
	}
	if err := checkIsSchema(doc); err != nil {
		return nil, err
	}
	at := (&url.URL{Scheme: "file", Path: "/" + name}).String()
	c := jsonschema.NewCompiler()
	c.UseLoader(of)
	if err := c.AddResource(at, doc); err != nil {
		return nil, faultOf(err)
	}
	compiled, err := c.Compile(at)
	if err != nil {
		return nil, faultOf(err)
	}
	s := &Schema{compiled}
	return s, s.checkCycle()
}

// decode reads one JSON value, with numbers as they are written.
func decode(text []byte) (doc any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("it ends too early")
		}
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	return doc, nil
}

// schemaKeywords are keywords of which any useful schema of an object has one.
var schemaKeywords = []string{"$ref", "$defs", "definitions", "type", "properties", "required", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "items"}

// checkIsSchema refuses the part of a request that holds a schema. As a schema, it would accept every answer.
func checkIsSchema(doc any) error {
	object, is := doc.(map[string]any)
	if _, is := doc.(bool); is {
		return nil
	}
	if !is {
		return errors.New("a schema is a JSON object")
	}
	inner := ""
	for _, name := range []string{"schema", "json_schema", "input_schema", "responseSchema"} {
		if _, is := object[name].(map[string]any); is {
			inner = name
		}
	}
	if inner == "" {
		return nil
	}
	for _, name := range schemaKeywords {
		if _, has := object[name]; has && !(name == "type" && inner == "json_schema") {
			return nil
		}
	}
	return fmt.Errorf("it holds a schema in %q: give a file with that alone", inner)
}

// faultOf returns an error of the compiler as one line of words.
func faultOf(err error) error {
	var (
		load    *jsonschema.LoadURLError
		invalid *jsonschema.SchemaValidationError
		wrong   *jsonschema.ValidationError
	)
	switch {
	case errors.As(err, &load):
		return fmt.Errorf("%s: %w", strings.TrimPrefix(load.URL, root), load.Err)
	case errors.As(err, &invalid) && errors.As(invalid.Err, &wrong):
		text := "it is not a schema: " + describe(wrong)
		if strings.Contains(text, "is not valid regex") {
			text += " (patterns are regular expressions of Go, which look neither ahead nor behind)"
		}
		return errors.New(text)
	}
	return errors.New(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "jsonschema: "), root, ""))
}

// checkCycle refuses a schema that only refers to itself: no answer would fit it.
func (s *Schema) checkCycle() error {
	for _, v := range []any{nil, map[string]any{}} {
		wrong := new(jsonschema.ValidationError)
		if errors.As(s.compiled.Validate(v), &wrong) && hasCycle(wrong) {
			return errors.New("it refers to itself in a circle")
		}
	}
	return nil
}

// hasCycle reports whether an error, or a cause of it, is a reference to itself.
func hasCycle(e *jsonschema.ValidationError) bool {
	if _, is := e.ErrorKind.(*kind.RefCycle); is {
		return true
	}
	for _, cause := range e.Causes {
		if hasCycle(cause) {
			return true
		}
	}
	return false
}

// Check returns what is wrong with a reply; nil if its answer fits.
func (s *Schema) Check(reply *provider.Reply) (fault error) {
	text, err := answerText(reply.Body)
	if err == nil {
		err = s.CheckText(text)
	}
	if err == nil {
		return nil
	}
	if kind, known := provider.FinishKind(reply.Finish); known && kind == provider.Truncated {
		return fmt.Errorf("the answer was cut off at its length limit: %w", err)
	}
	return err
}

// CheckText returns what is wrong with the text of an answer. It treats a panic of the library as a fault of the
// answer, as no answer may end the run.
func (s *Schema) CheckText(text []byte) (fault error) {
	defer func() {
		if v := recover(); v != nil {
			fault = fmt.Errorf("it cannot be checked: %v", v)
		}
	}()
	doc, err := decode(text)
	if err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	if err := checkBounds(doc, 0); err != nil {
		return err
	}
	err = s.compiled.Validate(doc)
	wrong := new(jsonschema.ValidationError)
	if errors.As(err, &wrong) {
		return errors.New(describe(wrong))
	}
	return err
}

// Bounds on answers. The library computes with exact fractions, so that 1e999999999 would take up all
// memory; and the time for a nested value rises with the square of its depth.
const (
	maxDepth    = 1000
	maxNumber   = 400 // characters; a double has 17 digits and an exponent of three
	maxExponent = 400
)

// checkBounds refuses a value that nests too deep, or has a number out of bounds.
func checkBounds(doc any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the answer nests more than %d deep", maxDepth)
	}
	switch v := doc.(type) {
	case map[string]any:
		for _, member := range v {
			if err := checkBounds(member, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := checkBounds(element, depth+1); err != nil {
				return err
			}
		}
	case json.Number:
		return checkNumber(string(v))
	}
	return nil
}

// checkNumber refuses a number with too many digits, or too large an exponent. It compares texts, as computing the
// number would be the harm.
func checkNumber(text string) error {
	_, exponent, has := strings.Cut(strings.ToLower(text), "e")
	exponent = strings.TrimLeft(exponent, "+-")
	exponent = strings.TrimLeft(exponent, "0")
	const digits = len("400")
	if len(text) > maxNumber || has && (len(exponent) > digits || len(exponent) == digits && exponent > fmt.Sprint(maxExponent)) {
		return fmt.Errorf("the number %.20s is out of all bounds", text)
	}
	return nil
}
