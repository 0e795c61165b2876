package openai

import (
	"strings"

	"github.com/headrace/headrace/provider/rawjson"
)

// Text is what the first choice of a chat or a completion says, what the messages of a
// Response say, or what the blocks of text of Anthropic's messages say. A model that declines
// in words of its own has said those. Thinking that a server leaves among the words, in
// <think>, is among them here, too.
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

// appendChoice appends what a choice says: a message's content, or else its refusal; the text
// of a completion.
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

// appendParts appends what parts of text, or refusals, say, and nothing of what is thought.
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

// appendOutput appends what the messages among a Response's output say.
func appendOutput(text, output []byte) []byte {
	for w := rawjson.WalkIn(output); w.Next(); {
		if item := w.Skip(); rawjson.IsWord(rawjson.Lookup(item, "type"), "message") {
			text = appendContent(text, rawjson.Lookup(item, "content"))
		}
	}
	return text
}
