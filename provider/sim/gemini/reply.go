package gemini

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

// Call charges the tokens that are read.
func (r *request) Call() face.Call {
	return face.Call{
		Tokens: max(1, float64(r.Read())),
		Key:    r.key, Keyless: r.key == "", Model: r.Model, Invalid: r.Complaint != "", Stream: r.operation == stream,
	}
}

func answer(status int, body []byte) face.Reply {
	return face.Typed(status, "application/json; charset=UTF-8", body)
}

// Answer returns the body of each operation.
func (r *request) Answer(s face.Stamp) face.Reply {
	switch r.operation {
	case embed:
		return answer(http.StatusOK, r.appendRead(appendVector([]byte(`{"embedding":`), r.First())))
	case embedBatch:
		b := face.Each([]byte(`{"embeddings":[`), r.Texts, func(b []byte, _ int, text string) []byte { return appendVector(b, text) })
		return answer(http.StatusOK, r.appendRead(append(b, ']')))
	}
	whole := r.candidateBody(s)
	if r.operation == stream {
		return r.streamed(whole)
	}
	return answer(http.StatusOK, whole)
}

// appendRead ends an answer of vectors with the number of tokens read.
func (r *request) appendRead(b []byte) []byte {
	return fmt.Appendf(b, `,"usageMetadata":{"promptTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%[1]d}]}}`, r.Read())
}

func appendVector(b []byte, text string) []byte {
	return append(face.AppendVector(append(b, `{"values":`...), text), '}')
}

// candidateBody returns a candidate and its usage. The model's thoughts stand before the answer,
// marked, and are counted separately from it.
func (r *request) candidateBody(s face.Stamp) []byte {
	text, whole := r.Write(r.First())
	finish := "STOP"
	if !whole {
		finish = "MAX_TOKENS"
	}
	read, written, thought, thoughts := r.Read(), face.TokensOf(len(text)), "", ""
	total := read + written
	if r.thinks {
		thinking := "The prompt's checksum is " + face.Checksum(r.First()) + "."
		thought = fmt.Sprintf(`{"text":%s,"thought":true},`, face.Quote(thinking))
		thoughts = fmt.Sprintf(`"thoughtsTokenCount":%d,`, face.TokensOf(len(thinking)))
		total += face.TokensOf(len(thinking))
	}
	body := fmt.Appendf(make([]byte, 0, 1024), `{"candidates":[{"content":{"parts":[%s{"text":%s}],"role":"model"},"finishReason":"%s"`,
		thought, face.Quote(text), finish)
	if !r.vertex {
		body = append(body, `,"index":0`...)
	}
	body = fmt.Appendf(body, `}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,%s"totalTokenCount":%d,`+
		`"promptTokensDetails":[{"modality":"TEXT","tokenCount":%[1]d}]`, read, written, thoughts, total)
	if r.vertex {
		body = fmt.Appendf(body, `,"trafficType":"ON_DEMAND","candidatesTokensDetails":[{"modality":"TEXT","tokenCount":%d}]`, written)
	}
	body = fmt.Appendf(body, `},"modelVersion":%s,`, face.Quote(r.Model))
	if r.vertex {
		body = fmt.Appendf(body, `"createTime":"%s",`, s.Now.UTC().Format(time.RFC3339Nano))
	}
	return fmt.Appendf(body, `"responseId":"%s-%x"}`, s.ID, s.Serial)
}

// streamed turns a whole answer into chunks of its own form: thoughts and text token by token.
// Each chunk of AI Studio has the usage so far; of Vertex only the last one has usage.
func (r *request) streamed(answer []byte) face.Reply {
	whole := gjson.ParseBytes(answer)
	usage, candidate := whole.Get("usageMetadata"), whole.Get("candidates.0")
	commonMembers := fmt.Sprintf(`"modelVersion":%s,`, whole.Get("modelVersion").Raw)
	if created := whole.Get("createTime"); created.Exists() {
		commonMembers += fmt.Sprintf(`"createTime":%s,`, created.Raw)
	}
	commonMembers += `"responseId":` + whole.Get("responseId").Raw
	indexMember := "" // of the only candidate: AI Studio names it, Vertex does not
	if candidate.Get("index").Exists() {
		indexMember = `,"index":0`
	}
	var chunks []string
	written := map[bool]int{} // tokens of thoughts, and of text
	parts := candidate.Get("content.parts").Array()
	for i, part := range parts {
		mark, thought := "", part.Get("thought").Bool()
		if thought {
			mark = `,"thought":true`
		}
		tokens := face.Split(part.Get("text").Str)
		for j, token := range tokens {
			written[thought]++
			counts, finish := r.countsSoFar(usage, written), ""
			if i == len(parts)-1 && j == len(tokens)-1 {
				counts, finish = usage.Raw, fmt.Sprintf(`,"finishReason":%s`, candidate.Get("finishReason").Raw)
			}
			chunks = append(chunks, fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":%s%s}],"role":"model"}%s%s}],"usageMetadata":%s,%s}`,
				face.Quote(token), mark, finish, indexMember, counts, commonMembers))
		}
	}
	failure := strings.TrimSpace(string(fault(http.StatusServiceUnavailable, unavailable, overloaded).Body))
	if r.sse {
		return eventStream(chunks, failure)
	}
	return listStream(chunks, failure)
}

