package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
					"--base-url", server.URL, "--api-key-env", "MY_KEY", "--model", "m", "--log-level", "debug", "--progress", progress, "--max-attempts", "1")
				everything := stdout + stderr
				files, _ := filepath.Glob(filepath.Join(dir, "out*"))
				for _, f := range files {
					text, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					everything += string(text)
				}
				if i := strings.Index(everything, testKey[:12]); i >= 0 {
					t.Errorf("there is the key: …%s…", everything[max(0, i-80):min(len(everything), i+80)])
				}
				if strings.Contains(stderr, "the prompt itself") {
					t.Error("there is the prompt")
				}
			})
		}
	}
}
