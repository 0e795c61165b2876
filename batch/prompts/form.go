package prompts

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/provider/rawjson"
)

// fields holds the values that decide about a line, as the line writes them. A nil slice is
// a missing field.
type fields struct {
	customID, id, metadata     []byte
	method, url, body          []byte // the OpenAI batch form
	params                     []byte // the Anthropic batch form
	key, request               []byte // the Gemini batch form
	recordID, modelInput       []byte // the Bedrock batch form
	messages, input            []byte // a bare body
	query, documents           []byte // a bare body for Rerank, if both are there
	repeated                   []byte // the one of these two that appears twice; elsewhere these names are free
	prompt, system             []byte // a prompt
	model                      []byte // any body
	stream, background         []byte // any body: ways to answer that do not suit files
	dimensions, encodingFormat []byte // only embeddings have these
}

// slot returns the place for the value of a name, nil for a name that decides nothing.
func (f *fields) slot(name []byte) *[]byte {
	switch string(name) {
	case "custom_id":
		return &f.customID
	case "id":
		return &f.id
	case "metadata":
		return &f.metadata
	case "method":
		return &f.method
	case "url":
		return &f.url
	case "body":
		return &f.body
	case "params":
		return &f.params
	case "key":
		return &f.key
	case "request":
		return &f.request
	case "recordId":
		return &f.recordID
	case "modelInput":
		return &f.modelInput
	case "messages":
		return &f.messages
	case "input":
		return &f.input
	case "query":
		return &f.query
	case "documents":
		return &f.documents
	case "prompt":
		return &f.prompt
	case "system":
		return &f.system
	case "model":
		return &f.model
	case "stream":
		return &f.stream
	case "background":
		return &f.background
	case "dimensions":
		return &f.dimensions
	case "encoding_format":
		return &f.encodingFormat
	}
	return nil
}

// fill puts the value of each member into its field. It refuses a deciding name that comes twice: which of the two
// a server would read is anyone's guess. A query and documents decide nothing except in a rerank, which checkTwice
// handles.
func (f *fields) fill(ms []rawjson.Member) *LineError {
	for i := range ms {
		m := &ms[i]
		at := f.slot(m.Name)
		if at == nil {
			continue
		}
		switch {
		case *at == nil:
			*at = m.Value
		case at == &f.query || at == &f.documents:
			f.repeated = m.Name
		default:
			return fieldTwice(m.Name)
		}
	}
	return nil
}

// fieldTwice returns the complaint about a field that appears twice.
func fieldTwice(name []byte) *LineError {
	return newLineError(ErrShape, adviceFix, "field %q appears twice", name)
}

// checkTwice refuses a rerank with two queries or two lists of documents.
func (f *fields) checkTwice(endpoint string) *LineError {
	if endpoint != Rerank || f.repeated == nil {
		return nil
	}
	return fieldTwice(f.repeated)
}

// recognise finds the form of the parsed line and makes its request, except for id and key.
func (r *Reader) recognise(req *Request, text []byte) *LineError {
	var values fields
	if fault := values.fill(r.line.Members); fault != nil {
		return fault
	}
	form, fault := values.findForm()
	if fault == nil {
		fault = r.checkOutsideBody(form)
	}
	if fault == nil {
		req.Form = form
		fault = r.readIDAndMetadata(req, &values)
	}
	if fault == nil {
		fault = r.build(req, text, &values)
	}
	if fault == nil && !slices.Contains(r.cfg.Serves, req.Endpoint) {
		fault = newLineError(ErrUnsupported, adviceElsewhere,
			"a line (%s) for %s, which this provider does not have", form, req.Endpoint)
		fault.Endpoint = req.Endpoint
	}
	return fault
}

// question is a field that only one form has. It holds the question, except for url.
type question struct {
	name  string
	value []byte
	form  Form
}

// questions returns the question fields of a line, whether they are there or not.
func (f *fields) questions() [8]question {
	return [...]question{
		{"prompt", f.prompt, FormPrompt},
		{"body", f.body, FormOpenAIBatch},
		{"url", f.url, FormOpenAIBatch},
		{"params", f.params, FormAnthropicBatch},
		{"messages", f.messages, FormBody},
		{"input", f.input, FormBody},
		{"request", f.request, FormGeminiBatch},
		{"modelInput", f.modelInput, FormBedrockBatch},
	}
}

