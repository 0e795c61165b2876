package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	serveWord = "serve"
	chatPath  = "/v1/chat/completions"
	booksPath = "/books"
)

// books counts what the server has seen since the last request for them.
type books struct {
	Calls       int64 `json:"calls"`
	Connections int64 `json:"connections"`
}

// answer is roughly what OpenAI sends for a short prompt.
const answer = `{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"bench-1",` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"The three rivers are the Danube, the Inn and the Mur.","refusal":null},` +
	`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":61,"completion_tokens":14,"total_tokens":75}}`

// serve answers until its process is ended. It first prints a line with its URL.
func serve(out io.Writer, latency time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var calls, connections atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+chatPath, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // if it breaks, the answer will too
		if calls.Add(1); latency > 0 {
			time.Sleep(latency)
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = io.WriteString(w, answer)
	})
	mux.HandleFunc("POST "+booksPath, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(books{calls.Swap(0), connections.Swap(0)})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}}
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	return server.Serve(listener)
}
