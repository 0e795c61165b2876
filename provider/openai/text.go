package openai

import (
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

// Text returns the words of a chat's or a completion's first choice, of a Response's messages, or
// of the text blocks of Anthropic's messages. If a model declines in words of its own, Text
// returns those. Some servers leave the thinking among the words, in <think>; Text returns it,
// too.
func (Dialect) Text(body []byte) (string, bool) {
	var text []byte
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "choices":
			text = appendChoice(text, rawjson.First(value))
		case "output":
			text = appendOutput(text, value)
		case "content":
			text = appendParts(text, value)
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), len(text) > 0
}

// appendChoice appends the words of a choice: a message's content, or else its refusal; or the
// text of a completion.
func appendChoice(text, choice []byte) []byte {
	message := rawjson.Lookup(choice, "message")
	before := len(text)
	if text = appendContent(text, rawjson.Lookup(message, "content")); len(text) > before {
		return text
	}
	if text = rawjson.AppendText(text, rawjson.Lookup(message, "refusal")); len(text) > before {
		return text
	}
	return rawjson.AppendText(text, rawjson.Lookup(choice, "text"))
}

// appendContent appends a message's content, which may be a list of parts.
func appendContent(text, content []byte) []byte {
	if rawjson.IsString(content) {
		return rawjson.AppendText(text, content)
	}
	return appendParts(text, content)
}

// appendParts appends the words of parts of text and of refusals, without thoughts.
func appendParts(text, parts []byte) []byte {
	for w := rawjson.WalkIn(parts); w.Next(); {
		part := w.Skip()
		switch kind := rawjson.Lookup(part, "type"); {
		case rawjson.IsWord(kind, "text"), rawjson.IsWord(kind, "output_text"):
			text = rawjson.AppendText(text, rawjson.Lookup(part, "text"))
		case rawjson.IsWord(kind, "refusal"):
			text = rawjson.AppendText(text, rawjson.Lookup(part, "refusal"))
		}
	}
	return text
}

// appendOutput appends the words of the messages in a Response's output.
func appendOutput(text, output []byte) []byte {
	for w := rawjson.WalkIn(output); w.Next(); {
		if item := w.Skip(); rawjson.IsWord(rawjson.Lookup(item, "type"), "message") {
			text = appendContent(text, rawjson.Lookup(item, "content"))
		}
	}
	return text
}