// findForm finds the form by the field that only this form has. It refuses two such fields, as one of them would
// not be sent. Next to a prompt they may be columns of a data set.
func (f *fields) findForm() (Form, *LineError) {
	if f.isChat() {
		return FormBody, nil
	}
	var found *question
	questions := f.questions()
	isPrompt := rawjson.IsString(f.prompt) || len(f.prompt) > 0 && f.prompt[0] == '['
	for i := range questions {
		switch candidate := &questions[i]; {
		case rawjson.IsNull(candidate.value), isPrompt && candidate.isData():
		case found == nil:
			found = candidate
		case found.name == "body" && candidate.name == "url":
		case candidate.isNative() && candidate.value[0] != '{': // a parameter like any other
		case found.name == "prompt":
			return 0, newLineError(ErrShape, "keep one of them", "both a prompt and %s", candidate.name)
		default:
			return 0, newLineError(ErrShape, "keep one of them", "both %s and %s", found.name, candidate.name)
		}
	}
	switch {
	case found != nil:
		return found.form, nil
	case f.isRerank():
		return FormBody, nil
	case f.prompt != nil:
		return FormPrompt, nil // null: buildPrompt reports it
	}
	return 0, newLineError(ErrShape, adviceFix, "unknown shape: body, messages, input and prompt are all missing")
}

// isChat reports whether a line has messages and no other question, as most lines do.
func (f *fields) isChat() bool {
	return !rawjson.IsNull(f.messages) && f.prompt == nil && f.body == nil && f.url == nil &&
		f.params == nil && f.input == nil && f.request == nil && f.modelInput == nil
}

// isRerank reports whether a line without any question asks for documents to be ranked. In a line with a question,
// the two names are parameters or data.
func (f *fields) isRerank() bool { return rawjson.IsString(f.query) && isList(f.documents) }

