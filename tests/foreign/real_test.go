package foreign

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/headrace/headrace/tests/foreign/part"
)

const (
	prompts      = 200
	promptsShort = 20
	answerTokens = 8
	slots        = 4 // answers that a server works on at once
)

// llama.cpp's server, with a model in it, answers in both dialects that it speaks.
func TestLlamaServer(t *testing.T) {
	server := part.Server(t, "llama-server")
	model := filepath.Join(t.TempDir(), "random.gguf")
	writeModel(t, model, 1)
	url := part.Serve(t, part.Command(t, server, "--model", model, "--alias", "random", "--host", "127.0.0.1", "--port", "0",
		"--ctx-size", fmt.Sprint(slots*window/4), "--parallel", fmt.Sprint(slots), "--threads", "1", "--threads-batch", "1", "--offline"), "listening on ")
	answersBoth(t, url, "llamacpp")
}

// So does ollama.
func TestOllama(t *testing.T) {
	server := part.Server(t, "ollama")
	dir := t.TempDir()
	writeModel(t, filepath.Join(dir, "random.gguf"), 1)
	if err := os.WriteFile(filepath.Join(dir, "Modelfile"), []byte(modelfile), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := part.Command(t, server, "serve")
	cmd.Env = ollamaEnv(dir, "127.0.0.1:0")
	host := part.Serve(t, cmd, "Listening on ")
	create := exec.CommandContext(t.Context(), server, "create", "random", "-f", filepath.Join(dir, "Modelfile"))
	create.Env = ollamaEnv(dir, host)
	if said, err := create.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	answersBoth(t, "http://"+host, "ollama")
}

// modelfile has the template again, as ollama's own is of another language.
// More than one thread for so little costs more than it brings.
const modelfile = `FROM ./random.gguf
PARAMETER num_thread 1
PARAMETER num_ctx 1024
TEMPLATE """{{ range .Messages }}{{ .Role }}: {{ .Content }}
{{ end }}assistant: """
`

// ollamaEnv keeps everything of ollama's in a folder.
func ollamaEnv(dir, host string) []string {
	return append(os.Environ(), "HOME="+dir, "OLLAMA_MODELS="+filepath.Join(dir, "models"), "OLLAMA_HOST="+host,
		fmt.Sprintf("OLLAMA_NUM_PARALLEL=%d", slots), "OLLAMA_KEEP_ALIVE=10m")
}

// answersBoth asks in OpenAI's dialect and in Anthropic's, in lines of their own and prompts.
func answersBoth(t *testing.T, url, vendor string) {
	t.Helper()
	n := prompts
	if part.Short() {
		n = promptsShort
	}
	var own, chats []string
	for i := range n / 2 {
		question := fmt.Sprintf("What is in river %d?", i)
		prompt := fmt.Sprintf(`{"id":"prompt-%d","prompt":%q,"system":"Be brief.","max_tokens":%d}`, i, question, answerTokens)
		chats = append(chats, prompt, fmt.Sprintf(`{"custom_id":"own-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"random","max_tokens":%d,"messages":[{"role":"user","content":%q}]}}`, i, answerTokens, question))
		own = append(own, prompt, fmt.Sprintf(`{"custom_id":"own-%d","params":{"model":"random","max_tokens":%d,"messages":[{"role":"user","content":%q}]}}`, i, answerTokens, question))
	}
	t.Run("openai", func(t *testing.T) {
		answeredAll(t, run(t, chats, "--provider", vendor, "--base-url", url+"/v1", "--model", "random"))
	})
	t.Run("anthropic", func(t *testing.T) {
		results := run(t, own, "--provider", "anthropic", "--base-url", url, "--model", "random")
		answeredAll(t, results)
		for id, r := range results {
			if r.Headrace.Dialect != "anthropic" || r.Headrace.Finish != "stop" && r.Headrace.Finish != "length" {
				t.Errorf("%s: dialect %q, finish %q", id, r.Headrace.Dialect, r.Headrace.Finish)
			}
		}
	})
}

func answeredAll(t *testing.T, results map[string]result) {
	t.Helper()
	texts := map[string]bool{}
	for id, r := range results {
		u := r.Headrace.Usage
		if r.Response.Status != http.StatusOK || r.Headrace.Text == nil || u.Input == 0 || u.Output == 0 || u.Output > answerTokens {
			t.Fatalf("%s: status %d, usage %+v: %s", id, r.Response.Status, u, r.Response.Body)
		}
		texts[*r.Headrace.Text] = true
	}
	if len(texts) < len(results)/2 { // it is random, and no fixed answer
		t.Errorf("%d different answers to %d questions", len(texts), len(results))
	}
}
