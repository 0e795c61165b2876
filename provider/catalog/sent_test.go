package catalog_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/catalog"
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
		"vertex-express":    "https://aiplatform.googleapis.com/v1/publishers/google/models/m:generateContent",
		"vertex-openai":     "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/endpoints/openapi/chat/completions",
		"vertex-anthropic":  "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/anthropic/models/m:rawPredict",
		"azure-ai":          "https://me.services.ai.azure.com/openai/v1/chat/completions",
		"dashscope":         "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions",
		"dashscope-cn":      "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
		"minimax":           "https://api.minimax.io/v1/chat/completions",
		"minimax-cn":        "https://api.minimaxi.com/v1/chat/completions",
		"moonshot-cn":       "https://api.moonshot.cn/v1/chat/completions",
		"zai-cn":            "https://open.bigmodel.cn/api/paas/v4/chat/completions",
		"siliconflow":       "https://api.siliconflow.com/v1/chat/completions",
		"siliconflow-cn":    "https://api.siliconflow.cn/v1/chat/completions",
		"databricks":        "https://me.cloud.databricks.com/serving-endpoints/chat/completions",
		"ollama-cloud":      "https://ollama.com/v1/chat/completions",
		"sagemaker":         "https://runtime.sagemaker.eu-west-1.amazonaws.com/endpoints/m/openai/v1/chat/completions",
		"ollama":            "http://localhost:11434/v1/chat/completions",
	} {
		var sent addressed
		c, err := catalog.Client(name, at, "", func(cfg *wire.Config) { cfg.Transport = &sent })
		if err != nil {
			t.Fatal(err)
		}
		v, _ := catalog.Named(name)
		if _, err = c.Do(t.Context(), provider.Request{Endpoint: wire.Served(v.Dialect, v.Serves...)[0], Model: "m", Body: []byte(`{}`)}); sent.url != want {
			t.Errorf("%s: a call goes to %s, want %s (%v)", name, sent.url, want, err)
		}
		c.CloseIdle()
	}
}

// The client for users of go-openai knows the same address as OpenAI's row.
func TestOpenAIsClientAndRowAgree(t *testing.T) {
	v, _ := catalog.Named("openai")
	if v.Base != openai.DefaultBaseURL {
		t.Errorf("%s, and its client %s", v.Base, openai.DefaultBaseURL)
	}
}
