package rawjson

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
// Line and paragraph separators are escaped: some readers of lines break at them.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0 // s[plain:i] needs no escape and is not appended yet
	for i := 0; i < len(s); {
		if i+8 <= len(s) && Plain(s[i:i+8]) {
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

// AppendText appends the contents of a JSON string; of anything else, nothing.
func AppendText(dst, value []byte) []byte {
	if !IsString(value) {
		return dst
	}
	return append(dst, Unquote(value)...)
}
