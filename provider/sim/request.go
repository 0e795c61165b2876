package sim

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// endpoint is one of the paths that call a model.
type endpoint string

const (
	chatCompletions endpoint = "/v1/chat/completions"
	completions     endpoint = "/v1/completions"
	embeddings      endpoint = "/v1/embeddings"
	responses       endpoint = "/v1/responses"
	messages        endpoint = "/v1/messages" // of Anthropic's dialect, which some servers speak as well
)

// maxInputs is how many texts one request may carry: OpenAI's own bound for
// embeddings.
const maxInputs = 2048

// request is what is read of a body: enough to charge and to answer it.
type request struct {
	endpoint  endpoint
	model     string
	texts     []string // what is answered: one, or one for each element of an array
	chars     int      // of all the text that a model would read
	maxTokens float64  // 0: not said
	base64    bool
	complaint string // not empty: the request is invalid, and why
	param     string // what the complaint is about
}

// peek reads a body without building a tree of it. Whatever the body, it
// returns; what cannot be answered carries a complaint.
func peek(e endpoint, body string) request {
	r := request{endpoint: e}
	if !gjson.Valid(body) {
		r.complain("", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly.)")
		return r
	}
	root := gjson.Parse(body)
	if !root.IsObject() {
		r.complain("", "Invalid type: expected an object.")
		return r
	}
	root.ForEach(func(key, value gjson.Result) bool {
		r.field(key.String(), value)
		return true
	})
	r.check()
	return r
}

func (r *request) field(key string, v gjson.Result) {
	switch key {
	case "model":
		r.model = v.String()
	case "messages", "input", "prompt":
		if key == r.inputField() {
			r.read(v)
		}
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		r.readMaxTokens(key, v)
	case "encoding_format":
		r.base64 = v.String() == "base64"
	case "stream":
		if v.Bool() {
			r.complain("stream", "The simulated provider does not stream.")
		}
	}
}

func (r *request) inputField() string {
	switch r.endpoint {
	case chatCompletions, messages:
		return "messages"
	case completions:
		return "prompt"
	default:
		return "input"
	}
}

func (r *request) readMaxTokens(key string, v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	if v.Type != gjson.Number || v.Num < 1 || v.Num != math.Trunc(v.Num) {
		r.complain(key, fmt.Sprintf("Invalid '%s': must be an integer of 1 or more.", key))
		return
	}
	r.maxTokens = v.Num
}

// read takes in the input. JSON keys may come twice; the last one counts, as
// with most parsers.
func (r *request) read(v gjson.Result) {
	r.texts, r.chars = nil, 0
	switch {
	case r.endpoint == chatCompletions, r.endpoint == messages, r.endpoint == responses && v.IsArray():
		r.readTurns(v)
	case v.IsArray():
		r.readList(v)
	case v.Type == gjson.String:
		r.add(v.String())
	}
}

// readTurns answers the last thing the user said; all turns are read and
// charged.
func (r *request) readTurns(v gjson.Result) {
	if !v.IsArray() {
		return
	}
	last, ofUser := "", false
	v.ForEach(func(_, turn gjson.Result) bool {
		text := textOf(turn.Get("content"))
		isUser := turn.Get("role").String() == "user"
		if isUser || !ofUser {
			last, ofUser = text, isUser
		}
		r.chars += utf8.RuneCountInString(text)
		r.texts = []string{last}
		return true
	})
}

// textOf joins the text parts of a content, which is a string or an array of
// parts.
func textOf(content gjson.Result) string {
	if !content.IsArray() {
		return content.String()
	}
	var parts []string
	content.ForEach(func(_, part gjson.Result) bool {
		if text := part.Get("text"); text.Exists() {
			parts = append(parts, text.String())
		}
		return true
	})
	return strings.Join(parts, "\n")
}

// readList takes an array of strings, or of token arrays, which stand as
// written. An array of numbers is one text of tokens.
func (r *request) readList(v gjson.Result) {
	if v.Get("0").Type == gjson.Number {
		r.add(v.Raw)
		return
	}
	v.ForEach(func(_, text gjson.Result) bool {
		if len(r.texts) == maxInputs {
			r.complain(r.inputField(), fmt.Sprintf("Invalid '%s': array too long, at most %d.", r.inputField(), maxInputs))
			return false
		}
		r.add(text.String())
		return true
	})
}

func (r *request) add(text string) {
	r.texts = append(r.texts, text)
	r.chars += utf8.RuneCountInString(text)
}

func (r *request) check() {
	if r.model == "" {
		r.complain("", "you must provide a model parameter")
	}
	if len(r.texts) == 0 {
		r.complain(r.inputField(), fmt.Sprintf("Missing required parameter: '%s'.", r.inputField()))
	}
}

// complain keeps the first complaint.
func (r *request) complain(param, message string) {
	if r.complaint == "" {
		r.param, r.complaint = param, message
	}
}

// charge is what OpenAI counts at admission: the larger of what may be written
// and what is read, and never nothing.
func (r *request) charge() float64 {
	return max(1, r.maxTokens, float64(tokensOf(r.chars)))
}
