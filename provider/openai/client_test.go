package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chatDoer gives Chat the shape that the suite asks for.
type chatDoer struct{ *openai.Client }

func (d chatDoer) Do(ctx context.Context, r provider.Request) (provider.Reply, error) {
	var req goopenai.ChatCompletionRequest
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return provider.Reply{}, err
	}
	_, err := d.Chat(ctx, req)
	return provider.Reply{}, err
}

func newClient(t *testing.T, baseURL string) *openai.Client {
	t.Helper()
	c := must.Get(openai.New(openai.Config{APIKey: providertest.Key, BaseURL: baseURL, Organization: "org-x"}))(t)
	t.Cleanup(c.CloseIdle)
	return c
}

// Do passes the suite that every client passes.
func TestDoConforms(t *testing.T) {
	providertest.Run(t, func(baseURL string) providertest.Doer { return newClient(t, baseURL) })
}

// Chat passes it as well: go-openai loses nothing that matters.
func TestChatConforms(t *testing.T) {
	providertest.Run(t, func(baseURL string) providertest.Doer { return chatDoer{newClient(t, baseURL)} })
}

// seen is a request as the server received it.
type seen struct {
	path   string
	header http.Header
	body   []byte
}

// record serves one answer and keeps the last request.
func record(t *testing.T, answer string) (baseURL string, last *seen) {
	t.Helper()
	last = new(seen)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*last = seen{r.URL.Path, r.Header, body}
		w.Header().Set("X-Request-Id", "req_1")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, last
}

const good = `{"id":"x","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],` +
	` "usage":{"prompt_tokens":3,"completion_tokens":1},"new_field":[1.0,  2]}`

