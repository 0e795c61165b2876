package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/catalog"
)

const testKey = "sk-proj-0123456789abcdefTHEKEY"

// The key is in nothing that is printed or written, at whatever level of the log:
// not when all goes well, not when it is refused, and not when the server repeats
// it in every place where it could.
func TestKeyIsNowhere(t *testing.T) {
	answers := map[string]func(w http.ResponseWriter, key string){
		"well": func(w http.ResponseWriter, _ string) {
			fmt.Fprint(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
		},
		"refused": func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","type":"invalid_request_error","code":"invalid_api_key"}}`, key)
		},
		"echo": func(w http.ResponseWriter, key string) {
			w.Header().Set("X-Request-Id", key)
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"bad header Authorization: Bearer %s","code":"%s"}}`, key, key)
		},
		"echoed well": func(w http.ResponseWriter, key string) {
			w.Header().Set("X-Request-Id", key)
			escaped := strings.ReplaceAll(key, "-", `\u002d`)
			fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s and %s"},"finish_reason":"%s"}],"%s":1}`, escaped, key, escaped, escaped)
		},
		"html": func(w http.ResponseWriter, key string) { fmt.Fprintf(w, "<html>%s</html>", key) },
		"moved": func(w http.ResponseWriter, key string) {
			w.Header().Set("Location", "http://example.invalid/"+key)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	}
	for name, answer := range answers {
		for _, progress := range []string{progressPlain, progressJSON} {
			t.Run(name+"/"+progress, func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
					if !ok || key != testKey {
						t.Errorf("the key did not arrive: %q", r.Header)
					}
					answer(w, key)
				}))
				defer server.Close()
				dir := t.TempDir()
				in := filepath.Join(dir, "in.jsonl")
				if err := os.WriteFile(in, []byte(`{"prompt":"the prompt itself"}`+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				_, stdout, stderr := inWorld(t, nil, map[string]string{"MY_KEY": testKey + "\n"}, "run", in, "-o", filepath.Join(dir, "out.jsonl"),
					"--base-url", server.URL, "--api-key-env", "MY_KEY", "--model", "m", "--log-level", "debug", "--progress", progress, "--max-attempts", "1", "--log-file", filepath.Join(dir, "out.log"))
				keeps(t, stderr)
				everything := stdout + stderr
				asText := strings.NewReplacer(`\u002d`, "-", `\\u002d`, "-")
				files, _ := filepath.Glob(filepath.Join(dir, "out*"))
				for _, f := range files {
					text, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					everything += string(text)
				}
				everything = asText.Replace(everything)
				if i := strings.Index(everything, testKey[:12]); i >= 0 {
					t.Errorf("there is the key: …%s…", everything[max(0, i-80):min(len(everything), i+80)])
				}
				if strings.Contains(stderr, "the prompt itself") || strings.Contains(read(t, filepath.Join(dir, "out.log")), "the prompt itself") {
					t.Error("there is the prompt")
				}
			})
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// backendWith is one that has a key.
func backendWith(t *testing.T, key string) *backend {
	t.Helper()
	proof, err := auth.Bearer(key)
	if err != nil {
		t.Fatal(err)
	}
	return &backend{name: providerOpenAI, proof: proof, proven: defaultKeyEnv}
}

