package catalog_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/wire"
)

// addressed is a transport that keeps where it was sent.
type addressed struct{ url string }

func (a *addressed) RoundTrip(r *http.Request) (*http.Response, error) {
	a.url = r.URL.String()
	return &http.Response{StatusCode: http.StatusTeapot, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// A call goes where its vendor's documents say. What stands here is written out, and not
// put together.
func TestWhereCallsGo(t *testing.T) {
	at := catalog.Place{Region: "eu-west-1", Project: "p", Location: "europe-west4", Resource: "me"}
	for name, want := range map[string]string{
		"openai":            "https://api.openai.com/v1/chat/completions",
		"anthropic":         "https://api.anthropic.com/v1/messages",
		"gemini":            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
		"google-openai":     "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
		"vertex":            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/google/models/m:generateContent",
		"azure":             "https://me.openai.azure.com/openai/v1/chat/completions",
		"azure-deployments": "https://me.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21",
		"azure-anthropic":   "https://me.services.ai.azure.com/anthropic/v1/messages",
		"bedrock":           "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse",
		"bedrock-openai":    "https://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/chat/completions",
		"bedrock-anthropic": "https://bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages",
		"cohere":            "https://api.cohere.ai/compatibility/v1/chat/completions",
		"groq":              "https://api.groq.com/openai/v1/chat/completions",
		"openrouter":        "https://openrouter.ai/api/v1/chat/completions",
		"fireworks":         "https://api.fireworks.ai/inference/v1/chat/completions",
		"deepinfra":         "https://api.deepinfra.com/v1/openai/chat/completions",
		"perplexity":        "https://api.perplexity.ai/v1/responses",
		"ollama":            "http://localhost:11434/v1/chat/completions",
	} {
		v, ok := catalog.Named(name)
		if !ok {
			t.Fatal(name)
		}
		base, err := v.Address(at)
		if err != nil {
			t.Fatal(err)
		}
		var sent addressed
		entry, ok := all.Named(v.Dialect)
		if !ok {
			t.Fatal(v.Dialect)
		}
		c, err := wire.New(wire.Config{Dialect: entry.Dialect, Name: v.Name, BaseURL: base, Path: v.Path, Serves: v.Serves, Wording: &v.Wording, Transport: &sent})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err = c.Do(t.Context(), provider.Request{Endpoint: wire.Served(entry.Dialect, v.Serves...)[0], Model: "m", Body: []byte(`{}`)}); sent.url != want {
			t.Errorf("%s: a call goes to %s, want %s (%v)", name, sent.url, want, err)
		}
		c.CloseIdle()
	}
}

// A client of one dialect alone knows the same addresses as the rows.
func TestClientsAndRowsAgree(t *testing.T) {
	address := func(name string, at catalog.Place) string {
		v, _ := catalog.Named(name)
		base, err := v.Address(at)
		if err != nil {
			t.Error(err)
		}
		return base
	}
	for _, region := range []string{"us-east-1", "eu-central-1"} {
		if url, err := converse.RegionURL(region); err != nil || url != address("bedrock", catalog.Place{Region: region}) {
			t.Errorf("%s, %v", url, err)
		}
	}
	for _, location := range []string{"global", "us", "eu", "europe-west4"} {
		if url, err := gemini.VertexURL("p-1", location); err != nil || url != address("vertex", catalog.Place{Project: "p-1", Location: location}) {
			t.Errorf("%s, %v", url, err)
		}
	}
	for name, url := range map[string]string{"openai": openai.DefaultBaseURL, "anthropic": anthropic.DefaultBaseURL, "gemini": gemini.DefaultBaseURL} {
		if own := address(name, catalog.Place{}); own != url && own != url+"/v1" {
			t.Errorf("%s: %s, and its client %s", name, own, url)
		}
	}
}
