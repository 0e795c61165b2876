package journal

import (
	"bytes"
	"unicode/utf8"

	"github.com/headrace/headrace/provider/rawjson"
)

// aroundBody is the depth of a body in its line: in the line and in its response. Metadata
// stand as deep: in the line and in what headrace adds.
const aroundBody = 2

// appendJSON appends a body on one line. Valid JSON stays as it came; if it had line
// breaks, it loses the white space around its values. Anything else becomes a string, and
// so does JSON that would nest the line too deep to be read back. If a body is known to be
// JSON, appendJSON checks only what valid JSON may still lack.
func appendJSON(dst, body []byte, known bool) []byte {
	if body = rawjson.Trim(body); len(body) == 0 {
		return append(dst, "null"...)
	}
	breaks, ascii := bytes.IndexByte(body, '\n') >= 0 || bytes.IndexByte(body, '\r') >= 0, false
	if !known || mayBeDeep(body) {
		p := rawjson.Parser{Skim: true, Around: aroundBody}
		if !p.Parse(body) {
			return rawjson.AppendString(dst, string(body))
		}
		ascii = p.ASCII()
	}
	if !ascii && !utf8.Valid(body) {
		body = []byte(string([]rune(string(body)))) // each bad byte becomes U+FFFD, as JSON decoders do it
	}
	if !breaks {
		return append(dst, body...)
	}
	return appendCompact(dst, body)
}

// mayBeDeep reports whether a body has enough brackets to nest too deep in its line. It is
// quick: nearly all bodies have fewer bytes than that.
func mayBeDeep(body []byte) bool {
	const most = rawjson.MaxNesting - aroundBody
	return len(body) > 2*most && bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) > most
}

// appendCompact appends valid JSON without white space.
func appendCompact(dst, body []byte) []byte {
	for i := rawjson.SkipSpace(body, 0); i < len(body); i = rawjson.SkipSpace(body, i) {
		end := i + 1
		switch body[i] {
		case '"':
			end = rawjson.SkipString(body, i)
		case '{', '}', '[', ']', ',', ':':
		default:
			end = max(end, rawjson.SkipScalar(body, i)) // it advances whatever stands there
		}
		dst = append(dst, body[i:end]...)
		i = end
	}
	return dst
}
