package provider

import (
	"net/http"
	"slices"
	"strings"
)

const tooLongCode = "context_length_exceeded"

// strongWords are the codes and types, in lower case, that decide a kind
// whatever the status. Each is in a provider's documentation or in a public
// report of its answer.
var strongWords = map[string]Kind{
	// An account that must be paid or raised before anything works again.
	"insufficient_quota":                QuotaExhausted,
	"credit_balance_exhausted":          QuotaExhausted,
	"organization_spend_limit_exceeded": QuotaExhausted,
	"project_spend_limit_exceeded":      QuotaExhausted,
	"organization_usage_limit_exceeded": QuotaExhausted,
	"billing_hard_limit_reached":        QuotaExhausted,
	"billing_not_active":                QuotaExhausted,
	"enforced_spend_limit_reached":      QuotaExhausted,
	"billing_error":                     QuotaExhausted, // Anthropic
	"exceeded_current_quota_error":      QuotaExhausted, // Moonshot
	"servicequotaexceededexception":     QuotaExhausted, // Bedrock
	"blocked_api_access":                QuotaExhausted, // Groq, as a 400: its spend limit is reached
	"not_enough_balance":                QuotaExhausted, // Novita, as a 403

	// OpenRouter, as a 402: what is in flight reserves credit, and gives it back.
	"in_flight_budget_exhausted":  Throttled,
	"weight_exceeds_budget":       Invalid, // this request alone is too dear
	"openrouter_in_flight_budget": Throttled,

	"rate_limit_exceeded":      Throttled,
	"rate_limit_error":         Throttled,
	"rate_limited":             Throttled, // Mistral
	"rate_limit_reached_error": Throttled, // Moonshot
	"ratelimitreached":         Throttled, // Azure
	"too_many_requests":        Throttled,
	"toomanyrequests":          Throttled,
	"slow_down":                Throttled,
	"dynamic_request_limited":  Throttled, // Together
	"dynamic_token_limited":    Throttled,
	"throttlingexception":      Throttled, // Bedrock and other AWS
	"throttledexception":       Throttled,
	"throttling":               Throttled,
	"toomanyrequestsexception": Throttled,
	"requestlimitexceeded":     Throttled,
	"resource_exhausted":       Throttled, // Google, also as a 503

	"overloaded_error":            Overloaded, // Anthropic
	"server_is_overloaded":        Overloaded, // OpenAI
	"engine_overloaded_error":     Overloaded, // Moonshot
	"engine_overloaded":           Overloaded,
	"overloaded":                  Overloaded,
	"nocapacity":                  Overloaded, // Azure
	"serviceunavailableexception": Overloaded, // Bedrock
	"modelnotreadyexception":      Overloaded,

	"invalid_api_key":                      Unauthorized,
	"authentication_error":                 Unauthorized,
	"invalid_authentication_error":         Unauthorized,
	"permission_error":                     Unauthorized,
	"permission_denied":                    Unauthorized,
	"unauthenticated":                      Unauthorized,
	"api_key_invalid":                      Unauthorized, // Google, as a 400
	"unsupported_country_region_territory": Unauthorized,
	"account_deactivated":                  Unauthorized,
	"accessdeniedexception":                Unauthorized,
	"unrecognizedclientexception":          Unauthorized,
	"expiredtokenexception":                Unauthorized,
	"invalidsignatureexception":            Unauthorized,
	"requestexpired":                       Unauthorized, // AWS, as a 400: the clock is wrong
	"requestexpiredexception":              Unauthorized,
	"model_not_found":                      ModelNotFound,
	"deploymentnotfound":                   ModelNotFound, // Azure
	"invalid_model":                        ModelNotFound, // Mistral, as a 400
	"resourcenotfoundexception":            ModelNotFound,
	"content_filter":                       Refused,
	"content_filtered":                     Refused,
	"content_policy_violation":             Refused,
	"responsibleaipolicyviolation":         Refused,
	"invalid_prompt":                       Refused, // OpenAI: flagged by its usage policy
	"cyber_policy":                         Refused,
	"moderation":                           Refused,
	"data_inspection_failed":               Refused, // Alibaba
	tooLongCode:                            Invalid,
	"exceed_context_size_error":            Invalid, // llama.cpp
	"request_too_large":                    Invalid,
	"string_above_max_length":              Invalid,
	"validationexception":                  Invalid,
	"modeltimeoutexception":                Timeout,
	"modelerrorexception":                  Server,
	"modelstreamerrorexception":            Server, // in a stream
	"internalserverexception":              Server,
	"generation":                           Server, // TGI, as a 424
}

