package command

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

const goodAnswer = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

// wrongAnswers are servers that are none, or not what they seem.
var wrongAnswers = map[string]func() http.HandlerFunc{
	"html":  func() http.HandlerFunc { return says(200, "text/html", "<html><title>Sign in</title></html>") },
	"empty": func() http.HandlerFunc { return says(200, "application/json", "") },
	"shape": func() http.HandlerFunc {
		return says(200, "application/json", `{"error":{"message":"no upstream","code":502}}`)
	},
	"fails": func() http.HandlerFunc {
		return says(500, "application/json", `{"error":{"message":"the model did not load"}}`)
	},
	"hangs": func() http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // a client that leaves is seen only then
			<-r.Context().Done()
		}
	},
	// A firewall that dislikes one prompt, before a server that answers.
	"firewall": func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); bytes.Contains(body, []byte("DROP TABLE")) {
				says(403, "text/html", "<html><title>Request blocked</title></html>")(w, r)
				return
			}
			says(200, "application/json", goodAnswer)(w, r)
		}
	},
	"wait": func() http.HandlerFunc { return refuses("7200", -1) },
	"odd":  func() http.HandlerFunc { return refuses("315360000", 3) },
	"elsewhere": func() http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusPermanentRedirect)
		}
	},
}

func says(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// refuses refuses the first calls, less than 0 is all, with that wait.
func refuses(retryAfter string, first int64) http.HandlerFunc {
	var calls atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		if n := calls.Add(1); first < 0 || n <= first {
			w.Header().Set("Retry-After", retryAfter)
			says(429, "application/json", `{"error":{"message":"come back later","code":"rate_limit_exceeded"}}`)(w, r)
			return
		}
		says(200, "application/json", goodAnswer)(w, r)
	}
}

// startWrongServer serves one of them, and puts its base URL into $BASE: wrongserver KIND.
// Those of the name tls-KIND have a certificate that nobody trusts, which is in
// $CERTIFICATE; closed is a port at which nobody listens.
func startWrongServer(ts *testscript.TestScript, _ bool, args []string) {
	switch kind := args[0]; kind {
	case "closed":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		ts.Setenv("BASE", "http://"+l.Addr().String()+"/v1")
		ts.Check(l.Close())
	case "untrusted":
		server := httptest.NewUnstartedServer(says(200, "application/json", goodAnswer))
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail, as they must
		server.StartTLS()
		ts.Defer(server.Close)
		ts.Setenv("BASE", server.URL+"/v1")
		ts.Setenv("ADDRESS", server.Listener.Addr().String())
		file := ts.MkAbs("authority.pem")
		ts.Check(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	default:
		answer := wrongAnswers[kind]
		if answer == nil {
			ts.Fatalf("there is no wrong server %q", kind)
		}
		server := httptest.NewServer(answer())
		ts.Defer(func() { server.CloseClientConnections(); server.Close() })
		ts.Setenv("BASE", fmt.Sprintf("%s/v1", server.URL))
		ts.Setenv("ADDRESS", server.Listener.Addr().String())
	}
}
