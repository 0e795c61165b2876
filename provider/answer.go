package provider

import (
	"bytes"
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/headrace/headrace/provider/rawjson"
)

// ReplyOf reads a response: a good answer with its usage and the reason for its end, or an
// error as Classify returns it. It is the one way to read an answer, in one pass, for calls by
// the thousand a second. An answer may come in good order and still be an error, as an empty
// one is. It is paid for, so its usage comes with the error. A refusal has no usage.
//
// Usage is read in the spellings of chat completions, completions, embeddings, rerank, Responses,
// Anthropic's messages, Gemini's generateContent, Bedrock's Converse, Cohere and Ollama;
// so is the reason for the end, in the provider's own word. A chat's message that stopped
// with null for its content and says nothing else has the finish "no_content".
func ReplyOf(status int, h http.Header, body []byte) (Reply, *Error) {
	return ReplyIn(status, h, body)
}

// ReplyIn is ReplyOf with own words that are asked first, as in ClassifyIn.
func ReplyIn(status int, h http.Header, body []byte, own ...*Wording) (Reply, *Error) {
	reply := Reply{Status: status, RequestID: RequestID(h), Body: body}
	if status < 200 || status >= 300 {
		return reply, judge(read(status, h, body), body, own)
	}
	var parsed answer
	kind, fault := parsed.check(body)
	if e := parsed.judge(kind, fault, status, h, body, own); e != nil {
		if fault != "" {
			reply.Usage, reply.HasUsage = TornUsage(body)
			return reply, e
		}
		if !parsed.isArray && !e.Kind.Cools() {
			reply.Usage, _ = parsed.tokens()
			reply.HasUsage = reply.Usage != Usage{} // a usage of zero is none
		}
		return reply, e
	}
	if !parsed.isArray {
		reply.Usage, reply.HasUsage = parsed.tokens()
		reply.Finish = parsed.finishReason()
	}
	return reply, nil
}

// TornUsage returns the usage in an answer of one JSON object that was cut off. It returns
// false if the usage had not come whole.
func TornUsage(body []byte) (Usage, bool) {
	var parsed answer
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		value := w.Skip()
		switch string(w.Name) { // no bare numbers: of those a part looks whole
		case "usage", "usageMetadata", "meta", "service_tier", "serviceTier":
			if rawjson.Valid(value) { // the value in which the answer broke off is not
				parsed.keep(w.Name, value)
			}
		}
	}
	if u, known := parsed.tokens(); known {
		return u, true
	}
	return Usage{}, false
}

// answer is an answer's JSON seen once: the values at its top that say whether it is a good
// answer, what it cost and why it ended. They point into it; nil is not there.
type answer struct {
	root    []byte // of an array, its first element
	isArray bool   // it was an array

	err, status, kind, object, feedback []byte

	choices, data, output, content, candidates []byte // where an answer stands
	message                                    []byte // Cohere, Ollama
	other                                      []byte // where else one may stand

	usage, metadata, promptCount, count, tier []byte // what it cost

	ending, stop, stopCamel, done, incomplete []byte // why it ended, at the top

	choice choice // the first, or the first candidate
}

// wide is more members than most answers have at their top. They are found while the answer is
// checked; more of them would let a server take up memory as it pleases.
const wide = 16

// parsers have room for the members of an answer.
var parsers = sync.Pool{New: func() any {
	return &rawjson.Parser{Members: make([]rawjson.Member, 0, wide), Most: wide}
}}

// choice holds the parts of a chat completion's choice that are read.
type choice struct{ raw, err, finish, message []byte }

// check reads a body that should be JSON. If it is not, check returns a fault in words, and its kind.
func (a *answer) check(body []byte) (kind Kind, fault string) {
	trimmed := rawjson.Trim(body) // of JSON's own white space: what is saved as JSON must be JSON
	switch {
	case len(trimmed) == 0:
		return EmptyAnswer, "an empty body"
	case trimmed[0] == '<':
		return TransportFault, prose(trimmed)
	case !a.parse(trimmed):
		return TransportFault, "the body is cut short or not JSON"
	}
	return Unknown, ""
}

// parse reads a body if it is JSON, and reports whether it is.
func (a *answer) parse(body []byte) bool {
	p := parsers.Get().(*rawjson.Parser)
	good := p.Parse(body)
	if good {
		a.read(body, p.Members)
	}
	clear(p.Members) // they point into the body
	parsers.Put(p)
	return good
}

// read takes the values that answer has fields for; of two with one name, the first. members are
// the first ones of a body that is an object, and all of them if there are fewer than wide.
func (a *answer) read(body []byte, members []rawjson.Member) {
	if a.root, a.isArray = body, body[0] == '['; a.isArray {
		a.root = rawjson.First(body)
	}
	if !isObject(a.root) {
		return
	}
	if a.isArray || len(members) == wide {
		for w := rawjson.WalkIn(a.root); w.Next(); {
			a.keep(w.Name, w.Skip())
		}
	} else {
		for i := range members {
			a.keep(members[i].Name, members[i].Value)
		}
	}
	if a.choice.read(a.choices); rawjson.IsNull(a.choice.raw) {
		a.choice.read(a.candidates)
	}
}