// A raw body arrives byte for byte, unknown fields, spaces, zeros and all, and
// the answer comes back byte for byte.
func TestDoChangesNoByte(t *testing.T) {
	url, last := record(t, good)
	body := `{ "model":"m","temperature":0, "top_k":40,"stop":"END","messages":[{"role":"user","content":""}],"n":1.0}` + "\n"
	reply := must.Get(newClient(t, url).Do(context.Background(),
		provider.Request{Endpoint: "/v1/chat/completions", Model: "m", Body: []byte(body)}))(t)
	if string(last.body) != body {
		t.Errorf("sent %q, want %q", last.body, body)
	}
	if string(reply.Body) != good {
		t.Errorf("returned %q, want %q", reply.Body, good)
	}
	want := provider.Reply{
		Status: 200, RequestID: "req_1", Body: reply.Body, HasUsage: true,
		Usage: provider.Usage{InputTokens: 3, OutputTokens: 1}, Finish: "stop", Dialect: "openai",
	}
	if fmt.Sprint(reply) != fmt.Sprint(want) {
		t.Errorf("reply %+v, want %+v", reply, want)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + providertest.Key, "Openai-Organization": "org-x", "Content-Type": "application/json",
	} {
		if got := last.header.Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
}

// The version is in the URL once, whether the endpoint, the base or both have it.
func TestURLHasTheVersionOnce(t *testing.T) {
	url, last := record(t, good)
	for _, c := range []struct{ base, endpoint, want string }{
		{"", "/v1/chat/completions", "/v1/chat/completions"},
		{"/", "/v1/embeddings", "/v1/embeddings"},
		{"/v1", "/v1/chat/completions", "/v1/chat/completions"},
		{"/v1/", "/v1/responses", "/v1/responses"},
		{"/v1", "/completions", "/v1/completions"},
		{"/v1beta/openai", "/v1/chat/completions", "/v1beta/openai/chat/completions"},
	} {
		_, err := newClient(t, url+c.base).Do(context.Background(), provider.Request{Endpoint: c.endpoint, Body: []byte("{}")})
		if err != nil || last.path != c.want {
			t.Errorf("base %q, endpoint %q: called %q (%v), want %q", c.base, c.endpoint, last.path, err, c.want)
		}
	}
}

// A line cannot send the key elsewhere, nor ask for a stream: such requests are
// Invalid and nothing is sent.
func TestDoRefusesBeforeSending(t *testing.T) {
	url, last := record(t, good)
	for _, r := range []provider.Request{
		{Endpoint: "http://169.254.169.254/v1/chat/completions", Body: []byte("{}")},
		{Endpoint: "//elsewhere/v1/chat/completions", Body: []byte("{}")},
		{Endpoint: "/v1/../admin", Body: []byte("{}")},
		{Endpoint: "@elsewhere/chat/completions", Body: []byte("{}")},
		{Endpoint: "/v1/files", Body: []byte("{}")},
		{Endpoint: "", Body: []byte("{}")},
		{Endpoint: "/v1/chat/completions"},
		{Endpoint: "/v1/chat/completions", Body: []byte(`{"model":"m","stream":true}`)},
		{Endpoint: "/v1/chat/completions", Body: []byte(" {\n\"a\":[{\"stream\":1}], \"str\\u0065am\" : true }")},
		{Endpoint: "/v1/responses", Body: []byte(`{"model":"m","stream":false,"background":true}`)},
	} {
		ctx, rec := provider.WithRecorder(context.Background())
		_, err := newClient(t, url).Do(ctx, r)
		if !errors.Is(err, provider.Invalid) || rec.Snapshot().Sent || last.path != "" {
			t.Errorf("%q %s: got %v, called %q; want invalid and no call", r.Endpoint, r.Body, err, last.path)
		}
	}
}

// What go-openai refuses by itself is Invalid, and nothing was sent.
func TestChatRefusedByTheLibraryIsInvalid(t *testing.T) {
	url, last := record(t, good)
	for _, r := range []goopenai.ChatCompletionRequest{
		{Model: "gpt-4o", Stream: true},
		{Model: "o1-mini", MaxTokens: 5},
	} {
		_, err := newClient(t, url).Chat(context.Background(), r)
		if !errors.Is(err, provider.Invalid) || last.path != "" {
			t.Errorf("%+v: got %v, called %q; want invalid and no call", r, err, last.path)
		}
	}
}

// A whole JSON answer of another shape is not asked for again.
func TestChatAnswerOfAnotherShapeIsInvalid(t *testing.T) {
	url, _ := record(t, `{"choices":[{"index":"first"}]}`)
	_, err := newClient(t, url).Chat(context.Background(), goopenai.ChatCompletionRequest{Model: "m"})
	if !errors.Is(err, provider.Invalid) {
		t.Errorf("got %v, want invalid", err)
	}
}

// What came in good order and is no answer was paid for: its usage is recorded. A refusal's
// is not, whatever it says.
func TestFailedAnswersTellTheirUsage(t *testing.T) {
	const usage = `,"usage":{"prompt_tokens":4,"completion_tokens":2}}`
	for body, used := range map[string]int64{`{"choices":[]` + usage: 4, `{"error":{"code":"rate_limit_exceeded"}` + usage: 0} {
		url, _ := record(t, body)
		c := newClient(t, url)
		for name, call := range map[string]func(context.Context) error{
			"raw": func(ctx context.Context) error {
				_, err := c.Do(ctx, provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(`{"model":"m"}`)})
				return err
			},
			"typed": func(ctx context.Context) error {
				_, err := c.Chat(ctx, goopenai.ChatCompletionRequest{Model: "m"})
				return err
			},
		} {
			ctx, rec := provider.WithRecorder(context.Background())
			err := call(ctx)
			if r := rec.Snapshot(); err == nil || r.Usage.InputTokens != used || r.HasUsage != (used > 0) || r.Finish != "" {
				t.Errorf("%s, %s: %v, recorded %+v", body, name, err, r)
			}
		}
	}
}