// countsSoFar returns the usage in a chunk before the last one. written holds the tokens so far, of
// thoughts under true and of text under false.
func (r *request) countsSoFar(usage gjson.Result, written map[bool]int) string {
	if r.vertex {
		return `{"trafficType":"ON_DEMAND"}`
	}
	read, thoughts := int(usage.Get("promptTokenCount").Num), ""
	if n := written[true]; n > 0 {
		thoughts = fmt.Sprintf(`"thoughtsTokenCount":%d,`, n)
	}
	return fmt.Sprintf(`{"promptTokenCount":%d,"candidatesTokenCount":%d,%s"totalTokenCount":%d,"promptTokensDetails":%s}`,
		read, written[false], thoughts, read+written[false]+written[true], usage.Get("promptTokensDetails").Raw)
}

// eventStream returns chunks as server-sent events, whose lines Google ends as HTTP does.
func eventStream(chunks []string, failure string) face.Reply {
	event := func(data string) []byte { return []byte("data: " + data + "\r\n\r\n") }
	var pieces [][]byte
	for _, chunk := range chunks {
		pieces = append(pieces, event(chunk))
	}
	return face.Stream(face.EventStream, pieces, event(failure))
}

// listStream returns chunks as one JSON list.
func listStream(chunks []string, failure string) face.Reply {
	var pieces [][]byte
	for i, chunk := range chunks {
		before := ",\r\n"
		if i == 0 {
			before = "["
		}
		pieces = append(pieces, []byte(before+chunk))
	}
	last := len(pieces) - 1
	pieces[last] = append(pieces[last], ']')
	return face.Stream("application/json; charset=UTF-8", pieces, []byte(",\r\n"+failure+"]"))
}

// Google's words for faults.
const (
	invalidArgument   = "INVALID_ARGUMENT"
	permissionDenied  = "PERMISSION_DENIED"
	unauthenticated   = "UNAUTHENTICATED"
	notFound          = "NOT_FOUND"
	resourceExhausted = "RESOURCE_EXHAUSTED"
	internal          = "INTERNAL"
	unavailable       = "UNAVAILABLE"

	overloaded = "The model is overloaded. Please try again later."
)

const typePrefix = `{"@type":"type.googleapis.com/google.rpc.`

// fault returns Google's error object. Details are JSON; empty ones are left out.
func fault(status int, word, message string, details ...string) face.Reply {
	body := fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"status":"%s"`, status, face.Quote(message), word)
	list := ""
	for _, d := range details {
		if d != "" {
			list += "," + d
		}
	}
	if list != "" {
		body = fmt.Appendf(body, `,"details":[%s]`, list[1:])
	}
	return answer(status, append(body, `}}`...))
}

// Refuse returns Google's error object, in AI Studio's words or Vertex'.
func (r *request) Refuse(v face.Verdict, _ face.Stamp) face.Reply {
	switch v.Kind {
	case face.RateLimited, face.TooLarge:
		return r.exhaustedError(v)
	case face.InsufficientQuota:
		return r.noBalance()
	case face.Unauthorized:
		return r.refuseKey()
	case face.ModelNotFound:
		return fault(http.StatusNotFound, notFound, r.noModel())
	case face.BadRequest:
		return fault(http.StatusBadRequest, invalidArgument, cmp.Or(r.Complaint, "The simulated provider was told to refuse this request."), r.detail)
	case face.Overloaded:
		return fault(http.StatusServiceUnavailable, unavailable, overloaded)
	case face.Malformed:
		a := r.broken()
		a.Status = http.StatusOK
		return a
	}
	return r.broken()
}

func (r *request) broken() face.Reply {
	return fault(http.StatusInternalServerError, internal, "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting")
}

// exhaustedError returns the error for an exhausted limit. That of AI Studio names the quota and the
// wait, and that of Vertex names neither.
func (r *request) exhaustedError(v face.Verdict) face.Reply {
	const status = http.StatusTooManyRequests
	if r.vertex {
		return fault(status, resourceExhausted, "Resource exhausted. Please try again later. Please refer to https://cloud.google.com/vertex-ai/generative-ai/docs/error-code-429 for more details.")
	}
	message, quota, wait := "Resource has been exhausted (e.g. check quota).", "", ""
	if !v.Terse {
		message, quota = r.quotaFailure(v)
	}
	if v.HasRetryAfter {
		delay := delayOf(v)
		message += "\nPlease retry in " + delay + "."
		wait = fmt.Sprintf(typePrefix+`RetryInfo","retryDelay":"%s"}`, delay)
	}
	help := ""
	if quota != "" {
		help = typePrefix + `Help","links":[{"description":"Learn more about Gemini API quotas","url":"https://ai.google.dev/gemini-api/docs/rate-limits"}]}`
	}
	return fault(status, resourceExhausted, message, quota, help, wait)
}

