package provider

import (
	"github.com/tidwall/gjson"
)

// maxTokenCount bounds a reported count: far over any model's context, far
// under where sums over millions of items overflow an int64.
const maxTokenCount = 1 << 40

// Usage counts the tokens of one call. CachedTokens are part of InputTokens and
// ReasoningTokens part of OutputTokens, whatever the provider's own convention.
type Usage struct{ InputTokens, OutputTokens, CachedTokens, ReasoningTokens int64 }

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.ReasoningTokens += v.ReasoningTokens
	return u
}

// UsageOf reads the usage from a body in the shape of chat completions,
// completions, embeddings, Responses or Anthropic's messages. It is false if
// the body reports none.
func UsageOf(body []byte) (Usage, bool) { return usageIn(gjson.GetBytes(body, "usage")) }

// usageIn reads the usage from the value of that name.
func usageIn(v gjson.Result) (Usage, bool) {
	var (
		u      Usage
		beside int64 // read from or written to a cache, counted outside input_tokens
		seen   bool
	)
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens", "input_tokens":
			u.InputTokens, seen = count(value), true
		case "completion_tokens", "output_tokens":
			u.OutputTokens, seen = count(value), true
		case "prompt_tokens_details", "input_tokens_details":
			u.CachedTokens = max(u.CachedTokens, count(value.Get("cached_tokens")))
		case "completion_tokens_details", "output_tokens_details":
			u.ReasoningTokens = count(value.Get("reasoning_tokens"))
		case "prompt_cache_hit_tokens": // DeepSeek, a part of prompt_tokens
			u.CachedTokens = max(u.CachedTokens, count(value))
		case "cache_read_input_tokens": // Anthropic, beside input_tokens
			u.CachedTokens = max(u.CachedTokens, count(value))
			beside += count(value)
		case "cache_creation_input_tokens":
			beside += count(value)
		}
		return true
	})
	u.InputTokens += beside
	return u, seen
}

// count reads a token count; what is not a number, or negative, is 0.
func count(v gjson.Result) int64 {
	if v.Type != gjson.Number {
		return 0
	}
	return int64(min(max(v.Num, 0), maxTokenCount))
}

// FinishOf reads why the answer ended, in the provider's own word: the first
// choice's finish_reason, Anthropic's stop_reason, or the reason for which a
// Responses answer is incomplete. It is "" if the body does not say.
func FinishOf(body []byte) string {
	for _, path := range [...]string{"choices.0.finish_reason", "stop_reason", "incomplete_details.reason"} {
		if v := gjson.GetBytes(body, path); v.Type == gjson.String && v.Str != "" {
			return clip(v.Str, maxWord)
		}
	}
	return ""
}

// FinishKind says whether a finish reason marks the answer as Truncated or
// Refused; both are answers all the same. It is false for every other reason.
func FinishKind(finish string) (Kind, bool) {
	switch finish {
	case "length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded":
		return Truncated, true
	case "content_filter", "refusal", "safety":
		return Refused, true
	}
	return Unknown, false
}
