package sim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
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
	if !gjson.ValidBytes(b) {
		t.Fatalf("not JSON: %q", b)
	}
	return got{resp.StatusCode, resp.Header, gjson.ParseBytes(b)}
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

// Retry-After-Ms comes beside Retry-After when it is asked for.
func TestRetryAfterInMilliseconds(t *testing.T) {
	s, _ := newServer(Config{RPM: 600, Burst: ms, RetryAfter: Always, RetryAfterMS: true})
	post(t, s, "/v1/embeddings", `{"model":"m","input":"a"}`)
	h := post(t, s, "/v1/embeddings", `{"model":"m","input":"a"}`).header
	if h.Get("Retry-After") != "1" || h.Get("Retry-After-Ms") != "100" || h.Get("X-Ratelimit-Limit-Requests") != "" {
		t.Errorf("%v", h)
	}
}

// Every other refusal has its status, type and code.
func TestErrorBodies(t *testing.T) {
	const chat = "/v1/chat/completions"
	ok := chatBody("a")
	down := Config{Outages: []Outage{{For: time.Hour, Mode: Outage503}}}
	for _, c := range []struct {
		name, method, path, body string
		cfg                      Config
		status                   int
		kind, code               any
	}{
		{"key", "POST", chat, ok, Config{Keys: []string{"k"}}, 401, invalidRequest, "invalid_api_key"},
		{"model", "POST", chat, ok, Config{Models: []string{"x"}}, 404, invalidRequest, "model_not_found"},
		{"outage", "POST", chat, ok, down, 503, "server_error", "server_is_overloaded"},
		{"500", "POST", chat, ok, Config{Errors: Rates{Server500: 1}}, 500, "server_error", nil},
		{"400", "POST", chat, ok, Config{Errors: Rates{BadRequest400: 1}}, 400, invalidRequest, nil},
		{"no JSON", "POST", chat, `{"model":`, Config{}, 400, invalidRequest, nil},
		{"no object", "POST", chat, `[]`, Config{}, 400, invalidRequest, nil},
		{"no body", "POST", chat, ``, Config{}, 400, invalidRequest, nil},
		{"no model", "POST", chat, `{"messages":[{"role":"user","content":"a"}]}`, Config{}, 400, invalidRequest, nil},
		{"no messages", "POST", chat, `{"model":"m"}`, Config{}, 400, invalidRequest, nil},
		{"a stream", "POST", chat, `{"stream":true,` + ok[1:], Config{}, 400, invalidRequest, nil},
		{"no tokens", "POST", chat, `{"max_tokens":0,` + ok[1:], Config{}, 400, invalidRequest, nil},
		{"too many", "POST", "/v1/embeddings", `{"model":"m","input":["a"` + strings.Repeat(`,"a"`, maxInputs) + `]}`, Config{}, 400, invalidRequest, nil},
		{"unknown URL", "POST", "/v2/chat", ok, Config{}, 404, invalidRequest, "unknown_url"},
		{"a wrong method", "GET", chat, "", Config{}, 405, invalidRequest, "method_not_supported"},
		{"a wrong method", "POST", "/v1/models", "", Config{}, 405, invalidRequest, "method_not_supported"},
		{"key for the list", "GET", "/v1/models", "", Config{Keys: []string{"k"}}, 401, invalidRequest, "invalid_api_key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newServer(c.cfg)
			g := send(t, s, c.method, c.path, c.body)
			if g.status != c.status || g.body.Get("error.message").String() == "" {
				t.Errorf("%d %s", g.status, g.body.Raw)
			}
			g.want(t, "error.type", c.kind)
			g.want(t, "error.code", c.code)
		})
	}
}

// A key that is accepted is accepted, and a spent balance says insufficient_quota.
func TestKeyAndQuota(t *testing.T) {
	s, _ := newServer(Config{Keys: []string{"k"}, QuotaAfter: 1})
	for i, status := range []int{200, 429} {
		g := post(t, s, "/v1/chat/completions", chatBody("a"), "Authorization", "Bearer k")
		if g.status != status {
			t.Errorf("call %d: %d", i, g.status)
		}
		if status == 429 {
			g.want(t, "error.type", "insufficient_quota")
			g.want(t, "error.code", "insufficient_quota")
		}
	}
}

