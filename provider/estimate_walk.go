package provider

import (
	"bytes"
	"strconv"
)

// estimate is what a body makes a model read, and what it lets it write at most, by
// one walk over it. The walk trusts that the body is JSON: on anything else it comes
// to an end somewhere, and no more.
func estimate(body []byte) (prompt, most float64) {
	i, answers := skipSpace(body, 0), 1.0
	if i == len(body) || body[i] != '{' {
		return 0, 0
	}
	for m := (walk{b: body, i: i + 1}); m.next(); {
		switch string(m.name) {
		case "messages":
			prompt += m.messages()
		case "input", "prompt", "instructions", "system":
			prompt += m.content(maxNesting)
		case "tools", "functions", "response_format", "text":
			prompt += weigh(m.skip())
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			most = max(most, numberOf(m.skip()))
		case "n", "best_of":
			answers = max(answers, numberOf(m.skip()))
		default:
			m.skip()
		}
	}
	if most == 0 {
		return prompt, 0 // also for infinitely many answers
	}
	return prompt, most * answers
}

// walk goes through the members of an object, or the elements of an array: next stops
// before a value, and whoever called it passes over the value.
type walk struct {
	b    []byte
	i    int
	list bool   // an array
	name []byte // of the value that comes, without quotes and escapes
}

// next reports whether there is another value.
func (w *walk) next() bool {
	w.i = skipSpace(w.b, w.i)
	if w.i < len(w.b) && w.b[w.i] == ',' {
		w.i = skipSpace(w.b, w.i+1)
	}
	if w.i < len(w.b) && (w.b[w.i] == '}' || w.b[w.i] == ']') {
		w.i++
		return false
	}
	if !w.list && !w.named() {
		w.i = len(w.b)
	}
	return w.i < len(w.b)
}

// named passes over a name.
func (w *walk) named() bool {
	if w.i == len(w.b) || w.b[w.i] != '"' {
		return false
	}
	end := skipString(w.b, w.i)
	w.name = inner(w.b[w.i:end])
	if bytes.IndexByte(w.name, '\\') >= 0 {
		w.name = unescape(w.name)
	}
	if w.i = skipSpace(w.b, end); w.i == len(w.b) || w.b[w.i] != ':' {
		return false
	}
	w.i = skipSpace(w.b, w.i+1)
	return true
}

// skip passes over the value and gives it.
func (w *walk) skip() []byte {
	start := w.i
	w.i = skipValue(w.b, start)
	return w.b[start:w.i]
}

// into begins a walk through the value, which is an object or an array; leave ends it.
func (w *walk) into() walk { return walk{b: w.b, i: w.i + 1, list: w.b[w.i] == '['} }

func (w *walk) leave(in *walk) { w.i = in.i }

// messages are what a model reads of a chat. What is no list of messages is one.
func (w *walk) messages() (n float64) {
	if w.b[w.i] != '[' && w.b[w.i] != '{' {
		return messageTokens + w.content(maxNesting)
	}
	in := w.into()
	for in.next() {
		n += messageTokens + in.content(maxNesting)
	}
	w.leave(&in)
	return n
}

// content is what a value holds for a model to read: all its strings, but for the
// words that only steer.
func (w *walk) content(depth int) float64 {
	switch c := w.b[w.i]; {
	case c == '"':
		return weighString(inner(w.skip()))
	case c == '-' || c >= '0' && c <= '9': // a token's id
		w.skip()
		return 1
	case depth == 0 || c != '[' && c != '{':
		w.skip()
		return 0
	case c == '{':
		return w.part(depth)
	}
	var n float64
	in := w.into()
	for in.next() {
		n += in.content(depth - 1)
	}
	w.leave(&in)
	return n
}

// part is the content of an object, which may be one of a message's parts and then no
// text: what is said of a picture's detail counts wherever it stands.
func (w *walk) part(depth int) (n float64) {
	var typ, detail, inside []byte // as they stand, nil before they came
	var kind kindOfPart
	in := w.into()
	for in.next() {
		value := in.b[in.i:]
		switch string(in.name) {
		case "type":
			typ = earliest(typ, in.skip())
			kind = kindBy(typ)
			continue
		case "role", "id", "cache_control", "index":
			in.skip()
			continue
		case "detail":
			detail = earliest(detail, value[:skipValue(value, 0)])
		case "image_url":
			inside = earliest(inside, detailIn(value))
		}
		if kind == noAttachment {
			n += in.content(depth - 1)
		} else {
			in.skip() // a picture may be megabytes of what is no text
		}
	}
	w.leave(&in)
	return price(kind, isWord(detail, "low") || isWord(inside, "low"), n)
}

// earliest gives had, unless it is nil: of a name that comes twice the first counts.
func earliest(had, value []byte) []byte {
	if had != nil {
		return had
	}
	return value
}

// detailIn is the detail that the object at the beginning of b tells of, nil if none.
func detailIn(b []byte) []byte {
	if len(b) == 0 || b[0] != '{' {
		return nil
	}
	for m := (walk{b: b, i: 1}); m.next(); {
		if value := m.skip(); string(m.name) == "detail" {
			return value
		}
	}
	return nil
}

// The kinds of a part, as far as their price goes.
type kindOfPart uint8

const (
	noAttachment kindOfPart = iota
	picture
	soundOrFile
)

// kindBy tells the kind of a part by its type, as it stands in the body.
func kindBy(typ []byte) kindOfPart {
	for _, word := range []string{"image_url", "input_image", "image"} {
		if isWord(typ, word) {
			return picture
		}
	}
	for _, word := range []string{"input_audio", "file", "input_file", "document"} {
		if isWord(typ, word) {
			return soundOrFile
		}
	}
	return noAttachment
}

// price is what a part of that kind costs, of which n tokens are text.
func price(kind kindOfPart, low bool, n float64) float64 {
	switch {
	case kind == noAttachment:
		return n
	case kind == picture && low:
		return lowDetailTokens
	}
	return pictureTokens
}

// isWord reports whether a value is that string.
func isWord(value []byte, word string) bool {
	if len(value) < 2 || value[0] != '"' {
		return false
	}
	text := inner(value)
	if bytes.IndexByte(text, '\\') >= 0 {
		text = unescape(text)
	}
	return string(text) == word
}

// numberOf is the value of a number, 0 for anything else.
func numberOf(value []byte) float64 {
	if len(value) == 0 || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0
	}
	n, _ := strconv.ParseFloat(string(value), 64) // beyond the greatest it is infinite
	return n
}
