package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Face is OpenAI's, and Azure's if a request comes to one of Azure's addresses. The zero
// value is ready.
type Face struct{}

// The operations, spelled as OpenAI's paths.
const (
	chat        = "/v1/chat/completions"
	completions = "/v1/completions"
	embeddings  = "/v1/embeddings"
	responses   = "/v1/responses"
	moderations = "/v1/moderations"
	rerank      = "/v1/rerank"   // of servers of OpenAI's shape: OpenAI has none
	messages    = "/v1/messages" // of Anthropic's dialect, which some servers speak as well
	models      = "/v1/models"
)

// Name returns the dialect's name.
func (Face) Name() string { return "openai" }

// Base returns the path below which OpenAI's clients look.
func (Face) Base() string { return "/v1" }

// Find knows OpenAI's paths, and Azure's two forms of them.
func (Face) Find(r *http.Request) face.Errand {
	if a, ok := azureAddress(r.URL); ok {
		return errand(a.operation, a.deployment).ByMethod(r, methodOf(a.operation))
	}
	return errand(r.URL.Path, "").ByMethod(r, methodOf(r.URL.Path))
}

// errand returns the errand of a call of an operation, an empty one if the operation is unknown.
func errand(operation, model string) face.Errand {
	switch operation {
	case chat, completions, embeddings, responses, moderations, rerank, messages:
		return face.Errand{Aim: face.Ask, Operation: operation, Model: model}
	case models:
		return face.Errand{Aim: face.List}
	}
	return face.Errand{}
}

func methodOf(operation string) string {
	if operation == models {
		return http.MethodGet
	}
	return http.MethodPost
}

// Read reads a body as OpenAI does: it ignores unknown fields.
func (Face) Read(r *http.Request, e face.Errand, body string) face.Request {
	req := &request{operation: e.Operation}
	req.key, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ") // also of a client that leaves out the word
	if _, ok := azureAddress(r.URL); ok {
		req.azure = true
		req.key = cmp.Or(r.Header.Get("Api-Key"), face.Bearer(r.Header)) // a key, or a token
		req.keyless = req.key == ""
	}
	if e.Model != "" {
		req.Model, req.modelInPath = e.Model, true
	}
	req.readBody(body)
	return req
}

// Call charges as OpenAI does.
func (r *request) Call() face.Call {
	return face.Call{Tokens: r.charge(), Key: r.key, Keyless: r.keyless, Model: r.Model, Invalid: r.Complaint != "", Stream: r.stream, Flex: r.tier == flex}
}

// Models returns OpenAI's list.
func (Face) Models(names []string, s face.Stamp) []byte {
	return append(face.Each([]byte(`{"object":"list","data":[`), names, func(b []byte, _ int, name string) []byte {
		return fmt.Appendf(b, `{"id":%s,"object":"model","created":%d,"owned_by":"sim"}`, face.Quote(name), s.Now.Unix())
	}), `]}`...)
}

// Fault answers in the words of OpenAI, or Azure's.
func (Face) Fault(status int, r *http.Request, _ face.Stamp) face.Reply {
	if _, ok := azurePath(r.URL.Path); ok {
		return azureFault(status)
	}
	message, code := fmt.Sprintf("Unknown request URL: %s %s. Please check the URL for typos, or see the docs at https://platform.openai.com/docs/api-reference/.", r.Method, r.URL.Path), "unknown_url"
	switch status {
	case http.StatusMethodNotAllowed:
		message, code = fmt.Sprintf("Not allowed to %s on %s.", r.Method, r.URL.Path), "method_not_supported"
	case http.StatusRequestEntityTooLarge:
		message, code = fmt.Sprintf("Request body is larger than %d bytes.", face.MaxBody), "request_too_large"
	}
	return face.JSON(status, errorBody(message, invalidRequest, "", code))
}

// Mark sets the request's id, for Azure under Azure's name too.
func (Face) Mark(h http.Header, r *http.Request, s face.Stamp) {
	id := fmt.Sprintf("req_sim%016x", s.Serial)
	h["X-Request-Id"] = []string{id}
	if _, ok := azurePath(r.URL.Path); ok {
		h["Apim-Request-Id"] = []string{id}
	}
}

