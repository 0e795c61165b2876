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

// What an answer says that it cost is read in each provider's own unit, and so is the tier in
// which it was served. Nonsense is no cost.
func TestReportedCost(t *testing.T) {
	const tokens = `"prompt_tokens":9,"completion_tokens":3`
	for members, want := range map[string]provider.Usage{
		`"usage":{` + tokens + `,"cost":0.95}`: {Told: 950_000_000_000, HasTold: true},
		`"usage":{` + tokens + `,"cost":0}`:    {HasTold: true},
		`"usage":{` + tokens + `,"cost":0.000014,"is_byok":false,"cost_details":{"upstream_inference_cost":19}}`:         {Told: 14_000_000, HasTold: true},
		`"usage":{` + tokens + `,"cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":0.25}}`:             {Told: 750_000_000_000, HasTold: true},
		`"usage":{` + tokens + `,"cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":null}}`:             {Told: 500_000_000_000, HasTold: true},
		`"usage":{` + tokens + `,"cost_in_usd_ticks":37756000}`:                                                          {Told: 3_775_600_000, HasTold: true},
		`"usage":{` + tokens + `,"cost":{"input_tokens_cost":0.1,"total_cost":0.005}}`:                                   {Told: 5_000_000_000, HasTold: true},
		`"usage":{` + tokens + `,"cost":-1}`:                                                                             {},
		`"usage":{` + tokens + `,"cost":1e300}`:                                                                          {},
		`"usage":{` + tokens + `,"cost":"0.5"}`:                                                                          {},
		`"usage":{` + tokens + `,"cost":null}`:                                                                           {},
		`"service_tier":"flex","usage":{` + tokens + `}`:                                                                 {Tier: provider.FlexTier},
		`"service_tier":"default","usage":{` + tokens + `}`:                                                              {},
		`"service_tier":null,"usage":{` + tokens + `}`:                                                                   {},
		`"service_tier":"priority","usage":{` + tokens + `}`:                                                             {Tier: provider.PriorityTier},
		`"service_tier":"scale","usage":{` + tokens + `}`:                                                                {Tier: provider.OtherTier},
		`"serviceTier":{"type":"flex"},"usage":{` + tokens + `}`:                                                         {Tier: provider.FlexTier},
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"serviceTier":"flex"}`:                           {Tier: provider.FlexTier},
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"trafficType":"ON_DEMAND"}`:                      {},
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"trafficType":"ON_DEMAND_FLEX"}`:                 {Tier: provider.FlexTier},
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"trafficType":"ON_DEMAND_PRIORITY"}`:             {Tier: provider.PriorityTier},
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"serviceTier":"flex","trafficType":"ON_DEMAND"}`: {Tier: provider.FlexTier},
		`"usageMetadata":{"trafficType":"ON_DEMAND","serviceTier":"flex","promptTokenCount":9,"candidatesTokenCount":3}`: {Tier: provider.FlexTier},
		`"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"trafficType":"PROVISIONED_THROUGHPUT"}`:         {Tier: provider.OtherTier},
		`"usage":{` + tokens + `,"service_tier":"batch"}`:                                                                {Tier: provider.BatchTier},
		`"usage":{` + tokens + `,"service_tier":"standard"}`:                                                             {},
	} {
		want.InputTokens, want.OutputTokens = 9, 3
		reply, e := provider.ReplyOf(200, nil, []byte(`{"choices":[{"index":0}],`+members+`}`))
		if e != nil || reply.Usage != want {
			t.Errorf("%s: %+v, %v, want %+v", members, reply.Usage, e, want)
		}
	}
	u, _ := provider.UsageIn([]byte(`{"input_tokens":5,"cache_creation_input_tokens":20,"cache_creation":{"ephemeral_5m_input_tokens":12,"ephemeral_1h_input_tokens":8},"output_tokens":3,"service_tier":"priority"}`))
	if want := (provider.Usage{InputTokens: 25, OutputTokens: 3, CacheWriteTokens: 20, LongWriteTokens: 8, Tier: provider.PriorityTier}); u != want {
		t.Errorf("%+v, want %+v", u, want)
	}
}

// Converse lists what was written to a cache by the time for which it is kept: an hour costs more.
func TestConverseWritesForAnHour(t *testing.T) {
	for details, want := range map[string]int64{
		`[{"ttl":"1h","inputTokens":8}]`:                               8,
		`[{"ttl":"5m","inputTokens":12},{"inputTokens":8,"ttl":"1h"}]`: 8,
		`[{"ttl":"1h","inputTokens":3},{"ttl":"1h","inputTokens":4}]`:  7,
		`[{"ttl":"5m","inputTokens":20}]`:                              0,
		`[]`:                                                           0,
		`{"ttl":"1h"}`:                                                 0,
		`null`:                                                         0,
	} {
		u, _ := provider.UsageIn([]byte(`{"inputTokens":5,"outputTokens":3,"totalTokens":28,"cacheWriteInputTokens":20,"cacheDetails":` + details + `}`))
		if want := (provider.Usage{InputTokens: 25, OutputTokens: 3, CacheWriteTokens: 20, LongWriteTokens: want}); u != want {
			t.Errorf("%s: %+v, want %+v", details, u, want)
		}
	}
}

// A sum knows its cost if all of its parts do, and its tier if they share one. The zero value
// adds nothing.
func TestUsageAdds(t *testing.T) {
	type u = provider.Usage
	priced, untold := u{InputTokens: 1, Told: 5, HasTold: true}, u{InputTokens: 2}
	for _, tt := range []struct{ a, b, want u }{
		{priced, priced, u{InputTokens: 2, Told: 10, HasTold: true}},
		{priced, untold, u{InputTokens: 3}},
		{priced, u{}, priced},
		{u{InputTokens: 1, Told: 1 << 62, HasTold: true}, u{InputTokens: 1, Told: 1 << 62, HasTold: true}, u{InputTokens: 2, Told: 1<<63 - 1, HasTold: true}},
		{u{InputTokens: 1, Tier: provider.FlexTier}, u{InputTokens: 1, Tier: provider.FlexTier}, u{InputTokens: 2, Tier: provider.FlexTier}},
		{u{InputTokens: 1, Tier: provider.FlexTier}, untold, u{InputTokens: 3, Tier: provider.MixedTier}},
		{u{CacheWriteTokens: 3, LongWriteTokens: 2}, u{CacheWriteTokens: 4, LongWriteTokens: 1}, u{CacheWriteTokens: 7, LongWriteTokens: 3}},
	} {
		if got := tt.a.Add(tt.b); got != tt.want {
			t.Errorf("%+v + %+v = %+v, want %+v", tt.a, tt.b, got, tt.want)
		}
		if got := tt.b.Add(tt.a); got != tt.want {
			t.Errorf("%+v + %+v = %+v, want %+v", tt.b, tt.a, got, tt.want)
		}
	}
}
