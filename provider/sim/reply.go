package sim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// reply is an answer before it is put on a wire.
type reply struct {
	status int
	header http.Header
	body   []byte
	cut    bool // only half of the body arrives, then the connection breaks
}

const (
	contentJSON = "application/json"
	contentHTML = "text/html"
)

func jsonReply(status int, body []byte) reply {
	return reply{status: status, body: body, header: http.Header{"Content-Type": {contentJSON}}}
}

// reply builds what the verdict says. Reset and Hung have no reply.
func (v Verdict) reply(r request, id string, now time.Time) reply {
	var a reply
	switch v.Kind {
	case Accepted:
		a = jsonReply(v.Status, r.answer(id, now))
	case Truncated:
		a = jsonReply(v.Status, r.answer(id, now))
		a.cut = true
	case Malformed:
		a = malformed(id)
	default:
		a = jsonReply(v.Status, v.errorBody(r))
	}
	v.addHeaders(a.header)
	return a
}

// malformed is one of the ways in which a 200 can be no answer: a proxy's page,
// nothing at all, an error object.
func malformed(id string) reply {
	switch mix(checksum(id)) % 3 {
	case 0:
		return reply{
			status: http.StatusOK,
			body:   []byte("<html><body>Please stand by.</body></html>"),
			header: http.Header{"Content-Type": {contentHTML}},
		}
	case 1:
		return jsonReply(http.StatusOK, nil)
	}
	return jsonReply(http.StatusOK, errorBody("The upstream gave no answer.", "server_error", "", ""))
}

func (r request) answer(id string, now time.Time) []byte {
	switch r.endpoint {
	case embeddings:
		return r.embeddingBody()
	case responses:
		return r.responseBody(id, now)
	case messages:
		return r.messageBody(id)
	case completions:
		return r.completionBody(id, now, "cmpl-", "text_completion", completionChoice)
	default:
		return r.completionBody(id, now, "chatcmpl-", "chat.completion", chatChoice)
	}
}

// write is the text that answers one prompt, cut at max_tokens.
func (r request) write(prompt string) (text string, whole bool) {
	text = Answer(prompt)
	if r.maxTokens == 0 || r.maxTokens*4 >= float64(len(text)) {
		return text, true
	}
	return text[:int(r.maxTokens)*4], false
}

func chatChoice(b []byte, i int, text, finish string) []byte {
	return fmt.Appendf(b, `{"index":%d,"message":{"role":"assistant","content":%s,"refusal":null},"logprobs":null,"finish_reason":"%s"}`,
		i, quote(text), finish)
}

func completionChoice(b []byte, i int, text, finish string) []byte {
	return fmt.Appendf(b, `{"text":%s,"index":%d,"logprobs":null,"finish_reason":"%s"}`, quote(text), i, finish)
}

func (r request) completionBody(id string, now time.Time, prefix, object string, choice func([]byte, int, string, string) []byte) []byte {
	b := fmt.Appendf(make([]byte, 0, 768), `{"id":"%s%s","object":"%s","created":%d,"model":%s,"choices":[`,
		prefix, id, object, now.Unix(), quote(r.model))
	written := 0
	for i, prompt := range r.texts {
		if i > 0 {
			b = append(b, ',')
		}
		text, whole := r.write(prompt)
		finish := "stop"
		if !whole {
			finish = "length"
		}
		written += tokensOf(len(text))
		b = choice(b, i, text, finish)
	}
	read := tokensOf(r.chars)
	return fmt.Appendf(b, `],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}},"system_fingerprint":"sim"}`,
		read, written, read+written)
}

func (r request) responseBody(id string, now time.Time) []byte {
	text, whole := r.write(r.texts[0])
	status, incomplete := "completed", "null"
	if !whole {
		status, incomplete = "incomplete", `{"reason":"max_output_tokens"}`
	}
	read, written := tokensOf(r.chars), tokensOf(len(text))
	return fmt.Appendf(make([]byte, 0, 768), `{"id":"resp_%s","object":"response","created_at":%d,"status":"%s","error":null,`+
		`"incomplete_details":%s,"model":%s,"output":[{"type":"message","id":"msg_%s","status":"%s","role":"assistant",`+
		`"content":[{"type":"output_text","text":%s,"annotations":[]}]}],"usage":{"input_tokens":%d,`+
		`"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},`+
		`"total_tokens":%d},"system_fingerprint":"sim"}`,
		id, now.Unix(), status, incomplete, quote(r.model), id, status, quote(text), read, written, read+written)
}

// messageBody is an answer in Anthropic's dialect.
func (r request) messageBody(id string) []byte {
	text, whole := r.write(r.texts[0])
	reason := "end_turn"
	if !whole {
		reason = "max_tokens"
	}
	return fmt.Appendf(make([]byte, 0, 512), `{"id":"msg_%s","type":"message","role":"assistant","model":%s,`+
		`"content":[{"type":"text","text":%s}],"stop_reason":"%s","stop_sequence":null,`+
		`"usage":{"input_tokens":%d,"output_tokens":%d}}`,
		id, quote(r.model), quote(text), reason, tokensOf(r.chars), tokensOf(len(text)))
}

