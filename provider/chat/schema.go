package chat

import (
	"slices"

	"github.com/headrace/headrace/provider/rawjson"
)

var (
	formatFields = []string{"type", "json_schema"}
	schemaFields = []string{"name", "description", "schema", "strict"}
)

// format reads response_format. Text is the form of an answer without it.
func (r *reader) format(value []byte) *refusal {
	var kind, schema []byte
	refused := eachMember(value, formatFields, func(name string, value []byte) *refusal {
		if name == "type" {
			return keepString(&kind, value)
		}
		schema = value
		return nil
	})
	switch {
	case refused != nil:
		return refused
	case kind == nil:
		return refuse("is missing").in("type")
	case stringOf(kind) == "text" && schema == nil:
		return nil
	case stringOf(kind) == "json_object" && schema == nil:
		r.Format = new(Format)
		return nil
	case stringOf(kind) != "json_schema":
		return refuse("has no counterpart").in("type")
	case schema == nil:
		return refuse("is missing").in("json_schema")
	}
	r.Format = new(Format)
	return r.Format.read(schema).in("json_schema")
}

// read reads json_schema. It demands strict: others hold every answer to the schema, and OpenAI
// does so only then.
func (f *Format) read(value []byte) *refusal {
	strict := false
	refused := eachMember(value, schemaFields, func(name string, value []byte) *refusal {
		switch name {
		case "name":
			return keepName(&f.Name, value)
		case "description":
			return keepText(&f.Description, value)
		case "schema":
			f.Schema = value
			return nil
		}
		strict = true
		return requireValue(value, "true")
	})
	switch {
	case refused != nil:
		return refused
	case f.Name == nil:
		return refuse("is missing").in("name")
	case f.Schema == nil:
		return refuse("is missing").in("schema")
	case !strict:
		return refuse("is not true, and others hold every answer to the schema").in("strict")
	}
	return nil
}

// keepName keeps the name of a function or a schema, or the id that ties a result to a call: up to
// 64 letters, digits, _ and -.
func keepName(to *[]byte, value []byte) *refusal {
	if r := keepText(to, value); r != nil {
		return r
	}
	inner := rawjson.Inner(value)
	for _, c := range inner {
		if c != '_' && c != '-' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return refuse("has more than letters, digits, _ and - in it")
		}
	}
	if len(inner) > 64 {
		return refuse("is longer than 64")
	}
	return nil
}

// Keywords are the keywords of JSON Schema to which a provider holds an answer exactly as OpenAI
// does. Leaving out the others would make another schema.
type Keywords struct {
	Known   []string
	Formats []string // of strings
	// Enum says which values may stand in an enum or a const, by their first bytes.
	Enum string
	// MinItems is the largest minItems that a list may have.
	MinItems string
}

// Structured are the keywords that Anthropic documents for its structured outputs
// (platform.claude.com, "Structured outputs", JSON Schema limitations) and Bedrock for those of
// Converse (user guide, "Get validated JSON results from models"). Others get a 400 there.
var Structured = Keywords{
	Known: []string{
		"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const",
		"$ref", "$defs", "definitions", "title", "description", "format", "minItems",
	},
	Formats:  []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
	Enum:     `"0tfn`,
	MinItems: "1",
}

// maxSchema bounds the nesting of a schema. OpenAI's own bound is 10.
const maxSchema = 32

// CheckSchemas refuses a request with a schema that contains anything outside k: the schema of
// the answer, or that of a strict tool's calls.
func (r *Request) CheckSchemas(k *Keywords) error {
	if r.Format != nil && r.Format.Schema != nil {
		if refused := k.checkSchema(r.Format.Schema, maxSchema); refused != nil {
			refused = refused.in("response_format.json_schema.schema")
			return r.Refuse(refused.field, refused.why)
		}
	}
	for i, tool := range r.Tools {
		if !tool.Strict || tool.Parameters == nil {
			continue
		}
		if refused := k.checkSchema(tool.Parameters, maxSchema); refused != nil {
			refused = refused.in("function.parameters").at(i).in("tools")
			return r.Refuse(refused.field, refused.why)
		}
	}
	return nil
}

// checkSchema checks a schema. depth bounds how deep others may nest in it.
func (k *Keywords) checkSchema(value []byte, depth int) *refusal {
	if depth == 0 {
		return refuse("nests too deep")
	}
	return eachMember(value, k.Known, func(name string, value []byte) *refusal {
		switch name {
		case "properties", "$defs", "definitions":
			return k.checkSchemas(value, depth)
		case "items":
			return k.checkSchema(value, depth-1)
		case "anyOf":
			return eachElement(value, func(_ int, value []byte) *refusal { return k.checkSchema(value, depth-1) })
		}
		return k.checkKeyword(name, value)
	})
}

// checkSchemas checks an object whose members are schemas under any name.
func (k *Keywords) checkSchemas(value []byte, depth int) *refusal {
	if value[0] != '{' {
		return refuse("is not an object")
	}
	return eachUnique(value, func(value []byte) *refusal { return k.checkSchema(value, depth-1) })
}

// checkKeyword checks a keyword that contains no schema.
func (k *Keywords) checkKeyword(name string, value []byte) *refusal {
	switch name {
	case "additionalProperties":
		return requireValue(value, "false")
	case "format":
		if !slices.Contains(k.Formats, stringOf(value)) {
			return refuse("is not among what is known")
		}
	case "const":
		return k.checkConstant(value)
	case "enum":
		return eachElement(value, func(_ int, value []byte) *refusal { return k.checkConstant(value) })
	case "type":
		if value[0] == '"' {
			return nil
		}
		return eachElement(value, func(_ int, value []byte) *refusal { return keepString(new([]byte), value) })
	case "required":
		return eachElement(value, func(_ int, value []byte) *refusal { return keepString(new([]byte), value) })
	case "title", "description", "$ref":
		return keepString(new([]byte), value)
	default: // bounds
		return k.checkBound(name, value)
	}
	return nil
}

// checkConstant refuses a constant of a type that the dialect does not take.
func (k *Keywords) checkConstant(value []byte) *refusal {
	first := value[0]
	if isNumber(value) {
		first = '0'
	}
	if !slices.Contains([]byte(k.Enum), first) {
		return refuse("is not a value that every dialect has")
	}
	return nil
}

// checkBound refuses a bound that is no number, and a minItems above the dialect's own.
func (k *Keywords) checkBound(name string, value []byte) *refusal {
	if !isNumber(value) {
		return refuse("is not a number")
	}
	if name == "minItems" && k.MinItems != "" && string(value) != "0" && string(value) != k.MinItems {
		return refuse("is more than " + k.MinItems)
	}
	return nil
}
