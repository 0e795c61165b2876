package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/must"
)

// runAt runs ten prompts with a provider whose server is answered by answer.
func runAt(t *testing.T, provider, key string, answer http.HandlerFunc, more ...string) (code int, stderr string) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	in := filepath.Join(dir, "in.jsonl")
	must.Do(t, os.WriteFile(in, []byte(strings.Repeat(`{"prompt":"Well?"}`+"\n", 10)), 0o600))
	args := []string{"run", in, "-o", filepath.Join(dir, "out.jsonl"), "--provider", provider, "--base-url", server.URL + "/openai", "--model", "m 1", "--max-attempts", "1"}
	code, _, stderr = inWorld(t, nil, map[string]string{key: "key-0123456789abcdef"}, append(args, more...)...)
	return code, stderr
}

// A row's own path is where the command's calls go.
func TestPathOfTheRow(t *testing.T) {
	var elsewhere atomic.Int32
	code, stderr := runAt(t, "azure-deployments", "AZURE_OPENAI_API_KEY", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.EscapedPath() != "/openai/deployments/m%201/chat/completions" || r.URL.Query().Get("api-version") == "" {
			elsewhere.Add(1)
		}
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"content":"Well."},"finish_reason":"stop"}]}`)
	})
	if code != exit.OK || elsewhere.Load() > 0 {
		t.Errorf("exit %d, %d calls elsewhere: %s", code, elsewhere.Load(), stderr)
	}
}

// A row's own words say what an answer means: of another vendor the same is a bad request.
func TestWordsOfTheRow(t *testing.T) {
	suspended := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = io.WriteString(w, `{"error":"account acme is suspended"}`)
	}
	if code, stderr := runAt(t, "fireworks", "FIREWORKS_API_KEY", suspended, "--keep-going"); code != exit.Stopped {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, stderr := runAt(t, "together", "TOGETHER_API_KEY", suspended, "--keep-going"); code != exit.ItemsFailed {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
