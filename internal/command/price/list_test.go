package price

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

// Each line of the list reads as a price, or has none. It is dated and credited, and its vendors
// are rows that have models.
func TestBuiltInList(t *testing.T) {
	l := list()
	if _, err := time.Parse(time.DateOnly, AsOf()); err != nil || !strings.HasPrefix(Source(), "@pydantic/genai-prices ") {
		t.Errorf("%q, %q: %v", AsOf(), Source(), err)
	}
	var credit struct{ License string }
	if err := json.Unmarshal(listJSON, &credit); err != nil || !strings.Contains(credit.License, "MIT License") || !strings.Contains(credit.License, "Copyright (c) Pydantic") {
		t.Errorf("%+v, %v", credit, err)
	}
	for name, sources := range l.Vendors {
		if v, ok := catalog.Named(name); !ok || v.Local || len(sources) == 0 {
			t.Errorf("%s: %v, %v", name, v.Name, sources)
		}
		for _, source := range sources {
			if len(l.Models[source]) == 0 {
				t.Errorf("%s: %s has no models", name, source)
			}
		}
	}
	for source, text := range l.Models {
		var models []Listed
		if err := json.Unmarshal(text, &models); err != nil || len(models) == 0 {
			t.Fatalf("%s: %d models, %v", source, len(models), err)
		}
		for _, m := range models {
			if len(m.Match) == 0 || m.Input == nil && (m.Output != nil || m.Above != nil) {
				t.Errorf("%s: %v", source, m.Match)
			}
			if p, fault := m.toPrice(); m.Input != nil && (fault != nil || p.Input <= 0 || p.Cached > p.Input) {
				t.Errorf("%s: %v: %+v: %v", source, m.Match, p, fault)
			}
		}
	}
}

// friday is a day on which no price changes, at an hour without a price of its own.
var friday = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// Each maker's models of today have their price, by each name that a request gives them, and a
// dated build has that of its model.
func TestPricesByName(t *testing.T) {
	for _, tt := range []struct {
		vendor, model string
		input, output float64
		cached, write float64
	}{
		{"vertex-anthropic", "claude-opus-4@20250514", 15, 75, 1.5, 18.75},
		{"vertex-express", "gemini-2.5-flash", 0.3, 2.5, 0.03, 0.3},
		{"openai", "gpt-4o", 2.5, 10, 1.25, 2.5},
		{"openai", "gpt-4o-2024-08-06", 2.5, 10, 1.25, 2.5},
		{"openai", "gpt-4o-2024-05-13", 5, 15, 5, 5},
		{"openai", "GPT-4o-mini", 0.15, 0.6, 0.075, 0.15},
		{"openai", "gpt-5.6-luna", 0.2, 1.2, 0.02, 0.25},
		{"openai", "text-embedding-3-small", 0.02, 0, 0.02, 0.02},
		{"cohere-v2", "embed-v4.0", 0.12, 0, 0.12, 0.12},
		{"gemini", "gemini-embedding-2", 0.2, 0, 0.2, 0.2},
		{"anthropic", "claude-sonnet-4-20250514", 3, 15, 0.3, 3.75},
		{"anthropic", "claude-haiku-4-5-20251001", 1, 5, 0.1, 1.25},
		{"anthropic", "claude-opus-5", 5, 25, 0.5, 6.25},
		{"anthropic", "claude-opus-5-20260901", 5, 25, 0.5, 6.25},
		{"gemini", "gemini-2.5-flash", 0.3, 2.5, 0.03, 0.3},
		{"gemini", "models/gemini-2.5-pro", 1.25, 10, 0.125, 1.25},
		{"vertex", "gemini-2.5-pro-preview-06-05", 1.25, 10, 0.125, 1.25},
		{"google-openai", "gemini-2.5-flash", 0.3, 2.5, 0.03, 0.3},
		{"deepseek", "deepseek-v4-flash", 0.22, 0.66, 0.007, 0.22}, // at noon
		{"mistral", "mistral-medium-latest", 1.5, 7.5, 0.15, 1.5},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.3, 16.5, 0.33, 4.125},
		{"azure", "gpt-4o-mini", 0.15, 0.6, 0.075, 0.15},
		{"generic", "claude-sonnet-4-5", 3, 15, 0.3, 3.75},
	} {
		table := givenTable(t, "", "", tt.vendor)
		p, source, ok := table.Of(tt.model)
		got, _ := p.ratesFor(1, provider.StandardTier, friday)
		got.LongWrite = 0 // the oracle's test has those
		if want := (Rates{Input: tt.input, Output: tt.output, Cached: tt.cached, Write: tt.write}); !ok || source != FromTable() || got != want {
			t.Errorf("%s: %s: %+v, %v, %v, want %+v", tt.vendor, tt.model, got, source, ok, want)
		}
	}
}

