package sim

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	openai "github.com/sashabaranov/go-openai"
	"github.com/tidwall/gjson"
)

func newServer(cfg Config) (*Server, *clockwork.FakeClock) {
	clock := clockwork.NewFakeClockAt(epoch)
	return New(cfg, clock), clock
}

// socket serves over a real socket, with a client of its own that is closed.
func socket(t *testing.T, s *Server) (base string, client *http.Client) {
	t.Helper()
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	return ts.URL, ts.Client()
}

func chatBody(prompt string) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":%s}]}`, quote(prompt))
}

type got struct {
	status int
	header http.Header
	body   gjson.Result
}

// send asks in process.
func send(t *testing.T, s *Server, method, path, body string, header ...string) got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://sim"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := NewTransport(s).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get("X-Request-Id") == "" {
		t.Error("an answer without x-request-id")
	}
	if streamed(resp.Header) {
		b = dataOf(b)
	}
	if !gjson.ValidBytes(b) {
		t.Fatalf("not JSON: %q", b)
	}
	return got{resp.StatusCode, resp.Header, gjson.ParseBytes(b)}
}

func streamed(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// dataOf is the data of server-sent events as a list, without OpenAI's end mark.
func dataOf(stream []byte) []byte {
	var list []string
	for line := range strings.Lines(string(stream)) {
		if data, found := strings.CutPrefix(line, "data: "); found && data != "[DONE]\n" {
			list = append(list, data)
		}
	}
	return []byte("[" + strings.Join(list, ",") + "]")
}

func post(t *testing.T, s *Server, path, body string, header ...string) got {
	t.Helper()
	return send(t, s, http.MethodPost, path, body, header...)
}

func (g got) want(t *testing.T, path string, want any) {
	t.Helper()
	if have := g.body.Get(path).Value(); have != want {
		t.Errorf("%s is %v (%T), want %v\nin %s", path, have, have, want, g.body.Raw)
	}
}

// Over a socket, with a plain client: the answer is the prompt's own, and looks
// like OpenAI's.
func TestChatOverSocket(t *testing.T) {
	s, _ := newServer(Config{})
	base, client := socket(t, s)
	resp, err := client.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(chatBody("Why is the sky blue?")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	g := got{resp.StatusCode, resp.Header, gjson.ParseBytes(b)}
	if g.status != 200 || g.header.Get("Content-Type") != "application/json" || g.header.Get("X-Request-Id") == "" {
		t.Errorf("%d %v", g.status, g.header)
	}
	answer := Answer("Why is the sky blue?")
	if !strings.Contains(answer, Checksum("Why is the sky blue?")) || len(answer) > 128 {
		t.Errorf("answer %q", answer)
	}
	g.want(t, "object", "chat.completion")
	g.want(t, "model", "m")
	g.want(t, "created", float64(epoch.Unix()))
	g.want(t, "system_fingerprint", "sim")
	g.want(t, "choices.#", 1.0)
	g.want(t, "choices.0.message.role", "assistant")
	g.want(t, "choices.0.message.content", answer)
	g.want(t, "choices.0.finish_reason", "stop")
	g.want(t, "usage.prompt_tokens", 8.0) // 9 + 20 characters
	g.want(t, "usage.completion_tokens", float64(tokensOf(len(answer))))
	g.want(t, "usage.total_tokens", 8+float64(tokensOf(len(answer))))
}

// go-openai, a client that others wrote, reads answers, refusals and vectors.
func TestGoOpenAI(t *testing.T) {
	s, _ := newServer(Config{RPM: 120, Burst: time.Second, RetryAfter: Always, Headers: true})
	base, client := socket(t, s)
	cfg := openai.DefaultConfig("key")
	cfg.BaseURL, cfg.HTTPClient = base+"/v1", client
	api := openai.NewClientWithConfig(cfg)

	req := openai.ChatCompletionRequest{Model: "gpt-4o", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}}
	resp, err := api.CreateChatCompletion(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Choices[0].Message.Content != Answer("hello") || resp.Choices[0].FinishReason != openai.FinishReasonStop {
		t.Errorf("%+v", resp)
	}
	if h := resp.GetRateLimitHeaders(); h.LimitRequests != 120 || h.RemainingRequests != 1 || h.ResetRequests != "500ms" {
		t.Errorf("%+v", h)
	}
	vectors, err := api.CreateEmbeddings(t.Context(), openai.EmbeddingRequest{Model: "e", Input: []string{"a", "b"}})
	if err != nil || len(vectors.Data) != 2 || vectors.Data[1].Embedding[3] != Embedding("b")[3] {
		t.Errorf("%v %+v", err, vectors)
	}
	resp, err = api.CreateChatCompletion(t.Context(), req)
	var refusal *openai.APIError
	if !errors.As(err, &refusal) || refusal.HTTPStatusCode != 429 || refusal.Code != "rate_limit_exceeded" || refusal.Type != "requests" {
		t.Errorf("%#v", err)
	}
	if resp.Header().Get("Retry-After") != "1" {
		t.Errorf("%v", resp.Header())
	}
}

// The prompt that is answered is the user's last word, in each dialect.
func TestEachEndpointAnswersItsPrompt(t *testing.T) {
	s, _ := newServer(Config{})
	chat := post(t, s, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"two"},{"role":"user","content":[{"type":"text","text":"three"},{"type":"image_url"},{"type":"text","text":"four"}]},{"role":"tool","content":"x"}]}`)
	chat.want(t, "choices.0.message.content", Answer("three\nfour"))
	post(t, s, "/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"alone"}]}`).
		want(t, "choices.0.message.content", Answer("alone"))

	text := post(t, s, "/v1/completions", `{"model":"m","prompt":["one","two"]}`)
	text.want(t, "object", "text_completion")
	text.want(t, "choices.1.text", Answer("two"))
	text.want(t, "choices.1.index", 1.0)

	response := post(t, s, "/v1/responses", `{"model":"m","input":"one"}`)
	response.want(t, "object", "response")
	response.want(t, "status", "completed")
	response.want(t, "output.0.content.0.text", Answer("one"))
	response.want(t, "usage.input_tokens", 1.0)
	post(t, s, "/v1/responses", `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"two"}]}]}`).
		want(t, "output.0.content.0.text", Answer("two"))

	post(t, s, "/v1/embeddings", `{"model":"m","input":[1,2]}`).want(t, "data.#", 1.0)
	post(t, s, "/v1/embeddings", `{"model":"m","input":[[1],[2]]}`).want(t, "data.#", 2.0)
	coded := post(t, s, "/v1/embeddings", `{"model":"m","input":"one","encoding_format":"base64"}`)
	raw, err := base64.StdEncoding.DecodeString(coded.body.Get("data.0.embedding").String())
	if err != nil || len(raw) != 4*dimensions {
		t.Errorf("%v: %d bytes", err, len(raw))
	}
}