// OpenAI's key goes to OpenAI and to servers on this machine; to any other host only if
// its variable was named for it, and else a notice says that it stays here.
func TestKeyGoesToItsOwnHost(t *testing.T) {
	for _, c := range []struct {
		base  string
		named bool
		sent  bool
	}{
		{"", false, true},
		{"https://api.openai.com/v1", false, true},
		{"https://EU.api.openai.com/v1", false, true},
		{"http://127.0.0.1:8080/v1", false, true},
		{"http://[::1]:8080/v1", false, true},
		{"http://localhost:8080", false, true},
		{"https://api.groq.com/openai/v1", false, false},
		{"https://api.groq.com/openai/v1", true, true},
		{"https://api.openai.com.example.test/v1", false, false},
		{"https://notapi.openai.com/v1", false, false},
		{"https://127.0.0.1.example.test/v1", false, false},
	} {
		r := &runner{
			World: &World{env: func(string) (string, bool) { return testKey, true }},
			flags: &runFlags{inputFlags: inputFlags{whomFlags: whomFlags{provider: providerOpenAI, baseURL: c.base}}, keyEnv: defaultKeyEnv, keyEnvGiven: c.named},
		}
		r.flags.vendor, _ = catalog.Named(providerOpenAI)
		b := &backend{}
		if err := r.prove(b); err != nil {
			t.Fatal(err)
		}
		said := slices.ContainsFunc(b.notice, func(n notice) bool { return strings.Contains(n.text, "is not sent to") })
		if slices.Contains(b.secrets(), testKey) != c.sent || said == c.sent {
			t.Errorf("%+v: the keys are %q, said: %q", c, b.secrets(), b.notice)
		}
	}
}

