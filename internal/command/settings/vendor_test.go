package settings

import (
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
)

// Azure's variable may have the address with or without what stands behind the host.
func TestAzureEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://acme.openai.azure.com":                                               "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/ ":                                             "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/openai/v1/":                                    "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/openai":                                        "https://acme.openai.azure.com/openai/v1",
		"https://acme.openai.azure.com/openai/deployments/d/chat/completions?api-v=1": "https://acme.openai.azure.com/openai/v1",
		"https://gateway.test/team-a/":                                                "https://gateway.test/team-a/openai/v1",
	} {
		f := flagsWith(t, map[string]string{"AZURE_OPENAI_ENDPOINT": endpoint}, "-o", "x", "--provider", "azure")
		if f.BaseURL != want || f.MadeOf != "AZURE_OPENAI_ENDPOINT" {
			t.Errorf("%q: %s, of %s", endpoint, f.BaseURL, f.MadeOf)
		}
	}
}

// A part of the place may be in a variable of the vendor's own, which counts before the usual one.
func TestPlacesOfVendors(t *testing.T) {
	for _, c := range []struct{ provider, variable, want string }{
		{"azure-anthropic", "ANTHROPIC_FOUNDRY_RESOURCE", "https://mine.services.ai.azure.com/anthropic"},
		{"azure-anthropic", "AZURE_RESOURCE_NAME", "https://mine.services.ai.azure.com/anthropic"},
		{"databricks", "DATABRICKS_HOST", "https://adb-1.2.azuredatabricks.net/serving-endpoints"},
		{"vertex-anthropic", "ANTHROPIC_VERTEX_PROJECT_ID", "https://us-east5-aiplatform.googleapis.com/v1/projects/mine/locations/us-east5/publishers/anthropic"},
		{"azure", "ANTHROPIC_FOUNDRY_RESOURCE", "https://other.openai.azure.com/openai/v1"},
		{"groq", "OPENAI_BASE_URL", "https://api.groq.com/openai/v1"},
		{"anthropic", "ANTHROPIC_BASE_URL", "https://gateway.example.test/team-a"},
		{"azure-anthropic", "ANTHROPIC_BASE_URL", "https://other.services.ai.azure.com/anthropic"},
	} {
		env := map[string]string{"AZURE_RESOURCE_NAME": "other", "GOOGLE_CLOUD_PROJECT": "other", "CLOUD_ML_REGION": "us-east5"}
		switch env[c.variable] = "mine"; c.variable {
		case "DATABRICKS_HOST":
			env[c.variable] = "https://adb-1.2.azuredatabricks.net/serving-endpoints/"
		case "ANTHROPIC_BASE_URL":
			env[c.variable] = "https://gateway.example.test/team-a/"
		}
		if f := flagsWith(t, env, "-o", "x", "--provider", c.provider); f.BaseURL != c.want {
			t.Errorf("%s with %s: %s", c.provider, c.variable, f.BaseURL)
		}
	}
}

// OpenAI has neither messages nor rerank, also where a flag or a variable says its own address.
func TestOpenAIServesItsOwnAtEachOfItsAddresses(t *testing.T) {
	for base, has := range map[string]bool{"": false, "https://api.openai.com/v1": false, "https://eu.api.openai.com/v1": false, "https://gateway.example.test/v1": true} {
		for _, variable := range []string{"HEADRACE_BASE_URL", "OPENAI_BASE_URL"} {
			served := flagsWith(t, map[string]string{variable: base}, "-o", "x").Serves()
			if slices.Contains(served, provider.Messages) != has || slices.Contains(served, provider.Rerank) != has || !slices.Contains(served, provider.Chat) {
				t.Errorf("%s=%s: %q", variable, base, served)
			}
		}
	}
}

