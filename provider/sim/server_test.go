package sim

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
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
	r := must.Get(http.NewRequestWithContext(t.Context(), method, "http://sim"+path, strings.NewReader(body)))(t)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp := must.Get(NewTransport(s).RoundTrip(r))(t)
	defer resp.Body.Close()
	b := must.Get(io.ReadAll(resp.Body))(t)
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
	resp := must.Get(client.Post(base+"/v1/chat/completions", "application/json", strings.NewReader(chatBody("Why is the sky blue?"))))(t)
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
	resp := must.Get(api.CreateChatCompletion(t.Context(), req))(t)
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

const streamOfOne = `{"stream":true,"model":"m","messages":[{"role":"user","content":"one"}]}`

// opened asks over a socket for a stream.
func opened(ctx context.Context, t *testing.T, base string, client *http.Client) *http.Response {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", strings.NewReader(streamOfOne)))(t)
	resp := must.Get(client.Do(r))(t)
	if resp.StatusCode != http.StatusOK || len(resp.TransferEncoding) != 1 || resp.ContentLength != -1 {
		t.Errorf("%s, %v, length %d", resp.Status, resp.TransferEncoding, resp.ContentLength)
	}
	return resp
}

// step lets time pass to the next piece, once the server waits for it.
func step(t *testing.T, clock *clockwork.FakeClock, gap time.Duration) {
	t.Helper()
	blocked(t, clock, 1)
	clock.Advance(gap)
}

// pieces returns the number of pieces of a stream: the server waits before each.
func pieces(t *testing.T) (n int) {
	t.Helper()
	s, _ := newServer(Config{})
	g := post(t, s, "/v1/chat/completions", streamOfOne)
	return len(g.body.Array())
}

// Over a socket each piece comes when it is due and not before; the last one when a plain answer would.
func TestStreamsDribble(t *testing.T) {
	n := pieces(t)
	latency := time.Duration(n) * time.Second
	s, clock := newServer(Config{Latency: Latency{Median: latency}})
	base, client := socket(t, s)
	go func() { _ = clock.BlockUntilContext(t.Context(), 1); clock.Advance(time.Second) }()
	resp := opened(t.Context(), t, base, client)
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := range n {
		if i > 0 {
			step(t, clock, time.Second)
		}
		for range 2 { // a line of data, and an empty one
			if line, err := in.ReadString('\n'); err != nil {
				t.Fatalf("piece %d: %q, %v", i, line, err)
			}
		}
		if in.Buffered() > 0 && i < n-1 {
			t.Fatalf("after piece %d the next one is there already", i)
		}
	}
	rest, err := io.ReadAll(in)
	if string(rest) != "data: [DONE]\n\n" || err != nil || clock.Since(epoch) != latency {
		t.Errorf("%q, %v after %v", rest, err, clock.Since(epoch))
	}
	if b := s.Books(); b.Accepted != 1 || b.Abandoned != 0 {
		t.Errorf("%+v", b)
	}
}

// A caller that leaves in the middle ends the stream, and the books say so; one that has all but the
// end of the connection has not left.
func TestLeavingAStream(t *testing.T) {
	t.Run("socket", func(t *testing.T) {
		s, clock := newServer(Config{Latency: Latency{Median: time.Hour}, TrackIDs: true})
		base, client := socket(t, s)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() { _ = clock.BlockUntilContext(t.Context(), 1); clock.Advance(time.Hour / 2) }()
		resp := opened(ctx, t, base, client)
		defer resp.Body.Close()
		leave()
		for s.Books().Abandoned == 0 && t.Context().Err() == nil {
			runtime.Gosched()
		}
		if b := s.Books(); b.Accepted != 1 || b.Abandoned != 1 || b.Distinct != 0 {
			t.Errorf("%+v", b)
		}
	})
	for after, want := range map[int]int{0: 1, 3: 1, pieces(t): 0} {
		s, _ := newServer(Config{TrackIDs: true})
		resp := inStream(t.Context(), t, s)
		for range after {
			must.Get(resp.Body.Read(make([]byte, 1024)))(t)
		}
		for range 2 { // a second close is no second leave
			_ = resp.Body.Close()
		}
		if b := s.Books(); b.Abandoned != want {
			t.Errorf("after %d pieces: %+v", after, b)
		}
	}
	s, clock := newServer(Config{Latency: Latency{Median: time.Hour}})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() { _ = clock.BlockUntilContext(t.Context(), 1); clock.Advance(time.Hour / 2) }()
	resp := inStream(ctx, t, s)
	cancel(cause)
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, cause) || s.Books().Abandoned != 1 {
		t.Errorf("%v, %+v", err, s.Books())
	}
}

// inStream asks in process for a stream.
func inStream(ctx context.Context, t *testing.T, s *Server) *http.Response {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, "http://sim/v1/chat/completions", strings.NewReader(streamOfOne)))(t)
	resp := must.Get(NewTransport(s).RoundTrip(r))(t)
	return resp
}

// A stream is cut in its middle: the pieces before arrive, and then the connection is broken.
func TestCutStreams(t *testing.T) {
	cfg := Config{Errors: Rates{Truncated: 1}}
	whole, _ := newServer(Config{})
	all, _ := io.ReadAll(inStream(t.Context(), t, whole).Body)
	s, _ := newServer(cfg)
	near, err := io.ReadAll(inStream(t.Context(), t, s).Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("in process: %v", err)
	}
	s, _ = newServer(cfg)
	base, client := socket(t, s)
	resp := opened(t.Context(), t, base, client)
	defer resp.Body.Close()
	far, err := io.ReadAll(resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || string(far) != string(near) {
		t.Errorf("over a socket: %v, %d bytes, and %d in process", err, len(far), len(near))
	}
	if rest, begins := strings.CutPrefix(string(all), string(near)); !begins || strings.Count(rest, "data: ")-strings.Count(string(near), "data: ") > 2 {
		t.Errorf("%d of %d bytes", len(near), len(all))
	}
}

// A silent stream begins, says nothing more, and ends when the caller leaves or the server does.
func TestSilentStreams(t *testing.T) {
	cfg, half := Config{Errors: Rates{StreamSilent: 1}}, pieces(t)/2
	s, _ := newServer(cfg)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	resp := inStream(ctx, t, s)
	for range half { // a piece at a time
		must.Get(resp.Body.Read(make([]byte, 1024)))(t)
	}
	cancel(cause)
	if said, err := io.ReadAll(resp.Body); len(said) > 0 || !errors.Is(err, cause) {
		t.Errorf("in process: %q, %v", said, err)
	}
	s, _ = newServer(cfg)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	bound, served := make(chan net.Addr, 1), make(chan error, 1)
	go func() { served <- Serve(ctx, ":0", s, OnReady(func(a net.Addr) { bound <- a })) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp = opened(t.Context(), t, "http://"+(<-bound).String(), client)
	defer resp.Body.Close()
	stop()
	if said, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || strings.Count(string(said), "data: ") != half {
		t.Errorf("over a socket: %q, %v", said, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if b := s.Books(); b.Errors[StreamSilent] != 1 || b.Abandoned != 0 {
		t.Errorf("%+v", b)
	}
}
