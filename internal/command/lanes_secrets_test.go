package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Lanes that prove by keys of each kind where they belong show no part of one, whatever the
// servers answer with it: in no log, summary, event, result or file, and in no row of lanes --try.
func TestNoPartOfALanesKeyIsShown(t *testing.T) {
	secrets := map[string]string{
		"KEY_BEARER": "q7ZkVw0sTn5LxHc2Bd9G", "KEY_X": "mP4rYe8uJa1NzKf6Wo3D", "KEY_GOOG": "Xs9bQh2vRt7CgUi5El0A", "KEY_AZURE": "Tj6nFy3kMw8ZpOd1Vq4S",
		"KEY_FILE": "Lr5cGx0aHe9PuBt2Ni7K", "KEY_HEADER": "Dv8oSf1yQm4WzJg6Rk3X", "AWS_SECRET_ACCESS_KEY": "Uh2wEt7iCp0YaLn5Zb9F", "AWS_SESSION_TOKEN": "Kf3dOx6gVs1MjRq8Tc4H",
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(secrets["KEY_FILE"]), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE00000000"}
	for name, secret := range secrets {
		if name != "KEY_FILE" {
			env[name] = secret
		}
	}
	in := somePrompts(t, 14, "m")
	for _, status := range []int{200, 307, 400, 401, 403, 404, 429, 500} {
		var mu sync.Mutex
		came := map[string]bool{}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := fmt.Sprint(r.Header)
			mu.Lock()
			for name, secret := range secrets {
				came[name] = came[name] || strings.Contains(said, secret)
			}
			mu.Unlock()
			said = strings.Map(func(c rune) rune {
				if c == '"' || c == '\\' {
					return -1
				}
				return c
			}, said)
			w.Header().Set("X-Request-Id", said)
			w.Header().Set("Openai-Organization", said)
			if status == 307 {
				w.Header().Set("Location", "http://example.invalid/?"+strings.ReplaceAll(said, " ", "+"))
			}
			if status == 429 {
				w.Header().Set("Retry-After", "7200") // longer than a run waits
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error":{"message":"wrong: %s","code":"%[1]s","type":"%[1]s"},"message":"%[1]s","id":"%[1]s"}`, said)
		}))
		lane := func(name, words string) string {
			return fmt.Sprintf("  %s: {%s, base-url: %q}\n", name, words, server.URL)
		}
		config := lanesFile(t, "lanes:\n"+lane("bearer", "provider: openai, api-key-env: KEY_BEARER")+lane("x", "provider: anthropic, api-key-env: KEY_X")+
			lane("goog", "provider: gemini, api-key-env: KEY_GOOG")+lane("azure", "provider: azure, api-key-env: KEY_AZURE")+lane("file", "provider: openai, api-key-file: "+file)+
			lane("header", "provider: openai, api-key-env: none, headers: {X-Gateway-Key: env:KEY_HEADER}")+lane("aws", "provider: bedrock, region: us-east-1"))
		dir := t.TempDir()
		out := filepath.Join(dir, "out.jsonl")
		var all strings.Builder
		for _, args := range [][]string{
			{"run", in, "-o", out, "--config", config, "--log-level", "debug", "--log-file", filepath.Join(dir, "log"), "--progress", "json", "--verbose", "--max-attempts", "1", "--keep-going"},
			{"status", out},
			{"lanes", "--config", config, "--try", "--model", "m"},
		} {
			_, stdout, stderr := inWorld(t, strings.NewReader(""), env, args...)
			all.WriteString(stdout + stderr)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) < 3 {
			t.Fatal(len(entries), err, all.String())
		}
		for _, e := range entries {
			all.WriteString(read(t, filepath.Join(dir, e.Name())))
		}
		server.Close()
		for name, secret := range secrets {
			if !came[name] && name != "AWS_SECRET_ACCESS_KEY" { // that one only signs
				t.Errorf("%d: %s did not come: %v", status, name, came)
			}
			for i := 0; i+8 <= len(secret); i++ {
				if at := strings.Index(all.String(), secret[i:i+8]); at >= 0 {
					t.Errorf("%d: a part of %s is shown: …%s…", status, name, all.String()[max(0, at-150):at+20])
					break
				}
			}
		}
	}
}
