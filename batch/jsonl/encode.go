package jsonl

import (
	"bytes"
	"unicode/utf8"
)

// appendJSON appends a body on one line: valid JSON as it came, without the white
// space around its values if it had line breaks; anything else as a string. Of a
// body that is known to be JSON, only what valid JSON may still lack is looked at.
func appendJSON(dst, body []byte, known bool) []byte {
	if body = trim(body); len(body) == 0 {
		return append(dst, "null"...)
	}
	p := parser{skim: true}
	switch {
	case known:
		p.breaks = bytes.IndexByte(body, '\n') >= 0 || bytes.IndexByte(body, '\r') >= 0
		p.beyond = signBits
	case !p.parse(body):
		return appendString(dst, string(body))
	}
	if !p.ascii() && !utf8.Valid(body) {
		body = []byte(string([]rune(string(body)))) // each bad byte becomes U+FFFD, as JSON decoders do it
	}
	if !p.breaks {
		return append(dst, body...)
	}
	return appendCompact(dst, body)
}

// appendCompact appends valid JSON without white space.
func appendCompact(dst, body []byte) []byte {
	for i := skipSpace(body, 0); i < len(body); i = skipSpace(body, i) {
		end := i + 1
		switch body[i] {
		case '"':
			end = skipString(body, i)
		case '{', '}', '[', ']', ',', ':':
		default:
			end = skipScalar(body, i)
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
		if i+8 <= len(s) && isPlain(s[i:i+8]) {
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

// isPlain reports whether eight bytes stand in a JSON string as they are.
func isPlain(s string) bool {
	_ = s[7] // one check for the eight, and one load
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	// One more carries DEL into the sign bit, which what is beyond ASCII has already.
	return (endings(w)|w|(w+eachByte))&signBits == 0
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
