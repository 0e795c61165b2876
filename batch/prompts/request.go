package prompts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

func endpointList() string { return strings.Join(endpoints, ", ") }

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

// keyed returns the endpoint as keys have it: with the model if the body does not name it.
func (q *Request) keyed() string {
	if q.Endpoint == GenerateContent || q.Endpoint == Converse {
		return string(rawjson.AppendString(nil, q.Model)) + q.Endpoint
	}
	return q.Endpoint
}

// LineID returns the id of a line that gives none: line-000042 for line 42.
func LineID(line int) string { return string(appendLineID(nil, line)) }

// appendLineID appends the LineID of a line.
func appendLineID(dst []byte, line int) []byte {
	dst = append(dst, "line-"...)
	for least := 100_000; line < least && least > 1; least /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(line), 10)
}
