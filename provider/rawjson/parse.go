package rawjson

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// MaxNesting bounds the nesting of a value. encoding/json itself gives up at 10,000, so that
// both agree. The parser calls itself once a level, and a line of 64 MiB of "[" must not
// overflow the stack, which no recover catches.
const MaxNesting = 10_000

// A Parser checks a text and finds the members of its outermost object, in one pass.
// Its results are those of the last text that it was given.
//
// It belongs to one goroutine; the zero value is ready. Its parts return the index after what
// they have passed over, or, where the text goes wrong at i, the negative ^i.
type Parser struct {
	// Members are the members of the outermost object; any other value has none. They point into
	// the text and are good until the next one is parsed.
	Members []Member
	Skim    bool // Members are not wanted
	Most    int  // number of Members that are wanted, the first ones; 0: all
	Around  int  // depth of the place for the text in another one, whose levels count; only with Skim
	Breaks  bool // there are line breaks around the text's values

	// nonASCII has a sign bit set in some byte if a string of the text may hold more than
	// ASCII; without one the text is valid UTF-8.
	nonASCII uint64
	faultAt  int  // where the text goes wrong, if it does: its length where it ends too early
	tooDeep  bool // what is wrong there is that it nests too deep
}

// Parse reports whether text is one JSON value that nests at most MaxNesting deep, the levels of
// Around included. It does not check whether its strings are UTF-8.
func (p *Parser) Parse(text []byte) bool {
	p.Members, p.nonASCII, p.Breaks, p.tooDeep = p.Members[:0], 0, false, false
	i := p.value(text, p.gap(text, 0), 1+p.Around)
	if i < 0 {
		p.faultAt = ^i
		return false
	}
	p.faultAt = p.gap(text, i)
	return p.faultAt == len(text)
}

// SyntaxError says where and why a text is not JSON, which Parse has found wrong.
func (p *Parser) SyntaxError(text []byte) string {
	switch {
	case p.tooDeep:
		return fmt.Sprintf("nested more than %d deep at byte %d", MaxNesting, p.faultAt+1)
	case p.faultAt == len(text):
		return fmt.Sprintf("unexpected end of JSON input at byte %d", len(text))
	}
	r, _ := utf8.DecodeRune(text[p.faultAt:])
	return fmt.Sprintf("unexpected %q at byte %d", r, p.faultAt+1)
}

// ASCII reports whether the text, which Parse has found good, is ASCII only. It may return false
// for a text that is.
func (p *Parser) ASCII() bool { return p.nonASCII&signBits == 0 }

// gap returns the index of the first byte from i on that is no white space.
func (p *Parser) gap(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		switch b[i] {
		case '\n', '\r':
			p.Breaks = true
		case ' ', '\t':
		default:
			return i
		}
		i++
	}
	return i
}

// value passes over the value that begins at i.
func (p *Parser) value(b []byte, i, depth int) int {
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case '"':
		return p.text(b, i)
	case '{':
		return p.object(b, i, depth)
	case '[':
		return p.array(b, i, depth)
	case 't':
		return literal(b, i, "true")
	case 'f':
		return literal(b, i, "false")
	case 'n':
		return literal(b, i, "null")
	}
	return number(b, i)
}

// array passes over the array whose bracket opens at i. Its own level is depth, and 1 is the
// outermost.
func (p *Parser) array(b []byte, i, depth int) int {
	if depth > MaxNesting {
		p.tooDeep = true
		return ^i
	}
	if i = p.gap(b, i+1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = p.value(b, i, depth+1); i < 0 {
			return i
		}
		if i = p.gap(b, i); i == len(b) || b[i] != ',' {
			break
		}
		i = p.gap(b, i+1)
	}
	if i == len(b) || b[i] != ']' {
		return ^i
	}
	return i + 1
}

