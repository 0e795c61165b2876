package schema

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/rawjson"
)

// answerIn returns the text in a body that should be JSON: the words of the answer, or if it has
// none the arguments of its only call of a tool, in any dialect.
func answerIn(body []byte) ([]byte, error) {
	dialect, calls := read(body)
	if speaks, ok := all.Named(dialect); ok {
		if text, has := speaks.Dialect.Text(body); has {
			return unfenced(rawjson.Trim([]byte(text))), nil
		}
	}
	switch len(calls) {
	case 0:
		return nil, errors.New("the answer has no words")
	case 1:
		return calls[0], nil
	}
	return nil, fmt.Errorf("the answer has no words, but %d calls of tools", len(calls))
}

// read returns the dialect of a body, by the names of its members, and the arguments of the tools that
// it calls.
func read(body []byte) (dialect string, calls [][]byte) {
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		v := w.Skip()
		switch string(w.Name) {
		case "choices":
			dialect = "openai"
			message := rawjson.Lookup(rawjson.First(v), "message")
			for call := range each(rawjson.Lookup(message, "tool_calls")) {
				calls = append(calls, arguments(rawjson.Lookup(call, "function"), "arguments")...)
			}
		case "content":
			dialect = "openai" // it reads Anthropic's messages, too
			for block := range each(v) {
				if rawjson.IsWord(rawjson.Lookup(block, "type"), "tool_use") {
					calls = append(calls, arguments(block, "input")...)
				}
			}
		case "output":
			if dialect = "openai"; rawjson.IsObject(v) {
				dialect = "converse"
				for block := range each(rawjson.Lookup(rawjson.Lookup(v, "message"), "content")) {
					calls = append(calls, arguments(rawjson.Lookup(block, "toolUse"), "input")...)
				}
				continue
			}
			for item := range each(v) {
				if rawjson.IsWord(rawjson.Lookup(item, "type"), "function_call") {
					calls = append(calls, arguments(item, "arguments")...)
				}
			}
		case "candidates":
			dialect = "gemini"
			for part := range each(rawjson.Lookup(rawjson.Lookup(rawjson.First(v), "content"), "parts")) {
				calls = append(calls, arguments(rawjson.Lookup(part, "functionCall"), "args")...)
			}
		}
	}
	return dialect, calls
}

// arguments returns the arguments of a call, which stand there as JSON or as text; none if it is no
// call.
func arguments(call []byte, name string) [][]byte {
	v := rawjson.Lookup(call, name)
	switch {
	case v == nil:
		return nil
	case rawjson.IsString(v):
		return [][]byte{rawjson.AppendText(nil, v)}
	}
	return [][]byte{v}
}

// each yields the elements of a list; none of anything else.
func each(list []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		if len(list) == 0 || list[0] != '[' {
			return
		}
		for w := rawjson.WalkIn(list); w.Next(); {
			if !yield(w.Skip()) {
				return
			}
		}
	}
}

// fence opens and closes a block of code in Markdown.
var fence = []byte("```")

// unfenced returns what stands in a block of code, if the whole text is one.
func unfenced(text []byte) []byte {
	inner, opened := bytes.CutPrefix(text, fence)
	inner, closed := bytes.CutSuffix(inner, fence)
	begins := bytes.IndexByte(inner, '\n')
	if !opened || !closed || begins < 0 {
		return text
	}
	return rawjson.Trim(inner[begins:])
}