// quotaFailure returns the message and the detail that name the exhausted quota and its size.
func (r *request) quotaFailure(v face.Verdict) (message, detail string) {
	metric, id, limit := "generate_requests_per_model", "GenerateRequestsPerMinutePerProjectPerModel", v.Requests.Limit
	if v.Dimension == face.Tokens {
		metric, id, limit = "generate_content_paid_tier_input_token_count", "GenerateContentPaidTierInputTokensPerModelPerMinute", v.Tokens.Limit
	}
	metric = "generativelanguage.googleapis.com/" + metric
	message = fmt.Sprintf("You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. \n* Quota exceeded for metric: %s, limit: %s, model: %s",
		metric, face.Whole(limit), r.Model)
	return message, fmt.Sprintf(typePrefix+`QuotaFailure","violations":[{"quotaMetric":"%s","quotaId":"%s","quotaDimensions":{"location":"global","model":%s},"quotaValue":"%s"}]}`,
		metric, id, face.Quote(r.Model), face.Whole(limit))
}

// delayOf returns the wait in seconds, with a fraction if the server tells milliseconds.
func delayOf(v face.Verdict) string {
	if v.RetryAfterMS {
		return strconv.FormatFloat(v.RetryAfter.Round(time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	}
	return strconv.FormatInt(face.Seconds(v.RetryAfter), 10) + "s"
}

func (r *request) noBalance() face.Reply {
	if r.vertex {
		return fault(http.StatusForbidden, permissionDenied, "This API method requires billing to be enabled. Please enable billing on the project and try again.",
			typePrefix+`ErrorInfo","reason":"BILLING_DISABLED","domain":"googleapis.com","metadata":{"service":"aiplatform.googleapis.com"}}`)
	}
	return fault(http.StatusTooManyRequests, resourceExhausted, "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.")
}

// refuseKey returns the error for a key that is missing or wrong, in the words of the address.
func (r *request) refuseKey() face.Reply {
	switch {
	case r.vertex:
		return fault(http.StatusUnauthorized, unauthenticated, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project.",
			typePrefix+`ErrorInfo","reason":"ACCESS_TOKEN_TYPE_UNSUPPORTED","metadata":{"service":"aiplatform.googleapis.com"}}`)
	case r.key == "":
		return fault(http.StatusForbidden, permissionDenied, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.")
	}
	return fault(http.StatusBadRequest, invalidArgument, "API key not valid. Please pass a valid API key.",
		typePrefix+`ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com","metadata":{"service":"generativelanguage.googleapis.com"}}`)
}

func (r *request) noModel() string {
	if r.vertex {
		return fmt.Sprintf("Publisher Model `%s` was not found or your project does not have access to it. Please ensure you are using a valid model version. For more information, see: https://cloud.google.com/vertex-ai/generative-ai/docs/learn/model-versions", r.resource)
	}
	return fmt.Sprintf("models/%s is not found for API version %s, or is not supported for %s. Call ListModels to see the list of available models and their supported methods.",
		r.Model, strings.TrimSpace(r.version), r.operation)
}

// Tell does nothing: Google has no headers of limits, and names a wait in its details.
func (r *request) Tell(http.Header, face.Verdict, face.Stamp) {}
