package provider_test

import (
	"testing"

	"github.com/headrace/headrace/provider"
)

// Usage is read from every provider's shape into the same convention: cached
// tokens are part of the input, reasoning tokens part of the output.
func TestUsageOf(t *testing.T) {
	for body, want := range map[string]*provider.Usage{
		`{"usage":{"prompt_tokens":9,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}}`: {InputTokens: 9, OutputTokens: 12, CachedTokens: 4, ReasoningTokens: 5},
		`{"usage":{"input_tokens":9,"output_tokens":12,"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":5}}}`:           {InputTokens: 9, OutputTokens: 12, CachedTokens: 4, ReasoningTokens: 5},
		`{"data":[],"usage":{"prompt_tokens":8,"total_tokens":8}}`:                                                                                            {InputTokens: 8},
		`{"usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":3}}`:                                       {InputTokens: 125, OutputTokens: 3, CachedTokens: 100},
		`{"usage":{"prompt_tokens":10,"prompt_cache_hit_tokens":6,"prompt_tokens_details":{"cached_tokens":6},"completion_tokens":1}}`:                        {InputTokens: 10, OutputTokens: 1, CachedTokens: 6},
		`{"usage":{"prompt_tokens":-3,"completion_tokens":1e300}}`:                                                                                            {OutputTokens: 1 << 40},
		`{"usage":{"prompt_tokens":"9"}}`:             {},
		`{"choices":[{"usage":{"prompt_tokens":9}}]}`: nil,
		`{"usage":null}`:                              nil, `{"usage":{}}`: nil, `{}`: nil, ``: nil, `[]`: nil, `nonsense`: nil,
	} {
		got, ok := provider.UsageOf([]byte(body))
		if ok != (want != nil) || want != nil && got != *want {
			t.Errorf("%s: %+v, %v, want %+v", body, got, ok, want)
		}
	}
}

// The finish reason is read from every shape, and its meaning is known.
func TestFinishOf(t *testing.T) {
	for body, want := range map[string]string{
		`{"choices":[{"finish_reason":"length"},{"finish_reason":"stop"}]}`:           "length",
		`{"stop_reason":"max_tokens"}`:                                                "max_tokens",
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`: "max_output_tokens",
		`{"choices":[{"finish_reason":null}]}`:                                        "", `{}`: "", ``: "",
	} {
		if got := provider.FinishOf([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	for finish, want := range map[string]provider.Kind{
		"length": provider.Truncated, "max_tokens": provider.Truncated, "max_output_tokens": provider.Truncated,
		"content_filter": provider.Refused, "refusal": provider.Refused, "stop": provider.Unknown, "": provider.Unknown,
	} {
		if got, marked := provider.FinishKind(finish); got != want || marked != (want != provider.Unknown) {
			t.Errorf("%q: %v, %v, want %v", finish, got, marked, want)
		}
	}
}
