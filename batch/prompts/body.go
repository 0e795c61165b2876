package prompts

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/internal/lines"
	"github.com/headrace/headrace/provider/rawjson"
)

// build makes the endpoint, model and body of a request, by the form of its line.
func (r *Reader) build(req *Request, text []byte, f *fields) *LineError {
	//exhaustive:enforce
	switch req.Form {
	case FormOpenAIBatch:
		return r.buildBatch(req, f)
	case FormBody:
		return r.buildBare(req, text, f)
	case FormAnthropicBatch:
		return r.buildParams(req, f)
	case FormGeminiBatch:
		return r.buildRequest(req, f)
	case FormBedrockBatch:
		return r.buildModelInput(req, f)
	case FormPrompt, FormTemplate: // a filled template is a prompt
	}
	return r.buildPrompt(req, f)
}

// buildBatch takes the body as it stands, byte for byte, except for a missing model.
func (r *Reader) buildBatch(req *Request, f *fields) (c *LineError) {
	if c = f.checkMethod(); c != nil {
		return c
	}
	if req.Endpoint, c = endpoint(f.url, r.cfg.DefaultEndpoint); c != nil {
		return c
	}
	if f.body == nil || f.body[0] != '{' {
		return newLineError(ErrShape, adviceFix, "no body object")
	}
	return r.buildAsIs(req, f.body)
}

// buildParams takes params as they stand, byte for byte, except for a missing model.
func (r *Reader) buildParams(req *Request, f *fields) *LineError {
	req.Endpoint = Messages
	if f.params[0] != '{' {
		return newLineError(ErrShape, adviceFix, "params is %s, not an object", rawjson.KindOf(f.params))
	}
	return r.buildAsIs(req, f.params)
}

// buildAsIs takes an object from the line as the body, and adds a missing model and missing parameters.
func (r *Reader) buildAsIs(req *Request, body []byte) *LineError {
	r.body = rawjson.Members(body, r.body[:0])
	var in fields
	if c := in.fill(r.body); c != nil {
		return c
	}
	return r.finish(req, body, r.body, &in, keepAll)
}

// buildBare takes the line as the body, without the user's own fields.
func (r *Reader) buildBare(req *Request, text []byte, f *fields) (c *LineError) {
	if req.Endpoint, c = endpoint(nil, r.bareEndpoint(f)); c != nil {
		return c
	}
	return r.finish(req, text, r.line.Members, f, notOfBody)
}

// bareEndpoint returns the endpoint for a body without url. A body with messages is a chat,
// and one with a query, documents and no other question is for Rerank. Embeddings,
// responses and moderations all have input. If the default is one of them, it decides.
// Otherwise a field decides that only one of them has: a setting of embeddings, or a model
// named so.
func (r *Reader) bareEndpoint(f *fields) string {
	byDefault := r.cfg.DefaultEndpoint
	switch {
	case rawjson.IsNull(f.messages) && rawjson.IsNull(f.input) && f.isRerank():
		return Rerank
	case f.messages != nil:
		return ChatCompletions
	case byDefault == Embeddings || byDefault == Responses || byDefault == Moderations:
		return byDefault
	case f.dimensions != nil || f.encodingFormat != nil:
		return Embeddings
	}
	model, _, _ := r.model(f)
	switch model = strings.ToLower(model); {
	case strings.Contains(model, "embed"):
		return Embeddings
	case strings.Contains(model, "moderation"):
		return Moderations
	}
	return Responses
}

// finish checks what every body must keep to, and copies the body out of the read buffer. drop reports whether a
// member of obj is left out.
func (r *Reader) finish(req *Request, obj []byte, ms []rawjson.Member, values *fields, drop func(rawjson.Member) bool) *LineError {
	if fault := cmp.Or(values.checkStream(), values.checkTwice(req.Endpoint)); fault != nil {
		return fault
	}
	model, supplied, fault := r.model(values)
	if fault != nil {
		return fault
	}
	req.Model = model
	r.addedMembers = r.addedMembers[:0]
	if supplied {
		r.addedMembers = rawjson.AppendString(append(r.addedMembers, `,"model":`...), model)
	}
	r.addedMembers = r.appendMissing(r.addedMembers, ms)
	switch {
	case supplied:
		req.Body = r.splice(obj, ms, func(m rawjson.Member) bool { return drop(m) || string(m.Name) == "model" })
	case len(r.addedMembers) > 0 || slices.ContainsFunc(ms, drop):
		req.Body = r.splice(obj, ms, drop)
	default:
		req.Body = r.keepText(obj)
	}
	return nil
}

// keepText returns text from the read buffer as the request's own: a copy, unless requests are Passing.
func (r *Reader) keepText(text []byte) []byte {
	if r.cfg.Passing {
		return text
	}
	return bytes.Clone(text)
}

// bodyBuffer returns an empty buffer for a body of at most n bytes.
func (r *Reader) bodyBuffer(n int) []byte {
	if !r.cfg.Passing {
		return make([]byte, 0, n)
	}
	if n > cap(r.bodyRoom) || cap(r.bodyRoom) > lines.KeepBuffer {
		r.bodyRoom = make([]byte, 0, n)
	}
	return r.bodyRoom
}

