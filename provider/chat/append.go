package chat

// AppendMember appends a member to an object that is being written, with a comma unless it
// is the first. A value of nothing is left out.
func AppendMember(dst []byte, name string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	return append(AppendName(dst, name), value...)
}

// AppendName appends a name, which needs no escapes, and the colon after it.
func AppendName(dst []byte, name string) []byte {
	dst = append(AppendComma(dst), '"')
	dst = append(dst, name...)
	return append(dst, `":`...)
}

// AppendComma appends the comma before a further member or element: none after a bracket.
// What has been written ends with a value or with a bracket that opens.
func AppendComma(dst []byte) []byte {
	switch dst[len(dst)-1] {
	case '{', '[':
		return dst
	}
	return append(dst, ',')
}

// AppendStrings appends strings as a list.
func AppendStrings(dst []byte, strings [][]byte) []byte {
	dst = append(dst, '[')
	for _, s := range strings {
		dst = append(AppendComma(dst), s...)
	}
	return append(dst, ']')
}

// Blank reports whether a string is white space and nothing else.
func Blank(text []byte) bool {
	for i := 1; i < len(text)-1; i++ {
		switch text[i] {
		case ' ':
		case '\\':
			if i++; text[i] != 'n' && text[i] != 't' && text[i] != 'r' {
				return false
			}
		default:
			return false
		}
	}
	return true
}