// weakWords maps words to statuses. They count only where the status itself says
// little: an error inside a 200, or a 400 that blames the server.
var weakWords = map[string]int{
	"invalid_request_error": http.StatusBadRequest,
	"invalid_argument":      http.StatusBadRequest,
	"badrequesterror":       http.StatusBadRequest,
	"not_found_error":       http.StatusNotFound,
	"not_found":             http.StatusNotFound,
	"server_error":          http.StatusInternalServerError,
	"api_error":             http.StatusInternalServerError,
	"internal_error":        http.StatusInternalServerError,
	"internal_server_error": http.StatusInternalServerError,
	"internal":              http.StatusInternalServerError,
	"internalservererror":   http.StatusInternalServerError,
	"timeout_error":         http.StatusGatewayTimeout,
	"deadline_exceeded":     http.StatusGatewayTimeout,
	"unavailable":           http.StatusServiceUnavailable,
	"service_unavailable":   http.StatusServiceUnavailable,
}

// spendWords begin the codes that Groq has for its spend limits.
const spendWords = "spend_"

// strongWord returns the kind that a code or type decides.
func strongWord(w string) (Kind, bool) {
	if strings.HasPrefix(w, spendWords) {
		return QuotaExhausted, true
	}
	k, ok := strongWords[w]
	return k, ok
}

// tooLong reports whether the error says that the prompt does not fit the model. Most providers
// say so in prose only.
func (f *failure) tooLong() bool {
	for _, w := range f.words {
		if w == tooLongCode || w == "exceed_context_size_error" {
			return true
		}
	}
	return f.hasPhrase("maximum context length", "prompt is too long", "exceed context limit",
		"context length exceeded", "context window", "exceeds the maximum number of tokens", "too many input tokens",
		"exceeds the available context size", "input is too long for requested model", // llama.cpp, Bedrock
		"maximum prompt length is", "prompt exceeds max length", // xAI, Z.ai
		"`inputs` tokens + `max_new_tokens` must be <=") || // TGI
		f.overContext()
}

// overContext finds Together's words for a prompt and a max_tokens that are too long
// together. The refusal of a max_tokens that is too large alone lacks the word "input".
func (f *failure) overContext() bool {
	return f.hasPhrase("input") && f.hasPhrase("must be less than the context length")
}

// byStrongPhrase returns the kind of a failure whose prose outweighs its codes and types. With such
// prose the codes name a throttle, an invalid request or a refused key, and mislead.
func byStrongPhrase(f *failure) (Kind, bool) {
	switch f.status {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusForbidden, http.StatusPreconditionFailed,
		http.StatusUnprocessableEntity, http.StatusTooManyRequests, 0:
	default:
		return Unknown, false
	}
	switch {
	case f.hasPhrase("you have reached your specified") && f.hasPhrase("api usage limits"), // Anthropic, as a 400
		f.hasPhrase("prepayment credits are depleted"),                                                        // Gemini, as resource_exhausted
		f.hasPhrase("is suspended, possibly due to"),                                                          // Fireworks, as a 412
		f.hasPhrase("used all available credits", "reached its monthly spending limit", "run out of credits"), // xAI, as a 403 or 429
		f.hasPhrase("credit balance is too low", "insufficient balance"):
		return QuotaExhausted, true
	case f.status == http.StatusTooManyRequests && f.hasPhrase("experiencing high demand"): // Azure
		return Overloaded, true
	}
	return Unknown, false
}

// noQuotaHeaders are the limits of Mistral that are 0 for a model which is not on the
// plan. Others' zeros mean nothing: Azure shows them on every answer of some models.
var noQuotaHeaders = [...]string{"X-Ratelimit-Limit-Req-Minute", "X-Ratelimit-Limit-Tokens-Minute"}

// zeroQuotaHeader returns the name of the header by which a refusal says that there is no quota at
// all, "" if none does.
func (f *failure) zeroQuotaHeader() string {
	if f.status == http.StatusTooManyRequests {
		for _, name := range noQuotaHeaders {
			if strings.TrimSpace(headerValue(f.header, name)) == "0" {
				return strings.ToLower(name)
			}
		}
	}
	return ""
}

// byPhrase returns the kind that the prose gives, for statuses with several meanings that
// only the prose tells apart.
func byPhrase(f *failure) (Kind, bool) {
	switch f.status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusOK, 0:
		return byRefusalPhrase(f)
	}
	if f.status >= 500 && f.hasPhrase("overloaded") {
		return Overloaded, true
	}
	return Unknown, false
}

