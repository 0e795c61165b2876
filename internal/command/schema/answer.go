package schema

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/rawjson"
)

// answerText returns the text in a body that should be JSON. That is the words of the answer, or else the arguments
// of its only call of a tool.
func answerText(body []byte) ([]byte, error) {
	dialect, calls := readBody(body)
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

// readBody returns the dialect of a body, by the names of its members, and the arguments of each tool call.
func readBody(body []byte) (dialect string, calls [][]byte) {
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		v := w.Skip()
		switch string(w.Name) {
		case "choices":
			dialect = "openai"
			message := rawjson.Lookup(rawjson.First(v), "message")
			for call := range elements(rawjson.Lookup(message, "tool_calls")) {
				calls = append(calls, arguments(rawjson.Lookup(call, "function"), "arguments")...)
			}
		case "content":
			dialect = "openai" // it reads Anthropic's messages, too
			for block := range elements(v) {
				if rawjson.IsWord(rawjson.Lookup(block, "type"), "tool_use") {
					calls = append(calls, arguments(block, "input")...)
				}
			}
		case "output":
			if dialect = "openai"; rawjson.IsObject(v) {
				dialect = "converse"
				for block := range elements(rawjson.Lookup(rawjson.Lookup(v, "message"), "content")) {
					calls = append(calls, arguments(rawjson.Lookup(block, "toolUse"), "input")...)
				}
				continue
			}
			for item := range elements(v) {
				if rawjson.IsWord(rawjson.Lookup(item, "type"), "function_call") {
					calls = append(calls, arguments(item, "arguments")...)
				}
			}
		case "candidates":
			dialect = "gemini"
			for part := range elements(rawjson.Lookup(rawjson.Lookup(rawjson.First(v), "content"), "parts")) {
				calls = append(calls, arguments(rawjson.Lookup(part, "functionCall"), "args")...)
			}
		}
	}
	return dialect, calls
}

// arguments returns the arguments of a call, which are JSON or text there; nil if it is no call.
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

// elements yields the elements of a list, and none for any other value.
func elements(list []byte) func(yield func([]byte) bool) {
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

// unfenced returns the contents of a block of code in Markdown, or the text itself if it is none.
func unfenced(text []byte) []byte {
	inner, opened := bytes.CutPrefix(text, fence)
	inner, closed := bytes.CutSuffix(inner, fence)
	begins := bytes.IndexByte(inner, '\n')
	if !opened || !closed || begins < 0 {
		return text
	}
	return rawjson.Trim(inner[begins:])
}
