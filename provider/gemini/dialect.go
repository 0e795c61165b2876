package gemini

import (
	"errors"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

// name begins every error of this package.
const name = "gemini"

// Dialect is Gemini's: generateContent and embeddings, at AI Studio and at Vertex.
type Dialect struct{}

// Name is "gemini".
func (Dialect) Name() string { return name }

// Root is AI Studio's version.
func (Dialect) Root() string { return "/v1beta" }

// Path has the model in it. Its name may begin with "models/", as Google's own lists have it.
func (Dialect) Path(operation, model string) (string, bool) {
	switch operation {
	case provider.GenerateContent, provider.EmbedContent, provider.BatchEmbedContents:
		return "/models/" + provider.Segment(strings.TrimPrefix(model, "models/")) + operation, true
	}
	return "", false
}

// Body is the request's own. A body that names a model, too, is sent as it is: whether that
// is wrong beside the one in the URL is for the provider to say, and which of two was meant
// is nobody's to guess.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	if r.Model == "" {
		return nil, errNoModel
	}
	return r.Body, nil
}

var errNoModel = errors.New("the model belongs in the URL, and the request has none")

// words are Google's where those of the whole world do not have them.
var words = provider.Wording{
	Kinds: map[string]provider.Kind{
		"billing_disabled": provider.QuotaExhausted, // as a 403, a reason among the details
		"quota_exceeded":   provider.QuotaExhausted, // of the day
	},
	Phrases: []provider.Phrase{
		// A limit of 0 is that of a model which is not on the plan. It comes with a delay.
		{Says: "limit: 0,", Kind: provider.QuotaExhausted},
		{Says: "limit: 0\n", Kind: provider.QuotaExhausted},
		{Says: "free tier is not available in your country", Kind: provider.QuotaExhausted}, // as a 400
		{Says: "monthly spending cap", Kind: provider.QuotaExhausted},
		// Each item names its own file. A file belongs to one project and lives for two days.
		{Says: "you do not have permission to access the file", Kind: provider.Invalid},
	},
}

// Answer reads the first candidate, with what the model thought as a part of the output:
// Gemini counts it beside that. What has none is read as provider.ReplyOf does: a prompt
// that was blocked is Refused, and an error may be in any of Google's forms.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	if status/100 == 2 {
		if found, ok := find(provider.ObjectIn(body)); ok {
			return found.Reply(status, h, body), nil
		}
	}
	return provider.ReplyIn(status, h, body, w, &words)
}

// find reads an answer's members. It is one if its first candidate has content, or says
// why it has none.
func find(answer []byte) (found provider.Found, ok bool) {
	for w := rawjson.WalkIn(answer); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "candidates":
			found.Finish, ok = candidate(rawjson.First(value))
		case "usageMetadata":
			found.Usage = value
		case "responseId":
			found.ID = value
		}
	}
	return found, ok
}

func candidate(first []byte) (finish []byte, ok bool) {
	if len(first) == 0 || first[0] != '{' {
		return nil, false
	}
	for w := rawjson.WalkIn(first); w.Next(); {
		value := w.Skip()
		switch string(w.Name) {
		case "finishReason":
			finish, ok = value, ok || rawjson.IsString(value)
		case "content":
			ok = ok || !rawjson.IsNull(value)
		}
	}
	return finish, ok
}

// FromChat puts a chat request of OpenAI's into the dialect: see the function FromChat.
func (Dialect) FromChat(r provider.Request, defaults provider.Defaults) ([]byte, error) {
	if r.Model == "" {
		return nil, &provider.Untranslatable{Dialect: name, Field: "model", Why: "is required: it is part of the URL"}
	}
	return FromChat(r, defaults)
}

// Text is what the first candidate's parts say, one after another: not those that are
// marked as thought, and no calls of functions.
func (Dialect) Text(body []byte) (string, bool) {
	first := rawjson.First(rawjson.Lookup(rawjson.Trim(body), "candidates"))
	var text []byte
	for w := rawjson.WalkIn(rawjson.Lookup(rawjson.Lookup(first, "content"), "parts")); w.Next(); {
		if part := w.Skip(); string(rawjson.Lookup(part, "thought")) != "true" {
			text = rawjson.AppendText(text, rawjson.Lookup(part, "text"))
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), len(text) > 0
}
