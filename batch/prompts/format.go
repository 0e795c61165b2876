package prompts

import (
	"bytes"
	"encoding/json"
)

// Format says how an input holds its items. The zero value is a line of JSON for each.
type Format uint8

// The formats of an input.
const (
	FormatJSONL Format = iota // a JSON object on each line
	FormatText                // a prompt on each line
	FormatCSV                 // a row for each item, below a row of names
)

// convert turns a line into one of the JSON forms.
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

// fromFields makes a prompt line from fields, by the template if there is one. With a
// template all fields are data, except for the id and the documents of a rerank. Metadata
// that are an object come back with the result.
func (r *Reader) fromFields(fields map[string]any) ([]byte, *LineError) {
	line := fields
	if r.cfg.Template != nil {
		prompt := bounded{max: r.cfg.MaxLine}
		if err := r.cfg.Template.Execute(&prompt, fields); err != nil {
			return nil, r.templateFault(err, fields)
		}
		line = map[string]any{"prompt": prompt.String()}
		for _, name := range []string{"custom_id", "id"} {
			if value, there := fields[name]; there && (value != "" || r.cfg.Format != FormatCSV) {
				line[name] = value
			}
		}
		if documents, is := fields["documents"].([]any); is && r.cfg.DefaultEndpoint == Rerank {
			line["documents"] = documents
		}
		if metadata, is := fields["metadata"].(map[string]any); is {
			line["metadata"] = metadata
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