// keep keeps a value if answer has a field for its name, and no earlier value had that name.
func (a *answer) keep(name, value []byte) {
	if to := a.field(name); to != nil && *to == nil {
		*to = value
	}
}

// field returns the place for the value of a key, nil if the key is not read. The keys of OpenAI's
// and Anthropic's answers come first.
func (a *answer) field(key []byte) *[]byte {
	switch string(key) {
	case "error":
		return &a.err
	case "status":
		return &a.status
	case "type":
		return &a.kind
	case "object":
		return &a.object
	case "choices":
		return &a.choices
	case "data":
		return &a.data
	case "output":
		return &a.output
	case "content":
		return &a.content
	case "usage":
		return &a.usage
	case "service_tier", "serviceTier": // OpenAI's, Bedrock's
		return &a.tier
	case "stop_reason":
		return &a.stop
	case "incomplete_details":
		return &a.incomplete
	case "candidates":
		return &a.candidates
	case "promptFeedback":
		return &a.feedback
	case "usageMetadata", "meta": // Gemini's, Cohere's
		return &a.metadata
	case "stopReason":
		return &a.stopCamel
	case "message":
		return &a.message
	case "finish_reason":
		return &a.ending
	case "done_reason":
		return &a.done
	case "prompt_eval_count":
		return &a.promptCount
	case "eval_count":
		return &a.count
	case "results", "embeddings", "embedding", "response", "completion", "text":
		return &a.other
	}
	return nil
}

// read takes the first of a list, and those of its parts that are read.
func (c *choice) read(list []byte) {
	if c.raw = nil; len(list) == 0 || list[0] != '[' {
		return
	}
	w := rawjson.WalkIn(list)
	if !w.Next() {
		return
	}
	if !isObject(w.Ahead()) {
		c.raw = w.Skip()
		return
	}
	first, members := w.Ahead(), w.Into()
	for members.Next() {
		value := members.Skip()
		switch {
		case c.err == nil && string(members.Name) == "error":
			c.err = value
		case c.finish == nil && (string(members.Name) == "finish_reason" || string(members.Name) == "finishReason"):
			c.finish = value
		case c.message == nil && string(members.Name) == "message":
			c.message = value
		}
	}
	w.Leave(&members)
	c.raw = first[:len(first)-len(w.Ahead())]
}

// isEmptyMessage reports whether a message has null for its content, and no other member with
// content: no tool call, refusal, audio or reasoning.
func isEmptyMessage(message []byte) (empty bool) {
	if bytes.HasPrefix(message, []byte(`{"role":"assistant","content":"`)) { // as most begin
		return false
	}
	for w := rawjson.WalkIn(message); w.Next(); {
		switch string(w.Name) {
		case "role":
			w.Skip()
		case "content":
			if !rawjson.IsNull(w.Ahead()) {
				return false
			}
			w.Skip()
			empty = true
		default:
			if isPresent(w.Skip()) {
				return false
			}
		}
	}
	return empty
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// isPresent reports whether a value says something.
func isPresent(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}", "[]":
		return false
	}
	return true
}

// begins reports whether a value is a list with anything in it.
func begins(raw []byte) bool { return !rawjson.IsNull(rawjson.First(raw)) }

// holds reports whether a value has an answer in it, as a list or in any other form.
func holds(raw []byte) bool { return begins(raw) || isPresent(raw) && raw[0] != '[' }

// judge returns the error in an answer of a good status; nil if there is none. kind and
// fault describe a body that is not JSON.
func (a *answer) judge(kind Kind, fault string, status int, h http.Header, body []byte, own []*Wording) *Error {
	if fault != "" {
		return &Error{Kind: kind, Status: status, RequestID: RequestID(h), Message: clip(fault, maxMessage), Body: boundBody(body)}
	}
	part, failed := a.errorPart()
	if !failed {
		return nil
	}
	f := read(0, h, part)
	f.status = embeddedStatus(f)
	e := judge(f, body, own)
	e.Status = status
	if !a.reportsError() {
		a.explain(e)
	}
	return e
}

// explain fills in why there is no answer, for an answer that does not call itself an error.
func (a *answer) explain(e *Error) {
	if reason := rawjson.Lookup(a.feedback, "blockReason"); rawjson.IsString(reason) {
		e.Kind, e.Code = Refused, clip(string(rawjson.Unquote(reason)), maxWord)
		e.Message = "the prompt was blocked"
		return
	}
	if e.Kind != Unknown || isPresent(a.root) && !isObject(a.root) { // in some way it did
		return
	}
	if e.Kind = EmptyAnswer; e.Message == "" {
		e.Message = "there is no answer in it"
	}
}

// reportsError reports whether an answer calls itself an error.
func (a *answer) reportsError() bool {
	return isPresent(a.err) || isPresent(a.choice.err) || rawjson.IsWord(a.kind, "error") || rawjson.IsWord(a.object, "error")
}

