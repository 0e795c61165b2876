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

// Answer reads an answer as provider.ReplyOf does, with the model's thoughts as a part of the output:
// Gemini counts them separately, and puts a request's id into the body. A prompt that was blocked
// is Refused, with the answer's id, and an error may be in any of Google's forms.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	reply, e := provider.ReplyIn(status, h, body, w, &words)
	if reply.RequestID == "" && status < http.StatusMultipleChoices {
		found := provider.Found{ID: rawjson.Lookup(rawjson.Trim(body), "responseId")}
		reply.RequestID = found.Reply(status, nil, nil).RequestID // bounded, and one line
		if e != nil && e.RequestID == "" {
			e.RequestID = reply.RequestID
		}
	}
	return reply, e
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
