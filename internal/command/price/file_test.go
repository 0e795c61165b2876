package price

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
)

// A file of litellm's is read as it comes: prices for a token become prices for a million, with
// steps, tiers and caches, by each vendor's own names. What is not paid by the token of text has
// no price.
func TestLitellmFile(t *testing.T) {
	const file = `{
	"sample_spec": {"litellm_provider": "one of https://docs.litellm.ai/docs/providers", "input_cost_per_token": 0.0, "mode": "one of: chat, embedding"},
	"gpt-x": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-07, "output_cost_per_token": 2e-06, "cache_read_input_token_cost": 2.5e-08,
		"input_cost_per_token_flex": 1.25e-07, "output_cost_per_token_flex": 1e-06, "cache_read_input_token_cost_flex": 1.25e-08,
		"input_cost_per_token_priority": 4.5e-07, "output_cost_per_token_priority": 3.6e-06, "supports_vision": true, "supported_regions": ["eu"]},
	"claude-x": {"litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07,
		"cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06, "input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05},
	"vertex_ai/claude-x": {"litellm_provider": "vertex_ai-anthropic_models", "mode": "chat", "input_cost_per_token": 3.3e-06, "output_cost_per_token": 1.65e-05},
	"azure/gpt-x": {"litellm_provider": "azure", "mode": "chat", "input_cost_per_token": 9e-06, "output_cost_per_token": 9e-06},
	"us.anthropic.claude-x-v1:0": {"litellm_provider": "bedrock_converse", "mode": "chat", "input_cost_per_token": 4e-06, "output_cost_per_token": 4e-06},
	"openrouter/anthropic/claude-x": {"litellm_provider": "openrouter", "mode": "chat", "input_cost_per_token": 5e-06, "output_cost_per_token": 5e-06},
	"embed-x": {"litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 2e-08},
	"thinks": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06, "output_cost_per_reasoning_token": 3e-06},
	"null-x": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": null, "output_cost_per_token": 2e-06},
	"text-x": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": "2e-06"},
	"draws": {"litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 0.06}
	}`
	for _, tt := range []struct {
		vendor, model string
		usage         provider.Usage
		want          float64 // USD; below 0: unknown
	}{
		{"openai", "gpt-x", provider.Usage{InputTokens: 1e6, CachedTokens: 4e5, OutputTokens: 1e6}, 0.15 + 0.01 + 2},
		{"openai", "gpt-x-2026-01-02", provider.Usage{InputTokens: 1e6}, 0.25},
		{"openai", "gpt-x", provider.Usage{InputTokens: 1e6, CachedTokens: 4e5, Tier: provider.FlexTier}, 0.075 + 0.005},
		{"openai", "gpt-x", provider.Usage{InputTokens: 1e6, Tier: provider.PriorityTier}, 0.45},
		{"openai", "gpt-x", provider.Usage{InputTokens: 1e6, Tier: provider.OtherTier}, -1},
		{"openai", "claude-x", provider.Usage{InputTokens: 1e6}, -1},
		{"anthropic", "claude-x", provider.Usage{InputTokens: 100_000, CacheWriteTokens: 50_000, LongWriteTokens: 20_000}, 0.15 + 0.1125 + 0.12},
		{"anthropic", "claude-x", provider.Usage{InputTokens: 1e6, CachedTokens: 1e5}, 5.4 + 0.03},
		{"vertex-anthropic", "claude-x", provider.Usage{InputTokens: 1e6}, 3.3},
		{"azure", "gpt-x", provider.Usage{InputTokens: 1e6}, 9},
		{"bedrock", "us.anthropic.claude-x-v1:0", provider.Usage{InputTokens: 1e6}, 4},
		{"openrouter", "anthropic/claude-x", provider.Usage{InputTokens: 1e6}, 5},
		{"generic", "gpt-x", provider.Usage{InputTokens: 1e6}, 0.25},
		{"", "openrouter/anthropic/claude-x", provider.Usage{InputTokens: 1e6}, 5},
		{"openai", "embed-x", provider.Usage{InputTokens: 1e6}, 0.02},
		{"openai", "thinks", provider.Usage{InputTokens: 1e6}, -1},
		{"openai", "null-x", provider.Usage{InputTokens: 1e6}, -1},
		{"openai", "text-x", provider.Usage{OutputTokens: 1e6}, -1},
		{"openai", "draws", provider.Usage{InputTokens: 1e6}, -1},
		{"openai", "sample_spec", provider.Usage{InputTokens: 1e6}, -1},
	} {
		table := givenTable(t, file, "", tt.vendor)
		cost, source, known := table.Cost(tt.model, tt.usage, friday)
		if usd := cost.USD(); known != (tt.want >= 0) || known && (tidy(usd) != tidy(tt.want) || source != FromFile) {
			t.Errorf("%s: %s: %v, %s, %v, want %v", tt.vendor, tt.model, usd, source, known, tt.want)
		}
	}
	table := givenTable(t, file, "", "openai")
	if _, source, _ := table.Of("gpt-4o"); source != FromTable() { // what the file does not know
		t.Error(source)
	}
}

