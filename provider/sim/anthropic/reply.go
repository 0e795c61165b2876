package anthropic

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

// Call charges the tokens that are read and those that will be written.
func (r *request) Call() face.Call {
	return face.Call{
		Tokens: max(1, float64(r.Read()+r.Written())),
		Key:    r.key, Keyless: r.key == "", Model: r.Model, Invalid: r.Complaint != "", Stream: r.stream,
	}
}

// Answer returns a message. Requested thoughts stand before its text and count as output.
func (r *request) Answer(s face.Stamp) face.Reply {
	text, whole := r.Write(r.First())
	reason := "end_turn"
	if !whole {
		reason = "max_tokens"
	}
	written, thought := face.TokensOf(len(text)), ""
	if r.thinks {
		thinking := thoughtOf(r.First())
		written += face.TokensOf(len(thinking))
		thought = fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"c2lt"},`, face.Quote(thinking))
	}
	cache := min(face.TokensOf(r.cacheChars), r.Read())
	body := fmt.Appendf(make([]byte, 0, 768), `{"id":"msg_%s","type":"message","role":"assistant","model":%s,`+
		`"content":[%s{"type":"text","text":%s}],"stop_reason":"%s","stop_sequence":null,"usage":{"input_tokens":%d,`+
		`"cache_creation_input_tokens":%d,"cache_read_input_tokens":0,`+
		`"cache_creation":{"ephemeral_5m_input_tokens":%[7]d,"ephemeral_1h_input_tokens":0},`+
		`"output_tokens":%[8]d,"service_tier":"standard"}}`,
		s.ID, face.Quote(r.Model), thought, face.Quote(text), reason, r.Read()-cache, cache, written)
	if r.stream {
		return Stream(body, s)
	}
	return face.JSON(http.StatusOK, body)
}

// thoughtOf returns the model's thoughts before it answers.
func thoughtOf(prompt string) string {
	return "The prompt's checksum is " + face.Checksum(prompt) + "."
}

// Types of errors.
const (
	invalidRequest = "invalid_request_error"
	notFound       = "not_found_error"
	tooLarge       = "request_too_large"
	rateLimit      = "rate_limit_error"
	apiError       = "api_error"

	tooLargeMessage = "Request exceeds the maximum size"
	statusFull      = 529 // Anthropic's own: too much to do
)

// Refuse returns Anthropic's error object.
func (r *request) Refuse(v face.Verdict, s face.Stamp) face.Reply {
	switch v.Kind {
	case face.RateLimited, face.TooLarge:
		return refusal(http.StatusTooManyRequests, rateLimit, limitMessage(v), s)
	case face.InsufficientQuota:
		return refusal(http.StatusBadRequest, invalidRequest, "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.", s)
	case face.Unauthorized:
		return refusal(http.StatusUnauthorized, "authentication_error", r.stranger(), s)
	case face.ModelNotFound:
		return refusal(http.StatusNotFound, notFound, "model: "+r.Model, s)
	case face.BadRequest:
		return r.refuseBody(s)
	case face.Overloaded:
		return refusal(statusFull, "overloaded_error", "Overloaded", s)
	case face.Malformed:
		return refusal(http.StatusOK, apiError, "Internal server error", s)
	}
	return refusal(http.StatusInternalServerError, apiError, "Internal server error", s)
}

func (r *request) stranger() string {
	if r.key == "" {
		return "x-api-key header is required"
	}
	return "invalid x-api-key"
}

func (r *request) refuseBody(s face.Stamp) face.Reply {
	switch {
	case r.oversize:
		return refusal(http.StatusRequestEntityTooLarge, tooLarge, tooLargeMessage, s)
	case r.Complaint == "":
		return refusal(http.StatusBadRequest, invalidRequest, "The simulated provider was told to refuse this request.", s)
	}
	return refusal(http.StatusBadRequest, invalidRequest, r.Complaint, s)
}

func refusal(status int, kind, message string, s face.Stamp) face.Reply {
	a := face.JSON(status, fmt.Appendf(nil, `{"type":"error","error":{"type":%s,"message":%s},"request_id":%s}`,
		face.Quote(kind), face.Quote(message), face.Quote(requestID(s))))
	if status >= http.StatusBadRequest {
		again := status == http.StatusConflict || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
		a.Header["X-Should-Retry"] = []string{strconv.FormatBool(again)}
	}
	return a
}

// limitMessage returns a message with the figure of the limit, unless the server is terse.
func limitMessage(v face.Verdict) string {
	q := v.Requests
	if v.Dimension == face.Tokens {
		q = v.Tokens
	}
	if v.Terse {
		return "This request would exceed your account's rate limit. Please try again later."
	}
	return fmt.Sprintf("This request would exceed your organization's rate limit of %s %s per minute (org: %s). For details, refer to: https://docs.claude.com/en/api/rate-limits.",
		face.Grouped(q.Limit), v.Dimension, organization)
}

// Tell sets anthropic-ratelimit-*, except at the doors of others, who have no such headers.
func (r *request) Tell(h http.Header, v face.Verdict, s face.Stamp) {
	if v.HasRetryAfter {
		h["Retry-After"] = []string{strconv.FormatInt(face.Seconds(v.RetryAfter), 10)}
		if v.RetryAfterMS {
			h["Retry-After-Ms"] = []string{strconv.FormatInt(v.RetryAfter.Milliseconds(), 10)}
		}
	}
	if v.HasHeaders && r.door == own {
		addQuota(h, "Requests", v.Requests, s)
		addQuota(h, "Tokens", v.Tokens, s)
	}
}

// addQuota adds the headers of one gauge. A reset is an instant, in whole seconds rounded up.
func addQuota(h http.Header, dim string, q face.Quota, s face.Stamp) {
	if q.Limit == 0 {
		return
	}
	name := "Anthropic-Ratelimit-" + dim
	reset := s.Judged.Add(q.Reset + time.Second - 1).Truncate(time.Second)
	h[name+"-Limit"] = []string{face.Whole(q.Limit)}
	h[name+"-Remaining"] = []string{face.Whole(q.Remaining)}
	h[name+"-Reset"] = []string{reset.UTC().Format(time.RFC3339)}
}