// A name that no rule of its vendor has has no price, and nor has a model that is not paid by the
// token of text.
func TestNamesWithoutAPrice(t *testing.T) {
	for of, models := range map[string][]string{
		"openai": {
			"gpt-4o-audio", "gpt-4o-something", "", "openai/gpt-4o", "gpt-4o-2024", "gpt-4o-1924-08-06", "gpt-4o-20240806x", "-20240806", "claude-sonnet-4-5",
			"whisper-1", "omni-moderation-latest", "gpt-audio",
		},
		"gemini":  {"gemini-3.1-flash-image", "gemma-3-27b-it"},
		"generic": {"deepseek-chat", "mistral-small-latest"}, // open models: anybody serves them, at any price
	} {
		table := givenTable(t, "", "", of)
		for _, model := range models {
			if p, _, ok := table.Of(model); ok {
				t.Errorf("%s: %s has the price %+v", of, model, p)
			}
		}
	}
}

// A model without a price in a vendor's own data gets none from another vendor either.
func TestFirstSourceCounts(t *testing.T) {
	one := 1.0
	table := Table{listed: []modelPrices{
		modelPricesOf([]Listed{{Match: []string{"hears"}}}, nil),
		modelPricesOf([]Listed{{Match: []string{"h*"}, entry: entry{scheduled: scheduled{rates: rates{Input: &one, Output: &one}}}}}, nil),
	}}
	if _, _, ok := table.Of("hears"); ok {
		t.Error("hears has a price")
	}
	if _, _, ok := table.Of("hums"); !ok {
		t.Error("hums has none")
	}
}

// Of two patterns the longer counts, wherever it stands, and a name beats them both.
func TestPatterns(t *testing.T) {
	priced := func(input float64, match ...string) Listed {
		return Listed{Match: match, entry: entry{scheduled: scheduled{rates: rates{Input: &input, Output: &input}}}}
	}
	table := Table{listed: []modelPrices{modelPricesOf([]Listed{
		priced(1, "flash*"), priced(2, "*flash-lite*", "Exact"), priced(3, "flash-lite-tts"), priced(4, "*@end"), priced(5, "exact"),
	}, nil)}}
	for model, want := range map[string]float64{
		"flash": 1, "flash-8b": 1, "Flash-Lite": 2, "my-flash-lite-1": 2, "flash-lite-tts": 3, "flash-lite-tts-2": 2, "x@end": 4, "exact": 2, "EXACT": 2,
		"flash-lite-tts-20260102": 3, "lite": 0, "@end-": 0, "my-flash": 0,
	} {
		if p, _, _ := table.Of(model); p.Input != want {
			t.Errorf("%s: %v, want %v", model, p.Input, want)
		}
	}
}

// The longest prompts of some models cost more, and the whole of them does.
func TestListedSteps(t *testing.T) {
	for of, model := range map[string]string{"gemini": "gemini-2.5-pro", "openai": "gpt-5.6-luna"} {
		table := givenTable(t, "", "", of)
		p, _, _ := table.Of(model)
		if len(p.Above) != 1 {
			t.Fatalf("%s: %+v", model, p)
		}
		at := p.Above[0].Tokens
		below, _, _ := table.Cost(model, provider.Usage{InputTokens: at}, friday)
		above, _, _ := table.Cost(model, provider.Usage{InputTokens: at + 1}, friday)
		if above.USD() < 1.9*below.USD() {
			t.Errorf("%s: %v at %d tokens, and %v above", model, below, at, above)
		}
	}
}

// BenchmarkRead reads the longest part of the list, as each command does once.
func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		if _, err := Read("", "", "openrouter"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCost asks for a name that only the last pattern has.
func BenchmarkCost(b *testing.B) {
	table, err := Read("", "", "vertex")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		table.Cost("gemini-3.8-flash-001", provider.Usage{InputTokens: 10}, friday)
	}
}

// A list of more than 120 days says so, with its age.
func TestOldList(t *testing.T) {
	asOf, err := time.Parse(time.DateOnly, AsOf())
	if err != nil {
		t.Fatal(err)
	}
	if text := Old(asOf.AddDate(0, 0, 120)); text != "" {
		t.Error(text)
	}
	if text := Old(asOf.AddDate(0, 0, 121)); !strings.HasPrefix(text, "the built-in prices are 121 days old (of "+AsOf()+")") {
		t.Error(text)
	}
}
