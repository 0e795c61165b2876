package openai

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// maxInputs is the largest number of texts in one request: OpenAI's own bound for
// embeddings.
const maxInputs = 2048

// request holds what is read of a body: enough to charge and to answer it.
type request struct {
	face.Prompt
	operation        string
	azure            bool // it came to an address of Azure's
	modelInPath      bool // the address names the model, and the body's does not count
	key              string
	keyless          bool
	base64           bool
	stream           bool   // the answer is to come as a stream
	hasStreamOptions bool   // there are options for the stream
	includesUsage    bool   // its last chunk is the usage
	noPadding        bool   // it has no padding
	tier             string // of service, "" if it names none

	query string // of a rerank, whose documents are Texts
	top   int
}

// flex is the tier of service that is cheap, and at times has no room.
const flex = "flex"

// tierMember returns the member of an answer for the tier that served it, "" if the request names
// none. Any tier but flex is served as the default.
func (r *request) tierMember() string {
	switch r.tier {
	case "":
		return ""
	case flex:
		return `,"service_tier":"flex"`
	}
	return `,"service_tier":"default"`
}

// readBody reads a body without building a tree of it. It returns for any body;
// one that cannot be answered carries a complaint.
func (r *request) readBody(body string) {
	if !gjson.Valid(body) {
		r.Complain("", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly.)")
		return
	}
	root := gjson.Parse(body)
	if !root.IsObject() {
		r.Complain("", "Invalid type: expected an object.")
		return
	}
	root.ForEach(func(key, value gjson.Result) bool {
		r.readField(key.String(), value)
		return true
	})
	r.check()
}

// readField takes in one field of the body. An input under the name of another operation's is ignored,
// as unknown fields are.
func (r *request) readField(key string, value gjson.Result) {
	switch key {
	case "model":
		if !r.modelInPath {
			r.Model = value.String()
		}
	case "query":
		if r.operation == rerank {
			r.query = value.String()
			r.Charge(r.query)
		}
	case "top_n":
		r.top = int(min(max(value.Num, 0), maxInputs))
	case "messages", "input", "prompt", "documents":
		if key == r.inputField() {
			r.readInput(value)
		}
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		r.readMaxTokens(key, value)
	case "encoding_format":
		r.base64 = value.String() == "base64"
	case "service_tier":
		r.tier = value.String()
	case "stream":
		r.stream = value.Bool()
	case "stream_options":
		r.hasStreamOptions = value.IsObject()
		r.includesUsage = value.Get("include_usage").Bool()
		r.noPadding = value.Get("include_obfuscation").Raw == "false"
	}
}

// inputField returns the name of the field with the operation's input.
func (r *request) inputField() string {
	switch r.operation {
	case chat, messages:
		return "messages"
	case completions:
		return "prompt"
	case rerank:
		return "documents"
	default:
		return "input"
	}
}

// readMaxTokens reads a bound on the output. It complains of one that is not a whole number from 1.
func (r *request) readMaxTokens(key string, v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	if v.Type != gjson.Number || v.Num < 1 || v.Num != math.Trunc(v.Num) {
		r.Complain(key, fmt.Sprintf("Invalid '%s': must be an integer of 1 or more.", key))
		return
	}
	r.MaxTokens = v.Num
}

// readInput takes in the input. JSON keys may come twice; the last one counts, as
// with most parsers.
func (r *request) readInput(v gjson.Result) {
	r.Texts, r.Chars = nil, utf8.RuneCountInString(r.query)
	switch {
	case r.operation == rerank:
		r.readDocuments(v)
	case r.operation == chat, r.operation == messages, r.operation == responses && v.IsArray():
		r.readTurns(v)
	case v.IsArray():
		r.readList(v)
	case v.Type == gjson.String:
		r.Add(v.String())
	}
}

// readTurns charges all turns, and answers the last one of the user's. Without one it answers the
// last turn.
func (r *request) readTurns(v gjson.Result) {
	if !v.IsArray() {
		return
	}
	last, ofUser := "", false
	v.ForEach(func(_, turn gjson.Result) bool {
		text := face.TextOf(turn.Get("content"))
		isUser := turn.Get("role").String() == "user"
		if isUser || !ofUser {
			last, ofUser = text, isUser
		}
		r.Chars += utf8.RuneCountInString(text)
		r.Texts = []string{last}
		return true
	})
}

// readList takes an array of strings, or of token arrays, which stand as
// written. An array of numbers is one text of tokens.
func (r *request) readList(v gjson.Result) {
	if v.Get("0").Type == gjson.Number {
		r.Add(v.Raw)
		return
	}
	v.ForEach(func(_, text gjson.Result) bool {
		if len(r.Texts) == maxInputs {
			r.Complain(r.inputField(), fmt.Sprintf("Invalid '%s': array too long, at most %d.", r.inputField(), maxInputs))
			return false
		}
		r.Add(text.String())
		return true
	})
}

// check complains of fields that are missing or do not go together. It runs after all fields were
// read, as they come in any order.
func (r *request) check() {
	switch {
	case r.stream && !slices.Contains([]string{chat, completions, responses, messages}, r.operation):
		r.Complain("stream", "Unrecognized request argument supplied: stream")
	case r.hasStreamOptions && !r.stream:
		r.Complain("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if r.Model == "" && r.operation == moderations {
		r.Model = defaultModeration
	}
	if r.Model == "" {
		r.Complain("", "you must provide a model parameter")
	}
	if r.operation == rerank && r.query == "" {
		r.Complain("query", "Missing required parameter: 'query'.")
	}
	if len(r.Texts) == 0 {
		r.Complain(r.inputField(), fmt.Sprintf("Missing required parameter: '%s'.", r.inputField()))
	}
}

// charge returns what OpenAI counts at admission: the larger of the tokens that may be written
// and those that are read, and never nothing.
func (r *request) charge() float64 {
	return max(1, r.MaxTokens, float64(r.Read()))
}
