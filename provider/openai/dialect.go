package openai

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
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

// Body returns the request's own body. It refuses one that asks for a stream: an answer that
// ends early would look like a shorter one. It also refuses one for work in the background,
// whose answer is an id and no answer yet.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	if word := notAtOnce(r.Body); word != "" {
		return nil, fmt.Errorf("%q:true is not supported: a result is one JSON value, and whole; leave it out", word)
	}
	return r.Body, nil
}

// notAtOnce names the field of a body that asks for anything but the whole answer in one value.
// Most bodies have no true in them, and are not walked through.
func notAtOnce(body []byte) string {
	if !bytes.Contains(body, []byte("true")) {
		return ""
	}
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		switch string(w.Name) {
		case "stream", "background":
			if string(w.Skip()) == "true" {
				return string(w.Name)
			}
		default:
			w.Skip()
		}
	}
	return ""
}

// Answer reads an answer as provider.ReplyOf does: servers of this dialect pass on the answers of
// many others.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyIn(status, h, body, w)
}
