package converse

import (
	"net/http"
	"strings"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
)

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