// An answer stops at max_tokens and says so.
func TestMaxTokensCutsTheAnswer(t *testing.T) {
	s, _ := newServer(Config{})
	g := post(t, s, "/v1/chat/completions", `{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"one"}]}`)
	g.want(t, "choices.0.message.content", Answer("one")[:12])
	g.want(t, "choices.0.finish_reason", "length")
	g.want(t, "usage.completion_tokens", 3.0)
	r := post(t, s, "/v1/responses", `{"model":"m","max_output_tokens":3,"input":"one"}`)
	r.want(t, "status", "incomplete")
	r.want(t, "incomplete_details.reason", "max_output_tokens")
}

// The charge at admission is the larger of max_tokens and a quarter of the
// characters.
func TestCharge(t *testing.T) {
	s, _ := newServer(Config{TPM: 60_000, Headers: true})
	for _, c := range []struct{ body, remaining string }{
		{`{"model":"m","max_tokens":100,"input":"short"}`, "59900"},
		{fmt.Sprintf(`{"model":"m","max_tokens":100,"input":"%s"}`, strings.Repeat("é", 4000)), "58900"},
		{`{"model":"m","input":""}`, "58899"},
	} {
		if r := post(t, s, "/v1/embeddings", c.body).header.Get("X-Ratelimit-Remaining-Tokens"); r != c.remaining {
			t.Errorf("remaining %s, want %s", r, c.remaining)
		}
	}
}

