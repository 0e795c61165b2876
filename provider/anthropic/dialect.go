package anthropic

import (
	"errors"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// name begins every error of this package.
const name = "anthropic"

// The header that Anthropic demands besides a key, and the version in it: one that takes the
// bodies of all prompt files. From 2026-10-21 on, temperature and its like are
// refused even at their defaults.
const (
	VersionHeader  = "Anthropic-Version"
	DefaultVersion = "2023-06-01"
)

// Dialect is Anthropic's: messages.
type Dialect struct{}

// Name is "anthropic".
func (Dialect) Name() string { return name }

// Root is "": the version stands in the path, and base URLs have none.
func (Dialect) Root() string { return "" }

// Header returns the headers of every request, unless another version is asked for.
func (Dialect) Header() http.Header { return http.Header{VersionHeader: {DefaultVersion}} }

// Path returns the path of messages. The model stands in the body.
func (Dialect) Path(operation, _ string) (string, bool) {
	if operation != provider.Messages {
		return "", false
	}
	return provider.Messages, true
}

// Body returns the request's own body. It refuses one that asks for a stream: an answer that
// ends early would look like a shorter one.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	for w := rawjson.WalkIn(rawjson.Trim(r.Body)); w.Next(); {
		if value := w.Skip(); string(w.Name) == "stream" && string(value) == "true" {
			return nil, errors.New(`"stream":true is not supported: a result is one JSON value, and whole; leave it out`)
		}
	}
	return r.Body, nil
}

// words are Anthropic's own words, beyond those that all providers share.
var words = provider.Wording{
	Phrases: []provider.Phrase{
		{Says: "organization has been disabled", Kind: provider.Unauthorized}, // as a 400
	},
}

// Answer reads a message, with its caches as parts of the input: Anthropic counts them
// separately. It reads anything else as provider.ReplyOf does: a gateway's errors may be in
// anybody's form.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	if status/100 == 2 {
		if found, ok := find(provider.ObjectIn(body)); ok {
			return found.Reply(status, h, body), nil
		}
	}
	return provider.ReplyIn(status, h, body, w, &words)
}

// find reads a message's members. It returns false for anything that has neither content nor a
// reason for having none.
func find(message []byte) (found provider.Found, ok bool) {
	var kind, content []byte
	for w := rawjson.WalkIn(message); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "type":
			kind = value
		case "content":
			content = value
		case "stop_reason":
			found.Finish = value
		case "usage":
			found.Usage = value
		}
	}
	ends := rawjson.IsString(found.Finish)
	return found, rawjson.IsWord(kind, "message") && (ends || rawjson.First(content) != nil)
}

// FromChat translates one of OpenAI's chat requests into the dialect: see the function FromChat.
func (Dialect) FromChat(r provider.Request, d provider.Defaults) ([]byte, error) {
	return FromChat(r, d)
}

// Text returns the blocks of text, one after another, without blocks of thinking and calls of
// tools.
func (Dialect) Text(body []byte) (string, bool) {
	return textOf(rawjson.Lookup(rawjson.Trim(body), "content"))
}

func textOf(content []byte) (string, bool) {
	var text []byte
	for w := rawjson.WalkIn(content); w.Next(); {
		if block := w.Skip(); rawjson.IsWord(rawjson.Lookup(block, "type"), "text") {
			text = rawjson.AppendText(text, rawjson.Lookup(block, "text"))
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), len(text) > 0
}