// No two answers share a request id, whatever kind they are.
func TestRequestIDsDiffer(t *testing.T) {
	s, _ := newServer(Fast())
	seen := map[string]bool{}
	for range 10 {
		seen[post(t, s, "/v1/chat/completions", chatBody("a")).header.Get("X-Request-Id")] = true
		seen[send(t, s, "GET", "/healthz", "").header.Get("X-Request-Id")] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d ids in 20 answers", len(seen))
	}
}

// The other paths: models, health, and the books without and with their IDs.
func TestLooking(t *testing.T) {
	s, _ := newServer(Config{TrackIDs: true, Models: []string{"m", "n"}})
	send(t, s, "GET", "/v1/models", "").want(t, "data.1.id", "n")
	send(t, s, "GET", "/healthz", "").want(t, "status", "ok")
	for range 2 {
		post(t, s, "/v1/chat/completions", chatBody("a"))
	}
	post(t, s, "/v1/chat/completions", chatBody("b"))
	post(t, s, "/v1/chat/completions", chatBody("b"), "Idempotency-Key", "another")
	post(t, s, "/v1/chat/completions", `{}`)
	g := send(t, s, "GET", "/sim/books", "")
	g.want(t, "received", 5.0)
	g.want(t, "accepted", 4.0)
	g.want(t, "errors.bad_request", 1.0)
	g.want(t, "distinct", 3.0)
	g.want(t, "max_repeats", 2.0)
	g.want(t, "answered", nil)
	send(t, s, "GET", "/sim/books?ids", "").want(t, "answered.#", nil)
	var b Books
	if err := json.Unmarshal([]byte(send(t, s, "GET", "/sim/books?ids", "").body.Raw), &b); err != nil || len(b.Answered) != 3 {
		t.Errorf("%v %+v", err, b)
	}
}

// The answer comes when the clock says that the latency is over.
func TestLatencyIsWaitedForOnTheClock(t *testing.T) {
	s, clock := newServer(Config{Latency: Latency{Median: time.Minute}})
	base, client := socket(t, s)
	status := make(chan int)
	go func() {
		resp, err := client.Post(base+"/v1/embeddings", "", strings.NewReader(`{"model":"m","input":"a"}`))
		if err != nil {
			status <- 0
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	if err := clock.BlockUntilContext(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	if got := <-status; got != 200 {
		t.Error(got)
	}
}

// Over a socket a reset is a reset, a cut body ends too early, and a malformed
// 200 is not an answer.
func TestBrokenAnswersOverSocket(t *testing.T) {
	ask := func(r Rates, prompt string) (int, []byte, error) {
		s, _ := newServer(Config{Errors: r})
		base, client := socket(t, s)
		resp, err := client.Post(base+"/v1/chat/completions", "", strings.NewReader(chatBody(prompt)))
		if err != nil {
			return 0, nil, err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, b, err
	}
	if _, _, err := ask(Rates{Reset: 1}, "a"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
	if status, b, err := ask(Rates{Truncated: 1}, "a"); status != 200 || len(b) == 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut: %d, %d bytes, %v", status, len(b), err)
	}
	html, empty, object := 0, 0, 0
	for i := range 20 {
		status, b, err := ask(Rates{Malformed200: 1}, fmt.Sprint(i))
		switch {
		case status != 200 || err != nil || gjson.GetBytes(b, "choices").Exists():
			t.Errorf("malformed: %d %s %v", status, b, err)
		case len(b) == 0:
			empty++
		case b[0] == '<':
			html++
		case gjson.GetBytes(b, "error.message").Exists():
			object++
		}
	}
	if html*empty*object == 0 || html+empty+object != 20 {
		t.Errorf("%d pages, %d empty, %d error objects", html, empty, object)
	}
}

// A hanging call ends when its client leaves, and so does one that waits for
// its latency; the latter counts as abandoned, not as answered.
func TestClientLeaves(t *testing.T) {
	for name, cfg := range map[string]Config{
		"hang":    {Errors: Rates{Hang: 1}, TrackIDs: true},
		"latency": {Latency: Latency{Median: time.Hour}, TrackIDs: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := newServer(cfg)
			ended := make(chan struct{})
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				s.ServeHTTP(w, r)
			}))
			defer ts.Close()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r, _ := http.NewRequestWithContext(ctx, "POST", ts.URL+"/v1/chat/completions", strings.NewReader(chatBody("a")))
			arrived := make(chan struct{})
			go func() {
				defer close(arrived)
				if name == "latency" {
					_ = clock.BlockUntilContext(t.Context(), 1)
					leave()
					return
				}
				received(t, s)
				leave()
			}()
			if _, err := ts.Client().Do(r); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			<-arrived
			<-ended
			b := s.Books()
			if name == "hang" && (b.Errors[Hung] != 1 || b.Abandoned != 0) {
				t.Errorf("%+v", b)
			}
			if name == "latency" && (b.Accepted != 1 || b.Abandoned != 1 || b.Distinct != 0) {
				t.Errorf("%+v", b)
			}
		})
	}
}

