package prompts

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// The endpoints that a line may name: OpenAI's, and Rerank. Like those of the other forms,
// they are operations of package provider. The code that sends requests knows their paths.
const (
	ChatCompletions = provider.Chat
	Embeddings      = provider.Embeddings
	Responses       = provider.Responses
	Completions     = provider.Completions
	Moderations     = provider.Moderations
	Rerank          = provider.Rerank
)

// The endpoints that no line names: each has a form of its own.
const (
	Messages        = provider.Messages        // of Anthropic: takes params
	GenerateContent = provider.GenerateContent // of Gemini: takes a request
	Converse        = provider.Converse        // of Bedrock: takes a modelInput
)

// endpoints lists all that a line may name. A url that is not in it never becomes part of
// a URL. So no line of a file can direct a call, and the key it carries, to another host.
var endpoints = []string{ChatCompletions, Embeddings, Responses, Completions, Moderations, Rerank}

// KnownEndpoint reports whether path is an endpoint that a line may name, exactly as
// the constants spell them.
func KnownEndpoint(path string) bool { return slices.Contains(endpoints, path) }

// Endpoints returns the endpoints that a line may name, for [Config.Serves].
func Endpoints() []string { return slices.Clone(endpoints) }

// Operations returns all endpoints of all forms of line, for [Config.Serves].
func Operations() []string { return append(Endpoints(), Messages, GenerateContent, Converse) }

// Form is the shape in which a line asks. The zero value is no form.
type Form uint8

// The forms, with the numbers that the documentation of the input lines gives them.
const (
	FormOpenAIBatch    Form = 1 // {"custom_id","method","url","body"}
	FormAnthropicBatch Form = 2 // {"custom_id","params"}
	FormBody           Form = 3 // a bare request body
	FormPrompt         Form = 4 // {"prompt"} and its parameters
	FormTemplate       Form = 5 // any fields, turned into a prompt by a template
	FormGeminiBatch    Form = 6 // {"key","request"}
	FormBedrockBatch   Form = 7 // {"recordId","modelInput"}
)

