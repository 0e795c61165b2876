package serve

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
)

// A client's token goes to no provider, wherever it stands. A word that stands for a key where none is needed takes no
// header with it that happens to have its letters.
func TestHeadersWithATokenStay(t *testing.T) {
	for _, test := range []struct {
		token, value string
		passes       bool
	}{
		{token, "x " + token + " y", false},
		{token, token, false},
		{token, "x", true},
		{"x", "extended-cache-ttl", true},
		{"x", "x", false},
		{"-", "prompt-caching", true},
		{"EMPTY", "EMPTY-2", true},
		{"", "any", true},
	} {
		for _, in := range [...]string{"Authorization", "X-Api-Key"} {
			h := http.Header{"Anthropic-Beta": {test.value}, in: {test.token}}
			if in == "Authorization" {
				h.Set(in, "Bearer  "+test.token)
			}
			if got := requestHeaders(h); (got.Get("Anthropic-Beta") != "") != test.passes || got.Get(in) != "" {
				t.Errorf("%q in %s: %v", test.token, in, got)
			}
		}
	}
}

// The log has no text of a client's in the place of a model that cannot be one.
func TestLogHasNoFalseModel(t *testing.T) {
	var log Access
	m := over(t, dialects["openai"], trip(says(200, answered)), func(c *Config) { c.Log = func(a Access) { log = a } })
	for name, model := range map[string]string{"long": strings.Repeat("x", 300), "two lines": `a\nb`} {
		resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", `{"model":"`+model+`"}`))
		if resp.StatusCode != http.StatusBadRequest || log.Code != "headrace_body" || log.Model != "" {
			t.Errorf("%s: %d %+v", name, resp.StatusCode, log)
		}
	}
}

// The deadline of a request counts from its head, also if its body comes slowly.
func TestDeadlineWithASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script{steps: steps(hangs)}
		m := over(t, dialects["openai"], up, nil)
		defer m.shared.Close()
		for _, by := range []func() string{func() string { return "30s" }, func() string { return time.Now().Add(30 * time.Second).UTC().Format(time.RFC3339) }} {
			deadline := by()
			from, to := io.Pipe()
			go func() {
				time.Sleep(20 * time.Second)
				_, _ = io.WriteString(to, chatBody)
				_ = to.Close()
			}()
			r := m.request(t.Context(), "/v1/chat/completions", "", "X-Headrace-Deadline", deadline)
			r.Body, r.ContentLength = from, -1
			began := time.Now()
			if resp, _ := m.ask(r); resp.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("%d", resp.StatusCode)
			}
			if took := time.Since(began); took != 30*time.Second {
				t.Errorf("%s: it took %v", deadline, took)
			}
		}
	})
}

// A body takes room as it comes: a length that is only announced keeps no other request out.
func TestRoomIsTakenAsABodyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := over(t, dialects["openai"], trip(says(200, answered)), func(c *Config) { c.MaxBody, c.MaxBodies = 1<<20, 1<<20 })
		defer m.shared.Close()
		from, to := io.Pipe()
		r := m.request(t.Context(), "/v1/chat/completions", "")
		r.Body, r.ContentLength = from, 1<<20
		ended := make(chan int)
		go func() {
			resp, _ := m.ask(r)
			ended <- resp.StatusCode
		}()
		synctest.Wait()
		if st, err := m.Status(context.WithoutCancel(t.Context())); err != nil || st.Bodies > 1<<16 {
			t.Errorf("%d bytes are held, %v", st.Bodies, err)
		}
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
		if status := <-ended; status != http.StatusBadRequest {
			t.Error(status)
		}
		m.proves(t)
	})
}

// A panic of the way to a provider costs one request its list of models, and no later one.
func TestModelsAfterAPanic(t *testing.T) {
	broken := true
	m := over(t, dialects["openai"], trip(func(r *http.Request) (*http.Response, error) {
		if broken {
			panic("broken")
		}
		return says(200, `{}`)(r)
	}), func(c *Config) { c.Models = "m-1" })
	ask := func() (status int) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		defer func() { _ = recover() }()
		r := m.request(ctx, pathModels, "", "Content-Type", "")
		r.Method = http.MethodGet
		resp, body := m.ask(r)
		if body == "" {
			return 0
		}
		return resp.StatusCode
	}
	ask()
	broken = false
	if status := ask(); status != http.StatusOK {
		t.Error(status)
	}
}