// Embed returns its vectors and records its usage; its failures are ours.
func TestEmbed(t *testing.T) {
	url, last := record(t, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,-1]}],"usage":{"prompt_tokens":4,"total_tokens":4}}`)
	ctx, rec := provider.WithRecorder(context.Background())
	resp, err := newClient(t, url).Embed(ctx, goopenai.EmbeddingRequest{Model: "e", Input: []string{"a"}})
	if err != nil || len(resp.Data) != 1 || resp.Data[0].Embedding[1] != -1 || last.path != "/v1/embeddings" {
		t.Errorf("got %+v, %v from %q", resp, err, last.path)
	}
	if r := rec.Snapshot(); !r.HasUsage || r.Usage.InputTokens != 4 || r.Status != 200 || r.RequestID != "req_1" {
		t.Errorf("recorded %+v", r)
	}
	bad, _ := record(t, `{"error":{"message":"no","code":429}}`)
	if _, err = newClient(t, bad).Embed(ctx, goopenai.EmbeddingRequest{Model: "e", Input: []string{"a"}}); !errors.Is(err, provider.Throttled) {
		t.Errorf("got %v, want throttled", err)
	}
}

// Wrong configurations are refused at once, and no text has the key in it.
func TestNewRefusesWhatCannotWork(t *testing.T) {
	key := providertest.Key
	for _, cfg := range []openai.Config{
		{BaseURL: "ftp://host/v1"},
		{BaseURL: "host:8080/v1"},
		{BaseURL: "/v1"},
		{BaseURL: "http://"},
		{BaseURL: "http://:80/v1"},
		{BaseURL: "https://user:" + key + "@host/v1"},
		{BaseURL: "https://host/v1?key=" + key},
		{BaseURL: "https://host/v1#" + key},
		{BaseURL: "https://" + key + "\x7f/"},
		{APIKey: key + "\nX-Evil: 1"},
		{APIKey: key, Organization: "o\r\n"},
	} {
		_, err := openai.New(cfg)
		if !errors.Is(err, provider.Misconfigured) || strings.Contains(fmt.Sprintf("%v %+v", err, err), key) {
			t.Errorf("%+v: got %v, want misconfigured and no key", cfg, err)
		}
	}
	c, err := openai.New(openai.Config{APIKey: " " + key + "\n"})
	if err != nil || strings.Contains(fmt.Sprintf("%v %+v %#v", c, c, c), key) {
		t.Errorf("got %v, %v", c, err)
	}
}

// leaky is a transport of the user's whose errors quote the request.
type leaky struct{}

func (leaky) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("cannot send %v: %w", r.Header, io.ErrUnexpectedEOF)
}

// A key in the error of a foreign transport does not come out, and the kind
// stays what it was.
func TestKeyOfALeakyTransportIsTakenOut(t *testing.T) {
	c, err := openai.New(openai.Config{APIKey: providertest.Key, BaseURL: "http://host", Transport: leaky{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(context.Background(), provider.Request{Endpoint: "/v1/embeddings", Body: []byte("{}")})
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if strings.Contains(cause.Error(), providertest.Key) {
			t.Errorf("the key is in %v", cause)
		}
	}
	if !errors.Is(err, provider.TransportFault) {
		t.Errorf("got %v, want a transport fault", err)
	}
}

// The user's own client is not changed, and its redirect policy is asked for
// redirects that stay at home.
func TestOwnHTTPClientIsCopied(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/embeddings" {
			http.Redirect(w, r, "/moved", http.StatusTemporaryRedirect)
			return
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, `{"data":[%q,%t]}`, body, r.Header.Get("Authorization") == "Bearer "+providertest.Key)
	}))
	t.Cleanup(server.Close)
	asked := 0
	own := &http.Client{
		Transport:     provider.NewHTTPTransport(1),
		CheckRedirect: func(*http.Request, []*http.Request) error { asked++; return nil },
	}
	base := own.Transport
	c := must.Get(openai.New(openai.Config{APIKey: providertest.Key, BaseURL: server.URL, HTTPClient: own}))(t)
	t.Cleanup(c.CloseIdle)
	reply, err := c.Do(context.Background(), provider.Request{Endpoint: "/v1/embeddings", Body: []byte("{}")})
	if err != nil || string(reply.Body) != `{"data":["{}",true]}` || asked != 1 {
		t.Errorf("got %s, %v after asking %d times", reply.Body, err, asked)
	}
	if own.Transport != base {
		t.Error("the user's client was changed")
	}
}

// Servers that check no key are given words: those stay in answers that use them.
func TestPlaceholderStaysInAnswers(t *testing.T) {
	for key, stays := range map[string]bool{"lm-studio": true, "not-needed": true, "sk-12345": false, "abcdefghijklmnop": false} {
		answer := `{"choices":[{"message":{"content":"` + key + `"}}]}`
		baseURL, _ := record(t, answer)
		c := must.Get(openai.New(openai.Config{APIKey: key, BaseURL: baseURL}))(t)
		t.Cleanup(c.CloseIdle)
		reply, err := c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte("{}")})
		if err != nil || (string(reply.Body) == answer) != stays {
			t.Errorf("key %s: %s, %v", key, reply.Body, err)
		}
	}
}

// MaxBody is exact: an answer of that length passes, one byte more is Invalid
// whether its length is announced or not.
func TestMaxBodyIsExact(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		for _, more := range []int{0, 1} {
			answer := []byte(good + strings.Repeat(" ", more))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if chunked {
					w.(http.Flusher).Flush()
				}
				_, _ = w.Write(answer)
			}))
			c := must.Get(openai.New(openai.Config{BaseURL: server.URL, MaxBody: int64(len(good))}))(t)
			reply, err := c.Do(context.Background(), provider.Request{Endpoint: "/v1/embeddings", Body: []byte("{}")})
			if more == 0 && (err != nil || !bytes.Equal(reply.Body, answer)) {
				t.Errorf("chunked %v: got %v for an answer of the bound's length", chunked, err)
			}
			if more == 1 && !errors.Is(err, provider.Invalid) {
				t.Errorf("chunked %v: got %v, want invalid", chunked, err)
			}
			c.CloseIdle()
			server.Close()
		}
	}
}

// A client keeps as many connections as there are calls in flight: waves of
// calls do not open new ones. (Go's default keeps two per host.)
func TestConnectionsAreKept(t *testing.T) {
	const width, waves = 32, 20
	url, opened := countConnections(t, func(w http.ResponseWriter) { _, _ = io.WriteString(w, good) })
	c := newClient(t, url)
	for range waves {
		var wave sync.WaitGroup
		for range width {
			wave.Go(func() {
				_, _ = c.Do(context.Background(), provider.Request{Endpoint: "/v1/embeddings", Body: []byte("{}")})
			})
		}
		wave.Wait()
	}
	// A connection may be on its way back when the next wave asks, hence the
	// room; with two kept per host there would be about width·waves.
	if n := opened.Load(); n > 3*width {
		t.Errorf("%d connections for %d calls at once, %d calls in all", n, width, width*waves)
	}
}

// A failed answer's connection is used again, also when more of it came than is
// kept: a wave of refusals does not open a wave of connections.
func TestConnectionsOfFailuresAreKept(t *testing.T) {
	url, opened := countConnections(t, func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, strings.Repeat("x", 2*provider.MaxErrorBody))
	})
	c := newClient(t, url)
	for range 10 {
		_, err := c.Do(context.Background(), provider.Request{Endpoint: "/v1/embeddings", Body: []byte("{}")})
		if !errors.Is(err, provider.Throttled) {
			t.Fatalf("got %v, want throttled", err)
		}
	}
	// The server may close a connection of its own accord now and then.
	if n := opened.Load(); n > 3 {
		t.Errorf("%d connections for 10 calls one after the other", n)
	}
}

// countConnections serves one answer and counts the connections opened to it.
func countConnections(t *testing.T, answer func(http.ResponseWriter)) (baseURL string, opened *atomic.Int32) {
	t.Helper()
	opened = new(atomic.Int32)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, opened
}

// One client serves many goroutines.
func TestClientIsSharedByGoroutines(t *testing.T) {
	url := echoPrompt(t)
	c := newClient(t, url)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			ctx, rec := provider.WithRecorder(context.Background())
			r := goopenai.ChatCompletionRequest{Model: "m", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: fmt.Sprint(i)}}}
			resp, err := c.Chat(ctx, r)
			if err != nil || resp.Choices[0].Message.Content != fmt.Sprint(i) {
				t.Errorf("call %d: got %+v, %v", i, resp, err)
			}
			if u := rec.Snapshot().Usage.InputTokens; u != int64(i) {
				t.Errorf("call %d recorded the usage of another: %d", i, u)
			}
		})
	}
	all.Wait()
}

// echoPrompt answers each call with its own prompt and that as usage.
func echoPrompt(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req goopenai.ChatCompletionRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		text := req.Messages[0].Content
		_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"usage":{"prompt_tokens":%s}}`, text, text)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