// Azure is the same face for servers that are Azure's: clients look below Azure's path.
type Azure struct{ Face }

// Base returns the path below which Azure's clients look.
func (Azure) Base() string { return "/openai/v1" }

// address is one of Azure's, taken apart.
type address struct {
	operation  string // as in OpenAI's path
	deployment string // "": the body names it
}

const (
	azureV1  = "/openai/v1/"
	azureOld = "/openai/deployments/"
)

// azurePath reports whether a path is below Azure's root, and returns the rest of it.
func azurePath(path string) (rest string, ok bool) { return strings.CutPrefix(path, "/openai/") }

// azureAddress reads both of Azure's forms: the one that is OpenAI's below another root,
// and the older one, whose path names the deployment and whose query must name a version.
func azureAddress(u *url.URL) (address, bool) {
	if rest, ok := strings.CutPrefix(u.Path, azureV1); ok {
		return address{operation: "/v1/" + rest}, true
	}
	rest, ok := strings.CutPrefix(u.Path, azureOld)
	if !ok {
		return address{}, false
	}
	deployment, operation, found := strings.Cut(rest, "/")
	if !found || deployment == "" || u.Query().Get("api-version") == "" {
		return address{}, true
	}
	return address{operation: "/v1/" + operation, deployment: deployment}, true
}