// A client of some models may name them as spare ones.
func TestSpareModels(t *testing.T) {
	m := over(t, dialects["openai"], trip(says(200, answered)), func(c *Config) {
		c.Clients[0].Models = []string{"m-1", "m-2"}
	})
	for body, want := range map[string]int{
		`{"model":"m-1","models":["m-2","m-1"]}`: 200,
		`{"model":"m-1","models":["m-3"]}`:       403,
		`{"model":"m-1","models":{"a":"m-3"}}`:   403,
		`{"model":"m-1","models":[]}`:            200,
		`{"model":"m-1","models":null}`:          200,
	} {
		if resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", body)); resp.StatusCode != want {
			t.Errorf("%s: %d", body, resp.StatusCode)
		}
	}
}

// A header about one connection, about the caller or about pages in a browser goes no further, in either direction. Nor do
// this server's own: the provider may not write them.
func TestHeadersThatGoNoFurther(t *testing.T) {
	for _, name := range [...]string{
		"Authorization", "X-Api-Key", "X-Goog-Api-Key", "Api-Key", "X-Amz-Security-Token", "X-Amz-Date", "Cookie", "Proxy-Authorization",
		"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect", "Host", "Content-Length", "Range", "If-None-Match",
		"Origin", "Referer", "Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "X-Original-Url", "X-Http-Method-Override",
		"Sec-Fetch-Site", "Sec-Websocket-Key", "Access-Control-Request-Method", "X-Headrace-Client", "X-Headrace-Any", "X-Hop",
	} {
		h := http.Header{"Connection": {"close, x-hop"}, "X-Stays": {"1"}}
		h[name] = append(h[name], "value")
		got := requestHeaders(h)
		if _, has := got[name]; has || got.Get("X-Stays") != "1" || got.Get("Content-Type") != "application/json" || got.Get("Accept-Encoding") != "identity" {
			t.Errorf("%s goes out: %v", name, got)
		}
	}
	for _, name := range [...]string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Set-Cookie", "Alt-Svc",
		"Strict-Transport-Security", "Www-Authenticate", "Location", "Refresh", "Clear-Site-Data", "Content-Length", "X-Should-Retry",
		"Access-Control-Allow-Origin", "Cross-Origin-Resource-Policy", "X-Headrace-Lane", "X-Headrace-Any", "X-Hop",
	} {
		h := http.Header{"Connection": {"X-HOP"}, "X-Stays": {"1", "2"}}
		h[name] = append(h[name], "value")
		got := http.Header{}
		copyAnswerHeaders(got, h)
		if _, has := got[name]; has || len(got["X-Stays"]) != 2 {
			t.Errorf("%s comes back: %v", name, got)
		}
	}
	for query, want := range map[string]string{"": "", "key=k&alt=sse": "alt=sse", "beta=true&api_key=k": "beta=true", "%": "", "alt=%0d%0a": "alt=%0D%0A", "alt=a&alt=b": "alt=a&alt=b"} {
		if got := requestQuery(query); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

// A client that goes while others have the turn leaves the line at once, and the one behind it takes its place.
func TestClientThatGoesBeforeItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script{steps: steps(later(30*time.Second, says(200, answered)))}
		m := over(t, dialects["openai"], up, nil, batch.WithConcurrency(1))
		defer m.shared.Close()
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan int, 4)
		for i := range 4 { // one flies, one has its turn, two wait
			of := t.Context()
			if i == 2 {
				of = ctx
			}
			go func() {
				m.ask(m.request(of, "/v1/chat/completions", chatBody))
				ended <- i
			}()
			synctest.Wait()
		}
		began := time.Now()
		leave()
		synctest.Wait()
		st, err := m.Status(t.Context())
		if err != nil || st.Waiting != 2 || st.InFlight != 1 {
			t.Errorf("%d wait, %d in flight, %v", st.Waiting, st.InFlight, err)
		}
		if first := <-ended; first != 2 || time.Since(began) != 0 {
			t.Errorf("%d ended first, after %v", first, time.Since(began))
		}
		for range 3 {
			<-ended
		}
		if up.calls != 3 {
			t.Errorf("%d calls", up.calls)
		}
		m.proves(t)
	})
}

// A server that drains lets nobody in, also if those that wait go on. Its own pages have no body for HEAD.
func TestDrainingServer(t *testing.T) {
	m := over(t, dialects["openai"], trip(says(200, answered)), nil)
	page := func(method, path string) (int, string) {
		r := m.request(t.Context(), path, "")
		r.Method = method
		resp, body := m.ask(r)
		return resp.StatusCode, body
	}
	if status, body := page(http.MethodHead, pathReady); status != http.StatusOK || body != "" {
		t.Errorf("%d %q", status, body)
	}
	m.Drain(true)
	resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "headrace_stopped") || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
	if status, body := page(http.MethodGet, pathReady); status != http.StatusServiceUnavailable || !strings.Contains(body, "stopping") {
		t.Errorf("%d %s", status, body)
	}
	if c := m.proves(t); c.Calls != 0 {
		t.Errorf("%d calls", c.Calls)
	}
}
