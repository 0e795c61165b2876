package jsonl

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
			return appendString(dst, string(body))
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

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
// Line and paragraph separators are escaped: some readers of lines break at them.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0 // s[plain:i] needs no escape and is not appended yet
	for i := 0; i < len(s); {
		if i+8 <= len(s) && rawjson.Plain(s[i:i+8]) {
			i += 8
			continue
		}
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' || c == 0x7F {
				dst = appendEscape(append(dst, s[plain:i]...), c)
				plain = i + 1
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\u2028' || r == '\u2029' || r == utf8.RuneError && n == 1 {
			dst = appendRune(append(dst, s[plain:i]...), r)
			plain = i + n
		}
		i += n
	}
	return append(append(dst, s[plain:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xF])
}

func appendRune(dst []byte, r rune) []byte {
	if r == utf8.RuneError {
		return append(dst, "\uFFFD"...)
	}
	return append(dst, '\\', 'u', hexDigits[r>>12&0xF], hexDigits[r>>8&0xF], hexDigits[r>>4&0xF], hexDigits[r&0xF])
}
