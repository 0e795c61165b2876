package anthropic

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

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
		thinking := "The prompt's checksum is " + face.Checksum(r.First()) + "."
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
		return refusal(http.StatusUnauthorized, "authentication_error", r.refuseKey(), s)
	case face.ModelNotFound:
		return refusal(http.StatusNotFound, notFound, "model: "+r.Model, s)
	case face.BadRequest:
		if r.oversize {
			return refusal(http.StatusRequestEntityTooLarge, tooLarge, tooLargeMessage, s)
		}
		return refusal(http.StatusBadRequest, invalidRequest, cmp.Or(r.Complaint, "The simulated provider was told to refuse this request."), s)
	case face.Overloaded:
		return refusal(statusFull, "overloaded_error", "Overloaded", s)
	case face.Malformed:
		return refusal(http.StatusOK, apiError, "Internal server error", s)
	}
	return refusal(http.StatusInternalServerError, apiError, "Internal server error", s)
}

func (r *request) refuseKey() string {
	if r.key == "" {
		return "x-api-key header is required"
	}
	return "invalid x-api-key"
}

// refusal returns Anthropic's error object. An error also has the header that tells clients whether to
// try again.
func refusal(status int, kind, message string, s face.Stamp) face.Reply {
	reply := face.JSON(status, fmt.Appendf(nil, `{"type":"error","error":{"type":%s,"message":%s},"request_id":%s}`,
		face.Quote(kind), face.Quote(message), face.Quote(requestID(s))))
	if status >= http.StatusBadRequest {
		retryable := status == http.StatusConflict || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
		reply.Header["X-Should-Retry"] = []string{strconv.FormatBool(retryable)}
	}
	return reply
}

// limitMessage returns a message with the figure of the limit, unless the server is terse.
func limitMessage(v face.Verdict) string {
	quota := v.Requests
	if v.Dimension == face.Tokens {
		quota = v.Tokens
	}
	if v.Terse {
		return "This request would exceed your account's rate limit. Please try again later."
	}
	return fmt.Sprintf("This request would exceed your organization's rate limit of %s %s per minute (org: %s). For details, refer to: https://docs.claude.com/en/api/rate-limits.",
		face.Grouped(quota.Limit), v.Dimension, organization)
}

// Tell sets anthropic-ratelimit-*, except at the doors of others, who have no such headers.
func (r *request) Tell(h http.Header, v face.Verdict, s face.Stamp) {
	v.TellWait(h, v.RetryAfterMS)
	if v.HasHeaders && r.door == ownDoor {
		addQuota(h, "Requests", v.Requests, s)
		addQuota(h, "Tokens", v.Tokens, s)
	}
}

// addQuota adds the headers of one gauge. A reset is an instant, in whole seconds rounded up.
func addQuota(h http.Header, dim string, quota face.Quota, s face.Stamp) {
	if quota.Limit == 0 {
		return
	}
	name := "Anthropic-Ratelimit-" + dim
	reset := s.Judged.Add(quota.Reset + time.Second - 1).Truncate(time.Second)
	h[name+"-Limit"] = []string{face.Whole(quota.Limit)}
	h[name+"-Remaining"] = []string{face.Whole(quota.Remaining)}
	h[name+"-Reset"] = []string{reset.UTC().Format(time.RFC3339)}
}

// Stream turns an answer of the Messages API into a stream. Its first event has the usage of the
// input. The last but one has the output tokens and the reason of the end.
func Stream(answer []byte, s face.Stamp) face.Reply {
	whole := gjson.ParseBytes(answer)
	usage, written := whole.Get("usage"), whole.Get("usage.output_tokens").Raw
	startUsage := strings.Replace(usage.Raw, `"output_tokens":`+written, `"output_tokens":1`, 1)
	pieces := [][]byte{event("message_start", `"message":{"id":%s,"type":"message","role":"assistant","model":%s,"content":[],`+
		`"stop_reason":null,"stop_sequence":null,"usage":%s}`, whole.Get("id").Raw, whole.Get("model").Raw, startUsage)}
	for i, block := range whole.Get("content").Array() {
		pieces = append(pieces, blockEvents(i, block)...)
	}
	pieces = append(pieces, append(
		event("message_delta", `"delta":{"stop_reason":%s,"stop_sequence":%s},"usage":{"output_tokens":%s}`,
			whole.Get("stop_reason").Raw, whole.Get("stop_sequence").Raw, written),
		event("message_stop", "")...))
	reply := face.Stream(face.EventStream+"; charset=utf-8", pieces,
		event("error", `"error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"%s"`, requestID(s)))
	reply.Header["Cache-Control"] = []string{"no-cache"}
	return reply
}

// event returns an event whose type repeats its name.
func event(name, format string, args ...any) []byte {
	data := fmt.Appendf(nil, `{"type":"%s"`, name)
	if format != "" {
		data = fmt.Appendf(append(data, ','), format, args...)
	}
	return face.Event(name, append(data, '}'))
}

// blockEvents returns the pieces of one block: its text or thoughts, and at the end of thoughts
// their signature. A ping follows the first start, as in Anthropic's examples.
func blockEvents(index int, block gjson.Result) (pieces [][]byte) {
	kind := block.Get("type").Str
	field, signature := kind, "" // the field has the name of the type
	if kind == "thinking" {
		signature = `,"signature":""`
	}
	start := event("content_block_start", `"index":%d,"content_block":{"type":"%s","%s":""%s}`, index, kind, field, signature)
	if index == 0 {
		start = append(start, event("ping", "")...)
	}
	pieces = append(pieces, start)
	for _, token := range face.Split(block.Get(field).Str) {
		pieces = append(pieces, event("content_block_delta", `"index":%d,"delta":{"type":"%s_delta","%s":%s}`, index, kind, field, face.Quote(token)))
	}
	if signature != "" {
		pieces = append(pieces, event("content_block_delta", `"index":%d,"delta":{"type":"signature_delta","signature":%s}`, index, block.Get("signature").Raw))
	}
	return append(pieces, event("content_block_stop", `"index":%d`, index))
}
