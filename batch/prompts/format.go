package prompts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
)

// Format is how an input holds its items. The zero value is a line of JSON for each.
type Format uint8

// The formats of an input.
const (
	FormatJSONL Format = iota // a JSON object on each line
	FormatText                // a prompt on each line
	FormatCSV                 // a row for each item, under a row of names
)

// ParseTemplate reads a template that makes a prompt of an item's fields: those of
// the object, or the cells of the row by the names of their columns, or, in a text,
// the field prompt. Templates can neither read files nor run anything: they know no
// function but those of the language. A field that an item lacks is that item's fault.
func ParseTemplate(text string) (*template.Template, error) {
	t, err := template.New("template").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("prompts: %w", err)
	}
	return t, nil
}

// ErrTemplate says that the template cannot be filled from a line.
var ErrTemplate = errors.New("template does not fit")

// errPromptTooLong stops a template that writes without end.
var errPromptTooLong = errors.New("the prompt becomes longer than a line may be")

// bounded collects at most max bytes.
type bounded struct {
	bytes.Buffer
	max int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		return 0, errPromptTooLong
	}
	return b.Buffer.Write(p)
}

// convert gives a line as one of the JSON forms.
func (r *Reader) convert(text []byte) ([]byte, *LineError) {
	switch {
	case r.cfg.Format == FormatText:
		return r.fromFields(map[string]any{"prompt": string(text)})
	case r.cfg.Format == FormatCSV:
		return r.fromRow()
	case r.cfg.Template == nil:
		return text, nil
	}
	fields := make(map[string]any)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // a number reads as it was written
	if err := decoder.Decode(&fields); err != nil {
		return nil, complain(ErrNotJSON, adviceFix, "not JSON: %v", err)
	}
	return r.fromFields(fields)
}

// ownFields are the fields that mean the same with a template and without.
var ownFields = []string{"custom_id", "id", "model", "system", "metadata"}

// fromFields makes a prompt line of fields, by the template if there is one.
func (r *Reader) fromFields(fields map[string]any) ([]byte, *LineError) {
	line := fields
	if r.cfg.Template != nil {
		prompt := bounded{max: r.cfg.MaxLine}
		if err := r.cfg.Template.Execute(&prompt, fields); err != nil {
			return nil, complain(ErrTemplate, "give the line this field, or change the template", "%s", templateFault(err))
		}
		line = map[string]any{"prompt": prompt.String()}
		for _, name := range ownFields {
			if value, there := fields[name]; there {
				line[name] = value
			}
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a prompt goes out as it was written
	if err := encoder.Encode(line); err != nil {
		return nil, complain(ErrTemplate, adviceFix, "%v", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// templateFault is an error of a template on one line, clipped where it repeats values.
func templateFault(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), "template: "), "\n", " ")
}
