package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/providertest"
)

// Classify understands every recording that came whole and needs no dialect's own words,
// without a client.
func TestClassifyRecordings(t *testing.T) {
	for _, c := range providertest.Cases() {
		if !c.Whole || c.Dialect != "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			e := provider.Classify(c.Status, c.Header, c.Body)
			switch {
			case c.Fine && e != nil:
				t.Errorf("a good answer gave %v", e)
			case !c.Fine && e == nil:
				t.Errorf("no error, want kind %v", c.Kind)
			case !c.Fine:
				c.Check(t, e)
			}
			if reply, _ := provider.ReplyOf(c.Status, c.Header, c.Body); c.Fine {
				c.CheckReply(t, reply)
			}
			if c.Limits >= 0 && len(provider.RateLimits(c.Header, time.Now())) != c.Limits {
				t.Errorf("limits %+v, want %d", provider.RateLimits(c.Header, time.Now()), c.Limits)
			}
		})
	}
}

// Every kind but those that no answer has occurs among the recordings.
func TestRecordingsCoverTheKinds(t *testing.T) {
	seen := map[provider.Kind]bool{
		provider.Canceled: true, provider.Truncated: true, provider.Misconfigured: true, // never an answer's
	}
	for _, c := range providertest.Cases() {
		if !c.Fine {
			seen[c.Kind] = true
		}
	}
	for k := provider.Unknown; k <= provider.Misconfigured; k++ {
		if !seen[k] {
			t.Errorf("no recording is of kind %v", k)
		}
	}
}

// A status without any word is classified by the status table.
func TestClassifyByStatusAlone(t *testing.T) {
	for status, want := range map[int]provider.Kind{
		100: provider.Unknown, 302: provider.Unknown, 400: provider.Invalid, 401: provider.Unauthorized,
		402: provider.QuotaExhausted, 404: provider.ModelNotFound, 405: provider.Invalid,
		407: provider.Misconfigured, 408: provider.Timeout, 409: provider.Server, 410: provider.ModelNotFound,
		413: provider.Invalid, 415: provider.Invalid, 422: provider.Invalid, 425: provider.Server,
		429: provider.Throttled, 499: provider.Server, 500: provider.Server, 501: provider.Invalid,
		502: provider.Server, 503: provider.Overloaded, 504: provider.Server, 524: provider.Server,
		529: provider.Overloaded, 0: provider.Unknown, 999: provider.Unknown, -1: provider.Unknown,
	} {
		for _, body := range []string{"", "{}", "[]", "null", `""`, "text", "<html>", `{"error":null}`, `{"error":{}}`} {
			if e := provider.Classify(status, nil, []byte(body)); e == nil || e.Kind != want {
				t.Errorf("%d %q: got %v, want %v", status, body, e, want)
			}
		}
	}
}

// A 403 in JSON is the provider's, and refuses the key. One in another form is that of a
// firewall or proxy on the way, whatever its status means there.
func TestWhoForbids(t *testing.T) {
	for body, want := range map[string]provider.Kind{
		`{"error":{"message":"no access to this model"}}`: provider.Unauthorized,
		`{}`:                           provider.Unauthorized,
		`"forbidden"`:                  provider.Unauthorized,
		"":                             provider.TransportFault,
		"Forbidden":                    provider.TransportFault,
		"<html><title>Blocked</title>": provider.TransportFault,
		`{"error":{"message":"cut o`:   provider.TransportFault,
	} {
		if e := provider.Classify(403, nil, []byte(body)); e.Kind != want {
			t.Errorf("%s: %v, want %v", body, e, want)
		}
	}
	h := http.Header{"X-Amzn-Errortype": {"AccessDeniedException:"}}
	if e := provider.Classify(403, h, nil); e.Kind != provider.Unauthorized {
		t.Errorf("its header names the provider: %v", e)
	}
}

