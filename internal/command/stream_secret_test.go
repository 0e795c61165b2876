package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// A secret that a server says in a stream, split over its events, in an error or in an id, is in no file and in nothing
// that is said.
func TestSecretsOfStreamsAreRedacted(t *testing.T) {
	const secret, chunk = "pk-0123456789-abcdef-THESECRET", `data: {"id":"%s","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]}` + "\n\n"
	for _, mode := range []string{"split", "error", "id"} {
		t.Run(mode, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("X-Request-Id", secret)
				id := "x"
				if mode == "id" {
					id = secret
				}
				for i := 0; i < len(secret); i += 3 {
					fmt.Fprintf(w, chunk, id, `"role":"assistant","content":"`+secret[i:min(len(secret), i+3)]+`"`, "null")
					w.(http.Flusher).Flush()
				}
				if mode == "error" {
					fmt.Fprintf(w, "data: {\"error\":{\"message\":\"bad %s\",\"code\":\"%s\"}}\n\n", secret, secret)
					return
				}
				fmt.Fprintf(w, chunk+"data: [DONE]\n\n", id, "", `"stop"`)
			}))
			defer server.Close()
			in := writeLines(t, `{"prompt":"hi"}`+"\n")
			dir := filepath.Dir(in)
			_, stdout, stderr := inWorld(t, nil, map[string]string{"K": secret}, "run", in, "-o", filepath.Join(dir, "out.jsonl"), "--base-url", server.URL, "--model", "m",
				"--stream", "always", "--header", "X-Gateway-Key=env:K", "--log-level", "debug", "--max-attempts", "1", "--log-file", filepath.Join(dir, "out.log"))
			all := stdout + stderr
			files, err := filepath.Glob(filepath.Join(dir, "out*"))
			if err != nil || len(files) < 2 {
				t.Fatalf("%v, %v", files, err)
			}
			for _, f := range files {
				all += read(t, f)
			}
			if strings.Contains(all, secret[:12]) || strings.Contains(all, secret[12:]) {
				t.Errorf("the secret shows: %s", all)
			}
			if !strings.Contains(all, "[redacted]") {
				t.Errorf("nothing was redacted: %s", all)
			}
		})
	}
}
