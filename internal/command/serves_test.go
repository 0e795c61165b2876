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

// A prompt goes to the operation that its provider has before all others. A line for one that
// the provider does not have is refused before any call, by file and line.
func TestLinesGoWhereTheProviderServes(t *testing.T) {
	var (
		mu     sync.Mutex // for what follows
		called []string
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		called = append(called, r.URL.Path+" "+string(body))
		mu.Unlock()
		says(http.StatusOK, "application/json", `{"id":"r","object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}],"usage":{"input_tokens":1,"output_tokens":1}}`)(w, r)
	}))
	defer server.Close()
	const (
		chat      = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"hi"}]}}`
		bare      = `{"messages":[{"role":"user","content":"hi"}]}`
		responses = `{"custom_id":"a","method":"POST","url":"/v1/responses","body":{"model":"m","input":"hi"}}`
	)
	for _, c := range []struct{ provider, more, line, calls, says string }{
		{"perplexity", "", `{"prompt":"hi"}`, `/v1/responses {"model":"m","input":"hi"}`, ""},
		{"perplexity", "", responses, `/v1/responses {"model":"m","input":"hi"}`, ""},
		{"perplexity", "", chat, "", "in.jsonl:1: a line (OpenAI batch line) for /v1/chat/completions, which this provider does not have"},
		{"perplexity", "", bare, "", "in.jsonl:1: a line (request body) for /v1/chat/completions, which this provider does not have"},
		{"perplexity", "--endpoint /v1/chat/completions", `{"prompt":"hi"}`, "", "in.jsonl:1: a line (prompt) for /v1/chat/completions, which this provider does not have"},
		{"azure-deployments", "", responses, "", "in.jsonl:1: a line (OpenAI batch line) for /v1/responses, which this provider does not have"},
		{"azure", "", responses, `/openai/v1/responses {"model":"m","input":"hi"}`, ""},
	} {
		called = nil
		in := writeLines(t, c.line+"\n")
		base := server.URL + map[string]string{"azure": "/openai/v1", "azure-deployments": "/openai"}[c.provider]
		args := append([]string{"run", in, "-o", filepath.Join(filepath.Dir(in), "out.jsonl"), "--provider", c.provider, "--base-url", base, "--api-key-env", "K", "--model", "m"}, strings.Fields(c.more)...)
		code, _, said := inWorld(t, nil, map[string]string{"K": "k"}, args...)
		if got := strings.Join(called, "\n"); got != c.calls || !strings.Contains(said, c.says) || (code == exit.Usage) != (c.says != "") {
			t.Errorf("%s %s: exit code %d after %q: %s", c.provider, c.line, code, got, said)
		}
		if strings.Contains(said, " or mistral or ") {
			t.Errorf("a hint names half of all providers: %s", said)
		}
	}
}