// An error that resembles a known one, and means something else, keeps its kind.
func TestNeighboursKeepTheirKind(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   provider.Kind
	}{
		{400, `{"code":"Client specified an invalid argument","error":"Argument not supported on this model: presencePenalty"}`, provider.Invalid},
		{429, `{"error":"Incorrect API key provided: na***ys."}`, provider.Throttled},
		{500, `{"error":"Incorrect API key provided: na***ys."}`, provider.Server},
		{403, `{"code":"The caller does not have permission to execute the specified operation","error":"Your team has no access to this model."}`, provider.Unauthorized},
		{403, `{"error":{"message":"max_tokens must be less than the context length of the model"}}`, provider.Unauthorized},
		{400, `{"error":{"message":"max_tokens must be less than the context length of the model"}}`, provider.Invalid},
		{403, `{"error":{"message":"The long context window is not part of your plan."}}`, provider.Unauthorized},
		{500, `{"error":{"message":"Input token count must be less than the context length"}}`, provider.Server},
		{403, `{"error":{"message":"Image input is not part of your plan."}}`, provider.Unauthorized},
		{400, `{"error":{"message":"Image input is not supported."}}`, provider.Invalid},
		{403, `{"code":403,"reason":"MODEL_ACCESS_DENIED","message":"no access","metadata":{}}`, provider.Unauthorized},
		{400, `{"code":400,"reason":"INVALID_REQUEST_BODY","message":"the prompt says: not enough balance","metadata":{}}`, provider.Invalid},
		{400, `{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API.","type":"invalid_request_error","code":"invalid_request_error"}}`, provider.Invalid},
		{400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","code":"invalid_request_error"}}`, provider.ModelNotFound},
		{403, `{"error":{"message":"Provider returned error","code":403,"metadata":{"raw":"no access","provider_name":"xAI"}}}`, provider.Unauthorized},
		{400, `{"error":{"message":"not supported","code":"model_not_supported"}}`, provider.Invalid},
	} {
		e := provider.Classify(c.status, nil, []byte(c.body))
		if e.Kind != c.want || e.TooLong() {
			t.Errorf("%d %s: %v, too long: %v, want %v", c.status, c.body, e.Kind, e.TooLong(), c.want)
		}
	}
}

// A request that is too long is called so, whatever status and words say it.
func TestTooLong(t *testing.T) {
	for body, status := range map[string]int{
		`{"error":{"message":"Input token count + max_tokens parameter must be less than the context length of the model being queried."}}`: 403,
		"{\"error\":{\"message\":\"`inputs` tokens + `max_new_tokens` must be <= 4097.\"}}":                                                 422,
		`{"error":{"code":"context_length_exceeded"}}`:                                                                                      400,
		`{"code":"invalid-argument","error":"This model's maximum prompt length is 131072 but the request contains 150000 tokens."}`:        400,
		`{"error":{"code":"1261","message":"Prompt exceeds max length"}}`:                                                                   400,
		`<html><title>413</title>`: 413,
	} {
		if e := provider.Classify(status, nil, []byte(body)); e.Kind != provider.Invalid || !e.TooLong() {
			t.Errorf("%d %s: %v, too long: %v", status, body, e.Kind, e.TooLong())
		}
	}
}

// The codes that mean an empty account are exhausted whatever the status, and
// wherever the code stands.
func TestExhaustedWordsOutweighAll(t *testing.T) {
	for _, word := range []string{
		"insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded",
		"project_spend_limit_exceeded", "organization_usage_limit_exceeded", "billing_hard_limit_reached",
		"enforced_spend_limit_reached",
	} {
		for _, body := range []string{
			`{"error":{"code":%q,"message":"m"}}`, `{"error":{"type":%q,"code":"rate_limit_exceeded"}}`,
			`[{"error":{"type":%q}}]`, `{"code":%q,"message":"m"}`, `{"type":"error","error":{"type":%q}}`,
		} {
			body = fmt.Sprintf(body, word)
			for _, status := range []int{400, 402, 403, 429, 503} {
				e := provider.Classify(status, http.Header{"Retry-After": {"5"}, "X-Should-Retry": {"true"}}, []byte(body))
				if e.Kind != provider.QuotaExhausted {
					t.Errorf("%d %s: %v, want quota_exhausted", status, body, e.Kind)
				}
			}
		}
	}
}

// x-should-retry turns the status around, but not an empty account, a refused
// key that is named, or a filter.
func TestShouldRetry(t *testing.T) {
	for _, c := range []struct {
		status       int
		should, body string
		want         provider.Kind
	}{
		{400, "true", ``, provider.Server},
		{500, "false", ``, provider.Invalid},
		{429, "false", `{"error":{"type":"rate_limit_error"}}`, provider.Invalid},
		{529, "false", ``, provider.Invalid},
		{429, "true", ``, provider.Throttled},
		{401, "true", `{"error":{"code":"invalid_api_key"}}`, provider.Unauthorized},
		{401, "false", ``, provider.Unauthorized},
		{400, "true", `{"error":{"code":"content_filter"}}`, provider.Refused},
		{429, "false", `{"error":{"code":"insufficient_quota"}}`, provider.QuotaExhausted},
		{500, "maybe", ``, provider.Server},
	} {
		e := provider.Classify(c.status, http.Header{"X-Should-Retry": {c.should}}, []byte(c.body))
		if e.Kind != c.want {
			t.Errorf("%d %s %s: %v, want %v", c.status, c.should, c.body, e.Kind, c.want)
		}
	}
}