func keepAll(rawjson.Member) bool { return false }

// isUsersField reports whether a field of a bare body is the user's, not the provider's.
func isUsersField(m rawjson.Member) bool {
	switch string(m.Name) {
	case "custom_id", "id", "metadata":
		return true
	}
	return false
}

// notOfBody reports whether a field of a bare body is not sent: the user's own fields, and
// null fields of other forms.
func notOfBody(m rawjson.Member) bool {
	return isUsersField(m) || isQuestion(m.Name) && rawjson.IsNull(m.Value)
}

// splice copies obj without the members to drop, and with those of r.front before the
// others. Every other byte stays, except for the comma and the white space of a dropped
// member.
func (r *Reader) splice(obj []byte, ms []rawjson.Member, drop func(rawjson.Member) bool) []byte {
	out := append(r.bodyBuffer(len(obj)+len(r.addedMembers)), '{')
	if len(r.addedMembers) > 0 {
		out = append(out, r.addedMembers[1:]...) // no comma before the first
	}
	for i, m := range ms {
		if drop(m) {
			continue
		}
		out = append(appendGap(out, obj, ms, i), m.Raw...)
	}
	if len(ms) == 0 {
		return append(out, '}')
	}
	return append(out, obj[ms[len(ms)-1].End:]...)
}

// appendGap appends what stands before member i: its own comma and white space. If the member before it is a new
// one, that is a comma alone.
func appendGap(out, obj []byte, ms []rawjson.Member, i int) []byte {
	switch {
	case len(out) == 1:
		return out
	case i == 0:
		return append(out, ',')
	}
	return append(out, obj[ms[i-1].End:ms[i].Start]...)
}

// buildPrompt makes the body that the endpoint needs from a prompt. A chat gets messages,
// a response instructions and input, an embedding or a moderation input. A rerank gets
// the query, and a completion the prompt itself. Every field that is not the line's own
// goes along as it stands.
func (r *Reader) buildPrompt(req *Request, f *fields) (fault *LineError) {
	if req.Endpoint, fault = endpoint(nil, r.cfg.DefaultEndpoint); fault != nil {
		return fault
	}
	if fault = f.checkStream(); fault != nil {
		return fault
	}
	if req.Model, _, fault = r.model(f); fault != nil {
		return fault
	}
	system, fault := r.systemMessage(req.Endpoint, f)
	if fault != nil {
		return fault
	}
	isRerank := req.Endpoint == Rerank
	if isString := req.Endpoint == ChatCompletions || isRerank; isString && !rawjson.IsString(f.prompt) {
		return newLineError(ErrShape, adviceFix, "prompt is %s, not a string", rawjson.KindOf(f.prompt))
	}
	if isRerank {
		if fault = r.checkRerank(f); fault != nil {
			return fault
		}
	}
	req.Body = r.promptBody(req, f.prompt, system)
	r.addData(req)
	return nil
}

// checkRerank checks a prompt that is the query of a rerank: it needs documents, and must
// be the only query.
func (r *Reader) checkRerank(f *fields) *LineError {
	documents := f.documents
	if documents == nil {
		documents = r.param("documents")
	}
	switch {
	case f.query != nil || r.param("query") != nil:
		return newLineError(ErrShape, "keep one of them", "both a prompt and a query")
	case f.repeated != nil:
		return fieldTwice(f.repeated)
	case !isList(documents):
		return newLineError(ErrShape, "give the line a list of documents, or set one for all lines", "%s needs documents, and there is no list of them", Rerank)
	}
	return nil
}

// systemMessage returns the system message as JSON, nil if there is none. The line's own counts before that of all
// lines.
func (r *Reader) systemMessage(endpoint string, f *fields) ([]byte, *LineError) {
	speaks := endpoint == ChatCompletions || endpoint == Responses
	switch {
	case rawjson.IsNull(f.system) && (r.cfg.System == "" || !speaks):
		return nil, nil
	case rawjson.IsNull(f.system):
		return rawjson.AppendString(nil, r.cfg.System), nil
	case !rawjson.IsString(f.system):
		return nil, newLineError(ErrShape, adviceFix, "system is %s, not a string", rawjson.KindOf(f.system))
	case !speaks:
		return nil, newLineError(ErrShape, "remove it", "%s takes no system message", endpoint)
	}
	return f.system, nil
}

// promptBody makes the body for a line with a prompt. It holds the model, the question, the
// line's own parameters, and those set for all lines that it lacks. The size is computed first,
// so that the body is one allocation.
func (r *Reader) promptBody(req *Request, prompt, system []byte) []byte {
	size := len(prompt) + len(system) + len(req.Model) + 128
	for _, m := range r.line.Members {
		size += m.End - m.Start + 1
	}
	for _, p := range r.cfg.Params {
		size += len(p.Name) + len(p.Value) + len(`,"":`)
	}
	out := rawjson.AppendString(append(r.bodyBuffer(size), `{"model":`...), req.Model)
	out = appendQuestion(append(out, ','), req.Endpoint, prompt, system)
	for _, m := range r.line.Members {
		if !isUsersField(m) && !isHandled(m) {
			out = append(append(out, ','), m.Raw...)
		}
	}
	return append(r.appendMissing(out, r.line.Members), '}')
}

