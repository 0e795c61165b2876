package chat

import (
	"strconv"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// fields lists the fields of a chat body that OpenAI's API knows.
var fields = []string{
	"messages", "model", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
	"max_completion_tokens", "max_tokens", "metadata", "modalities", "n", "parallel_tool_calls", "prediction",
	"presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format",
	"safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature",
	"tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options",
}

// Read reads a chat body on behalf of a dialect, whose name stands in errors. The error is a
// *provider.Untranslatable whose Field is the first refused one in the body. If something is
// missing, Field is where it should be.
func Read(dialect string, body []byte) (*Request, error) {
	r := &reader{Request: Request{dialect: dialect}}
	if refused := r.read(body); refused != nil {
		return nil, &provider.Untranslatable{Dialect: dialect, Field: refused.field, Why: refused.why}
	}
	return &r.Request, nil
}

// A reader turns a body into a Request.
type reader struct {
	Request
	// maxTokens and maxCompletionTokens are two words for one thing.
	maxTokens, maxCompletionTokens int

	choice   []byte
	parallel []byte            // parallel_tool_calls
	pending  map[string][]byte // names of the calls of the last turn whose results have not come yet
}

// bodyOf checks that a body is one object of these fields, and passes each to take.
func bodyOf(body []byte, known []string, take func(name string, value []byte) *refusal) *refusal {
	p := rawjson.Parser{Skim: true}
	if !p.Parse(body) {
		return refuse("is not JSON: " + p.SyntaxError(body)).in("body")
	}
	body = rawjson.Trim(body)
	if body[0] != '{' {
		return refuse("is not an object").in("body")
	}
	return eachMember(body, known, take)
}

func (r *reader) read(body []byte) *refusal {
	if refused := bodyOf(body, fields, r.field); refused != nil {
		return refused
	}
	return r.checkWhole()
}

// field takes a field that is not null. It leaves out a value that is the default, which says
// nothing.
func (r *reader) field(name string, value []byte) *refusal {
	switch name {
	case "messages":
		return eachElement(value, r.message)
	case "model":
		return keepText(&r.Model, value)
	case "max_tokens":
		return readCount(&r.maxTokens, value)
	case "max_completion_tokens":
		return readCount(&r.maxCompletionTokens, value)
	case "temperature":
		return keepNumber(&r.Temperature, value, 2)
	case "top_p":
		return keepNumber(&r.TopP, value, 1)
	case "seed":
		return keepInteger(&r.Seed, value)
	case "stop":
		return r.stop(value)
	case "user":
		return keepText(&r.User, value)
	case "n":
		return requireValue(value, "1")
	case "stream", "store", "logprobs":
		return requireValue(value, "false")
	case "frequency_penalty", "presence_penalty":
		return requireZero(value)
	case "logit_bias", "metadata":
		return requireEmpty(value)
	case "service_tier":
		return requireValue(value, `"auto"`)
	}
	return r.shape(name, value)
}

// shape takes the fields for the form of an answer and for tools, and refuses unknown fields.
func (r *reader) shape(name string, value []byte) *refusal {
	switch name {
	case "response_format":
		return r.format(value)
	case "reasoning_effort":
		if r.Effort = stringOf(value); r.Effort == "" {
			return refuse("is not a word")
		}
		return nil
	case "tools":
		if isEmpty(value) {
			return nil
		}
		return eachElement(value, r.tool)
	case "tool_choice":
		r.choice = value
		return nil
	case "parallel_tool_calls":
		r.parallel = value
		return nil
	case "modalities":
		return eachElement(value, func(_ int, value []byte) *refusal { return requireValue(value, `"text"`) })
	}
	return refuse("has no counterpart")
}

// stop reads a string, or a list of strings. An empty list says nothing, and leaves Stop unset.
func (r *reader) stop(value []byte) *refusal {
	if value[0] == '"' {
		r.Stop = [][]byte{value}
		return keepText(&r.Stop[0], value)
	}
	if isEmptyList(value) {
		return nil
	}
	r.stopListed = true
	return eachElement(value, func(_ int, value []byte) *refusal {
		r.Stop = append(r.Stop, nil)
		return keepText(&r.Stop[len(r.Stop)-1], value)
	})
}

// checkWhole checks the rules that need all fields, such as those for the last turn and the tools.
func (r *reader) checkWhole() *refusal {
	switch {
	case r.maxTokens > 0 && r.maxCompletionTokens > 0 && r.maxTokens != r.maxCompletionTokens:
		return refuse("differs from max_completion_tokens").in("max_tokens")
	case len(r.Turns) == 0:
		return refuse("has no user message").in("messages")
	}
	r.MaxTokens = max(r.maxTokens, r.maxCompletionTokens)
	if refused := r.checkLastTurn(); refused != nil {
		return refused
	}
	return r.checkToolChoice()
}

// Embeddings holds the contents of a body for OpenAI's embeddings. Its slices point into the body.
type Embeddings struct {
	Inputs     [][]byte // strings as they stand, none of them empty; at least one
	Dimensions int      // 1 to MaxInt32; 0 is the model's own number
	// InputType is the string that says what the texts are for, which OpenAI does not have and
	// Cohere demands; nil: the body has none.
	InputType []byte

	dialect string
	listed  bool // the inputs stood in a list
}

// embeddingFields lists the fields of a body for embeddings that OpenAI's API knows, and input_type.
var embeddingFields = []string{"input", "model", "dimensions", "encoding_format", "user", "input_type"}

// ReadEmbeddings reads a body for embeddings in the way in which Read reads a chat, and as
// strictly. Vectors are lists of numbers: another encoding_format is refused, and so is input of
// token ids.
func ReadEmbeddings(dialect string, body []byte) (*Embeddings, error) {
	e := &Embeddings{dialect: dialect}
	if refused := e.read(body); refused != nil {
		return nil, e.Refuse(refused.field, refused.why)
	}
	return e, nil
}

// read reads the body of a request for embeddings. It demands an input.
func (e *Embeddings) read(body []byte) *refusal {
	if refused := bodyOf(body, embeddingFields, e.field); refused != nil {
		return refused
	}
	if len(e.Inputs) == 0 {
		return refuse("is missing").in("input")
	}
	return nil
}

// field takes a field that is not null.
func (e *Embeddings) field(name string, value []byte) *refusal {
	switch name {
	case "input":
		if e.listed = value[0] == '['; e.listed {
			return eachElement(value, func(_ int, value []byte) *refusal { return e.input(value) })
		}
		return e.input(value)
	case "model":
		var model []byte
		return keepText(&model, value)
	case "dimensions":
		return readCount(&e.Dimensions, value)
	case "encoding_format":
		return requireValue(value, `"float"`)
	case "input_type":
		return keepText(&e.InputType, value)
	}
	return refuse("has no counterpart")
}

func (e *Embeddings) input(value []byte) *refusal {
	var input []byte
	refused := keepText(&input, value)
	e.Inputs = append(e.Inputs, input)
	return refused
}

// Refuse returns the error for a field that has no exact counterpart in the dialect.
func (e *Embeddings) Refuse(field, why string) error {
	return &provider.Untranslatable{Dialect: e.dialect, Field: field, Why: why}
}

// AtMost refuses more texts than one call may carry.
func (e *Embeddings) AtMost(n int) error {
	if len(e.Inputs) <= n {
		return nil
	}
	texts := " texts"
	if n == 1 {
		texts = " text"
	}
	return e.Refuse("input", "has more than "+strconv.Itoa(n)+texts)
}
