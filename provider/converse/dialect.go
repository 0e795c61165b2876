package converse

import (
	"errors"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// name begins every error of this package.
const name = "converse"

// Dialect is that of Bedrock's Converse, and of its InvokeModel for embeddings.
type Dialect struct{}

// Name is "converse".
func (Dialect) Name() string { return name }

// Root is "": Bedrock's paths have no version.
func (Dialect) Root() string { return "" }

// Path returns a path with the model in it: its id, the id of an inference profile, or an ARN.
func (Dialect) Path(operation, model string) (string, bool) {
	switch operation {
	case provider.Converse, provider.Invoke:
		return "/model/" + provider.Segment(model) + operation, true
	}
	return "", false
}

// Body returns the request's own body.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	if r.Model == "" {
		return nil, errNoModel
	}
	return r.Body, nil
}

var errNoModel = errors.New("the model belongs in the URL, and the request has none")

// Answer reads a message and its counts. Claude's caches are not in the input and those of
// other models are, and the answer names no model: the total tells them apart. It reads
// anything else as provider.ReplyOf does.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	if status/100 == 2 {
		if found, ok := find(provider.ObjectIn(body)); ok {
			return found.Reply(status, h, body), nil
		}
	}
	reply, e := provider.ReplyIn(status, h, body, w, &words)
	switch {
	case e != nil:
		refine(e, body)
	case !reply.HasUsage:
		reply.Usage, reply.HasUsage = readCount(h, body)
	}
	return reply, e
}

// find reads an answer's members. It returns false if the answer has neither a message nor a
// reason for having none.
func find(answer []byte) (found provider.Found, ok bool) {
	var message []byte
	for w := rawjson.WalkIn(answer); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "output":
			message = rawjson.Lookup(value, "message")
		case "stopReason":
			found.Finish = value
		case "usage":
			found.Usage = value
		}
	}
	return found, !rawjson.IsNull(message) || rawjson.IsString(found.Finish)
}

// FromChat translates one of OpenAI's chat requests into the dialect: see the function FromChat.
func (Dialect) FromChat(r provider.Request, defaults provider.Defaults) ([]byte, error) {
	if r.Model == "" {
		return nil, &provider.Untranslatable{Dialect: name, Field: "model", Why: "is required: it is part of the URL"}
	}
	return FromChat(r, defaults)
}

// Text returns the text of the message's blocks, one after another, with those that cite. It
// leaves out the model's reasoning and calls of tools.
func (Dialect) Text(body []byte) (string, bool) {
	message := rawjson.Lookup(rawjson.Lookup(rawjson.Trim(body), "output"), "message")
	var text []byte
	for w := rawjson.WalkIn(rawjson.Lookup(message, "content")); w.Next(); {
		block := w.Skip()
		text = rawjson.AppendText(text, rawjson.Lookup(block, "text"))
		cited := rawjson.Lookup(rawjson.Lookup(block, "citationsContent"), "content")
		for in := rawjson.WalkIn(cited); in.Next(); {
			text = rawjson.AppendText(text, rawjson.Lookup(in.Skip(), "text"))
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), len(text) > 0
}
