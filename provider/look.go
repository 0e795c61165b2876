package provider

import (
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/rawjson"
)

// ReplyOf is Classify, UsageOf and FinishOf in one pass over an answer, for calls
// by the thousand a second. With an error there is no usage.
func ReplyOf(status int, h http.Header, body []byte) (Reply, *Error) {
	reply := Reply{Status: status, RequestID: RequestID(h), Body: body}
	if status < 200 || status >= 300 {
		return reply, Classify(status, h, body)
	}
	l, fault := lookAt(body)
	if e := l.judge(fault, status, h, body); e != nil {
		return reply, e
	}
	if !l.listed {
		reply.Usage, reply.HasUsage = usageIn(gjson.Parse(string(l.usage)))
		reply.Finish = l.finish()
	}
	return reply, nil
}

// look is an answer's JSON seen once: the values at its top that say whether it is
// one, what it cost and why it ended. They point into it; nil is not there.
type look struct {
	root   []byte // of an array, its first element
	listed bool   // it was an array

	err, status, kind, object      []byte
	choices, data, output, content []byte
	usage, stop, incomplete        []byte
	choice                         choice // the first
}

// choice is what is asked about a choice of a chat completion.
type choice struct{ raw, err, finish []byte }

// usualMembers is how many members an answer has room for on the stack; they have
// six to a dozen.
const usualMembers = 16

// lookAt looks at a body that should be JSON, and says what it is if it is not.
func lookAt(body []byte) (l look, fault string) {
	trimmed := rawjson.Trim(body) // of JSON's own white space: what is saved as JSON must be JSON
	switch {
	case len(trimmed) == 0:
		return l, "an empty body"
	case trimmed[0] == '<':
		return l, prose(trimmed)
	case !rawjson.Valid(trimmed):
		return l, "the body is cut short or not JSON"
	}
	l.read(trimmed)
	return l, ""
}

func (l *look) read(body []byte) {
	if l.root, l.listed = body, body[0] == '['; l.listed {
		l.root = rawjson.First(body)
	}
	if !isObject(l.root) {
		return
	}
	var room [usualMembers]rawjson.Member
	for _, m := range rawjson.Members(l.root, room[:0]) {
		if to := l.field(m.Name); to != nil && *to == nil { // of two of a name, the first
			*to = m.Value
		}
	}
	l.choice.read(firstOf(l.choices))
}

// field is where the value of a key goes, nil if nobody asks for it.
func (l *look) field(key []byte) *[]byte {
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
	case "stop_reason":
		return &l.stop
	case "incomplete_details":
		return &l.incomplete
	}
	return nil
}

func (c *choice) read(raw []byte) {
	if c.raw = raw; !isObject(raw) {
		return
	}
	var room [usualMembers]rawjson.Member
	for _, m := range rawjson.Members(raw, room[:0]) {
		switch {
		case c.err == nil && string(m.Name) == "error":
			c.err = m.Value
		case c.finish == nil && string(m.Name) == "finish_reason":
			c.finish = m.Value
		}
	}
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// firstOf is the first element of an array, nil if there is none.
func firstOf(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	return rawjson.First(raw)
}

// is reports whether a value is that string.
func is(raw []byte, word string) bool {
	return rawjson.IsString(raw) && string(rawjson.Unquote(raw)) == word
}

// isPresent reports whether a value says something.
func isPresent(raw []byte) bool {
	switch string(raw) {
	case "", "null", "false", `""`, "{}":
		return false
	}
	return true
}

// judge says what is wrong with an answer of a good status; nil if nothing is.
func (l *look) judge(fault string, status int, h http.Header, body []byte) *Error {
	if fault != "" {
		return &Error{Kind: TransportFault, Status: status, RequestID: RequestID(h), Message: clip(fault, maxMessage), Body: bound(body)}
	}
	part, failed := l.failure()
	if !failed {
		return nil
	}
	a := read(0, h, part)
	a.status = statusWithin(a)
	e := judge(a, body)
	e.Status = status
	return e
}

// failure finds the error in an answer that carries one instead of a result, and
// returns the JSON to classify.
func (l *look) failure() (part []byte, failed bool) {
	if !isObject(l.root) {
		return l.root, true // a bare string or number answers no request
	}
	if isPresent(l.choice.err) && is(l.choice.finish, "error") {
		return l.choice.raw, true
	}
	failed = isPresent(l.err)
	if failed && is(l.status, "failed") { // Responses, perhaps with a part of the output
		return l.root, true
	}
	if l.choice.raw != nil || firstOf(l.data) != nil || firstOf(l.output) != nil || firstOf(l.content) != nil {
		return nil, false
	}
	return l.root, failed || is(l.kind, "error") || is(l.object, "error")
}

// finish is why the answer ended, in the provider's own word.
func (l *look) finish() string {
	for _, v := range [...][]byte{l.choice.finish, l.stop, l.reason()} {
		if rawjson.IsString(v) && len(v) > len(`""`) {
			return ownWord(rawjson.Unquote(v))
		}
	}
	return ""
}

// reason is why a Responses answer is incomplete.
func (l *look) reason() []byte {
	if isObject(l.incomplete) {
		for _, m := range rawjson.Members(l.incomplete, nil) {
			if string(m.Name) == "reason" {
				return m.Value
			}
		}
	}
	return nil
}

// ownWord is a word that does not hold on to the answer it was read from.
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
	}
	return clip(string(word), maxWord)
}
