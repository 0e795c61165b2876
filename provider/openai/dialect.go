package openai

import (
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// Dialect is OpenAI's: chat, completions, embeddings, Responses and moderations. It also has
// operations of some servers of OpenAI's shape: rerank, and the messages of Anthropic.
type Dialect struct{}

// Name is "openai".
func (Dialect) Name() string { return name }

// Root returns the version at the beginning of OpenAI's paths.
func (Dialect) Root() string { return apiPath }

// apiPath may begin an operation and end the base URL; the joined URL has it once.
const apiPath = "/v1"

// Path returns the operation's path without the version, which the base URL has.
func (Dialect) Path(operation, _ string) (string, bool) {
	switch path := strings.TrimPrefix(operation, apiPath); path {
	case "/chat/completions", "/embeddings", "/responses", "/completions", "/moderations", "/rerank", "/messages":
		return path, true
	}
	return "", false
}

// Body returns the request's own body. It refuses one that asks for a stream, or for work in the
// background, whose answer is an id and no answer yet.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	if err := stream.WholeOnly(r.Body, "stream", "background"); err != nil {
		return nil, err
	}
	return r.Body, nil
}

// Answer reads an answer as provider.ReplyOf does: servers of this dialect pass on the answers of
// many others.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyIn(status, h, body, w)
}

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
