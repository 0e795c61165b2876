package provider_test

import (
	"math/rand/v2"
	"testing"

	"github.com/headrace/headrace/provider"
)

// Usage is read from every provider's shape into one convention: cached tokens are part
// of the input, reasoning tokens part of the output. If there is a total, its excess over its
// parts shows which counts are not in them.
func TestUsage(t *testing.T) {
	type u = provider.Usage
	for _, c := range []struct {
		members string
		want    *u
	}{
		{`"usage":{"prompt_tokens":9,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}`, &u{InputTokens: 9, OutputTokens: 12, CachedTokens: 4, ReasoningTokens: 5}},
		{`"usage":{"prompt_tokens":90,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":80}}`, &u{InputTokens: 90, OutputTokens: 12, CachedTokens: 4, CacheWriteTokens: 80}},
		{`"usage":{"input_tokens":90,"output_tokens":12,"total_tokens":102,"input_tokens_details":{"cache_write_tokens":80,"cached_tokens":4}}`, &u{InputTokens: 90, OutputTokens: 12, CachedTokens: 4, CacheWriteTokens: 80}},
		{`"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":24,"cache_read_input_tokens":10,"output_tokens_details":{"reasoning_tokens":7}}`, &u{InputTokens: 15, OutputTokens: 9, CachedTokens: 10, ReasoningTokens: 7}},
		{`"usage":{"input_tokens":9,"output_tokens":12,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":5}}`, &u{InputTokens: 9, OutputTokens: 12, CachedTokens: 4, ReasoningTokens: 5}},
		{`"usage":{"prompt_tokens":10,"prompt_cache_hit_tokens":6,"prompt_tokens_details":{"cached_tokens":6},"completion_tokens":1}`, &u{InputTokens: 10, OutputTokens: 1, CachedTokens: 6}},
		{`"usage":{"prompt_tokens":19,"completion_tokens":13,"total_tokens":32,"cached_tokens":12}`, &u{InputTokens: 19, OutputTokens: 13, CachedTokens: 12}},
		{`"usage":{"prompt_tokens":19,"completion_tokens":13,"cached_tokens":3,"prompt_tokens_details":{"cached_tokens":12}}`, &u{InputTokens: 19, OutputTokens: 13, CachedTokens: 12}},
		{`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":7}}`, &u{InputTokens: 5, OutputTokens: 9, ReasoningTokens: 7}},
		{`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":1}}`, &u{InputTokens: 5, OutputTokens: 2, ReasoningTokens: 1}},
		{`"usage":{"inputTokens":18,"outputTokens":2,"totalTokens":20,"cacheReadInputTokens":10,"cacheWriteInputTokens":3}`, &u{InputTokens: 18, OutputTokens: 2, CachedTokens: 10, CacheWriteTokens: 3}},
		{`"usage":{"inputTokens":5,"outputTokens":2,"totalTokens":20,"cacheReadInputTokens":10,"cacheWriteInputTokens":3}`, &u{InputTokens: 18, OutputTokens: 2, CachedTokens: 10, CacheWriteTokens: 3}},
		{`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":3}}`, &u{InputTokens: 5, OutputTokens: 9, CachedTokens: 3}},
		{`"usage":{"tokens":{"input_tokens":71,"output_tokens":15},"billed_units":{"input_tokens":5,"output_tokens":10}}`, &u{InputTokens: 71, OutputTokens: 15}},
		{`"usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":3}`, &u{InputTokens: 125, OutputTokens: 3, CachedTokens: 100, CacheWriteTokens: 20}},
		{`"usage":{"prompt_tokens":5,"completion_tokens":2,"completion_tokens_details":{"reasoning_tokens":7}}`, &u{InputTokens: 5, OutputTokens: 7, ReasoningTokens: 7}},
		{`"usage":null,"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"thoughtsTokenCount":7}`, &u{InputTokens: 5, OutputTokens: 9, ReasoningTokens: 7}},
		{`"usage":{"inputTokens":5,"outputTokens":2,"cacheReadInputTokens":10,"cacheWriteInputTokens":3}`, &u{InputTokens: 18, OutputTokens: 2, CachedTokens: 10, CacheWriteTokens: 3}},
		{`"usage":{"prompt_tokens":18446744073709551621,"completion_tokens":1.9e1}`, &u{InputTokens: 1 << 40, OutputTokens: 19}},
		{`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":14}`, &u{InputTokens: 5, OutputTokens: 9}},
		{`"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":3}`, &u{InputTokens: 5, OutputTokens: 2}},
		{`"usage":{"billed_units":{"input_tokens":5,"output_tokens":10}}`, &u{InputTokens: 5, OutputTokens: 10}},
		{`"usage":{"prompt_tokens":-3,"completion_tokens":1e300}`, &u{OutputTokens: 1 << 40}},
		{`"usage":{"prompt_tokens":8,"total_tokens":8}`, &u{InputTokens: 8}},
		{`"prompt_eval_count":26,"eval_count":298`, &u{InputTokens: 26, OutputTokens: 298}},
		{`"x":{"usage":{"prompt_tokens":9}}`, nil},
		{`"usage":{"prompt_tokens":"9"}`, &u{}},
		{`"usage":[{"prompt_tokens":9}]`, nil},
		{`"usage":{"total_tokens":8}`, nil},
		{`"eval_count":298`, &u{OutputTokens: 298}},
		{`"usage":null`, nil},
		{`"usage":{}`, nil},
	} {
		reply, e := provider.ReplyOf(200, nil, []byte(`{"choices":[{"index":0}],`+c.members+`}`))
		if c.want == nil && reply.Usage != (u{}) || e != nil || reply.HasUsage != (c.want != nil) || c.want != nil && reply.Usage != *c.want {
			t.Errorf("%s: %+v, %v, %v, want %+v", c.members, reply.Usage, reply.HasUsage, e, c.want)
		}
	}
	for _, none := range []string{``, `{}`, `[]`, `nonsense`, `[{"choices":[1],"usage":{"prompt_tokens":9}}]`} {
		if reply, _ := provider.ReplyOf(200, nil, []byte(none)); reply.HasUsage {
			t.Errorf("%s: %+v", none, reply.Usage)
		}
	}
}