// What a vendor is known to bear, or to need, holds where the user says nothing; it never
// raises how many calls are under way.
func TestUseVendor(t *testing.T) {
	for _, tt := range []struct {
		name        string
		args        []string
		concurrency int
		timeout     time.Duration
	}{
		{"openai", nil, 64, 10 * time.Minute},
		{"deepseek", nil, 64, 30 * time.Minute}, // it bears 500
		{"moonshot", nil, 1, 10 * time.Minute},
		{"moonshot", []string{"-c", "9"}, 9, 10 * time.Minute},
		{"deepseek", []string{"--timeout", "1m"}, 64, time.Minute},
	} {
		f, fs := &Flags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.Register(fs)
		must.Do(t, fs.Parse(tt.args))
		f.Vendor, _ = catalog.Named(tt.name)
		f.useVendor(fs, func(string) (string, bool) { return "", false })
		if f.Concurrency != tt.concurrency || f.Timeout != tt.timeout || f.KeyEnv != f.Vendor.Keys[0] {
			t.Errorf("%+v: %d calls, %v, %s", tt, f.Concurrency, f.Timeout, f.KeyEnv)
		}
	}
}

func whoAnswers(preset, name, base string) catalog.Vendor {
	f := VendorFlags{Provider: name, BaseURL: base}
	f.Vendor, _ = catalog.Named(name)
	return f.Answering(preset)
}

// Who answers is known by --preset, by --provider, or of openai by the base URL.
func TestWhoAnswers(t *testing.T) {
	const local = "http://127.0.0.1:8000/v1"
	for _, tt := range []struct{ preset, name, base, want string }{
		{presetAuto, ProviderOpenAI, "", "openai"},
		{presetAuto, ProviderOpenAI, local, "local"},
		{presetAuto, ProviderSim, local, "openai"},
		{"groq", ProviderOpenAI, local, "groq"},
		{presetAuto, "groq", local, "groq"},
		{"mistral", "groq", "", "mistral"},
	} {
		if got := whoAnswers(tt.preset, tt.name, tt.base).Name; got != tt.want {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}

// What --preset names are vendors, and nobody is named twice.
func TestPresetsAreVendors(t *testing.T) {
	for i, name := range presets {
		if v, ok := catalog.Named(name); !ok || v.Name != name || i > 0 && presets[i-1] >= name {
			t.Errorf("%s: %v, %q", name, ok, v.Name)
		}
	}
}

// A call is expected to draw what its provider counts when it lets it in.
func TestCostOf(t *testing.T) {
	const body = `{"prompt":[1,2,3],"max_tokens":10}` // token ids count exactly
	for preset, want := range map[string]limiter.Cost{
		"auto":      {Requests: 1, Input: 3, Output: 7}, // the larger of both
		"bedrock":   {Requests: 1, Input: 3, Output: 10},
		"anthropic": {Requests: 1, Input: 3, Output: 10},
		"gemini":    {Requests: 1, Input: 3},
	} {
		if got := CostOf(whoAnswers(preset, ProviderOpenAI, "").Charge, &prompts.Request{Body: []byte(body)}); got != want {
			t.Errorf("%s: %+v, want %+v", preset, got, want)
		}
	}
}

// A call to a model that only reads draws no output that nobody bounds.
func TestCostOfReading(t *testing.T) {
	charge := whoAnswers("bedrock", ProviderOpenAI, "").Charge
	for operation, most := range map[string]float64{prompts.ChatCompletions: 4096, prompts.Embeddings: 1, prompts.Rerank: 1} {
		q := &prompts.Request{Endpoint: operation, Body: []byte(`{"input":[1,2,3]}`)}
		if got := CostOf(charge, q); got.Input != 3 || got.Output != most {
			t.Errorf("%s: %+v, want output of %v", operation, got, most)
		}
	}
}

// The settings of a run, as its timeline has them, say that there are headers, and not which.
func TestHeadersAreNotShown(t *testing.T) {
	for _, one := range flagsWith(t, nil, "-o", "x", "--header", "X-Tenant=acme").Given {
		if one.Name == "header" && one.Value == nil {
			return
		}
	}
	t.Error("a header is shown, or there is none")
}