// The data of genai-prices are read as they come, and count for the vendors that they name. A
// server of one's own has the first price of the model in the file.
func TestGenaiFile(t *testing.T) {
	const file = `[
	{"id":"openai","name":"OpenAI","api_pattern":"x","models":[{"id":"gpt-x","match":{"or":[{"equals":"gpt-x"},{"starts_with":"gpt-x-"}]},"context_window":9,
		"prices":{"input_mtok":{"base":1,"tiers":[{"start":200000,"price":2}]},"output_mtok":4,"cache_read_mtok":0.1}}]},
	{"id":"deepseek","models":[{"id":"d","match":{"contains":"deep"},"prices":[{"prices":{"input_mtok":1,"output_mtok":1}},
		{"constraint":{"start_date":"2026-11-27","type":"start_date"},"prices":{"input_mtok":2,"output_mtok":2}},
		{"constraint":{"start_time":"00:30:00Z","end_time":"11:00:00Z","type":"time_of_date"},"prices":{"input_mtok":5,"output_mtok":5}}]}]}
	]`
	for _, tt := range []struct {
		vendor, model string
		input         int64
		want          float64
	}{
		{"openai", "gpt-x-large", 1e5, 0.1},
		{"openai", "gpt-x", 1e6, 2},
		{"azure", "gpt-x", 1e5, 0.1},
		{"vllm", "gpt-x", 1e5, 0.1},
		{"deepseek", "deep-1", 1e6, 2},
		{"openai", "deep-1", 1e6, -1},
		{"", "deep-1", 1e6, 2},
	} {
		table := givenTable(t, file, "", tt.vendor)
		cost, _, known := table.Cost(tt.model, provider.Usage{InputTokens: tt.input}, friday)
		if known != (tt.want >= 0) || known && cost.USD() != tt.want {
			t.Errorf("%s: %s: %v, %v, want %v", tt.vendor, tt.model, cost.USD(), known, tt.want)
		}
	}
}

// A file in no known form is refused, and says which forms there are.
func TestRefusedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	for file, why := range map[string]string{
		`[{"id":"openai"}]`:            "a list of prices is one of providers",
		`[{"models":[]}]`:              "a list of prices is one of providers",
		`[7]`:                          "cannot unmarshal",
		`[]`:                           "it has no model with a price",
		`[{"id":"x","models":[]}]`:     "it has no model with a price",
		`7`:                            "it is neither an object nor a list",
		`{"m":{"input":1,"output":1}`:  "EOF",
		`{"m":{"input":1,"output":1},`: "EOF",
		`{"m":{"litellm_provider":"openai"},"n":7}`: "n: ",
		`[{"id":"x","models":[{"id":"m","match":{"equals":"m"},"prices":[{"constraint":{"type":"weekday"},"prices":{"input_mtok":1,"output_mtok":1}}]}]}]`: `constraint "weekday"`,
	} {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path, "", "openai")
		if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), `: write {"model":{"input":2.5,"output":10}}`) {
			t.Errorf("%s: %v, want %s", file, err, why)
		}
	}
}