// The finish reason is read from every shape.
func TestFinish(t *testing.T) {
	for body, want := range map[string]string{
		`{"choices":[{"finish_reason":"length"},{"finish_reason":"stop"}]}`:           "length",
		`{"stop_reason":"max_tokens"}`:                                                "max_tokens",
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`: "max_output_tokens",
		`{"candidates":[{"finishReason":"STOP"}]}`:                                    "STOP",
		`{"output":{"message":{}},"stopReason":"end_turn"}`:                           "end_turn",
		`{"message":{"role":"assistant"},"finish_reason":"COMPLETE"}`:                 "COMPLETE",
		`{"message":{"role":"assistant"},"done_reason":"stop"}`:                       "stop",
		`{"choices":[{"finish_reason":null}]}`:                                        "", `{}`: "", ``: "",
	} {
		if reply, _ := provider.ReplyOf(200, nil, []byte(body)); reply.Finish != want {
			t.Errorf("%s: %q, want %q", body, reply.Finish, want)
		}
	}
}

// What an end means is known in whatever letters a provider writes it, and of no other
// word anything is made.
func TestFinishKind(t *testing.T) {
	for finish, want := range map[string]provider.Kind{
		"length": provider.Truncated, "max_tokens": provider.Truncated, "max_output_tokens": provider.Truncated,
		"MAX_TOKENS": provider.Truncated, "model_length": provider.Truncated, "model_context_window_exceeded": provider.Truncated,
		"content_filter": provider.Refused, "refusal": provider.Refused, "content_filtered": provider.Refused, "guardrail_intervened": provider.Refused,
		"SAFETY": provider.Refused, "RECITATION": provider.Refused, "LANGUAGE": provider.Refused, "BLOCKLIST": provider.Refused,
		"PROHIBITED_CONTENT": provider.Refused, "SPII": provider.Refused, "IMAGE_SAFETY": provider.Refused, "IMAGE_RECITATION": provider.Refused,
		"stop": provider.Unknown, "STOP": provider.Unknown, "": provider.Unknown, "OTHER": provider.Unknown, "NO_IMAGE": provider.Unknown,
		"MALFORMED_FUNCTION_CALL": provider.Unknown, "tool_use": provider.Unknown, "COMPLETE": provider.Unknown, "ERROR": provider.Unknown,
	} {
		if got, marked := provider.FinishKind(finish); got != want || marked != (want != provider.Unknown) {
			t.Errorf("%q: %v, %v, want %v", finish, got, marked, want)
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

// Whatever counts a provider tells, in any combination, no part is more than its whole,
// and nothing is negative or beyond the bound of sums.
func TestUsageIsSane(t *testing.T) {
	names := []string{
		"prompt_tokens", "completion_tokens", "total_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
		"thoughtsTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "output_tokens",
	}
	numbers := []string{"0", "1", "7", "-5", "1e300", "99999999999999999999", "null", `"3"`}
	rng := rand.New(rand.NewPCG(3, 3))
	for range 20_000 {
		body := `{"choices":[1],"usage":{"x":0`
		for _, name := range names {
			if rng.IntN(2) == 0 {
				body += `,"` + name + `":` + numbers[rng.IntN(len(numbers))]
			}
		}
		reply, e := provider.ReplyOf(200, nil, []byte(body+"}}"))
		u := reply.Usage
		if e != nil || u.CachedTokens > u.InputTokens || u.ReasoningTokens > u.OutputTokens || min(u.CachedTokens, u.ReasoningTokens) < 0 ||
			max(u.InputTokens, u.OutputTokens) > 1<<43 {
			t.Fatalf("%s: %+v, %v", body, u, e)
		}
	}
}
