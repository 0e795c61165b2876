package sim

import (
	"context"
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

	"github.com/headrace/headrace/internal/must"
	"github.com/jonboulle/clockwork"
	"github.com/tidwall/gjson"
)

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
		{"options without a stream", "POST", chat, `{"stream_options":{"include_usage":true},` + ok[1:], Config{}, 400, invalidRequest, nil},
		{"a stream of vectors", "POST", "/v1/embeddings", `{"model":"m","input":"a","stream":true}`, Config{}, 400, invalidRequest, nil},
		{"a stream that is limited", "POST", chat, `{"stream":true,` + ok[1:], Config{TPM: .5}, 429, "tokens", "rate_limit_exceeded"},
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
	must.Do(t, clock.BlockUntilContext(t.Context(), 1))
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
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"input":"a","prompt":["a","b"],"messages":[{"role":"user","content":"a"}]}`,
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
			if !g.body.IsObject() && !streamed(g.header) || g.status/100 != 2 && !g.body.Get("error.message").Exists() {
				t.Errorf("%d %s", g.status, g.body.Raw)
			}
			var object any
			if err := json.Unmarshal([]byte(g.body.Raw), &object); err != nil {
				t.Errorf("%v in %s", err, g.body.Raw)
			}
		}
	})
}
