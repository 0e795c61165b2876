package catalog_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/providertest"
	"github.com/headrace/headrace/provider/wire"
)

// A key goes where its vendor looks for it, and into no other header.
func TestWhereKeysGo(t *testing.T) {
	at := catalog.Place{Region: "eu-west-1", Project: "p", Location: "global", Resource: "me"}
	for name, want := range map[string]string{
		"openai": "Authorization: Bearer key-1", "anthropic": "X-Api-Key: key-1", "gemini": "X-Goog-Api-Key: key-1", "vertex": "Authorization: Bearer key-1",
		"azure": "Api-Key: key-1", "azure-anthropic": "X-Api-Key: key-1", "bedrock": "Authorization: Bearer key-1", "bedrock-anthropic": "Authorization: Bearer key-1",
		"ollama": "Authorization: Bearer key-1",
	} {
		if got := keySent(t, name, at, " key-1\n"); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := keySent(t, name, at, ""); got != "" {
			t.Errorf("%s without a key: %q", name, got)
		}
	}
	const token = "eyJ0.eyJ1.c2ln" // of Entra
	if got := keySent(t, "azure", at, token); got != "Authorization: Bearer "+token {
		t.Errorf("azure: %q", got)
	}
	if got := keySent(t, "anthropic", at, token); got != "X-Api-Key: "+token {
		t.Errorf("anthropic: %q", got)
	}
}

// keySent is the header in which a call has a key; "" if none has.
func keySent(t *testing.T, name string, at catalog.Place, key string) string {
	t.Helper()
	sent := &providertest.Wire{}
	c := must.Get(catalog.Client(name, at, key, func(cfg *wire.Config) { cfg.Transport = sent }))(t)
	v, _ := catalog.Named(name)
	_, _ = c.Do(t.Context(), provider.Request{Endpoint: wire.Served(v.Dialect)[0], Model: "m", Body: []byte(`{}`)})
	found := ""
	for _, header := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if value := sent.Last().Header.Get(header); value != "" {
			found += header + ": " + value
		}
	}
	return found
}

// A client that no call could be made with, or that would call elsewhere, is refused without
// its key.
func TestClientIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, key string
		at        catalog.Place
		want      error
	}{
		{"nobody", "secret-1", catalog.Place{}, catalog.ErrUnknown},
		{"generic", "secret-1", catalog.Place{}, catalog.ErrNoAddress},
		{"bedrock", "secret-1", catalog.Place{}, catalog.ErrPart},
		{"bedrock", "secret-1", catalog.Place{Region: "h.example/"}, catalog.ErrPart},
		{"vertex", "secret-1", catalog.Place{Project: "..", Location: "global"}, catalog.ErrPart},
		{"vertex", "secret-1", catalog.Place{Project: "p", Location: "x#"}, catalog.ErrPart},
		{"anthropic", "sk-1\x00secret", catalog.Place{}, provider.Misconfigured},
	} {
		_, err := catalog.Client(c.name, c.at, c.key)
		if !errors.Is(err, c.want) || !errors.Is(err, provider.Misconfigured) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	c, err := catalog.Client("generic", catalog.Place{}, "", func(cfg *wire.Config) { cfg.BaseURL = "https://h.example" })
	if err != nil || c.Base() != "https://h.example/v1" {
		t.Errorf("%v, %v", c, err)
	}
}

// What a vendor means by its words, and how long its answers may take, comes with its client.
func TestClientKnowsItsRow(t *testing.T) {
	full := &providertest.Wire{Status: http.StatusPreconditionFailed, Body: `{"error":"the account is suspended"}`}
	c, err := catalog.Client("fireworks", catalog.Place{}, "key-1", func(cfg *wire.Config) { cfg.Transport = full })
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Model: "m", Body: []byte(`{}`)})
	if !errors.Is(err, provider.QuotaExhausted) || c.Timeout() != 0 {
		t.Errorf("%v, %v", err, c.Timeout())
	}
	slow, err := catalog.Client("deepseek", catalog.Place{}, "key-1")
	if v, _ := catalog.Named("deepseek"); err != nil || slow.Timeout() != v.Timeout || v.Timeout == 0 {
		t.Errorf("%v, %v", slow, err)
	}
}

// ahead is a server whose clock is an hour ahead of this machine's.
type ahead struct{ calls int }

func (a *ahead) RoundTrip(r *http.Request) (*http.Response, error) {
	a.calls++
	theirs := time.Now().Add(time.Hour)
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	answer := &providertest.Wire{Header: http.Header{"Date": {theirs.UTC().Format(http.TimeFormat)}}, Body: `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn"}`}
	if err != nil || theirs.Sub(signed).Abs() > 5*time.Minute {
		answer.Status, answer.Body = http.StatusBadRequest, `{"message":"Request has expired."}`
		answer.Header.Set("X-Amzn-Errortype", "RequestExpired")
	}
	return answer.RoundTrip(r)
}

// A clock that is wrong is put right also where the row has words of its own for it.
func TestBedrockAndAWrongClock(t *testing.T) {
	signer, err := sigv4.New(sigv4.Credentials{AccessKeyID: "AKID0123456789", SecretAccessKey: "secret-0123456789"}, "eu-west-1", sigv4.Bedrock)
	if err != nil {
		t.Fatal(err)
	}
	server := &ahead{}
	c := must.Get(catalog.Client("bedrock", catalog.Place{Region: "eu-west-1"}, "", func(cfg *wire.Config) { cfg.Auth, cfg.Transport = signer, server }))(t)
	for calls := 2; calls < 4; calls++ {
		_, err = c.Do(t.Context(), provider.Request{Endpoint: provider.Converse, Model: "m", Body: []byte(`{}`)})
		if err != nil || server.calls != calls {
			t.Errorf("%v after %d calls, want %d", err, server.calls, calls)
		}
	}
}

// China's regions of AWS have a domain of their own.
func TestAddressInChina(t *testing.T) {
	v, _ := catalog.Named("bedrock")
	base, err := v.Address(catalog.Place{Region: "cn-north-1"})
	if want := "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"; err != nil || base != want || !v.Answers(base) {
		t.Errorf("%s, %v, want %s", base, err, want)
	}
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

// A tier of service that a row has can be put into bodies, and no row has one without the other.
func TestTiersAreMembers(t *testing.T) {
	for _, v := range catalog.Rows() {
		for _, name := range []string{catalog.Flex, catalog.Standard} {
			if (v.Tiers[name] == "") != (v.Tiers == nil) {
				t.Errorf("%s: no %s among %v", v.Name, name, v.Tiers)
			}
			cfg := v.Config("http://127.0.0.1:9")
			cfg.Tier = v.Tiers[name]
			if _, err := wire.New(cfg); err != nil {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
	}
}