// Vertex has no variable for a key: OpenAI's is not sent there. Tokens of Google's go to Google
// and to servers on this machine, and to nobody else.
func TestGoogleTokensGoToGoogle(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	const user = `{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r"}`
	if err := os.WriteFile(file, []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	for base, tokens := range map[string]bool{
		"https://europe-west4-aiplatform.googleapis.com/v1/projects/p": true,
		"http://127.0.0.1:8080": true,
		"https://europe-west4-aiplatform.googleapis.com.example.test": false,
		"https://gateway.example.test/v1":                             false,
	} {
		r := &runner{
			World: &World{env: func(string) (string, bool) { return testKey, true }}, halt: &halt{ctx: t.Context()},
			flags: &runFlags{inputFlags: inputFlags{whomFlags: whomFlags{provider: "vertex", baseURL: base}}, keyEnv: defaultKeyEnv},
		}
		r.flags.vendor, _ = catalog.Named("vertex")
		b := &backend{}
		if err := r.prove(b); err != nil {
			t.Fatal(err)
		}
		_, are := b.proof.(*auth.Tokens)
		said := slices.ContainsFunc(b.notice, func(n notice) bool { return strings.Contains(n.text, "is not sent to") })
		if are != tokens || said == tokens || b.proof != nil && !are || slices.Contains(b.secrets(), testKey) {
			t.Errorf("%s: %v, %q", base, b.proof, b.notice)
		}
	}
}

// A key that was typed where none belongs is not repeated, wherever it stood.
func TestTypedKeyIsNotRepeated(t *testing.T) {
	const key = "sk-live-1234567890abcdefABCDEF"
	in := filepath.Join(t.TempDir(), "in.jsonl")
	for _, args := range [][]string{
		{"run", in, "-k" + key},
		{"run", in, "-k", key},
		{"run", in, "--" + key},
		{"run", in, "--" + key + "=1"},
		{"run", in, "-" + key},
		{"run", in, "-o", "x", "--api-key=" + key},
		{"run", in, "-o", "x", "--api-key", key},
		{"run", in, "--key:" + key},
		{"run", in, "---" + key},
		{"run", in, "--=" + key},
		{"run", in, "-c" + key},
		{"run", in, "-fo" + key},
		{"run", in, "--rpm", key},
		{"run", in, "-o", "x", "--progress", key},
		{"run", in, "-o", "x", "--provider", key},
		{"run", in, "-o", "x", "--api-key-env", key},
		{"run", in, key},
		{"run", key, "-o", "x"},
		{key},
		{"plan", in, "--tier", key},
		{"plan", in, "--price", key},
		{"run", in, "-o", "x", "--price", key},
		{"run", in, "-o", "x", "--prices", key},
		{"run", in, "-o", "x", "--base-url", "https://" + key + "@host"},
		{"run", in, "-o", "x", "--config", key},
		{"status", key},
		{"sim", "--errors", key},
		{"sim", "--addr", key},
	} {
		_, stdout, stderr := inWorld(t, nil, map[string]string{}, args...)
		if stderr == "" || strings.Contains(stdout+stderr, "1234567890") {
			t.Errorf("%q: %s%s", args, stdout, stderr)
		}
	}
}

// Neither reported failures nor the settings of a run contain the key, no matter where a
// server puts it.
func TestEventsHaveNoKey(t *testing.T) {
	r := &runner{backend: backendWith(t, testKey)}
	kind, code := r.failureCode(&provider.Error{Kind: provider.Invalid, Status: 400, Code: "bad_" + testKey})
	if kind != "invalid" || code != "bad_[redacted]" {
		t.Errorf("%s, %s", kind, code)
	}
	if kind, code := r.failureCode(&provider.Error{Kind: provider.Server, Status: 502}); kind != "server" || code != "502" {
		t.Errorf("%s, %s", kind, code)
	}
	for err, want := range map[error]string{&batch.PanicError{Value: 1}: "panic", errors.New("no"): "unknown"} {
		if kind, code := r.failureCode(err); kind != want || code != "" {
			t.Errorf("%v: %s, %s", err, kind, code)
		}
	}
	f, fs := &runFlags{}, pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse([]string{"-o", "out-" + testKey, "--system", "a part of a prompt", "--template", "{{.x}}", "--cluster=nats://a-token@bus"}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HEADRACE_RPM": "60"}
	if err := f.complete(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(f.given)
	want := `[{"name":"output","value":"out-[redacted]","from":"flag"},{"name":"template","value":null,"from":"flag"},` +
		`{"name":"system","value":null,"from":"flag"},{"name":"rpm","value":"60","from":"environment"},{"name":"cluster","value":null,"from":"flag"}]`
	if err != nil || string(text) != want {
		t.Errorf("%v: %s, want %s", err, text, want)
	}
}

// What a server says of a key that it refuses repeats a part of it, which nobody can know for
// one. While the last call finishes, no picture of the run shows that, nor does its timeline.
func TestPartOfKeyIsNowhere(t *testing.T) {
	const part, why = "sk-proj-0123****HEKEY", `"held_by":"openai refuses the key: 401 invalid_api_key"`
	var calls atomic.Int64
	said := &saidTwice{words: why, is: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if calls.Add(1) == 1 {
			select { // the other has stopped the lane
			case <-said.is:
			case <-time.After(time.Minute):
			}
			fmt.Fprint(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","type":"invalid_request_error","code":"invalid_api_key"}}`, part)
	}))
	defer server.Close()
	dir := t.TempDir()
	in := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(in, []byte("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inWorldTo(t, said, nil, map[string]string{"OPENAI_API_KEY": testKey}, "run", in, "-o", filepath.Join(dir, "out.jsonl"),
		"--base-url", server.URL, "--model", "m", "--progress", progressJSON)
	if strings.Count(said.String(), why) < 2 {
		t.Fatalf("no two events are of the time in which the run had stopped: %s", said)
	}
	for name, text := range map[string]string{"events": said.String(), "timeline": read(t, filepath.Join(dir, "out.run.jsonl"))} {
		if i := strings.Index(text, "0123*"); i >= 0 {
			t.Errorf("a part of the key is in the %s: …%s…", name, text[max(0, i-200):i+20])
		}
	}
}

// saidTwice is a standard error that notices when some words are written twice.
type saidTwice struct {
	text  strings.Builder
	words string
	is    chan struct{}
}

func (s *saidTwice) Write(p []byte) (int, error) {
	before := strings.Count(s.String(), s.words)
	s.text.Write(p)
	if before < 2 && strings.Count(s.String(), s.words) >= 2 {
		close(s.is)
	}
	return len(p), nil
}

func (s *saidTwice) String() string { return s.text.String() }
