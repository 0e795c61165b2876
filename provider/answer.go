package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// answer is a failed response taken apart: what the rules of classify.go look at.
type answer struct {
	status int
	header http.Header
	// code, kind and param are as the provider wrote them, message is its prose.
	code, kind, param, message string
	// id is the request's, where the body tells it.
	id string
	// words are all its codes and types, lower case, the most telling first.
	words []string
	// text is the message in lower case, with an upstream's message behind it.
	text string
	// wait is one that stands in the body as a number of its own, if hasWait.
	wait    time.Duration
	hasWait bool
	// google holds what only Google's error details say.
	google googleDetails
	// isJSON is false for plain text, HTML and nothing.
	isJSON bool
}

// maxText bounds how much prose is searched for phrases, in bytes: all known
// ones stand in the first few hundred.
const maxText = 8 << 10

// read takes a failed response apart. It accepts the error as an object, a
// string, the first of an array, or flat at the top; prose otherwise.
func read(status int, h http.Header, body []byte) *answer {
	a := &answer{status: status, header: h}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\xef\xbb\xbf"))
	if len(body) > 0 && json.Valid(body) {
		a.isJSON = true
		a.readJSON(gjson.ParseBytes(body))
	} else {
		a.message = prose(body)
	}
	if name, _, _ := strings.Cut(h.Get("X-Amzn-Errortype"), ":"); name != "" {
		a.addWord(name)
		a.kind = either(a.kind, name)
	}
	a.finish()
	return a
}

func (a *answer) readJSON(root gjson.Result) {
	if root.IsArray() {
		root = root.Get("0")
	}
	node := root.Get("error")
	switch {
	case node.IsObject():
		a.readNode(node)
	case node.Type == gjson.String:
		a.message = node.Str
	case root.Type == gjson.String:
		a.message = root.Str
	}
	// What stands beside the error, or is itself the error where it is flat.
	a.code = either(a.code, word(root.Get("code")))
	a.message = either(a.message, messageOf(root))
	a.param = either(a.param, word(root.Get("param")))
	a.id = word(root.Get("request_id")) // Anthropic
	a.addWord(word(root.Get("code")))
	a.addWord(word(root.Get("reason"))) // Novita
	a.addWord(word(root.Get("error_type")))
	if kind := word(root.Get("type")); kind != "error" { // Anthropic's envelope
		a.addWord(kind)
		a.kind = either(a.kind, kind)
	}
	if name := word(root.Get("__type")); name != "" { // AWS: "namespace#Name"
		name = name[strings.LastIndexByte(name, '#')+1:]
		a.addWord(name)
		a.kind = either(a.kind, name)
	}
}

// readNode reads an error object.
func (a *answer) readNode(e gjson.Result) {
	a.code, a.kind = word(e.Get("code")), either(word(e.Get("type")), word(e.Get("status")))
	a.param, a.message = word(e.Get("param")), messageOf(e)
	for _, path := range [...]string{
		"metadata.reason", "metadata.limit_source", // OpenRouter
		"code", "innererror.code", "details.error_code", "type", "error_type", "metadata.error_type", "status",
	} {
		a.addWord(word(e.Get(path)))
	}
	a.readWait(e.Get("metadata"))
	// OpenRouter passes on what its upstream said.
	if raw := e.Get("metadata.raw"); raw.Type == gjson.String {
		a.text = raw.Str
	}
	if e.Get("metadata.reasons").IsArray() && e.Get("metadata.flagged_input").Exists() {
		a.addWord("moderation")
	}
	if details := e.Get("details"); details.IsArray() { // Anthropic's is an object
		a.google = readGoogle(details)
	}
	for _, reason := range a.google.reasons {
		a.addWord(reason)
	}
}

// readWait reads the wait that OpenRouter puts into the body, and not always into a
// header: in seconds, or as its upstream's header.
func (a *answer) readWait(metadata gjson.Result) {
	if a.wait, a.hasWait = waitIn(metadata.Get("retry_after_seconds")); a.hasWait {
		return
	}
	metadata.Get("headers").ForEach(func(name, value gjson.Result) bool {
		if strings.EqualFold(name.Str, "Retry-After") {
			a.wait, a.hasWait = waitIn(value)
		}
		return !a.hasWait
	})
}

// waitIn is a number of seconds, which may be written as a text.
func waitIn(v gjson.Result) (time.Duration, bool) {
	x, ok := number(word(v))
	return bounded(x), ok && x >= 0
}

func (a *answer) addWord(w string) {
	if w != "" {
		a.words = append(a.words, strings.ToLower(w))
	}
}

// finish bounds the texts and makes the one that is searched.
func (a *answer) finish() {
	text := a.message
	if a.text != "" {
		text += "\n" + a.text
		a.message += ": " + a.text
	}
	a.text = strings.ToLower(text[:min(len(text), maxText)])
	a.message = clip(a.message, maxMessage)
}

// says reports whether the prose contains any of the phrases.
func (a *answer) says(phrases ...string) bool {
	for _, p := range phrases {
		if strings.Contains(a.text, p) {
			return true
		}
	}
	return false
}

// messageOf finds the prose of an error object: providers call it message,
// detail, or Message; FastAPI's detail is a list.
func messageOf(e gjson.Result) string {
	for _, path := range [...]string{"message", "Message", "detail", "detail.0.msg", "msg", "error_description"} {
		switch v := e.Get(path); {
		case v.Type == gjson.String && v.Str != "":
			return v.Str
		case v.IsArray() && v.Get("0").Type == gjson.String:
			return v.Get("0").Str
		case v.IsObject() && v.Get("message").Type == gjson.String:
			return v.Get("message").Str
		}
	}
	return ""
}

// word reads a code or type, which may be a number.
func word(v gjson.Result) string {
	if v.Type != gjson.String && v.Type != gjson.Number {
		return ""
	}
	return clip(v.String(), maxWord)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// prose makes a message of a body that is not JSON: an HTML page by its title.
func prose(body []byte) string {
	if len(body) == 0 || body[0] != '<' {
		return string(body[:min(len(body), maxText)])
	}
	head := body[:min(len(body), maxText)]
	lower := bytes.ToLower(head)
	from := bytes.Index(lower, []byte("<title>"))
	to := bytes.Index(lower, []byte("</title>"))
	// ToLower may change a length outside ASCII: then the title is not cut out.
	if from < 0 || to < from || len(lower) != len(head) {
		return "an HTML page"
	}
	return "an HTML page: " + string(bytes.TrimSpace(head[from+len("<title>"):to]))
}