// Many at once over sockets: the server's count is the clients' count, and none
// was answered twice.
func TestManyAtOnce(t *testing.T) {
	const clients, each = 20, 50
	s, _ := newServer(Config{TrackIDs: true, Errors: Rates{Server500: .1, Overloaded503: .1}, Seed: 9})
	base, client := socket(t, s)
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = clients
	results := make(chan int, clients*each)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range each {
				resp, err := client.Post(base+"/v1/chat/completions", "", strings.NewReader(chatBody(fmt.Sprint(c, " ", i))))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				results <- resp.StatusCode
			}
		})
	}
	wg.Wait()
	close(results)
	seen := map[int]int{}
	for status := range results {
		seen[status]++
	}
	b := s.Books()
	if b.Received != clients*each || b.Accepted != seen[200] || b.Errors[ServerError] != seen[500] || b.Errors[Overloaded] != seen[503] {
		t.Errorf("%+v, clients saw %v", b, seen)
	}
	if b.Distinct != seen[200] || b.MaxRepeats != 1 {
		t.Errorf("%d distinct, at most %d each", b.Distinct, b.MaxRepeats)
	}
}

// Whatever the body and the path, the answer is JSON with an id of the request,
// and nothing panics.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `[]`, `null`, `"`, chatBody("a"), `{"model":1,"messages":{"a":[]}}`,
		`{"model":"m","input":[[],{},null,1e999]}`, `{"model":"m","prompt":["a"],"max_tokens":1}`, `{"model":"\ud800","input":"\ud800` + "\xff" + `"}`,
		`{"model":"m","max_tokens":9223372036854775807,"input":"a"}`, `{"messages":[{"content":[{"text":{}}]}],"model":"m"}`,
	} {
		for path := range uint8(4) {
			f.Add(path, body)
		}
	}
	paths := []endpoint{chatCompletions, completions, embeddings, responses}
	s := New(Config{TPM: 100, RetryAfter: Always, Headers: true}, clockwork.NewFakeClockAt(epoch))
	free := New(Config{}, clockwork.NewFakeClockAt(epoch))
	f.Fuzz(func(t *testing.T, path uint8, body string) {
		for _, s := range []*Server{s, free} {
			g := post(t, s, string(paths[path%4]), body)
			if !g.body.IsObject() || g.status/100 != 2 && !g.body.Get("error.message").Exists() {
				t.Errorf("%d %s", g.status, g.body.Raw)
			}
			var object map[string]any
			if err := json.Unmarshal([]byte(g.body.Raw), &object); err != nil {
				t.Errorf("%v in %s", err, g.body.Raw)
			}
		}
	})
}
