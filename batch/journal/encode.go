package journal

import (
	"bytes"
	"unicode/utf8"

	"github.com/headrace/headrace/provider/rawjson"
)

// appendJSON appends a body on one line: valid JSON as it came, without the white
// space around its values if it had line breaks; anything else as a string. Of a
// body that is known to be JSON, only what valid JSON may still lack is looked at.
func appendJSON(dst, body []byte, known bool) []byte {
	if body = rawjson.Trim(body); len(body) == 0 {
		return append(dst, "null"...)
	}
	breaks, ascii := bytes.IndexByte(body, '\n') >= 0 || bytes.IndexByte(body, '\r') >= 0, false
	if !known {
		p := rawjson.Parser{Skim: true}
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
