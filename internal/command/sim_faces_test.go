package command

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/headrace/headrace/internal/command/simulator"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/all"
	"github.com/headrace/headrace/provider/sim"
)

// headrace sim looks like whom --dialect names, and its books tell what was sent.
func TestSimDialects(t *testing.T) {
	const chat = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	for _, c := range []struct{ dialect, base, path, body, answer string }{
		{"openai", "/v1", "/chat/completions", chat, "choices.0.message.content"},
		{"azure", "/openai/v1", "/chat/completions", chat, "choices.0.message.content"},
		{"anthropic", "", "/v1/messages", `{"max_tokens":64,` + chat[1:], "content.0.text"},
		{"gemini", "", "/v1beta/models/m:generateContent", `{"contents":[{"parts":[{"text":"hello"}]}]}`, "candidates.0.content.parts.0.text"},
		{"converse", "", "/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"hello"}]}]}`, "output.message.content.0.text"},
		{"cohere", "", "/v2/rerank", `{"model":"m","query":"q","documents":["hello"]}`, ""},
	} {
		t.Run(c.dialect, func(t *testing.T) {
			_, base := childSim(t, "--dialect", c.dialect)
			host, found := strings.CutSuffix(base, c.base)
			if !found || strings.Count(host, "/") != 2 {
				t.Errorf("listening on %s", base)
			}
			said := fetched(t, "POST", base+c.path, c.body)
			if c.answer != "" && gjson.Get(said, c.answer).Str != sim.Answer("hello") || c.answer == "" && !gjson.Get(said, "results.0").Exists() {
				t.Errorf("%q", said)
			}
			if bodies := gjson.Get(fetched(t, "GET", host+"/sim/books?bodies", ""), "bodies"); len(bodies.Map()) != 1 {
				t.Errorf("bodies: %s", bodies.Raw)
			}
		})
	}
	_, _, said := inWorld(t, nil, nil, "sim", "--dialect", "klingon")
	_, help, _ := inWorld(t, nil, nil, "sim", "--help")
	if list := "openai, azure, anthropic, gemini"; !strings.Contains(said, `--dialect: "klingon" is not known: use `+list) || !strings.Contains(help, list) {
		t.Error(said, help)
	}
	for _, d := range all.All() {
		if name := d.Dialect.Name(); !strings.Contains(said, name) || !strings.Contains(help, name) {
			t.Errorf("%s is not named", name)
		}
	}
}

// A stream comes where one is asked for, with the makers' end marks, and --errors breaks it in the middle.
func TestSimStreams(t *testing.T) {
	const chat = `{"stream":true,"model":"m","messages":[{"role":"user","content":"hello"}]}`
	for _, c := range []struct{ dialect, path, body, end, failure string }{
		{"openai", "/chat/completions", chat, "data: [DONE]\n\n", `data: {"error":{`},
		{"anthropic", "/v1/messages", `{"max_tokens":64,` + chat[1:], "event: message_stop\n", "event: error\n"},
		{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"hello"}]}]}`, `"finishReason":"STOP"`, `data: {"error":{`},
		{"converse", "/model/m/converse-stream", `{"messages":[{"role":"user","content":[{"text":"hello"}]}]}`, "metadata", "modelStreamErrorException"},
	} {
		_, base := childSim(t, "--dialect", c.dialect)
		if said := fetched(t, "POST", base+c.path, c.body); !strings.Contains(said, c.end) || strings.Contains(said, c.failure) {
			t.Errorf("%s: %q", c.dialect, said)
		}
		_, base = childSim(t, "--dialect", c.dialect, "--errors", "stream-error=1")
		if said := fetched(t, "POST", base+c.path, c.body); strings.Contains(said, c.end) || !strings.Contains(said, c.failure) {
			t.Errorf("%s: %q", c.dialect, said)
		}
	}
}

func fetched(t *testing.T, method, url, body string) string {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	r.Header.Set("Authorization", "Bearer k")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	resp := must.Get((&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r))(t)
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(t)
	return string(text)
}

// Each face says how headrace run calls it, and that command works: its progress keeps the
// contract, the prompts are answered, and only OpenAI's shape is not told by its text.
func TestSimSaysHowItIsCalled(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "prompts.jsonl")
	must.Do(t, os.WriteFile(in, []byte(`{"prompt":"hello"}`+"\n"), 0o600))
	ranks := writeLines(t, `{"query":"hello","documents":["a"]}`+"\n")
	for _, dialect := range simulator.SimDialects() {
		p, _ := childSim(t, "--dialect", dialect)
		if _, ok := p.next(); !ok {
			t.Fatal("it has ended")
		}
		_, command, found := strings.Cut(strings.TrimSpace(p.last), "in another terminal: ")
		setting, args, runs := strings.Cut(command, "headrace run prompts.jsonl -o results.jsonl ")
		if !found || !runs || (setting == "") != (dialect == "openai") {
			t.Errorf("%s: %q", dialect, p.last)
			continue
		}
		env := map[string]string{}
		if name, value, set := strings.Cut(strings.TrimSpace(setting), "="); set {
			env[name] = value
		}
		out := filepath.Join(dir, dialect+".jsonl")
		asked := in
		if dialect == "cohere" { // which has no chats
			asked = ranks
		}
		all := append([]string{"run", asked, "-o", out, "--progress", "json", "--region", "eu-west-1", "--resource", "acme"}, strings.Fields(args)...)
		code, _, stderr := inWorld(t, nil, env, all...)
		keeps(t, stderr)
		answered := gjson.Get(read(t, out), "headrace.text").Str == sim.Answer("hello")
		if dialect == "cohere" {
			answered = gjson.Get(read(t, out), "response.body.results.0.relevance_score").Exists()
		}
		if code != 0 || answered == (dialect == "openai" || dialect == "azure") {
			t.Errorf("%s: exit %d, %s", dialect, code, stderr)
		}
	}
}