// String names the form in words that fit into a sentence.
func (f Form) String() string {
	//exhaustive:enforce
	switch f {
	case FormOpenAIBatch:
		return "OpenAI batch line"
	case FormAnthropicBatch:
		return "Anthropic batch line"
	case FormBody:
		return "request body"
	case FormPrompt:
		return "prompt"
	case FormTemplate:
		return "filled template"
	case FormGeminiBatch:
		return "Gemini batch line"
	case FormBedrockBatch:
		return "Bedrock batch line"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// IsPrompt reports whether the bodies of the form are made here; other forms bring their
// own.
func (f Form) IsPrompt() bool { return f == FormPrompt || f == FormTemplate }

// Request is one line of input, ready to be sent. It owns all its memory: it stays as it is
// while the reader goes on, and may cross goroutines. If requests are Passing, the reader
// lends Body and Metadata until its next request.
type Request struct {
	Line     int             // its line in the input, from 1; numbers go on from file to file
	File     string          // its file, if the input has several, else ""
	FileLine int             // its line in File
	ID       string          // the given id, else LineID(Line)
	HasID    bool            // whether the line gave the id
	Form     Form            // the shape it came in
	Endpoint string          // one of the endpoints, such as ChatCompletions
	Model    string          // never empty; the body names it too, if its endpoint has it there
	Body     []byte          // the exact bytes to send, a JSON object
	Metadata json.RawMessage // the line's metadata object, nil if it had none
	Key      string          // 32 hex digits that identify the question, see Key
}

// keyEndpoint returns the endpoint as keys have it: with the model if the body does not name it.
func (q *Request) keyEndpoint() string {
	if q.Endpoint == GenerateContent || q.Endpoint == Converse {
		return string(rawjson.AppendString(nil, q.Model)) + q.Endpoint
	}
	return q.Endpoint
}

// Param is a parameter that is sent with every line that does not set it.
type Param struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// paramName matches the names that a parameter may have: those that APIs use.
var paramName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// ParseParam reads NAME=VALUE. The value is JSON if it reads as such, and else a string.
func ParseParam(text string) (p Param, err error) {
	name, value, found := strings.Cut(text, "=")
	why := ""
	switch {
	case !found || !paramName.MatchString(name):
		return p, fmt.Errorf("prompts: parameter %q is invalid: want NAME=VALUE, as in max_tokens=50", lines.Clip(text))
	case !utf8.ValidString(value):
		why = "its value is not UTF-8 text"
	case name == "model":
		why = "the model of all lines has a setting of its own"
	case name == "system":
		why = "the system message of all lines has a setting of its own"
	case name == "stream", name == "background":
		why = "a result is written whole"
	case isUsersField(rawjson.Member{Name: []byte(name)}), isQuestion([]byte(name)):
		why = "it is a line's own"
	}
	if why != "" {
		return p, fmt.Errorf("prompts: parameter %s cannot be set: %s", name, why)
	}
	p.Name = name
	if _, known := parameters[name]; !known && json.Valid([]byte(value)) {
		p.Value = json.RawMessage(value)
		return p, nil
	}
	var c *LineError
	if p.Value, c = parseValue(name, value); c != nil {
		err = fmt.Errorf("prompts: %s", c.Reason)
	}
	return p, err
}

// Parameters returns the names of the columns that are sent as parameters, in order.
func Parameters() []string { return slices.Sorted(maps.Keys(parameters)) }

// parameters maps the columns of a CSV that are sent as parameters to the way their cells
// are read. It lacks names that are more often those of data, such as user, text, n, tools
// and reasoning.
var parameters = map[string]valueKind{
	"max_tokens": numberValue, "max_completion_tokens": numberValue, "max_output_tokens": numberValue,
	"temperature": numberValue, "top_p": numberValue, "top_k": numberValue, "min_p": numberValue, "top_logprobs": numberValue, "seed": numberValue,
	"frequency_penalty": numberValue, "presence_penalty": numberValue, "repetition_penalty": numberValue,
	"logprobs": boolValue, "parallel_tool_calls": boolValue,
	"stop": textValue, "stop_sequences": textValue, "response_format": textValue, "logit_bias": textValue,
	"reasoning_effort": textValue, "verbosity": textValue, "service_tier": textValue,
}

// valueKind says how the text of a value is read.
type valueKind uint8

const (
	textValue   valueKind = iota // a string, unless it is JSON in brackets or quotes
	numberValue                  // a number as JSON writes it
	boolValue                    // true or false in any case, or a number
)

// parseValue returns the JSON of a parameter's value, from its text.
func parseValue(name, text string) (json.RawMessage, *LineError) {
	trimmed := strings.TrimSpace(text)
	isNumber := trimmed != "" && strings.ContainsRune("-0123456789", rune(trimmed[0])) && json.Valid([]byte(trimmed))
	isJSON := trimmed != "" && strings.ContainsRune("[{\"", rune(trimmed[0])) && json.Valid([]byte(trimmed))
	lower := strings.ToLower(trimmed)
	kind := parameters[name]
	switch {
	case kind != textValue && isNumber, kind == textValue && isJSON:
		return json.RawMessage(trimmed), nil
	case kind == boolValue && (lower == "true" || lower == "false"):
		return json.RawMessage(lower), nil
	case kind == numberValue:
		return nil, newLineError(ErrShape, "correct the value, or rename the column", "%s is %q, not a number", name, lines.Clip(text))
	case kind == boolValue:
		return nil, newLineError(ErrShape, "correct the value, or rename the column", "%s is %q, not true or false", name, lines.Clip(text))
	}
	return rawjson.AppendString(nil, text), nil
}

// param returns the value of the parameter of that name for all lines, nil if there is
// none.
func (r *Reader) param(name string) []byte {
	for _, p := range r.cfg.Params {
		if p.Name == name {
			return p.Value
		}
	}
	return nil
}

// appendMissing appends the parameters of all lines that are missing from ms, each after a
// comma.
func (r *Reader) appendMissing(out []byte, ms []rawjson.Member) []byte {
	for _, p := range r.cfg.Params {
		if slices.ContainsFunc(ms, func(m rawjson.Member) bool { return string(m.Name) == p.Name }) {
			continue
		}
		out = append(rawjson.AppendString(append(out, ','), p.Name), ':')
		out = append(out, p.Value...)
	}
	return out
}
