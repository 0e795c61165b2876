package anthropic

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// Stream turns an answer of the Messages API into a stream. Its first event has the usage of the
// input. The last but one has the output tokens and the reason of the end.
func Stream(answer []byte, s face.Stamp) face.Reply {
	whole := gjson.ParseBytes(answer)
	usage, written := whole.Get("usage"), whole.Get("usage.output_tokens").Raw
	begun := strings.Replace(usage.Raw, `"output_tokens":`+written, `"output_tokens":1`, 1)
	pieces := [][]byte{event("message_start", `"message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":%s}`, whole.Get("id").Raw, whole.Get("model").Raw, begun)}
	for i, block := range whole.Get("content").Array() {
		pieces = append(pieces, blockEvents(i, block)...)
	}
	pieces = append(pieces, append(
		event("message_delta", `"delta":{"stop_reason":%s,"stop_sequence":%s},"usage":{"output_tokens":%s}`,
			whole.Get("stop_reason").Raw, whole.Get("stop_sequence").Raw, written),
		event("message_stop", "")...))
	a := face.Stream(face.EventStream+"; charset=utf-8", pieces,
		event("error", `"error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"%s"`, requestID(s)))
	a.Header["Cache-Control"] = []string{"no-cache"}
	return a
}

// event returns an event whose type repeats its name.
func event(name, format string, args ...any) []byte {
	data := fmt.Appendf(nil, `{"type":"%s"`, name)
	if format != "" {
		data = fmt.Appendf(append(data, ','), format, args...)
	}
	return face.Event(name, append(data, '}'))
}

// blockEvents returns the pieces of one block: its text or thoughts, and at the end of thoughts
// their signature. A ping follows the first start, as in Anthropic's examples.
func blockEvents(place int, block gjson.Result) (pieces [][]byte) {
	kind := block.Get("type").Str
	word, signature := kind, "" // the field has the name of the type
	if kind == "thinking" {
		signature = `,"signature":""`
	}
	start := event("content_block_start", `"index":%d,"content_block":{"type":"%s","%s":""%s}`, place, kind, word, signature)
	if place == 0 {
		start = append(start, event("ping", "")...)
	}
	pieces = append(pieces, start)
	for _, token := range face.Split(block.Get(word).Str) {
		pieces = append(pieces, event("content_block_delta", `"index":%d,"delta":{"type":"%s_delta","%s":%s}`, place, kind, word, face.Quote(token)))
	}
	if signature != "" {
		pieces = append(pieces, event("content_block_delta", `"index":%d,"delta":{"type":"signature_delta","signature":%s}`, place, block.Get("signature").Raw))
	}
	return append(pieces, event("content_block_stop", `"index":%d`, place))
}