// appendQuestion writes the prompt into the member in which the endpoint expects it. The system
// message, if any, goes before it. Any other endpoint gets the messages of a chat.
func appendQuestion(out []byte, endpoint string, prompt, system []byte) []byte {
	switch endpoint {
	case Embeddings, Moderations:
		return append(append(out, `"input":`...), prompt...)
	case Completions:
		return append(append(out, `"prompt":`...), prompt...)
	case Rerank:
		return append(append(out, `"query":`...), prompt...)
	case Responses:
		if system != nil {
			out = append(append(append(out, `"instructions":`...), system...), ',')
		}
		return append(append(out, `"input":`...), prompt...)
	}
	out = append(out, `"messages":[`...)
	if system != nil {
		out = append(append(append(out, `{"role":"system","content":`...), system...), `},`...)
	}
	return append(append(append(out, `{"role":"user","content":`...), prompt...), `}]`...)
}

// isHandled reports whether a field of a prompt line is not sent as a parameter: it is data, or appendQuestion
// writes it.
func isHandled(m rawjson.Member) bool {
	name := string(m.Name)
	return name == "system" || name == "model" || isQuestion(m.Name)
}

// addData adds data of a prompt line to its metadata, so that they come back with the
// result. These are fields with the name of another form's field. The line's own metadata
// win.
func (r *Reader) addData(req *Request) {
	r.body = r.body[:0]
	if req.Metadata != nil {
		r.body = rawjson.Members(req.Metadata, r.body)
	}
	given := len(r.body)
	for _, m := range r.line.Members {
		isGiven := slices.ContainsFunc(r.body[:given], func(other rawjson.Member) bool { return bytes.Equal(other.Name, m.Name) })
		if isQuestion(m.Name) && string(m.Name) != "prompt" && !rawjson.IsNull(m.Value) && !isGiven {
			r.body = append(r.body, m)
		}
	}
	if len(r.body) == given {
		return
	}
	out := []byte("{")
	if given > 0 {
		out = bytes.Clone(req.Metadata[:len(req.Metadata)-1])
	}
	for i, m := range r.body[given:] {
		if i > 0 || given > 0 {
			out = append(out, ',')
		}
		out = append(out, m.Raw...)
	}
	req.Metadata = append(out, '}')
}

// notConverse are fields of InvokeModel bodies that Converse bodies do not have. They
// belong to Claude; Titan; Llama, Mistral and others; Nova; and models that take OpenAI's
// shape.
var notConverse = []string{"anthropic_version", "inputText", "prompt", "schemaVersion", "max_tokens", "max_completion_tokens"}

// buildRequest takes the request of a Gemini batch line as it stands, byte for byte.
func (r *Reader) buildRequest(req *Request, f *fields) *LineError {
	req.Endpoint = GenerateContent
	return r.buildNative(req, f, "request", f.request, "contents")
}

// buildModelInput takes the modelInput of a Bedrock batch line as it stands, byte for byte.
// It must be what Converse takes: a body for InvokeModel suits only one model.
func (r *Reader) buildModelInput(req *Request, f *fields) *LineError {
	req.Endpoint = Converse
	for w := rawjson.WalkIn(f.modelInput); w.Next(); w.Skip() {
		if slices.Contains(notConverse, string(w.Name)) {
			return newLineError(ErrUnsupported, "write it as Converse takes it: messages with blocks of content, bounds and temperature in inferenceConfig",
				"modelInput has %q, so it is a body of InvokeModel", w.Name)
		}
	}
	return r.buildNative(req, f, "modelInput", f.modelInput, "messages")
}

// buildNative takes a body as it stands. The body names no model: the URL does. The line
// may name one next to it, else the default counts. asks is the field of the question.
func (r *Reader) buildNative(req *Request, f *fields, name string, body []byte, asks string) (fault *LineError) {
	if body[0] != '{' {
		return newLineError(ErrShape, adviceFix, "%s is %s, not an object", name, rawjson.KindOf(body))
	}
	if len(r.cfg.Params) > 0 {
		return newLineError(ErrUnsupported, "write it into "+name+", or run such lines by themselves",
			"%s is set for all lines, and a %s has its parameters elsewhere", r.cfg.Params[0].Name, req.Form)
	}
	asked := 0
	r.body = rawjson.Members(body, r.body[:0])
	for _, m := range r.body {
		switch string(m.Name) {
		case "model", "modelId":
			return newLineError(ErrShape, "remove it, and put the model next to "+name+" or for all lines",
				"%s has %q, but the model belongs in the URL", name, m.Name)
		case asks:
			asked++
		}
	}
	switch asked {
	case 0:
		return newLineError(ErrShape, adviceFix, "%s has no %s", name, asks)
	case 1:
	default:
		return newLineError(ErrShape, adviceFix, "field %q appears twice", asks)
	}
	if req.Model, _, fault = r.model(f); fault != nil {
		return fault
	}
	req.Body = r.keepText(body)
	return nil
}
