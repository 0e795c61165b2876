package command

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/must"
)

// A secret of a header is in nothing that is printed or written: not when all goes well, not when
// it is refused, and not when the server repeats it, with what stands before it or without.
func TestSecretOfAHeaderIsNowhere(t *testing.T) {
	const secret = "0123456789-abcdef-THESECRET"
	answers := map[string]func(w http.ResponseWriter, key string){
		"well": func(w http.ResponseWriter, _ string) { fmt.Fprint(w, goodAnswer) },
		"echoed well": func(w http.ResponseWriter, key string) {
			w.Header().Set("X-Request-Id", key)
			escaped := strings.ReplaceAll(key, "-", `\u002d`)
			fmt.Fprintf(w, `{"choices":[{"message":{"content":"%s and %s"},"finish_reason":"%s"}],"%s":1}`, escaped, key, escaped, escaped)
		},
		"echo": func(w http.ResponseWriter, key string) {
			w.Header().Set("X-Request-Id", key)
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"bad header: %s, %s","code":"%s"}}`, key, secret, key)
		},
		"refused": func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"no such key: %s","code":"invalid_api_key"}}`, key)
		},
		"limited": func(w http.ResponseWriter, key string) {
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprintf(w, `{"error":{"message":"too many calls by %s"}}`, key)
		},
		"html": func(w http.ResponseWriter, key string) { fmt.Fprintf(w, "<html>%s</html>", key) },
		"streamed": func(w http.ResponseWriter, key string) {
			streamPieces(w, key[:15], key[15:])
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		},
		"streamed, broken": func(w http.ResponseWriter, key string) { streamPieces(w, key) },
		"streamed, refused": func(w http.ResponseWriter, key string) {
			streamPieces(w, "so")
			fmt.Fprintf(w, "data: {\"error\":{\"message\":\"lost %s\",\"type\":\"server_error\"}}\n\n", key)
		},
		"moved": func(w http.ResponseWriter, key string) {
			w.Header().Set("Location", "http://example.invalid/"+secret)
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
	}
	inFile := filepath.Join(t.TempDir(), "key")
	must.Do(t, os.WriteFile(inFile, []byte(secret), 0o600))
	for name, answer := range answers {
		for how, sent := range map[string]string{"env:K": secret, "Bearer env:K": "Bearer " + secret, "env:BEARS": "Bearer " + secret, "file:" + inFile: secret} {
			progress := map[bool]string{true: settings.ProgressJSON, false: settings.ProgressPlain}[strings.HasPrefix(how, "env")]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if got := r.Header.Get("X-Gateway-Key"); got != sent {
					t.Errorf("%s: %q came", how, got)
				}
				answer(w, sent)
			}))
			in := writeLines(t, `{"prompt":"hi"}`+"\n")
			dir := filepath.Dir(in)
			out := filepath.Join(dir, "out.jsonl")
			_, stdout, stderr := inWorld(t, nil, map[string]string{"K": secret, "BEARS": "Bearer " + secret}, "run", in, "-o", out, "--base-url", server.URL, "--model", "m",
				"--header", "X-Gateway-Key="+how, "--log-level", "debug", "--progress", progress, "--max-attempts", "1", "--log-file", filepath.Join(dir, "out.log"), "--verbose",
				"--stream", map[bool]string{true: "always", false: "never"}[strings.HasPrefix(name, "streamed")])
			keeps(t, map[bool]string{true: stderr}[progress == settings.ProgressJSON])
			everything := stdout + stderr
			_, stdout, stderr = inWorld(t, nil, nil, "status", out)
			everything += stdout + stderr
			files, _ := filepath.Glob(filepath.Join(dir, "out*"))
			for _, f := range files {
				everything += read(t, f)
			}
			everything = strings.NewReplacer(`\u002d`, "-", `\\u002d`, "-").Replace(everything)
			if i := strings.Index(everything, secret[:12]); i >= 0 || len(files) < 2 {
				t.Errorf("%s, %s: there is the secret in %d files: …%s…", name, how, len(files), everything[max(0, i-80):min(len(everything), max(0, i)+80)])
			}
			server.Close()
		}
	}
}

// streamPieces begins a stream of an answer.
func streamPieces(w http.ResponseWriter, pieces ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, piece := range pieces {
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", piece)
	}
}

// A secret that cannot be told from a word or a number is not removed from answers, and a notice says so.
func TestSecretTooShortToHide(t *testing.T) {
	for secret, want := range map[string]bool{"pk-1": true, "passwordpass": true, "123456789012": true, "pk-0123456789abcdef": false, "correct horse battery": false} {
		s := newCame(t)
		in := writeLines(t, `{"prompt":"hi"}`+"\n")
		file := filepath.Join(filepath.Dir(in), "secret")
		must.Do(t, os.WriteFile(file, []byte(secret), 0o600))
		for _, from := range []string{"env:K", "file:" + file} {
			_, place, _ := strings.Cut(from, ":")
			code, _, said := inWorld(t, nil, map[string]string{"K": secret}, "run", in, "-o", in+".out", "--fresh", "--base-url", s.URL, "--model", "m", "--header", "X-Gateway-Key="+from)
			if says := "what is in " + place + " is short, a plain word or a number: it is not removed from answers that repeat it"; code != 0 || strings.Contains(said, says) != want || strings.Contains(said, secret) {
				t.Errorf("%s, %s: exit code %d: %s", secret, from, code, said)
			}
		}
	}
}

// A secret goes to the vendor's own hosts unencrypted only if that was allowed.
func TestSecretHeadersInClear(t *testing.T) {
	env := map[string]string{"K": "pk-0123456789abcdef", "OPENAI_API_KEY": testKey}
	in := writeLines(t, `{"prompt":"hi"}`+"\n")
	const openly = "--base-url http://api.openai.com/v1 --api-key-env none --header X-Gateway-Key=env:K"
	code, _, said := inWorld(t, nil, env, append([]string{"run", in, "-o", in + ".out", "--model", "m"}, strings.Fields(openly)...)...)
	if code != exit.Usage || !strings.Contains(said, "it says http, so what is in K would be sent unencrypted to api.openai.com: try https://api.openai.com/v1, or add --insecure-http") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