// byRefusalPhrase returns the kind that the prose gives, for statuses that refuse and for an error in
// a 200. Each of these statuses has several meanings.
func byRefusalPhrase(f *failure) (Kind, bool) {
	switch {
	case f.hasPhrase("content filter", "content management policy", "input was flagged", "prompt was flagged",
		"content violates usage guidelines", "content exists risk"): // xAI, as a 403; DeepSeek
		return Refused, true
	case f.status == http.StatusForbidden && f.overContext():
		return Invalid, true
	case f.hasPhrase("unexpected end of data"):
		// The server got less than was sent: the way there failed, not the request.
		return TransportFault, true
	case f.hasPhrase("client sent an http request to an https server", "plain http request was sent to https port"):
		return Misconfigured, true
	case f.hasPhrase("api key not valid", "location is not supported", // Google, as a 400
		"incorrect api key provided"): // xAI, as a 400
		return Unauthorized, true
	case f.hasPhrase("model not exist", "is not a valid model"):
		return ModelNotFound, true
	}
	return Unknown, false
}

// Statuses that net/http has no name for.
const (
	statusFlexCapacity = 498 // Groq: no capacity in the flex tier
	statusClientGone   = 499 // nginx and Google: the call was cancelled on the way
	statusOverloaded   = 529 // Anthropic
)

// byStatus returns the kind by the status, for a failure whose words decide nothing. Some statuses
// have several meanings, which the wait, the parameter or the form of the body tells apart.
func byStatus(f *failure, e *Error) Kind {
	switch f.status {
	case http.StatusTooManyRequests:
		return Throttled
	case http.StatusServiceUnavailable, statusOverloaded, statusFlexCapacity:
		return Overloaded
	case http.StatusUnauthorized:
		return Unauthorized
	case http.StatusForbidden:
		// A provider that answers in JSON refuses the key. Any other body comes from a firewall or
		// proxy on the way, which dislikes something in this request, or everything from here.
		if !f.isJSON {
			return TransportFault
		}
		return Unauthorized
	case http.StatusPaymentRequired:
		if e.HasRetryAfter || f.hasWait {
			return Throttled
		}
		return QuotaExhausted
	case http.StatusNotFound, http.StatusGone:
		// A missing object that the item names, such as a file, is no missing model or address.
		// Servers of files say "file not found" of an address, too, but have no type for it.
		isFile := len(f.words) > 0 && f.hasPhrase("file not found", "file_01")
		if f.param != "" && f.param != "model" || isFile {
			return Invalid
		}
		return ModelNotFound
	case http.StatusRequestTimeout:
		return Timeout
	case http.StatusConflict, http.StatusTooEarly, statusClientGone:
		return Server
	case http.StatusProxyAuthRequired:
		return Misconfigured
	case http.StatusBadRequest:
		if slices.ContainsFunc(f.words, func(w string) bool { return weakWords[w] >= http.StatusInternalServerError }) {
			return Server // the type blames it
		}
		return Invalid
	case http.StatusNotImplemented: // llama.cpp: "this server does not support embeddings"
		return Invalid
	}
	switch f.status / 100 {
	case 4:
		return Invalid
	case 5:
		return Server
	}
	return Unknown
}

// Wording gives a vendor's or a dialect's meaning of words and statuses that others use
// otherwise, or not at all. The zero value has no words of its own.
type Wording struct {
	// Kinds maps codes and types, in small letters.
	Kinds map[string]Kind
	// Phrases are pieces of the prose, in small letters. The first one found decides, and
	// outweighs Kinds.
	Phrases []Phrase
	// Statuses maps a status that no word explains, neither these words nor anyone's.
	Statuses map[int]Kind
}

// Phrase is a piece of an error's prose and what it means.
type Phrase struct {
	Says string
	Kind Kind
}

// kindFor returns the kind that a vendor's or a dialect's own words give to a failure. Phrases of the prose
// outweigh codes: a Wording names a phrase because the code next to it says less.
func (w *Wording) kindFor(f *failure) (Kind, bool) {
	if w == nil {
		return Unknown, false
	}
	for i := range w.Phrases {
		if p := &w.Phrases[i]; p.Says != "" && f.hasPhrase(p.Says) {
			return p.Kind, true
		}
	}
	for _, word := range f.words {
		if k, ok := w.Kinds[word]; ok {
			return k, true
		}
	}
	return Unknown, false
}