// object passes over the object whose brace opens at i. Its own level is depth, and 1 is the
// outermost.
func (p *Parser) object(b []byte, i, depth int) int {
	if depth > MaxNesting {
		p.tooDeep = true
		return ^i
	}
	if i = p.gap(b, i+1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i = p.member(b, i, depth); i < 0 {
			return i
		}
		if i = p.gap(b, i); i == len(b) || b[i] != ',' {
			break
		}
		i = p.gap(b, i+1)
	}
	if i == len(b) || b[i] != '}' {
		return ^i
	}
	return i + 1
}

// member passes over a name and its value, and notes them if they are of the
// outermost object.
func (p *Parser) member(b []byte, start, depth int) int {
	if start == len(b) || b[start] != '"' {
		return ^start
	}
	nameEnd := p.text(b, start)
	if nameEnd < 0 {
		return nameEnd
	}
	i := p.gap(b, nameEnd)
	if i == len(b) || b[i] != ':' {
		return ^i
	}
	i = p.gap(b, i+1)
	end := p.value(b, i, depth+1)
	if depth == 1 && end >= 0 && !p.Skim && (p.Most == 0 || len(p.Members) < p.Most) {
		p.Members = append(p.Members, Member{
			Name: Unquote(b[start:nameEnd]), Value: b[i:end], Raw: b[start:end], Start: start, End: end,
		})
	}
	return end
}

// Words of eight bytes, each of which is checked by itself.
const (
	eachByte = 0x0101010101010101
	signBits = 0x80 * eachByte
)

// text passes over the string whose opening quote is at i. It
// reads eight bytes at a time: most of the cost of a prompt is here.
func (p *Parser) text(b []byte, i int) int {
	for i++; i+8 <= len(b); {
		w := binary.LittleEndian.Uint64(b[i : i+8])
		p.nonASCII |= w
		ends := endings(w)
		if ends == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(ends) / 8
		if b[i] == '"' {
			return i + 1
		}
		if i = escape(b, i); i < 0 {
			return i
		}
	}
	return p.shortText(b, i)
}

// endings marks the sign bit of each byte of w that is a quote, a backslash or a
// control character. Above the first mark, which is exact, there may be false ones:
// a borrow goes that way.
func endings(w uint64) uint64 {
	quote, slash := w^'"'*eachByte, w^'\\'*eachByte
	return ((quote-eachByte)&^quote | (slash-eachByte)&^slash | (w-' '*eachByte)&^w) & signBits
}

// Plain reports whether eight bytes stand in a JSON string as they are.
func Plain(s string) bool {
	_ = s[7] // one check for the eight, and one load
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	// One more carries DEL into the sign bit, which bytes beyond ASCII have already.
	return (endings(w)|w|(w+eachByte))&signBits == 0
}

// shortText is text for the last bytes, of which there are fewer than eight. It reads one at a time.
func (p *Parser) shortText(b []byte, i int) int {
	for i < len(b) {
		p.nonASCII |= uint64(b[i])
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\' || c < ' ':
			if i = escape(b, i); i < 0 {
				return i
			}
		default:
			i++
		}
	}
	return ^i
}

// escape passes over the escape at i. It refuses a control character at i, which must not stand in
// a string.
func escape(b []byte, i int) int {
	if b[i] != '\\' {
		return ^i
	}
	if i++; i == len(b) {
		return ^i
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		return skipFourHex(b, i+1)
	}
	return ^i
}

// skipFourHex passes over the four digits of an escape.
func skipFourHex(b []byte, i int) int {
	for range 4 {
		if i == len(b) || !isHex(b[i]) {
			return ^i
		}
		i++
	}
	return i
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// literal passes over the word true, false or null.
func literal(b []byte, i int, word string) int {
	for n := range len(word) {
		if i == len(b) || b[i] != word[n] {
			return ^i
		}
		i++
	}
	return i
}

// number passes over the number that begins at i.
func number(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	start := i
	if i = digits(b, i); i == start {
		return ^i
	}
	if b[start] == '0' && i > start+1 {
		return ^(start + 1)
	}
	if i < len(b) && b[i] == '.' {
		if start, i = i+1, digits(b, i+1); i == start {
			return ^i
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if start, i = i, digits(b, i); i == start {
			return ^i
		}
	}
	return i
}

func digits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}
