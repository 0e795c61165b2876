package prompts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The endpoints that a line may name, as paths below a provider's base URL.
const (
	ChatCompletions = "/v1/chat/completions"
	Embeddings      = "/v1/embeddings"
	Responses       = "/v1/responses"
	Completions     = "/v1/completions"
	Messages        = "/v1/messages" // of Anthropic: what params are sent to
)

// endpoints is the whole list: what is not in it never becomes part of a URL, so
// that no line of a file can direct a call, and the key it carries, to a host.
var endpoints = []string{ChatCompletions, Embeddings, Responses, Completions}

// KnownEndpoint reports whether path is one of the four endpoints, exactly as
// the constants spell them.
func KnownEndpoint(path string) bool { return slices.Contains(endpoints, path) }

// Endpoints are OpenAI's four, for [Config.Serves].
func Endpoints() []string { return slices.Clone(endpoints) }

func endpointList() string { return strings.Join(endpoints, ", ") }

// Form is the shape in which a line asks. The zero value is no form.
type Form uint8

// The forms, numbered as the documentation of the input lines numbers them.
const (
	FormOpenAIBatch    Form = 1 // {"custom_id","method","url","body"}
	FormAnthropicBatch Form = 2 // {"custom_id","params"}
	FormBody           Form = 3 // a bare request body
	FormPrompt         Form = 4 // {"prompt"} and its parameters
	FormTemplate       Form = 5 // any fields, made a prompt by a template
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
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// Request is one line of input, ready to be sent. It owns all its memory: it
// stays as it is while the reader goes on, and may cross goroutines; that of a
// reader whose requests are Passing lends Body and Metadata until its next.
type Request struct {
	Line     int             // its line in the input, from 1
	ID       string          // the given id, else LineID(Line)
	HasID    bool            // whether the line gave the id
	Form     Form            // the shape it came in
	Endpoint string          // one of the endpoints, such as ChatCompletions
	Model    string          // never empty; the body names the same
	Body     []byte          // the exact bytes to send, a JSON object
	Metadata json.RawMessage // the line's metadata object, nil if it had none
	Key      string          // 32 hex digits: what was asked, see Key
}

// LineID is the id of a line that gives none: line-000042 for line 42.
func LineID(line int) string { return string(appendLineID(nil, line)) }

// appendLineID appends the LineID of a line.
func appendLineID(dst []byte, line int) []byte {
	dst = append(dst, "line-"...)
	for least := 100_000; line < least && least > 1; least /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(line), 10)
}
