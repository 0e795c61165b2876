package converse

import (
	"errors"
	"net/http"
	"strings"
	"time"

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

// Answer reads an answer as provider.ReplyOf does. Claude's caches are not in the input and those of
// other models are, and the answer names no model: the total tells them apart.
func (Dialect) Answer(status int, h http.Header, body []byte, w *provider.Wording) (provider.Reply, *provider.Error) {
	reply, e := provider.ReplyIn(status, h, body, w, &words)
	switch {
	case e != nil:
		refine(e, body)
	case !reply.HasUsage:
		reply.Usage, reply.HasUsage = readCount(h, body)
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

// Waits that Bedrock means and does not name in a header.
const (
	// agreementWait is the time that an agreement with the Marketplace takes, as AWS says in its
	// guide to Bedrock's error codes.
	agreementWait = 15 * time.Minute
	// unclearWait is for a quota that may be one by the minute: a whole one, so that it is
	// sure to be fresh.
	unclearWait = time.Minute
)

// The names of a quota of the account that may be anything: "resubmit later".
const (
	quotaExceeded      = "servicequotaexceededexception"
	shortQuotaExceeded = "servicequotaexceeded"
)

// words are Bedrock's own words: those that other providers do not share, or that mean something
// else there. The names are those of its guide to error codes, with and without "Exception".
var words = provider.Wording{
	Kinds: map[string]provider.Kind{
		quotaExceeded:                         provider.Throttled,
		shortQuotaExceeded:                    provider.Throttled,
		"mpagreementbeingcreated":             provider.Overloaded, // as a 403
		"mpagreementbeingcreatedexception":    provider.Overloaded,
		"incompletesignature":                 provider.Unauthorized, // as a 400
		"incompletesignatureexception":        provider.Unauthorized,
		"missingauthenticationtoken":          provider.Unauthorized,
		"missingauthenticationtokenexception": provider.Unauthorized,
		"invalidclienttokenid":                provider.Unauthorized,
		"notauthorized":                       provider.Unauthorized, // as a 400
		"ftuformnotfilled":                    provider.Unauthorized, // as a 404: a form of the account's is not filled in
		"ftuformnotfilledexception":           provider.Unauthorized,
		"resourcenotfound":                    provider.ModelNotFound,
	},
	Phrases: []provider.Phrase{
		{Says: "mpagreementbeingcreated", Kind: provider.Overloaded},
		{Says: "subscription for this model is still being processed", Kind: provider.Overloaded},
		{Says: "use case details have not been submitted", Kind: provider.Unauthorized},
		// As ValidationException: the id must be that of an inference profile, or is none.
		{Says: "with on-demand throughput isn", Kind: provider.ModelNotFound},
		{Says: "model identifier is invalid", Kind: provider.ModelNotFound},
	},
}

// refine corrects kinds for which a word alone is not enough.
func refine(e *provider.Error, body []byte) {
	switch kind := strings.ToLower(e.Type); {
	case e.Kind == provider.Overloaded && e.Status == http.StatusForbidden && !e.HasRetryAfter:
		e.RetryAfter, e.HasRetryAfter = agreementWait, true
	case e.Kind == provider.Throttled && (kind == quotaExceeded || kind == shortQuotaExceeded):
		e.Unclear = true
		if !e.HasRetryAfter {
			e.RetryAfter, e.HasRetryAfter = unclearWait, true
		}
	case e.Kind == provider.Server && (kind == "modelerrorexception" || kind == "modelstreamerrorexception"):
		e.Kind = modelError(rawjson.Number(rawjson.Lookup(provider.ObjectIn(body), "originalStatusCode")))
	}
}

// modelError returns the kind of a model's error, by the status that the model gave to Bedrock.
func modelError(status float64) provider.Kind {
	switch {
	case status == http.StatusTooManyRequests:
		return provider.Throttled
	case status == http.StatusRequestTimeout:
		return provider.Timeout
	case status >= 400 && status < 500:
		return provider.Invalid
	}
	return provider.Server
}
