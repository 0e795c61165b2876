package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
)

// A body goes without its model where the address names that: to Claude on Vertex with the version
// in that place, to SageMaker with an empty one. The address has the model.
func TestModelsInAddresses(t *testing.T) {
	for _, c := range []struct{ provider, answer, path, body string }{
		{"vertex-anthropic", aMessage, "/x/models/claude-haiku-4-5%4020251001:rawPredict", `{"anthropic_version":"vertex-2023-10-16","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`},
		{"sagemaker", aChat, "/x/claude-haiku-4-5%4020251001/openai/v1/chat/completions", `{"model":"","messages":[{"role":"user","content":"hi"}]}`},
	} {
		var path, body string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			path, body = r.URL.EscapedPath(), string(text)
			says(http.StatusOK, "application/json", c.answer)(w, r)
		}))
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		code, _, said := inWorld(t, nil, map[string]string{"K": "k"}, "run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"),
			"--provider", c.provider, "--base-url", server.URL+"/x", "--api-key-env", "K", "--model", "claude-haiku-4-5@20251001")
		server.Close()
		if code != exit.OK || path != c.path || body != c.body {
			t.Errorf("%s: exit code %d, %s with %s: %s", c.provider, code, path, body, said)
		}
	}
}

// heardFrom runs one prompt against a server on this machine, and gives the headers of its call.
func heardFrom(t *testing.T, answer string, env map[string]string, args ...string) (h http.Header, code int, said string) {
	t.Helper()
	var mu sync.Mutex // for h
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		h = r.Header
		mu.Unlock()
		says(http.StatusOK, "application/json", answer)(w, r)
	}))
	defer server.Close()
	in := writeLines(t, `{"prompt":"hi"}`+"\n")
	for name, value := range env {
		env[name] = strings.ReplaceAll(value, "SERVER", server.URL)
	}
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "SERVER", server.URL)
	}
	code, _, said = inWorld(t, nil, env, append([]string{"run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--model", "m"}, args...)...)
	return h, code, said
}

const (
	aChat    = `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`
	aMessage = `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
)

// What is in a variable of tokens is sent as Bearer where a key would have a header of its own. A
// key counts before a token.
func TestTokensInVariables(t *testing.T) {
	for _, c := range []struct {
		provider, answer, header, prefix string
		env                              map[string]string
	}{
		{"anthropic", aMessage, "Authorization", "Bearer ", map[string]string{"ANTHROPIC_AUTH_TOKEN": "the-one-0123456789"}},
		{"anthropic", aMessage, "X-Api-Key", "", map[string]string{"ANTHROPIC_API_KEY": "the-one-0123456789", "ANTHROPIC_AUTH_TOKEN": "another"}},
		{"azure", aChat, "Authorization", "Bearer ", map[string]string{"AZURE_OPENAI_AD_TOKEN": "the-one-0123456789"}},
		{"azure", aChat, "Api-Key", "", map[string]string{"AZURE_API_KEY": "the-one-0123456789", "AZURE_OPENAI_AD_TOKEN": "another"}},
		{"azure-deployments", aChat, "Authorization", "Bearer ", map[string]string{"AZURE_OPENAI_AD_TOKEN": "the-one-0123456789"}},
		{"cohere", aChat, "Authorization", "Bearer ", map[string]string{"CO_API_KEY": "the-one-0123456789"}},
		{"cohere", aChat, "Authorization", "Bearer ", map[string]string{"CO_API_KEY": " ", "COHERE_API_KEY": "the-one-0123456789"}},
	} {
		h, code, said := heardFrom(t, c.answer, c.env, "--provider", c.provider, "--base-url", "SERVER/x")
		for _, header := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			want := ""
			if header == c.header {
				want = c.prefix + "the-one-0123456789"
			}
			if got := h.Get(header); got != want || code != exit.OK {
				t.Errorf("%s with %q: %s: %q, want %q: %s", c.provider, c.env, header, got, want, said)
			}
		}
	}
	h, _, said := heardFrom(t, aMessage, map[string]string{"ANTHROPIC_AUTH_TOKEN": "the-one-0123456789"}, "--provider", "anthropic", "--base-url", "SERVER", "--api-key-env", "ANTHROPIC_AUTH_TOKEN")
	if h.Get("Authorization") != "Bearer the-one-0123456789" {
		t.Errorf("a token whose variable is named: %q: %s", h, said)
	}
}

// The address in OpenAI's own variable counts as --base-url does, which counts before it.
func TestBaseURLOfOpenAI(t *testing.T) {
	h, code, said := heardFrom(t, aChat, map[string]string{"OPENAI_BASE_URL": " SERVER/v1\n", "OPENAI_API_KEY": "the-key-0123456789"})
	if code != exit.OK || h.Get("Authorization") != "Bearer the-key-0123456789" {
		t.Errorf("exit code %d, %q: %s", code, h, said)
	}
	h, code, said = heardFrom(t, aChat, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "the-key-0123456789"}, "--base-url", "SERVER/v1")
	if code != exit.OK || h == nil {
		t.Errorf("exit code %d: %s", code, said)
	}
	for base, want := range map[string]string{
		"example.test/v1":               "OPENAI_BASE_URL: it must begin with http:// or https://: try https://example.test/v1",
		"https://models.github.ai/chat": "OPENAI_BASE_URL: models.github.ai answers no longer",
	} {
		if _, code, said := heardFrom(t, aChat, map[string]string{"OPENAI_BASE_URL": base, "OPENAI_API_KEY": "k"}); code != exit.Usage || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d: %s", base, code, said)
		}
	}
}
