package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
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
		reply.Usage, reply.HasUsage = usageIn(l.usage)
		reply.Finish = l.finish()
	}
	return reply, nil
}

// look is an answer's JSON seen once: the values at its top that say whether it is
// one, what it cost and why it ended.
type look struct {
	root   gjson.Result // of an array, its first element
	listed bool         // it was an array

	err, status, kind, object      gjson.Result
	choices, data, output, content gjson.Result
	usage, stop, incomplete        gjson.Result
	choice                         choice // the first
}

// choice is what is asked about a choice of a chat completion.
type choice struct {
	there       bool
	raw         string
	err, finish gjson.Result
}

// lookAt looks at a body that should be JSON, and says what it is if it is not.
func lookAt(body []byte) (l look, fault string) {
	trimmed := bytes.TrimSpace(body)
	switch {
	case len(trimmed) == 0:
		return l, "an empty body"
	case trimmed[0] == '<':
		return l, prose(trimmed)
	case !validJSON(trimmed):
		return l, "the body is cut short or not JSON"
	}
	l.read(gjson.Parse(string(trimmed)))
	return l, ""
}

// maxDepth is how deep an answer may be nested, encoding/json's own bound.
const maxDepth = 10_000

// validJSON is json.Valid, three times as fast. gjson goes down one stack frame
// for each level, and none is too deep for a hostile server: what may be nested
// too deep for a stack is left to encoding/json, which keeps count.
func validJSON(body []byte) bool {
	if bytes.Count(body, []byte{'{'})+bytes.Count(body, []byte{'['}) > maxDepth {
		return json.Valid(body)
	}
	return gjson.ValidBytes(body)
}

func (l *look) read(root gjson.Result) {
	if l.listed = root.IsArray(); l.listed {
		root = root.Get("0")
	}
	if l.root = root; !root.IsObject() {
		return
	}
	root.ForEach(func(key, value gjson.Result) bool {
		if to := l.field(key.Str); to != nil && !to.Exists() { // of two of a name, the first
			*to = value
		}
		return true
	})
	l.choice.read(l.choices.Get("0"))
}

// field is where the value of a key goes, nil if nobody asks for it.
func (l *look) field(key string) *gjson.Result {
	switch key {
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

func (c *choice) read(first gjson.Result) {
	c.there, c.raw = first.Exists(), first.Raw
	if !first.IsObject() && !first.IsArray() {
		return
	}
	c.err, c.finish = first.Get("error"), first.Get("finish_reason")
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
	a := read(0, h, []byte(part))
	a.status = statusWithin(a)
	e := judge(a, body)
	e.Status = status
	return e
}

// failure finds the error in an answer that carries one instead of a result, and
// returns the JSON to classify.
func (l *look) failure() (part string, failed bool) {
	whole := l.root.Raw
	if !l.root.IsObject() {
		return whole, true // a bare string or number answers no request
	}
	if present(l.choice.err) && l.choice.finish.Str == "error" {
		return l.choice.raw, true
	}
	failed = present(l.err)
	if failed && l.status.Str == "failed" { // Responses, perhaps with a part of the output
		return whole, true
	}
	if l.choice.there || l.data.Get("0").Exists() || l.output.Get("0").Exists() || l.content.Get("0").Exists() {
		return "", false
	}
	return whole, failed || l.kind.Str == "error" || l.object.Str == "error"
}

// finish is why the answer ended, in the provider's own word.
func (l *look) finish() string {
	for _, v := range [...]gjson.Result{l.choice.finish, l.stop, l.incomplete.Get("reason")} {
		if v.Type == gjson.String && v.Str != "" {
			return ownWord(v.Str)
		}
	}
	return ""
}

// ownWord is a word that does not hold on to the answer it was read from.
func ownWord(s string) string {
	switch s {
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	case "end_turn":
		return "end_turn"
	}
	return strings.Clone(clip(s, maxWord))
}
