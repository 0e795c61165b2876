package converse

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/provider/sim/face"
)

// streamed turns a whole answer into frames. Usage and metrics come after the end of the message.
func streamed(answer []byte) face.Reply {
	whole := gjson.ParseBytes(answer)
	pieces := [][]byte{event("messageStart", `{"p":"abc","role":"assistant"}`)}
	for _, token := range face.Split(whole.Get("output.message.content.0.text").Str) {
		pieces = append(pieces, event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":%s},"p":"abcdefgh"}`, face.Quote(token)))
	}
	end := event("contentBlockStop", `{"contentBlockIndex":0,"p":"ab"}`)
	end = append(end, event("messageStop", `{"p":"abcdef","stopReason":%s}`, whole.Get("stopReason").Raw)...)
	end = append(end, event("metadata", `{"metrics":%s,"p":"a","usage":%s}`, whole.Get("metrics").Raw, whole.Get("usage").Raw)...)
	return face.Stream("application/vnd.amazon.eventstream", append(pieces, end),
		frame("exception", ":exception-type", "modelStreamErrorException",
			[]byte(`{"message":"The model stopped in the middle of its answer. Try your request again.","originalStatusCode":500}`)))
}

func event(name, format string, args ...any) []byte {
	return frame("event", ":event-type", name, fmt.Appendf(nil, format, args...))
}

// frame returns a message in AWS's form: the length of all and of the headers, the checksum of both,
// headers, payload, and the checksum of all that.
func frame(message, kind, name string, payload []byte) []byte {
	const prelude, check = 12, 4
	var headers []byte
	for _, h := range [][2]string{{kind, name}, {":content-type", "application/json"}, {":message-type", message}} {
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = append(headers, isString)
		headers = append(binary.BigEndian.AppendUint16(headers, uint16(len(h[1]))), h[1]...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(prelude+len(headers)+len(payload)+check))
	b = binary.BigEndian.AppendUint32(b, uint32(len(headers)))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(append(b, headers...), payload...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// isString is the type of a header's value.
const isString = 7