func (r request) embeddingBody() []byte {
	b := []byte(`{"object":"list","data":[`)
	for i, text := range r.texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"object":"embedding","index":%d,"embedding":`, i)
		b = r.appendVector(b, Embedding(text))
		b = append(b, '}')
	}
	read := tokensOf(r.chars)
	return fmt.Appendf(b, `],"model":%s,"usage":{"prompt_tokens":%d,"total_tokens":%d},"system_fingerprint":"sim"}`,
		quote(r.model), read, read)
}

func (r request) appendVector(b []byte, v []float32) []byte {
	if r.base64 {
		return append(append(append(b, '"'), base64Floats(v)...), '"')
	}
	for i, x := range v {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendFloat(b, float64(x), 'g', -1, 32)
	}
	return append(b, ']')
}

// quote makes any string valid JSON, whatever bytes it has.
func quote(s string) []byte { return gjson.AppendJSONString(nil, s) }

func (v Verdict) addHeaders(h http.Header) {
	if v.HasRetryAfter {
		h["Retry-After"] = []string{strconv.FormatInt(int64(roundUp(v.RetryAfter, time.Second)/time.Second), 10)}
		if v.RetryAfterMS {
			h["Retry-After-Ms"] = []string{strconv.FormatInt(v.RetryAfter.Milliseconds(), 10)}
		}
	}
	if v.HasHeaders {
		v.Requests.addHeaders(h, "Requests")
		v.Tokens.addHeaders(h, "Tokens")
	}
}

// addHeaders takes the canonical spelling, which Header.Set would look for at
// each call.
func (q Quota) addHeaders(h http.Header, dim string) {
	if q.Limit == 0 {
		return
	}
	h["X-Ratelimit-Limit-"+dim] = []string{whole(q.Limit)}
	h["X-Ratelimit-Remaining-"+dim] = []string{whole(q.Remaining)}
	h["X-Ratelimit-Reset-"+dim] = []string{spell(q.Reset)}
}

// whole rounds down: a remainder is never promised that is not there.
func whole(x float64) string { return strconv.FormatInt(int64(x+epsilon), 10) }

// spell is a duration as OpenAI prints it, in milliseconds rounded up: 12ms,
// 1s, 6m0s.
func spell(d time.Duration) string {
	const ms = time.Millisecond
	return ((d + ms - 1) / ms * ms).String()
}

// errorBody is OpenAI's error object; an empty param or code is null.
func errorBody(message, kind, param, code string) []byte {
	orNull := func(s string) []byte {
		if s == "" {
			return []byte("null")
		}
		return quote(s)
	}
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`,
		quote(message), quote(kind), orNull(param), orNull(code))
}

const invalidRequest = "invalid_request_error"

func (v Verdict) errorBody(r request) []byte {
	switch v.Kind {
	case RateLimited, TooLarge:
		return errorBody(v.limitMessage(r), string(v.Dimension), "", "rate_limit_exceeded")
	case InsufficientQuota:
		return errorBody("You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
			"insufficient_quota", "", "insufficient_quota")
	case Unauthorized:
		return errorBody("Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
			invalidRequest, "", "invalid_api_key")
	case ModelNotFound:
		return errorBody(fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", r.model),
			invalidRequest, "", "model_not_found")
	case BadRequest:
		if r.complaint == "" {
			r.complaint = "The simulated provider was told to refuse this request."
		}
		return errorBody(r.complaint, invalidRequest, r.param, "")
	case Overloaded:
		return errorBody("The engine is currently overloaded, please try again later.", "server_error", "", "server_is_overloaded")
	default:
		return errorBody("The server had an error while processing your request. Sorry about that!", "server_error", "", "")
	}
}

// limitMessage is worded as OpenAI's, which clients parse: Used is the limit
// less what is left, rounded up as the remainder is rounded down.
func (v Verdict) limitMessage(r request) string {
	q, requested, short := v.Requests, 1.0, "RPM"
	if v.Dimension == Tokens {
		q, requested, short = v.Tokens, r.charge(), "TPM"
	}
	on := fmt.Sprintf("for %s in organization org-sim on %s per min (%s): Limit %s", r.model, v.Dimension, short, whole(q.Limit))
	if v.Kind == TooLarge {
		return fmt.Sprintf("Request too large %s, Requested %s. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
			on, whole(requested))
	}
	if v.Terse {
		return "Rate limit reached. Please slow down."
	}
	used := int64(q.Limit+epsilon) - int64(q.Remaining+epsilon)
	return fmt.Sprintf("Rate limit reached %s, Used %d, Requested %s. Please try again in %s.",
		on, used, whole(requested), spell(v.Wait))
}

func modelList(models []string, now time.Time) []byte {
	if len(models) == 0 {
		models = []string{"sim"}
	}
	entries := make([]string, len(models))
	for i, m := range models {
		entries[i] = fmt.Sprintf(`{"id":%s,"object":"model","created":%d,"owned_by":"sim"}`, quote(m), now.Unix())
	}
	return []byte(`{"object":"list","data":[` + strings.Join(entries, ",") + `]}`)
}