// The words of a refusal are OpenAI's, and the wait in them is
// (Used + Requested − Limit)/(Limit/60).
func TestRateLimitBody(t *testing.T) {
	s, clock := newServer(Config{RPM: 600, TPM: 30_000, RetryAfter: Always, Headers: true})
	for range 600 {
		post(t, s, "/v1/embeddings", `{"model":"m","input":"a"}`)
	}
	g := post(t, s, "/v1/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":"x"}]}`)
	g.want(t, "error.message", "Rate limit reached for gpt-4o in organization org-sim on requests per min (RPM): Limit 600, Used 600, Requested 1. Please try again in 100ms.")
	g.want(t, "error.type", "requests")
	g.want(t, "error.code", "rate_limit_exceeded")
	g.want(t, "error.param", nil)
	for name, want := range map[string]string{
		"Retry-After": "1", "Retry-After-Ms": "",
		"X-Ratelimit-Limit-Requests": "600", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "1m0s",
		"X-Ratelimit-Limit-Tokens": "30000", "X-Ratelimit-Remaining-Tokens": "29400", "X-Ratelimit-Reset-Tokens": "1.2s",
	} {
		if h := g.header.Get(name); h != want {
			t.Errorf("%s: %q, want %q", name, h, want)
		}
	}

	clock.Advance(time.Hour)
	post(t, s, "/v1/responses", `{"model":"gpt-4","input":"x","max_output_tokens":29937}`)
	g = post(t, s, "/v1/responses", `{"model":"gpt-4","input":"x","max_output_tokens":385}`)
	g.want(t, "error.message", "Rate limit reached for gpt-4 in organization org-sim on tokens per min (TPM): Limit 30000, Used 29937, Requested 385. Please try again in 644ms.")
	g.want(t, "error.type", "tokens")

	g = post(t, s, "/v1/responses", `{"model":"gpt-4","input":"x","max_output_tokens":30601}`)
	g.want(t, "error.message", "Request too large for gpt-4 in organization org-sim on tokens per min (TPM): Limit 30000, Requested 30601. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.")
	g.want(t, "error.type", "tokens")
}

// A fraction that is left is not promised: a remainder is rounded down, and
// what is used up.
func TestFractionsAreNotPromised(t *testing.T) {
	s, clock := newServer(Config{RPM: 60, Burst: 2 * time.Second, Headers: true})
	ask := func() got { return post(t, s, "/v1/embeddings", `{"model":"m","input":"a"}`) }
	ask()
	ask()
	clock.Advance(1700 * ms)
	if h := ask().header; h.Get("X-Ratelimit-Remaining-Requests") != "0" || h.Get("X-Ratelimit-Reset-Requests") != "1.3s" {
		t.Errorf("%v", h)
	}
	ask().want(t, "error.message", "Rate limit reached for m in organization org-sim on requests per min (RPM): Limit 60, Used 60, Requested 1. Please try again in 300ms.")
}

// Retry-After-Ms comes in addition to Retry-After when it is asked for.
func TestRetryAfterInMilliseconds(t *testing.T) {
	s, _ := newServer(Config{RPM: 600, Burst: ms, RetryAfter: Always, RetryAfterMS: true})
	post(t, s, "/v1/embeddings", `{"model":"m","input":"a"}`)
	h := post(t, s, "/v1/embeddings", `{"model":"m","input":"a"}`).header
	if h.Get("Retry-After") != "1" || h.Get("Retry-After-Ms") != "100" || h.Get("X-Ratelimit-Limit-Requests") != "" {
		t.Errorf("%v", h)
	}
}
