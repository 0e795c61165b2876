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
	var l answer
	kind, fault := l.check(body)
	if e := l.judge(kind, fault, status, h, body, own); e != nil {
		if fault != "" {
			reply.Usage, reply.HasUsage = TornUsage(body)
			return reply, e
		}
		if !l.listed && !e.Kind.Cools() {
			reply.Usage, _ = l.tokens()
			reply.HasUsage = reply.Usage != Usage{} // a usage of zero is none
		}
		return reply, e
	}
	if !l.listed {
		reply.Usage, reply.HasUsage = l.tokens()
		reply.Finish = l.end()
	}
	return reply, nil
}

// TornUsage returns the usage in an answer of one JSON object that was cut off. It returns
// false if the usage had not come whole.
func TornUsage(body []byte) (Usage, bool) {
	var l answer
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		value := w.Skip()
		switch string(w.Name) { // no bare numbers: of those a part looks whole
		case "usage", "usageMetadata", "meta", "service_tier", "serviceTier":
			if rawjson.Valid(value) { // the value in which the answer broke off is not
				l.keep(w.Name, value)
			}
		}
	}
	if u, known := l.tokens(); known {
		return u, true
	}
	return Usage{}, false
}

// answer is an answer's JSON seen once: the values at its top that say whether it is a good
// answer, what it cost and why it ended. They point into it; nil is not there.
type answer struct {
	root   []byte // of an array, its first element
	listed bool   // it was an array

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

// check reads a body that should be JSON, and says what is wrong if it is not.
func (l *answer) check(body []byte) (kind Kind, fault string) {
	trimmed := rawjson.Trim(body) // of JSON's own white space: what is saved as JSON must be JSON
	switch {
	case len(trimmed) == 0:
		return EmptyAnswer, "an empty body"
	case trimmed[0] == '<':
		return TransportFault, prose(trimmed)
	case !l.parse(trimmed):
		return TransportFault, "the body is cut short or not JSON"
	}
	return Unknown, ""
}

// parse reads a body if it is JSON, and reports whether it is.
func (l *answer) parse(body []byte) bool {
	p := parsers.Get().(*rawjson.Parser)
	good := p.Parse(body)
	if good {
		l.read(body, p.Members)
	}
	clear(p.Members) // they point into the body
	parsers.Put(p)
	return good
}

// read takes the values that answer has fields for; of two with one name, the first. members are
// the first ones of a body that is an object, and all of them if there are fewer than wide.
func (l *answer) read(body []byte, members []rawjson.Member) {
	if l.root, l.listed = body, body[0] == '['; l.listed {
		l.root = rawjson.First(body)
	}
	if !isObject(l.root) {
		return
	}
	if l.listed || len(members) == wide {
		for w := rawjson.WalkIn(l.root); w.Next(); {
			l.keep(w.Name, w.Skip())
		}
	} else {
		for i := range members {
			l.keep(members[i].Name, members[i].Value)
		}
	}
	if l.choice.read(l.choices); rawjson.IsNull(l.choice.raw) {
		l.choice.read(l.candidates)
	}
}

// keep keeps a value if answer has a field for its name, and no earlier value had that name.
func (l *answer) keep(name, value []byte) {
	if to := l.field(name); to != nil && *to == nil {
		*to = value
	}
}

// field returns the place for the value of a key, nil if the key is not read. The keys of OpenAI's
// and Anthropic's answers come first.
func (l *answer) field(key []byte) *[]byte {
	switch string(key) {
	case "error":
		return &l.err
	case "status":
		return &l.status
	case "type":
		return &l.kind
	case "object":
		return &l.object
	case "choices":
		return &l.choices
	case "data":
		return &l.data
	case "output":
		return &l.output
	case "content":
		return &l.content
	case "usage":
		return &l.usage
	case "service_tier", "serviceTier": // OpenAI's, Bedrock's
		return &l.tier
	case "stop_reason":
		return &l.stop
	case "incomplete_details":
		return &l.incomplete
	case "candidates":
		return &l.candidates
	case "promptFeedback":
		return &l.feedback
	case "usageMetadata", "meta": // Gemini's, Cohere's
		return &l.metadata
	case "stopReason":
		return &l.stopCamel
	case "message":
		return &l.message
	case "finish_reason":
		return &l.ending
	case "done_reason":
		return &l.done
	case "prompt_eval_count":
		return &l.promptCount
	case "eval_count":
		return &l.count
	case "results", "embeddings", "embedding", "response", "completion", "text":
		return &l.other
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
	first, in := w.Ahead(), w.Into()
	for in.Next() {
		value := in.Skip()
		switch {
		case c.err == nil && string(in.Name) == "error":
			c.err = value
		case c.finish == nil && (string(in.Name) == "finish_reason" || string(in.Name) == "finishReason"):
			c.finish = value
		case c.message == nil && string(in.Name) == "message":
			c.message = value
		}
	}
	w.Leave(&in)
	c.raw = first[:len(first)-len(w.Ahead())]
}

// saysNothing reports whether a message has null for its content and says nothing in any
// other member, such as a tool call, a refusal, audio or reasoning.
func saysNothing(message []byte) (empty bool) {
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

// judge returns what is wrong with an answer of a good status; nil if nothing is. kind and
// fault describe a body that is not JSON.
func (l *answer) judge(kind Kind, fault string, status int, h http.Header, body []byte, own []*Wording) *Error {
	if fault != "" {
		return &Error{Kind: kind, Status: status, RequestID: RequestID(h), Message: clip(fault, maxMessage), Body: bound(body)}
	}
	part, failed := l.failure()
	if !failed {
		return nil
	}
	a := read(0, h, part)
	a.status = statusWithin(a)
	e := judge(a, body, own)
	e.Status = status
	if !l.blames() {
		l.explain(e)
	}
	return e
}

// explain says why there is no answer where the provider does not call it an error.
func (l *answer) explain(e *Error) {
	if reason := rawjson.Lookup(l.feedback, "blockReason"); rawjson.IsString(reason) {
		e.Kind, e.Code = Refused, clip(string(rawjson.Unquote(reason)), maxWord)
		e.Message = "the prompt was blocked"
		return
	}
	if e.Kind != Unknown || isPresent(l.root) && !isObject(l.root) { // in some way it did
		return
	}
	if e.Kind = EmptyAnswer; e.Message == "" {
		e.Message = "there is no answer in it"
	}
}

// blames reports whether an answer calls itself an error.
func (l *answer) blames() bool {
	return isPresent(l.err) || isPresent(l.choice.err) || rawjson.IsWord(l.kind, "error") || rawjson.IsWord(l.object, "error")
}

// failure finds the error in an answer that carries one instead of a result, and
// returns the JSON to classify. One that holds no result at all is a failure, too,
// unless the provider says why it ended: a model may have nothing to say.
func (l *answer) failure() (part []byte, failed bool) {
	if !isObject(l.root) {
		return l.root, true // a bare string or number answers no request
	}
	if isPresent(l.choice.err) && rawjson.IsWord(l.choice.finish, "error") {
		return l.choice.raw, true
	}
	if isPresent(l.err) && rawjson.IsWord(l.status, "failed") { // Responses, perhaps with a part of the output
		return l.root, true
	}
	if !rawjson.IsNull(l.choice.raw) || begins(l.data) || begins(l.output) || begins(l.content) {
		return nil, false
	}
	return l.root, l.blames() || !l.answers() && l.finish() == ""
}

// answers reports whether there is an answer in any other form than a list. A message
// that is a text is an error's.
func (l *answer) answers() bool {
	return holds(l.data) || holds(l.output) || holds(l.content) || holds(l.other) ||
		isObject(l.message) && isPresent(l.message)
}

// onlyReads reports whether the model has written nothing: the answer has vectors, or
// scores of documents.
func (l *answer) onlyReads() bool {
	for _, list := range [...][]byte{l.data, l.other} {
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

// end returns why a good answer ended, and noContent for one that stopped and says nothing.
func (l *answer) end() string {
	word := cmp.Or(l.finish(), l.completed())
	if saysNothing(l.choice.message) && (word == "" || EndOf(word) == EndStop) {
		return noContent
	}
	return word
}

// finish returns the provider's own word for why the answer ended.
func (l *answer) finish() string {
	for _, v := range [...][]byte{
		l.choice.finish, l.stop, rawjson.Lookup(l.incomplete, "reason"), l.stopCamel, l.ending, l.done,
	} {
		if word := finishOf(v); word != "" {
			return word
		}
	}
	return ""
}

// completed returns why a whole answer of Responses ended, which has no word of its own for
// that. The reason is a call of a tool, if that is the last of the output, or else the status.
func (l *answer) completed() string {
	if !rawjson.IsWord(l.object, "response") || !rawjson.IsWord(l.status, "completed") {
		return ""
	}
	var last []byte
	for w := rawjson.WalkIn(l.output); w.Next(); {
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
	return ownWord(rawjson.Unquote(value))
}

// ownWord returns a copy of a word, which does not keep the answer in memory.
func ownWord(word []byte) string {
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

// Reply returns the good answer in which that was found.
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