// The wall of a quota: a daily one is exhausted unless it is over in minutes.
func TestDailyQuota(t *testing.T) {
	const daily = `{"error":{"message":"on tokens per day (TPD): Limit 1000, Used 999, Requested 10."}}`
	for header, want := range map[string]provider.Kind{
		"": provider.QuotaExhausted, "300": provider.Throttled, "301": provider.QuotaExhausted,
	} {
		h := http.Header{}
		if header != "" {
			h.Set("Retry-After", header)
		}
		if e := provider.Classify(429, h, []byte(daily)); e.Kind != want {
			t.Errorf("Retry-After %q: %v, want %v", header, e.Kind, want)
		}
	}
	if e := provider.Classify(429, http.Header{"Retry-After": {"3600"}}, nil); e.Kind != provider.Throttled {
		t.Errorf("an hour without a daily quota: %v, want throttled", e.Kind)
	}
}

// A request over the whole limit is permanent, whether the phrase says so or the
// numbers do; one that only has to wait is not.
func TestRequestTooLarge(t *testing.T) {
	for message, want := range map[string]provider.Kind{
		"Request too large for gpt-4o.":                             provider.Invalid,
		"on tokens per min (TPM): Limit 30000, Requested 30601.":    provider.Invalid,
		"on tokens per min: Limit 30000, Used 29000, Requested 900": provider.Throttled,
		"on tokens per min: Limit 30000, Used 0, Requested 30000":   provider.Throttled,
	} {
		body := fmt.Sprintf(`{"error":{"message":%q,"type":"tokens","code":"rate_limit_exceeded"}}`, message)
		if e := provider.Classify(429, nil, []byte(body)); e.Kind != want {
			t.Errorf("%s: %v, want %v", message, e.Kind, want)
		}
	}
}

// JSON nested a million deep does not exhaust the stack.
func TestDeepJSONIsHarmless(t *testing.T) {
	deep := []byte(strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20))
	for _, status := range []int{200, 500} {
		if e := provider.Classify(status, nil, deep); e == nil {
			t.Errorf("status %d: no error", status)
		}
	}
	deep = []byte(strings.Repeat(`{"error":`, 1<<18) + "1" + strings.Repeat(`}`, 1<<18))
	if e := provider.ClassifyOK(deep); e == nil {
		t.Error("no error")
	}
	provider.ReplyOf(200, nil, deep)
}

// A good answer is nil as a pointer and its parts are not mistaken for errors.
func TestGoodAnswers(t *testing.T) {
	for _, body := range []string{
		`{"choices":[{"message":{"content":"{\"error\":1}"}}]}`,
		`{"error":null,"output":[{}],"status":"completed"}`,
		`{"error":null,"choices":[{}]}`,
		`{"data":[{"embedding":[1]}],"error":null}`,
		`{"type":"message","content":[{"type":"text","text":"error"}],"stop_reason":"end_turn"}`,
		" {\"choices\":[{}]}\r\n",
	} {
		if e := provider.ClassifyOK([]byte(body)); e != nil {
			t.Errorf("%s: %v", body, e)
		}
	}
	for body, want := range map[string]provider.Kind{
		`{"error":{"code":"rate_limit_exceeded"},"output":[{}],"status":"failed"}`: provider.Throttled,
		`{"error":{"type":"invalid_request_error"}}`:                               provider.Invalid,
		`{"error":{"type":"api_error","message":"x"},"type":"error"}`:              provider.Server,
		`{"object":"error","message":"m","code":400}`:                              provider.Invalid,
		`{"error":{"code":"402"}}`:                                                 provider.QuotaExhausted,
		`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}]`:                   provider.Throttled,
		`"text"`: provider.Unknown, `5`: provider.Unknown,
		`null`: provider.EmptyAnswer, `{"error":null,"choices":[]}`: provider.EmptyAnswer, `{"error":null,"output":[],"status":"completed"}`: provider.EmptyAnswer,
	} {
		if e := provider.ClassifyOK([]byte(body)); e == nil || e.Kind != want || e.Status != 200 {
			t.Errorf("%s: %+v, want %v", body, e, want)
		}
	}
}