func isList(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// isData reports whether a field is a column of a data set, such as a web address. A form
// of line has an object, a list or an endpoint under that name instead.
func (q *question) isData() bool {
	if q.name == "url" {
		return !rawjson.IsString(q.value) || !KnownEndpoint(string(rawjson.Unquote(q.value)))
	}
	return q.name != "prompt" && q.value[0] != '{' && q.value[0] != '['
}

func (q *question) isNative() bool { return q.form == FormGeminiBatch || q.form == FormBedrockBatch }

// isQuestion reports whether name is that of a question, which no parameter has.
func isQuestion(name []byte) bool {
	switch string(name) {
	case "prompt", "body", "url", "params", "messages", "input":
		return true
	}
	return false
}

// checkOutsideBody refuses a field next to the body of a batch line that belongs into the body: it would not be
// sent. A model may stand there if bodies name none.
func (r *Reader) checkOutsideBody(form Form) *LineError {
	inside := ""
	//exhaustive:enforce
	switch form {
	case FormOpenAIBatch:
		inside = "body"
	case FormAnthropicBatch:
		inside = "params"
	case FormGeminiBatch:
		inside = "request"
	case FormBedrockBatch:
		inside = "modelInput"
	case FormBody, FormPrompt, FormTemplate:
		return nil
	}
	takesModel := form == FormGeminiBatch || form == FormBedrockBatch
	for _, m := range r.line.Members {
		name := string(m.Name)
		_, lost := parameters[name]
		lost = lost || name == "system" || name == "stream" || name == "model" && !takesModel
		if lost && !rawjson.IsNull(m.Value) {
			return newLineError(ErrShape, "move it into "+inside+" or remove it", "%s is next to %s, where it is not sent", name, inside)
		}
	}
	return nil
}

// readIDAndMetadata reads the fields that every form may have besides the question.
func (r *Reader) readIDAndMetadata(req *Request, f *fields) *LineError {
	if !rawjson.IsNull(f.metadata) {
		if f.metadata[0] != '{' {
			return newLineError(ErrShape, adviceFix, "metadata is %s, not an object", rawjson.KindOf(f.metadata))
		}
		req.Metadata = r.keepText(f.metadata)
	}
	name, value, c := f.idOf(req.Form)
	if c != nil {
		return c
	}
	if rawjson.IsNull(value) {
		return nil
	}
	req.HasID = true
	r.id, c = readID(name, value)
	return c
}

// idOf finds the id that a line gives. It stands under a name of its form, or under one
// of ours if the form has no other use for it.
func (f *fields) idOf(form Form) (name string, value []byte, c *LineError) {
	if form == FormOpenAIBatch || form == FormAnthropicBatch {
		return "custom_id", f.customID, nil
	}
	names := [...]string{"custom_id", "id", ""}
	values := [...][]byte{f.customID, f.id, nil}
	switch form {
	case FormGeminiBatch:
		names[2], values[2] = "key", f.key
	case FormBedrockBatch:
		names[2], values[2] = "recordId", f.recordID
	}
	for i := range names {
		switch {
		case rawjson.IsNull(values[i]):
		case value != nil:
			return "", nil, newLineError(ErrShape, "keep one of them", "both %s and %s", name, names[i])
		default:
			name, value = names[i], values[i]
		}
	}
	return name, value, nil
}

// readID accepts strings, and numbers as they are written: data sets count their rows.
func readID(name string, value []byte) (id []byte, c *LineError) {
	switch value[0] {
	case '"':
		id = rawjson.Unquote(value)
	case '{', '[', 't', 'f':
		return nil, newLineError(ErrShape, adviceFix, "%s is %s, not a string", name, rawjson.KindOf(value))
	default:
		id = value
	}
	if len(id) == 0 {
		return nil, newLineError(ErrShape, "name it or leave the field out", "%s is empty", name)
	}
	return id, nil
}

// checkMethod accepts only the one method by which an OpenAI batch line asks a model.
func (f *fields) checkMethod() *LineError {
	if rawjson.IsNull(f.method) || strings.EqualFold(string(f.method), `"POST"`) {
		return nil
	}
	return newLineError(ErrShape, `write "POST" or leave the field out`, "method is %s, not POST", lines.Clip(string(f.method)))
}

// endpoint reads url, which must be one of the known paths.
func endpoint(url []byte, byDefault string) (string, *LineError) {
	path := byDefault
	if !rawjson.IsNull(url) {
		path = lines.Clip(string(url))
		if rawjson.IsString(url) {
			path = string(rawjson.Unquote(url))
		}
	}
	for _, known := range endpoints {
		if path == known {
			return known, nil
		}
	}
	return "", newLineError(ErrURL, "a line may name one of "+strings.Join(endpoints, ", "), "url %q is not known", lines.Clip(path))
}

// model returns the model that a body names, else the default; supplied says that the model
// must be added to the body.
func (r *Reader) model(f *fields) (model string, supplied bool, c *LineError) {
	switch {
	case rawjson.IsNull(f.model) && r.cfg.DefaultModel == "" && r.cfg.Template != nil:
		return "", false, newLineError(ErrNoModel, "name one for all lines: with a template the line's own is data", noModel)
	case rawjson.IsNull(f.model) && r.cfg.DefaultModel == "":
		return "", false, newLineError(ErrNoModel, "add a model to the line, or name one for all lines", noModel)
	case rawjson.IsNull(f.model):
		return r.cfg.DefaultModel, true, nil
	case !rawjson.IsString(f.model):
		return "", false, newLineError(ErrShape, adviceFix, "model is %s, not a string", rawjson.KindOf(f.model))
	}
	if model = r.intern(rawjson.Unquote(f.model)); model == "" {
		return "", false, newLineError(ErrNoModel, "add a model to the line, or leave the field out", "model is empty")
	}
	return model, false, nil
}

// knownModels bounds the number of names that requests share. A file names a handful, and
// one with a new name on each line must not fill memory.
const knownModels = 256

// intern returns the name as a string, the same one each time.
func (r *Reader) intern(name []byte) string {
	if s, ok := r.models[string(name)]; ok {
		return s
	}
	s := string(name)
	if len(r.models) < knownModels {
		r.models[s] = s
	}
	return s
}

// checkStream refuses bodies that ask for an answer in pieces, or for one to be fetched
// later: a result is one line.
func (f *fields) checkStream() *LineError {
	if len(f.stream) > 0 && f.stream[0] == 't' {
		return newLineError(ErrStream, "remove it: a result is written whole", `"stream": true`)
	}
	if len(f.background) > 0 && f.background[0] == 't' {
		return newLineError(ErrStream, "remove it: a result is written when it is there", `"background": true`)
	}
	return nil
}

// invalidAt returns the position of the first byte that is not UTF-8, from 1.
func invalidAt(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i + 1
		}
		i += n
	}
	return len(text)
}