// azureReset returns the seconds until a reset, without a unit.
func azureReset(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func azureError(status int, code, message string) face.Reply {
	return face.JSON(status, fmt.Appendf(nil, `{"error":{"code":%s,"message":%s}}`, face.Quote(code), face.Quote(message)))
}

// azureFault answers a request that reaches no operation, in Azure's words.
func azureFault(status int) face.Reply {
	switch status {
	case http.StatusMethodNotAllowed:
		return azureError(status, "405", "Method not allowed")
	case http.StatusRequestEntityTooLarge:
		return azureError(status, "RequestEntityTooLarge", "The request body is too large.")
	}
	return azureError(status, "404", "Resource not found")
}

// refuseAsAzure has Azure's codes where they are not OpenAI's. Flaws that a model finds in a body,
// and a spent balance, are in OpenAI's words.
func (r *request) refuseAsAzure(v face.Verdict) face.Reply {
	switch v.Kind {
	case face.RateLimited, face.TooLarge:
		return azureError(http.StatusTooManyRequests, "RateLimitReached", r.azureLimit(v))
	case face.Unauthorized:
		return azureError(http.StatusUnauthorized, "401", "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.")
	case face.ModelNotFound:
		return azureError(http.StatusNotFound, "DeploymentNotFound", "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.")
	case face.Overloaded:
		return azureError(http.StatusServiceUnavailable, "503", "The service is temporarily unable to process your request. Please try again later.")
	case face.ServerError:
		return azureError(http.StatusInternalServerError, "InternalServerError", serverErrorText)
	}
	return face.JSON(v.Status, r.errorBody(v))
}

// azureLimit returns the message for an exhausted limit. It names the gauge, and the wait if the
// verdict has one.
func (r *request) azureLimit(v face.Verdict) string {
	gauge := "call"
	if v.Dimension == face.Tokens {
		gauge = "token"
	}
	text := fmt.Sprintf("Your requests to %s in Simulated have exceeded the %s rate limit of your current pricing tier.", r.Model, gauge)
	if v.HasRetryAfter {
		text += fmt.Sprintf(" Please retry after %d seconds.", face.Seconds(v.RetryAfter))
	}
	return text
}

// Tell sets headers with OpenAI's names and durations, or Azure's.
func (r *request) Tell(h http.Header, v face.Verdict, _ face.Stamp) {
	v.TellWait(h, v.RetryAfterMS || r.azure)
	if !v.HasHeaders {
		return
	}
	spelling := formatReset
	if r.azure {
		spelling = azureReset
	}
	addQuota(h, "Requests", v.Requests, spelling)
	addQuota(h, "Tokens", v.Tokens, spelling)
}

// addQuota takes the canonical spelling, which Header.Set would compute at
// each call.
func addQuota(h http.Header, dim string, quota face.Quota, spell func(time.Duration) string) {
	if quota.Limit == 0 {
		return
	}
	h["X-Ratelimit-Limit-"+dim] = []string{face.Whole(quota.Limit)}
	h["X-Ratelimit-Remaining-"+dim] = []string{face.Whole(quota.Remaining)}
	h["X-Ratelimit-Reset-"+dim] = []string{spell(quota.Reset)}
}

// formatReset returns a duration as OpenAI prints it, in milliseconds rounded up: 12ms,
// 1s, 6m0s.
func formatReset(d time.Duration) string {
	const ms = time.Millisecond
	return ((d + ms - 1) / ms * ms).String()
}

// errorBody returns OpenAI's error object; an empty kind, param or code is null.
func errorBody(message, kind, param, code string) []byte {
	orNull := func(s string) []byte {
		if s == "" {
			return []byte("null")
		}
		return face.Quote(s)
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`,
		face.Quote(message), orNull(kind), orNull(param), orNull(code))
}

const (
	invalidRequest  = "invalid_request_error"
	serverErrorText = "The server had an error while processing your request. Sorry about that!"
	refusalMessage  = "The simulated provider was told to refuse this request."
)

// Refuse returns OpenAI's error object, or Azure's.
func (r *request) Refuse(v face.Verdict, _ face.Stamp) face.Reply {
	if r.azure {
		return r.refuseAsAzure(v)
	}
	return face.JSON(v.Status, r.errorBody(v))
}

// errorBody returns OpenAI's error object for a verdict.
func (r *request) errorBody(v face.Verdict) []byte {
	switch v.Kind {
	case face.RateLimited, face.TooLarge:
		return errorBody(r.limitMessage(v), string(v.Dimension), "", "rate_limit_exceeded")
	case face.InsufficientQuota:
		return errorBody("You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
			"insufficient_quota", "", "insufficient_quota")
	case face.Unauthorized:
		return errorBody("Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
			invalidRequest, "", "invalid_api_key")
	case face.ModelNotFound:
		return errorBody(fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", r.Model),
			invalidRequest, "", "model_not_found")
	case face.BadRequest:
		return errorBody(cmp.Or(r.Complaint, refusalMessage), invalidRequest, r.Param, "")
	case face.Overloaded:
		return errorBody("The engine is currently overloaded, please try again later.", "server_error", "", "server_is_overloaded")
	case face.NoRoom:
		return errorBody("There are not enough resources for this request in the flex tier at the moment. Please try again later, or use the default tier.", "", "", "resource_unavailable")
	case face.Malformed:
		return errorBody("The upstream gave no answer.", "server_error", "", "")
	default:
		return errorBody(serverErrorText, "server_error", "", "")
	}
}

// limitMessage returns OpenAI's wording, which clients parse: Used is the limit
// less the remainder, rounded up as the remainder is rounded down.
func (r *request) limitMessage(v face.Verdict) string {
	quota, requested, unit := v.Requests, 1.0, "RPM"
	if v.Dimension == face.Tokens {
		quota, requested, unit = v.Tokens, r.charge(), "TPM"
	}
	details := fmt.Sprintf("for %s in organization org-sim on %s per min (%s): Limit %s", r.Model, v.Dimension, unit, face.Whole(quota.Limit))
	if v.Kind == face.TooLarge {
		return fmt.Sprintf("Request too large %s, Requested %s. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
			details, face.Whole(requested))
	}
	if v.Terse {
		return "Rate limit reached. Please slow down."
	}
	used := face.Count(quota.Limit) - face.Count(quota.Remaining)
	return fmt.Sprintf("Rate limit reached %s, Used %d, Requested %s. Please try again in %s.",
		details, used, face.Whole(requested), formatReset(v.Wait))
}