// A body that holds no answer is none, one that holds any is one, and a model that had
// nothing to say has answered.
func TestEmptyAnswer(t *testing.T) {
	for _, empty := range []string{
		``, ` `, `{}`, `[]`, `[{}]`, `null`, `""`, `{"choices":[]}`, `{"choices":null}`, `{"choices":[null]}`,
		`{"data":[]}`, `{"output":[]}`, `{"output":{}}`, `{"content":""}`, `{"candidates":[]}`, `{"message":"hello"}`, `{"message":{}}`,
		`{"embeddings":[]}`, `{"status":"ok"}`, `{"usage":{"prompt_tokens":9}}`, `{"error":null}`, `{"error":{}}`, `{"code":0,"data":null}`,
		`{"choices":[],"error":[]}`, `{"stop_reason":null,"content":[]}`,
	} {
		e := provider.ClassifyOK([]byte(empty))
		if e == nil || e.Kind != provider.EmptyAnswer || e.Message == "" || e.Status != 200 {
			t.Errorf("%s: %v", empty, e)
		}
	}
	for _, answer := range []string{
		`{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`, `{"data":[0]}`, `{"data":[{"embedding":[]}]}`, `{"content":"x"}`,
		`{"output":{"message":{"content":[]}}}`, `{"candidates":[{"finishReason":"STOP"}]}`, `{"message":{"content":""}}`,
		`{"embeddings":[[0.5]]}`, `{"embedding":[0]}`, `{"results":[{"flagged":false}]}`, `{"response":"x","done":true}`, `{"completion":"x"}`,
		`{"content":[],"stop_reason":"end_turn"}`, `{"output":[],"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`,
	} {
		if e := provider.ClassifyOK([]byte(answer)); e != nil {
			t.Errorf("%s: %v", answer, e)
		}
	}
}

// A refusal of 0 requests a minute is one for ever only where 0 is said: not every
// header that says 0, not with any other status, and not what is left of a limit.
func TestNoQuota(t *testing.T) {
	for name, want := range map[string]provider.Kind{
		"x-ratelimit-limit-req-minute": provider.QuotaExhausted, "x-ratelimit-limit-tokens-minute": provider.QuotaExhausted,
		"x-ratelimit-remaining-req-minute": provider.Throttled, "x-ratelimit-limit-tokens": provider.Throttled,
	} {
		if e := provider.Classify(429, header(name, "0"), nil); e.Kind != want {
			t.Errorf("%s: %v, want %v", name, e, want)
		}
		if e := provider.Classify(500, header(name, "0"), nil); e.Kind != provider.Server {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// One sign is enough where a provider gives several: OpenRouter's reason, the source of
// its limit or the wait alone make a throttle of a 402, and the code or the prose alone
// name a prompt that is too long.
func TestOneSignIsEnough(t *testing.T) {
	for metadata, want := range map[string]provider.Kind{
		`{"reason":"in_flight_budget_exhausted"}`: provider.Throttled, `{"limit_source":"openrouter_in_flight_budget"}`: provider.Throttled,
		`{"retry_after_seconds":3}`: provider.Throttled, `{"retry_after_seconds":-3}`: provider.QuotaExhausted, `{"headers":{"Retry-After":"soon"}}`: provider.QuotaExhausted,
		`{"limit_source":"openrouter_credits"}`: provider.QuotaExhausted, `{"reason":"weight_exceeds_budget","retry_after_seconds":3}`: provider.Invalid,
	} {
		if e := provider.Classify(402, nil, []byte(`{"error":{"code":402,"message":"m","metadata":`+metadata+`}}`)); e.Kind != want {
			t.Errorf("%s: %v, want %v", metadata, e, want)
		}
	}
	for _, body := range []string{
		`{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it"}}`,
		`{"error":{"code":400,"message":"too much","type":"exceed_context_size_error"}}`, `{"message":"Input is too long for requested model."}`,
	} {
		if e := provider.Classify(400, nil, []byte(body)); e.Kind != provider.Invalid || e.Code != "context_length_exceeded" {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

// What a prompt says decides nothing: words of the loud kind count in refusals that
// they come in, and a request that is merely bad stays the item's failure.
func TestLoudWordsOfOtherStatuses(t *testing.T) {
	const body = `{"error":{"message":"experiencing high demand; used all available credits"}}`
	for status, want := range map[int]provider.Kind{
		404: provider.ModelNotFound, 500: provider.Server, 503: provider.Overloaded, 401: provider.Unauthorized, 409: provider.Server,
	} {
		if e := provider.Classify(status, nil, []byte(body)); e.Kind != want {
			t.Errorf("%d: %v, want %v", status, e, want)
		}
	}
	const demand = `{"error":{"message":"experiencing high demand"}}`
	if e := provider.Classify(400, nil, []byte(demand)); e.Kind != provider.Invalid {
		t.Errorf("%v", e)
	}
}
