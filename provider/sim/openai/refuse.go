package openai

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Tell sets headers with OpenAI's names and durations, or Azure's.
func (r *request) Tell(h http.Header, v face.Verdict, _ face.Stamp) {
	if v.HasRetryAfter {
		h["Retry-After"] = []string{strconv.FormatInt(face.Seconds(v.RetryAfter), 10)}
		if v.RetryAfterMS || r.azure {
			h["Retry-After-Ms"] = []string{strconv.FormatInt(v.RetryAfter.Milliseconds(), 10)}
		}
	}
	if !v.HasHeaders {
		return
	}
	spelling := spell
	if r.azure {
		spelling = azureReset
	}
	addQuota(h, "Requests", v.Requests, spelling)
	addQuota(h, "Tokens", v.Tokens, spelling)
}

// addQuota takes the canonical spelling, which Header.Set would compute at
// each call.
func addQuota(h http.Header, dim string, q face.Quota, spell func(time.Duration) string) {
	if q.Limit == 0 {
		return
	}
	h["X-Ratelimit-Limit-"+dim] = []string{face.Whole(q.Limit)}
	h["X-Ratelimit-Remaining-"+dim] = []string{face.Whole(q.Remaining)}
	h["X-Ratelimit-Reset-"+dim] = []string{spell(q.Reset)}
}

// spell returns a duration as OpenAI prints it, in milliseconds rounded up: 12ms,
// 1s, 6m0s.
func spell(d time.Duration) string {
	const ms = time.Millisecond
	return ((d + ms - 1) / ms * ms).String()
}

// errorBody returns OpenAI's error object; an empty param or code is null.
func errorBody(message, kind, param, code string) []byte {
	orNull := func(s string) []byte {
		if s == "" {
			return []byte("null")
		}
		return face.Quote(s)
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`,
		face.Quote(message), face.Quote(kind), orNull(param), orNull(code))
}

const (
	invalidRequest = "invalid_request_error"
	fallen         = "The server had an error while processing your request. Sorry about that!"
	toldToRefuse   = "The simulated provider was told to refuse this request."
)

// Refuse returns OpenAI's error object, or Azure's.
func (r *request) Refuse(v face.Verdict, _ face.Stamp) face.Reply {
	if r.azure {
		return r.refuseAsAzure(v)
	}
	return face.JSON(v.Status, r.errorBody(v))
}

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
		return errorBody(cmp.Or(r.Complaint, toldToRefuse), invalidRequest, r.Param, "")
	case face.Overloaded:
		return errorBody("The engine is currently overloaded, please try again later.", "server_error", "", "server_is_overloaded")
	case face.Malformed:
		return errorBody("The upstream gave no answer.", "server_error", "", "")
	default:
		return errorBody(fallen, "server_error", "", "")
	}
}

// limitMessage returns OpenAI's wording, which clients parse: Used is the limit
// less the remainder, rounded up as the remainder is rounded down.
func (r *request) limitMessage(v face.Verdict) string {
	q, requested, short := v.Requests, 1.0, "RPM"
	if v.Dimension == face.Tokens {
		q, requested, short = v.Tokens, r.charge(), "TPM"
	}
	on := fmt.Sprintf("for %s in organization org-sim on %s per min (%s): Limit %s", r.Model, v.Dimension, short, face.Whole(q.Limit))
	if v.Kind == face.TooLarge {
		return fmt.Sprintf("Request too large %s, Requested %s. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
			on, face.Whole(requested))
	}
	if v.Terse {
		return "Rate limit reached. Please slow down."
	}
	used := face.Count(q.Limit) - face.Count(q.Remaining)
	return fmt.Sprintf("Rate limit reached %s, Used %d, Requested %s. Please try again in %s.",
		on, used, face.Whole(requested), spell(v.Wait))
}