// errorPart finds the error in an answer that carries one instead of a result, and
// returns the JSON to classify. One that holds no result at all is a failure, too,
// unless the provider says why it ended: a model may have nothing to say.
func (a *answer) errorPart() (part []byte, failed bool) {
	if !isObject(a.root) {
		return a.root, true // a bare string or number answers no request
	}
	if isPresent(a.choice.err) && rawjson.IsWord(a.choice.finish, "error") {
		return a.choice.raw, true
	}
	if isPresent(a.err) && rawjson.IsWord(a.status, "failed") { // Responses, perhaps with a part of the output
		return a.root, true
	}
	if !rawjson.IsNull(a.choice.raw) || begins(a.data) || begins(a.output) || begins(a.content) {
		return nil, false
	}
	return a.root, a.reportsError() || !a.hasOtherContent() && a.finish() == ""
}

// hasOtherContent reports whether there is an answer in any other form than a list. A message
// that is a text belongs to an error.
func (a *answer) hasOtherContent() bool {
	return holds(a.data) || holds(a.output) || holds(a.content) || holds(a.other) ||
		isObject(a.message) && isPresent(a.message)
}

// isScoresOnly reports whether the answer has only vectors or scores of documents. Then the model
// has written nothing.
func (a *answer) isScoresOnly() bool {
	for _, list := range [...][]byte{a.data, a.other} {
		if list == nil || list[0] != '[' {
			continue
		}
		for w := rawjson.WalkIn(rawjson.First(list)); w.Next(); w.Skip() {
			switch string(w.Name) {
			case "embedding", "relevance_score":
				return true
			}
		}
	}
	return false
}

// finishReason returns why a good answer ended, and noContent for one that stopped and says nothing.
func (a *answer) finishReason() string {
	word := cmp.Or(a.finish(), a.completed())
	if isEmptyMessage(a.choice.message) && (word == "" || EndOf(word) == EndStop) {
		return noContent
	}
	return word
}

// finish returns the provider's own word for why the answer ended.
func (a *answer) finish() string {
	for _, v := range [...][]byte{
		a.choice.finish, a.stop, rawjson.Lookup(a.incomplete, "reason"), a.stopCamel, a.ending, a.done,
	} {
		if word := finishOf(v); word != "" {
			return word
		}
	}
	return ""
}

// completed returns the reason for the end of a whole answer of Responses, which names none. The
// reason is a call of a tool, if that is the last of the output, or else the status.
func (a *answer) completed() string {
	if !rawjson.IsWord(a.object, "response") || !rawjson.IsWord(a.status, "completed") {
		return ""
	}
	var last []byte
	for w := rawjson.WalkIn(a.output); w.Next(); {
		last = w.Skip()
	}
	if rawjson.IsWord(rawjson.Lookup(last, "type"), "function_call") {
		return "function_call"
	}
	return "completed"
}

// finishOf returns the word in a string, "" if the value is not a string.
func finishOf(value []byte) string {
	if !rawjson.IsString(value) || len(value) <= len(`""`) {
		return ""
	}
	return cloneWord(rawjson.Unquote(value))
}

// cloneWord returns a copy of a word, so that the word does not keep the answer in memory. The
// frequent words are constants, which cost no allocation.
func cloneWord(word []byte) string {
	switch string(word) {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	case "end_turn":
		return "end_turn"
	case "STOP":
		return "STOP"
	case "tool_use":
		return "tool_use"
	case "max_tokens":
		return "max_tokens"
	case "completed":
		return "completed"
	}
	return clip(string(word), maxWord)
}

// Found holds what a dialect's own pass over a good answer has found, as it stands there; nil
// is not there.
type Found struct {
	Usage  []byte // the object in which tokens are counted
	Finish []byte // the string that says why it ended
	ID     []byte // the answer's id, where no header has one
}

// Reply returns the good answer that f was found in.
func (f *Found) Reply(status int, h http.Header, body []byte) Reply {
	reply := Reply{Status: status, RequestID: RequestID(h), Body: body, Finish: finishOf(f.Finish)}
	reply.Usage, reply.HasUsage = UsageIn(f.Usage)
	if reply.RequestID == "" && rawjson.IsString(f.ID) {
		reply.RequestID = clip(string(rawjson.Unquote(f.ID)), maxWord)
	}
	return reply
}

// ObjectIn returns the JSON object in a body, without white space around it; nil if the body is
// anything else, or not JSON.
func ObjectIn(body []byte) []byte {
	if object := rawjson.Trim(body); isObject(object) && rawjson.Valid(object) {
		return object
	}
	return nil
}

// Segment returns a model's name as one segment of a path. Whatever stands in the name, the path
// keeps its segments and its host. All but letters, digits and - . _ ~ is escaped, as signers
// of paths do, and so are the dots of a name that has nothing else.
func Segment(model string) string {
	if model == "." || model == ".." {
		return strings.ReplaceAll(model, ".", "%2E")
	}
	const mark = "+" // what QueryEscape makes of a space, and of nothing else
	return strings.ReplaceAll(url.QueryEscape(model), mark, "%20")
}
