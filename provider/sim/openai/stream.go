package openai

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/anthropic"
	"github.com/headrace/headrace/provider/sim/face"
)

// eventStream is the content type of OpenAI's streams.
const eventStream = face.EventStream + "; charset=utf-8"

// streamed turns a whole answer into a stream.
func (r *request) streamed(answer []byte, s face.Stamp) face.Reply {
	whole := gjson.ParseBytes(answer)
	switch r.operation {
	case messages:
		return anthropic.Stream(answer, s)
	case responses:
		return r.responseEvents(whole)
	case completions:
		return r.chunks(whole, "text_completion", "text", func(i int, text, finish string) string {
			return fmt.Sprintf(`{"text":%s,"index":%d,"logprobs":null,"finish_reason":%s}`, text, i, finish)
		})
	}
	return r.chunks(whole, "chat.completion.chunk", "message.content", func(i int, text, finish string) string {
		delta := ""
		if text != `""` {
			delta = `"content":` + text
		}
		return fmt.Sprintf(`{"index":%d,"delta":{%s},"logprobs":null,"finish_reason":%s}`, i, delta, finish)
	})
}

// chunks returns the choices token by token and in turns, then the reason for the end of each. The
// usage has a chunk of its own without choices, if it was asked for, and is null in all others.
func (r *request) chunks(whole gjson.Result, object, text string, choice func(int, string, string) string) face.Reply {
	var pieces [][]byte
	add := func(choices, usage, padding string) {
		if r.counts {
			usage = `,"usage":` + usage
		} else {
			usage = ""
		}
		pieces = append(pieces, face.Event("", fmt.Appendf(nil, `{"id":%s,"object":"%s","created":%s,"model":%s,"choices":[%s]%s,"system_fingerprint":"sim"%s}`,
			whole.Get("id").Raw, object, whole.Get("created").Raw, whole.Get("model").Raw, choices, usage, padding)))
	}
	choices := whole.Get("choices").Array()
	if r.operation == chat {
		add(`{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}`, "null", "")
	}
	for round, more := 0, true; more; round++ {
		more = false
		for i, c := range choices {
			if tokens := face.Split(c.Get(text).Str); round < len(tokens) {
				add(choice(i, string(face.Quote(tokens[round])), "null"), "null", r.padding(tokens[round]))
				more = true
			}
		}
	}
	for i, c := range choices {
		add(choice(i, `""`, c.Get("finish_reason").Raw), "null", "")
	}
	if r.counts {
		add("", whole.Get("usage").Raw, "")
	}
	last := len(pieces) - 1
	pieces[last] = append(pieces[last], face.Event("", []byte("[DONE]"))...)
	return face.Stream(eventStream, pieces, face.Event("", errorBody(fallen, "server_error", "", "")))
}

// obfuscated is the length to which padding fills up a token, in characters.
const obfuscated = 16

// padding hides the length of a token from listeners, unless the request turns it off.
func (r *request) padding(token string) string {
	if r.bare {
		return ""
	}
	return fmt.Sprintf(`,"obfuscation":"%s"`, strings.Repeat("x", obfuscated-len(token)))
}

// responseEvents returns the events of a response. The last one contains the whole response.
func (r *request) responseEvents(whole gjson.Result) face.Reply {
	var pieces [][]byte
	serial := 0
	event := func(name, format string, args ...any) []byte {
		data := fmt.Appendf(nil, `{"type":"%s","sequence_number":%d,`, name, serial)
		serial++
		return face.Event(name, append(fmt.Appendf(data, format, args...), '}'))
	}
	add := func(name, format string, args ...any) { pieces = append(pieces, event(name, format, args...)) }
	item, part := whole.Get("output.0"), whole.Get("output.0.content.0")
	id, text := item.Get("id").Raw, part.Get("text")
	at := fmt.Sprintf(`"item_id":%s,"output_index":0,"content_index":0`, id)
	begun := func(status, fault string) string {
		return fmt.Sprintf(`"response":{"id":%s,"object":"response","created_at":%s,"status":"%s","error":%s,"incomplete_details":null,"model":%s,"output":[],"usage":null,"system_fingerprint":"sim"}`,
			whole.Get("id").Raw, whole.Get("created_at").Raw, status, fault, whole.Get("model").Raw)
	}
	add("response.created", "%s", begun("in_progress", "null"))
	add("response.in_progress", "%s", begun("in_progress", "null"))
	add("response.output_item.added", `"output_index":0,"item":{"type":"message","id":%s,"status":"in_progress","role":"assistant","content":[]}`, id)
	add("response.content_part.added", `%s,"part":{"type":"output_text","text":"","annotations":[]}`, at)
	for _, token := range face.Split(text.Str) {
		add("response.output_text.delta", `%s,"delta":%s,"logprobs":[]%s`, at, face.Quote(token), r.padding(token))
	}
	add("response.output_text.done", `%s,"text":%s,"logprobs":[]`, at, text.Raw)
	add("response.content_part.done", `%s,"part":%s`, at, part.Raw)
	add("response.output_item.done", `"output_index":0,"item":%s`, item.Raw)
	add("response."+whole.Get("status").Str, `"response":%s`, whole.Raw)
	serial = len(pieces) / 2 // the numbers go on from where it fails
	failure := event("error", `"error":{"type":"server_error","code":"server_error","message":%s,"param":null}`, face.Quote(fallen))
	failure = append(failure, event("response.failed", "%s", begun("failed", fmt.Sprintf(`{"code":"server_error","message":%s}`, face.Quote(fallen))))...)
	return face.Stream(eventStream, pieces, failure)
}
