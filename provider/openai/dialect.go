package openai

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// Dialect is OpenAI's: chat, completions, embeddings, Responses and moderations, and what
// some servers of its shape have besides: rerank, and the messages of Anthropic.
type Dialect struct{}

// Name is "openai".
func (Dialect) Name() string { return name }

// Root is the version that OpenAI's paths begin with.
func (Dialect) Root() string { return apiPath }

// apiPath is what an operation may begin with, and the base URL may end in; the joined URL
// has it once.
const apiPath = "/v1"

// Path is the operation's without the version, which the base URL has.
func (Dialect) Path(operation, _ string) (string, bool) {
	switch path := strings.TrimPrefix(operation, apiPath); path {
	case "/chat/completions", "/embeddings", "/responses", "/completions", "/moderations", "/rerank", "/messages":
		return path, true
	}
	return "", false
}

// Body is the request's own. One that asks for a stream is refused: an answer that ends
// early would look like a shorter one; and so is what goes on in the background: it is
// answered with an id, which is no answer yet.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	if word := notAtOnce(r.Body); word != "" {
		return nil, fmt.Errorf("%q:true is not supported: a result is one JSON value, and whole; leave it out", word)
	}
	return r.Body, nil
}

// notAtOnce names what in a body asks for anything but the whole answer in one value. Most bodies
// have no true in them, and are not walked through.
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

// Answer reads an answer as provider.ReplyOf does: who speaks this dialect passes on the
// answers of many others.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyIn(status, h, body, w)
}
