package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
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
		for _, progress := range []string{settings.ProgressPlain, settings.ProgressJSON} {
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
				must.Do(t, os.WriteFile(in, []byte(`{"prompt":"the prompt itself"}`+"\n"), 0o600))
				_, stdout, stderr := inWorld(t, nil, map[string]string{"MY_KEY": testKey + "\n"}, "run", in, "-o", filepath.Join(dir, "out.jsonl"),
					"--base-url", server.URL, "--api-key-env", "MY_KEY", "--model", "m", "--log-level", "debug", "--progress", progress, "--max-attempts", "1", "--log-file", filepath.Join(dir, "out.log"))
				keeps(t, stderr)
				everything := stdout + stderr
				asText := strings.NewReplacer(`\u002d`, "-", `\\u002d`, "-")
				files, _ := filepath.Glob(filepath.Join(dir, "out*"))
				for _, f := range files {
					text := must.Get(os.ReadFile(f))(t)
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
	text := must.Get(os.ReadFile(path))(t)
	return string(text)
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
	must.Do(t, os.WriteFile(in, []byte("{\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n"), 0o600))
	inWorldTo(t, said, nil, map[string]string{"OPENAI_API_KEY": testKey}, "run", in, "-o", filepath.Join(dir, "out.jsonl"),
		"--base-url", server.URL, "--model", "m", "--progress", settings.ProgressJSON)
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
