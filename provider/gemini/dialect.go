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

// Path returns a path with the model in it. Its name may begin with "models/", as in Google's own
// lists.
func (Dialect) Path(operation, model string) (string, bool) {
	switch operation {
	case provider.GenerateContent, provider.EmbedContent, provider.BatchEmbedContents:
		return "/models/" + provider.Segment(strings.TrimPrefix(model, "models/")) + operation, true
	}
	return "", false
}

// Body returns the request's own body. A body that names a model, too, is sent as it is. Only
// the provider can say whether the two names conflict, and nobody can guess which one was
// meant.
func (Dialect) Body(r provider.Request) ([]byte, error) {
	if r.Model == "" {
		return nil, errNoModel
	}
	return r.Body, nil
}

var errNoModel = errors.New("the model belongs in the URL, and the request has none")

// words are Google's own words, beyond those that all providers share.
var words = provider.Wording{
	Kinds: map[string]provider.Kind{
		"billing_disabled": provider.QuotaExhausted, // as a 403, a reason among the details
		"quota_exceeded":   provider.QuotaExhausted, // of the day
	},
	Phrases: []provider.Phrase{
		// A limit of 0 means that the model is not on the plan. It comes with a delay.
		{Says: "limit: 0,", Kind: provider.QuotaExhausted},
		{Says: "limit: 0\n", Kind: provider.QuotaExhausted},
		{Says: "free tier is not available in your country", Kind: provider.QuotaExhausted}, // as a 400
		{Says: "monthly spending cap", Kind: provider.QuotaExhausted},
		// Each item names its own file. A file belongs to one project and lives for two days.
		{Says: "you do not have permission to access the file", Kind: provider.Invalid},
	},
}

// Answer reads the first candidate, with the model's thoughts as a part of the output: Gemini
// counts them separately. It reads an answer without candidates as provider.ReplyOf does. A
// prompt that was blocked is Refused, and an error may be in any of Google's forms.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	if status/100 == 2 {
		if found, ok := find(provider.ObjectIn(body)); ok {
			return found.Reply(status, h, body), nil
		}
	}
	return provider.ReplyIn(status, h, body, w, &words)
}

// find reads an answer's members. It returns false if the first candidate has neither content nor
// a reason for having none.
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

// FromChat translates one of OpenAI's chat requests into the dialect: see the function FromChat.
func (Dialect) FromChat(r provider.Request, defaults provider.Defaults) ([]byte, error) {
	if r.Model == "" {
		return nil, &provider.Untranslatable{Dialect: name, Field: "model", Why: "is required: it is part of the URL"}
	}
	return FromChat(r, defaults)
}

// Text returns the text of the first candidate's parts, one after another, without those marked
// as thought and without calls of functions.
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
