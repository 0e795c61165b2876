package servers

import (
	"io"
	"net/http"
	"time"
)

// answer is a minimal chat completion. It contains the usage because headrace learns token
// limits from it.
const answer = `{"id":"chatcmpl-peer","object":"chat.completion","created":1741569952,"model":"m",` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"The Danube, the Inn and the Mur."},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":12,"completion_tokens":10,"total_tokens":22}}`

// backend answers each call after its time.
func backend(latency time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read(r)
		time.Sleep(latency)
		reply(w)
	})
}

// read takes the whole body, so that the connection can be used again.
func read(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }

func reply(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

// refuse answers as OpenAI does, without saying when to come back.
func refuse(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

const (
	silentBody = `{"error":{"message":"Too Many Requests","type":"requests","param":null,"code":"rate_limit_exceeded"}}`
	faultBody  = `{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}`
)
