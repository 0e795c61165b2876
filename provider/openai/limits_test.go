package openai_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/providertest"
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
	client := must.Get(openai.New(openai.Config{APIKey: "sk-not-a-key", Transport: canned{answer}}))(b)
	return client
}

// What a call costs around the wire: the request made, the answer judged and read.
func BenchmarkDo(b *testing.B) {
	prompt := []byte(`{"model":"m","messages":[{"role":"user","content":"` + string(bytes.Repeat([]byte("which rivers does it cross "), 8)) + `"}],"max_tokens":50}`)
	client := cannedClient(b)
	b.ReportAllocs()
	for b.Loop() {
		ctx, _ := provider.WithRecorder(b.Context())
		must.Get(client.Do(ctx, provider.Request{Endpoint: "/v1/chat/completions", Body: prompt}))(b)
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
			must.Get(api.CreateChatCompletion(b.Context(), request))(b)
		}
	})
	b.Run("headrace", func(b *testing.B) {
		client := cannedClient(b)
		b.ReportAllocs()
		for b.Loop() {
			ctx, _ := provider.WithRecorder(b.Context())
			must.Get(client.Chat(ctx, request))(b)
		}
	})
}

// roundTripper answers in process.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An answer of Chat holds no room once it is read, be it of OpenAI's shape or not: with
// room for one long answer, the next would wait for ever.
func TestChatHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("a", 1<<20)
		shape := `{"choices":[{"finish_reason":"stop","message":{"content":"` + long + `"}}]}`
		c := must.Get(openai.New(openai.Config{
			HoldBodies: true, MaxBodies: 1,
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{}, Request: r, ContentLength: -1,
					Body: io.NopCloser(strings.NewReader(shape)),
				}, nil
			}),
		}))(t)
		for range 3 {
			if _, err := c.Chat(t.Context(), goopenai.ChatCompletionRequest{Model: "m"}); err != nil {
				t.Error(err)
			}
		}
		shape = `{"created":"soon","choices":[{"finish_reason":"stop","message":{"content":"` + long + `"}}]}`
		for range 3 {
			var odd *provider.Error
			_, err := c.Chat(t.Context(), goopenai.ChatCompletionRequest{Model: "m"})
			if !errors.As(err, &odd) || len(odd.Body) > provider.MaxErrorBody {
				t.Errorf("%v: %d bytes are held", err, cap(odd.Body))
			}
		}
	})
}

// A redirect at home is followed with the same body, headers and key, and nothing
// is sent to the same place twice.
func TestRedirectAtHomeIsFollowedOnce(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"), body))
		if r.URL.Path != "/moved" {
			http.Redirect(w, r, "/moved", http.StatusPermanentRedirect)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(server.Close)
	reply, err := newClient(t, server.URL).Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(`{"model":"m"}`)})
	if err != nil || reply.Finish != "stop" {
		t.Fatalf("%+v, %v", reply, err)
	}
	end := " Bearer " + providertest.Key + ` {"model":"m"}`
	if want := []string{"POST /v1/chat/completions" + end, "POST /moved" + end}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// Requests are made of one that is the same for all: a transport of the user's may
// change what it is given without the next call seeing it.
func TestCustomTransportMayChangeARequest(t *testing.T) {
	var seen []string
	c := must.Get(openai.New(openai.Config{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		seen = append(seen, req.URL.Path+req.Header.Get("X-Added"))
		req.Header.Set("X-Added", " twice")
		req.URL.Path = "/changed"
		return nil, errors.New("no network here")
	})}))(t)
	for range 2 {
		_, _ = c.Do(t.Context(), provider.Request{Endpoint: "/v1/embeddings", Body: []byte(`{}`)})
	}
	if want := []string{"/v1/embeddings", "/v1/embeddings"}; !slices.Equal(seen, want) {
		t.Errorf("seen %q, want %q", seen, want)
	}
}
