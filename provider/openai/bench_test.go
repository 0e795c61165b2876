package openai_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
)

// canned answers at once, without a network.
type canned struct{ body []byte }

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, req.Body)
	_ = req.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{
			"Content-Type": {"application/json"}, "Date": {"Fri, 20 Nov 2026 10:00:00 GMT"}, "Content-Length": {"450"},
			"X-Request-Id":                   {"req_123"},
			"X-Ratelimit-Limit-Requests":     {"10000"},
			"X-Ratelimit-Remaining-Requests": {"9999"},
			"X-Ratelimit-Reset-Requests":     {"6ms"},
		},
		ContentLength: int64(len(c.body)), Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

// answer is about what OpenAI sends for a short prompt.
var answer = []byte(`{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion","created":1741569952,"model":"m",` +
	`"choices":[{"index":0,"message":{"role":"assistant","content":"The three rivers are the Danube, the Inn and the Mur.","refusal":null},` +
	`"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":61,"completion_tokens":14,"total_tokens":75}}`)

// cannedClient is a client that is answered by canned.
func cannedClient(b *testing.B) *openai.Client {
	client, err := openai.New(openai.Config{APIKey: "sk-not-a-key", Transport: canned{answer}})
	if err != nil {
		b.Fatal(err)
	}
	return client
}

// What a call costs around the wire: the request made, the answer judged and read.
func BenchmarkDo(b *testing.B) {
	prompt := []byte(`{"model":"m","messages":[{"role":"user","content":"` + string(bytes.Repeat([]byte("which rivers does it cross "), 8)) + `"}],"max_tokens":50}`)
	client := cannedClient(b)
	b.ReportAllocs()
	for b.Loop() {
		ctx, _ := provider.WithRecorder(b.Context())
		if _, err := client.Do(ctx, provider.Request{Endpoint: "/v1/chat/completions", Body: prompt}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChat compares Chat with go-openai alone, over the same transport.
func BenchmarkChat(b *testing.B) {
	request := goopenai.ChatCompletionRequest{Model: "m", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "Which rivers does it cross?"}}, MaxCompletionTokens: 50}
	b.Run("go-openai", func(b *testing.B) {
		cfg := goopenai.DefaultConfig("sk-not-a-key")
		cfg.HTTPClient = &http.Client{Transport: canned{answer}}
		api := goopenai.NewClientWithConfig(cfg)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := api.CreateChatCompletion(b.Context(), request); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("headrace", func(b *testing.B) {
		client := cannedClient(b)
		b.ReportAllocs()
		for b.Loop() {
			ctx, _ := provider.WithRecorder(b.Context())
			if _, err := client.Chat(ctx, request); err != nil {
				b.Fatal(err)
			}
		}
	})
}
