package vendor_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/vendor"
	"github.com/headrace/headrace/provider/wire"
)

// spoken is a dialect of which the paths alone are of interest: those that its maker
// documents, below the base URLs of rows.
type spoken struct{ name, root, path string }

func (d spoken) Name() string                            { return d.name }
func (d spoken) Root() string                            { return d.root }
func (d spoken) Body(r provider.Request) ([]byte, error) { return r.Body, nil }
func (d spoken) Text([]byte) (string, bool)              { return "", false }
func (d spoken) Path(operation, model string) (string, bool) {
	return strings.ReplaceAll(d.path, "MODEL", model), operation == provider.Chat
}

func (d spoken) Answer(status int, h http.Header, body []byte, _ *provider.Wording) (provider.Reply, *provider.Error) {
	return provider.ReplyOf(status, h, body)
}

var speech = map[string]spoken{
	"openai":    {"openai", "/v1", "/chat/completions"},
	"anthropic": {"anthropic", "", "/v1/messages"},
	"gemini":    {"gemini", "/v1beta", "/models/MODEL:generateContent"},
	"converse":  {"converse", "", "/model/MODEL/converse"},
}

// addressed is a transport that keeps where it was sent.
type addressed struct{ url string }

func (a *addressed) RoundTrip(r *http.Request) (*http.Response, error) {
	a.url = r.URL.String()
	return &http.Response{StatusCode: http.StatusTeapot, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
}

// A call goes where its vendor's documents say. What stands here is written out, and not
// put together.
func TestWhereCallsGo(t *testing.T) {
	at := vendor.Place{Region: "eu-west-1", Project: "p", Location: "europe-west4", Resource: "me"}
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
		"github-models":     "https://models.github.ai/inference/chat/completions",
		"ollama":            "http://localhost:11434/v1/chat/completions",
	} {
		v, ok := vendor.Named(name)
		if !ok {
			t.Fatal(name)
		}
		base, err := v.Address(at)
		if err != nil {
			t.Fatal(err)
		}
		var sent addressed
		c, err := wire.New(wire.Config{Dialect: speech[v.Dialect], Name: v.Name, BaseURL: base, Path: v.Path, Wording: &v.Wording, Transport: &sent})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err = c.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Model: "m", Body: []byte(`{}`)}); sent.url != want {
			t.Errorf("%s: a call goes to %s, want %s (%v)", name, sent.url, want, err)
		}
		c.CloseIdle()
	}
}
