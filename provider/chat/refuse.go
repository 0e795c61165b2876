package chat

import (
	"strconv"

	"github.com/headrace/headrace/provider"
)

// A refusal says which part of a body is refused, and why: field is a path from where it was found.
type refusal struct{ field, why string }

func refuse(why string) *refusal { return &refusal{why: why} }

// in puts the place of the refused part before its path: a name, or an index.
func (r *refusal) in(outer string) *refusal {
	if r == nil {
		return nil
	}
	if r.field != "" && r.field[0] != '[' {
		outer += "."
	}
	r.field = outer + r.field
	return r
}

func (r *refusal) at(i int) *refusal {
	if r == nil {
		return nil
	}
	return r.in("[" + strconv.Itoa(i) + "]")
}

// maxName bounds the part of a name that is shown, in bytes: anybody may have written it.
const maxName = 64

// shown returns a name for a path. A name that could be taken for another part of the path, or
// does harm on a terminal, stands in quotes with its escapes.
func shown(name []byte) string {
	name = name[:min(len(name), maxName)]
	for _, c := range name {
		if c != '_' && c != '-' && c != '$' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return strconv.QuoteToASCII(string(name))
		}
	}
	if len(name) == 0 {
		return `""`
	}
	return string(name)
}

// Refuse returns the error for a field that has no exact counterpart in the dialect.
func (r *Request) Refuse(field, why string) error {
	return &provider.Untranslatable{Dialect: r.dialect, Field: field, Why: why}
}

// RefusePart is Refuse for a field of a part of the conversation; "" is the part itself.
func (r *Request) RefusePart(p *Part, field, why string) error {
	return r.Refuse(joined(p.path(), field), why)
}

// NoEffort refuses to say how much a model is to think, for dialects whose makers do not document
// a counterpart of OpenAI's words.
func (r *Request) NoEffort() error {
	if r.Effort == "" {
		return nil
	}
	return r.Refuse("reasoning_effort", "has no counterpart")
}

// NoFreeJSON refuses an answer that is any JSON, for dialects that want a schema.
func (r *Request) NoFreeJSON() error {
	if r.Format == nil || r.Format.Schema != nil {
		return nil
	}
	return r.Refuse("response_format.type", "is json_object, which has no counterpart; json_schema has one")
}

// NoBlankStop refuses stops that are white space and nothing else, for dialects whose
// providers refuse them.
func (r *Request) NoBlankStop() error {
	for i, stop := range r.Stop {
		if !Blank(stop) {
			continue
		}
		field := "stop"
		if r.stopListed {
			field += "[" + strconv.Itoa(i) + "]"
		}
		return r.Refuse(field, "is white space and nothing else")
	}
	return nil
}

// NeedParameters refuses tools without a schema, for dialects that demand one.
func (r *Request) NeedParameters() error {
	for i, tool := range r.Tools {
		if tool.Parameters == nil {
			refused := refuse("is missing, and a schema is demanded").in("function.parameters").at(i).in("tools")
			return r.Refuse(refused.field, refused.why)
		}
	}
	return nil
}

// NoBlankText refuses text that is white space and nothing else, for dialects whose
// providers refuse it.
func (r *Request) NoBlankText() error {
	if err := r.noBlank(r.System); err != nil {
		return err
	}
	for _, turn := range r.Turns {
		if err := r.noBlank(turn.Parts); err != nil {
			return err
		}
	}
	return nil
}

func (r *Request) noBlank(parts []Part) error {
	for i := range parts {
		p := &parts[i]
		if p.Tool != nil {
			if err := r.noBlank(p.Tool.Parts); err != nil {
				return err
			}
		}
		if p.Kind != Text || !Blank(p.Text) {
			continue
		}
		field := "text"
		if p.index < 0 {
			field = ""
		}
		return r.RefusePart(p, field, "is white space and nothing else")
	}
	return nil
}

func joined(outer, field string) string {
	if field == "" {
		return outer
	}
	return outer + "." + field
}
