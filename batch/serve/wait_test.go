package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider/sim"
)

// script is a provider that answers one call after the other; the last answer stands for the rest.
type script struct {
	calls int
	ends  []error // of the contexts of calls, as far as they ended before their answer
	steps []func(*http.Request) (*http.Response, error)
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	step := s.steps[min(s.calls, len(s.steps)-1)]
	s.calls++
	_, _ = io.Copy(io.Discard, r.Body)
	resp, err := step(r)
	if r.Context().Err() != nil {
		s.ends = append(s.ends, context.Cause(r.Context()))
	}
	return resp, err
}

// says answers at once.
func says(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
	}
}

// hangs answers when the client leaves: never.
func hangs(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// with sets a header of an answer.
func with(name, value string, next func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := next(r)
		if err == nil {
			resp.Header.Set(name, value)
		}
		return resp, err
	}
}

// resets breaks the connection.
func resets(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }

// later answers later.
func later(d time.Duration, next func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return next(r)
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// flows answers with a stream of events, each after a pause.
func flows(pause time.Duration, events ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resp, err := says(200, "", "Content-Type", "text/event-stream; charset=utf-8")(r)
		from, to := io.Pipe()
		go func() {
			for _, e := range events {
				select {
				case <-time.After(pause):
				case <-r.Context().Done():
					_ = to.CloseWithError(r.Context().Err())
					return
				}
				if e == "break" {
					_ = to.CloseWithError(io.ErrUnexpectedEOF)
					return
				}
				if _, err := io.WriteString(to, e); err != nil {
					return
				}
			}
			_ = to.Close()
		}()
		resp.Body, resp.ContentLength = from, -1
		return resp, err
	}
}

const (
	answered = `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"deep"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
	wrong    = `{"error":{"message":"no such field","type":"invalid_request_error","param":null,"code":null}}`
	fault    = `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`
	unknown  = `{"error":{"message":"this is not for you","type":"strange","param":null,"code":"odd"}}`
	blocked  = "<html>blocked</html>"
	busy     = `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`
)

// Refusals of the provider, breaks and ends of patience, as the client sees them.
func TestWhatAClientGets(t *testing.T) {
	stream := `{"stream":true,` + chatBody[1:]
	one, two := "data: {\"choices\":[{\"delta\":{\"content\":\"de\"}}]}\n\n", "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
	ping := ": headrace waits for the provider\n\n"
	ok := says(200, answered)
	for name, test := range map[string]struct {
		steps  []func(*http.Request) (*http.Response, error)
		body   string // "": a chat
		header []string
		change func(*Config)

		status int
		code   string // in the body
		text   string // the whole body; "": any
		calls  int    // 0: any
		retry  string // X-Should-Retry
		after  string // Retry-After
		took   time.Duration
		cut    bool // the connection is cut off
	}{
		"a refusal, then an answer":   {steps: steps(says(429, busy, "Retry-After", "7"), ok), status: 200, text: answered, calls: 2},
		"a fault, then an answer":     {steps: steps(says(500, fault), ok), status: 200, text: answered, calls: 2},
		"a bad request":               {steps: steps(says(400, wrong)), status: 400, text: wrong, calls: 1, retry: "false"},
		"no quota":                    {steps: steps(says(429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`)), status: 429, code: "insufficient_quota", calls: 1, retry: "false"},
		"an unknown model":            {steps: steps(says(404, `{"error":{"code":"model_not_found"}}`)), status: 404, code: "model_not_found", calls: 1, retry: "false"},
		"always a fault":              {steps: steps(says(500, fault)), status: 500, text: fault, calls: 5, retry: "false"},
		"an unknown 403":              {steps: steps(says(403, unknown)), status: 403, text: unknown, calls: 1, retry: "false"},
		"a firewall's 403":            {steps: steps(says(403, blocked)), status: 403, text: blocked, calls: 1, retry: "false"},
		"an unknown 403 and patience": {steps: steps(says(403, unknown)), header: []string{"X-Headrace-Max-Wait", "30s"}, status: 403, text: unknown, calls: 1, retry: "false"},
		"a redirect":                  {steps: steps(says(302, "", "X", "y")), status: 502, code: "headrace_upstream", retry: "false"},
		"the patience of the server":  {steps: steps(says(429, busy, "Retry-After", "600")), status: 429, code: "headrace_wait_too_long", calls: 1, retry: "true", after: "60", took: DefaultMaxWait},
		"the patience of a client":    {steps: steps(says(429, busy, "Retry-After", "600")), header: []string{"X-Headrace-Max-Wait", "30s"}, status: 429, code: "headrace_wait_too_long", calls: 1, retry: "true", after: "60", took: 30 * time.Second},
		"the patience of an SDK":      {steps: steps(says(429, busy, "Retry-After", "600")), header: []string{"X-Stainless-Read-Timeout", "100"}, status: 429, code: "headrace_wait_too_long", calls: 1, retry: "true", after: "60", took: 90 * time.Second},
		"a fault after patience":      {steps: steps(later(time.Minute, says(500, fault)), ok), header: []string{"X-Headrace-Max-Wait", "30s"}, status: 500, text: fault, calls: 1, retry: "false", took: time.Minute},
		"a limit after patience":      {steps: steps(later(time.Minute, says(429, busy)), ok), header: []string{"X-Headrace-Max-Wait", "30s"}, status: 429, code: "headrace_wait_too_long", calls: 1, retry: "true", after: "60", took: time.Minute},
		"no quota after patience":     {steps: steps(later(time.Minute, says(429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`))), header: []string{"X-Headrace-Max-Wait", "30s"}, status: 429, code: "insufficient_quota", calls: 1, retry: "false", took: time.Minute},
		"a break after patience":      {steps: steps(later(time.Minute, resets), ok), header: []string{"X-Headrace-Max-Wait", "30s"}, status: 429, code: "headrace_wait_too_long", calls: 1, retry: "true", after: "60", took: time.Minute},
		"a fault after a ping":        {steps: steps(later(time.Minute, says(500, fault)), ok), body: stream, header: []string{"X-Headrace-Max-Wait", "30s"}, status: 200, code: "The server had an error", calls: 1, took: time.Minute},
		"a slow answer":               {steps: steps(later(5*time.Minute, ok)), header: []string{"X-Headrace-Max-Wait", "30s"}, status: 200, text: answered, took: 5 * time.Minute},
		"a deadline in flight":        {steps: steps(hangs), header: []string{"X-Headrace-Deadline", "120s"}, status: 504, code: "headrace_deadline", calls: 1, retry: "false", took: 2 * time.Minute},
		"a deadline by the clock":     {steps: steps(hangs), header: []string{"X-Headrace-Deadline", "2000-01-01T00:03:00Z"}, status: 504, code: "headrace_deadline", calls: 1, took: 3 * time.Minute},
		"a stream":                    {steps: steps(flows(time.Second, one, two)), body: stream, status: 200, text: one + two, took: 2 * time.Second},
		"pings before a stream":       {steps: steps(later(40*time.Second, flows(time.Second, one, two))), body: stream, status: 200, text: ping + ping + ping + one + two},
		"pings in line":               {steps: steps(says(429, busy, "Retry-After", "20"), flows(time.Second, one, two)), body: stream, status: 200, text: ping + one + two, calls: 2},
		"pings between events":        {steps: steps(flows(26*time.Second, one, two)), body: stream, status: 200, text: ping + ping + one + ping + ping + two},
		"none within an event":        {steps: steps(flows(26*time.Second, one[:9], one[9:]+two)), body: stream, status: 200, text: ping + ping + one + two},
		"a refusal after a ping":      {steps: steps(later(20*time.Second, says(400, wrong))), body: stream, status: 200, text: ping + `data: {"error":{"message":"no such field","type":"invalid_request_error","param":null,"code":""}}` + "\n\n"},
		"patience after a ping":       {steps: steps(says(429, busy, "Retry-After", "600")), body: stream, header: []string{"X-Headrace-Max-Wait", "20s"}, status: 200, code: "headrace_wait_too_long", took: 20 * time.Second},
		"a stream that breaks":        {steps: steps(flows(time.Second, one, "break")), body: stream, status: 200, code: "headrace_upstream", calls: 1},
		"one that breaks in between":  {steps: steps(flows(time.Second, one, two[:9], "break")), body: stream, status: 200, text: one + two[:9], calls: 1, cut: true},
		"a stream that falls silent":  {steps: steps(flows(time.Second, one, two), flows(time.Hour, one)), body: stream, status: 200, text: one + two},
		"a silent stream":             {steps: steps(flows(time.Hour, one)), body: stream, change: func(c *Config) { c.Timeout = 2 * time.Hour }, status: 200, code: "headrace_timeout", took: DefaultStreamIdle},
		"a stream without end":        {steps: steps(flows(time.Minute, slicesOf(one, 100)...)), body: stream, status: 200, code: "headrace_timeout", took: DefaultTimeout},
		"blanks before an answer":     {steps: steps(later(40*time.Second, ok)), header: []string{"X-Headrace-Keepalive", "1"}, status: 200, text: "\n\n\n" + answered},
		"a refusal after blanks":      {steps: steps(later(20*time.Second, says(400, wrong))), header: []string{"X-Headrace-Keepalive", "1"}, status: 200, code: "no such field"},
		"no blanks unasked":           {steps: steps(later(40*time.Second, ok)), status: 200, text: answered},
		"JSON after pings":            {steps: steps(later(20*time.Second, with("Content-Type", "application/json", flows(25*time.Second, answered[:9], answered[9:])))), body: stream, status: 200, text: ping + answered},
		"JSON that breaks, likewise":  {steps: steps(later(20*time.Second, with("Content-Type", "application/json", flows(25*time.Second, answered[:9], "break")))), body: stream, status: 200, text: ping + answered[:9], cut: true},
		"an upgrade":                  {steps: steps(says(101, "")), status: 502, code: "headrace_upstream", calls: 1},
		"a status that is none":       {steps: steps(says(50, answered)), status: 502, code: "headrace_upstream", calls: 1},
		"a silence without bound":     {steps: steps(flows(time.Hour, two)), body: stream, change: func(c *Config) { c.Timeout, c.StreamIdle = -1, -1 }, status: 200, code: "[DONE]", took: time.Hour},
		"a call without bound":        {steps: steps(later(3*time.Hour, ok)), change: func(c *Config) { c.Timeout = -1 }, status: 200, text: answered, took: 3 * time.Hour},
		"an answer that breaks":       {steps: steps(breaks), status: 200, text: answered[:20], calls: 1, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &script{steps: test.steps}
				m := over(t, dialects["openai"], up, test.change, batch.WithPlainLaw())
				defer m.shared.Close()
				body := test.body
				if body == "" {
					body = chatBody
				}
				began := time.Now()
				w, cut := httptest.NewRecorder(), false
				func() {
					defer func() { cut = recover() != nil }()
					m.ServeHTTP(w, m.request(t.Context(), "/v1/chat/completions", body, test.header...))
				}()
				got := w.Body.String()
				if w.Code != test.status || test.text != "" && got != test.text || !strings.Contains(got, test.code) || cut != test.cut {
					t.Errorf("%d %q, cut %v", w.Code, got, cut)
				}
				if h := w.Header(); h.Get("X-Should-Retry") != test.retry && test.retry != "" || h.Get("Retry-After") != test.after {
					t.Errorf("%v", h)
				}
				if test.calls > 0 && up.calls != test.calls {
					t.Errorf("%d calls, want %d", up.calls, test.calls)
				}
				if took := time.Since(began); test.took > 0 && took.Round(time.Second) != test.took {
					t.Errorf("it took %v, want %v", took, test.took)
				}
				synctest.Wait()
				m.proves(t)
			})
		})
	}
}

func steps(all ...func(*http.Request) (*http.Response, error)) []func(*http.Request) (*http.Response, error) {
	return all
}

func slicesOf(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

// breaks is an answer whose end does not come.
func breaks(r *http.Request) (*http.Response, error) {
	resp, err := says(200, answered[:20])(r)
	resp.ContentLength = int64(len(answered))
	resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(answered[:20]), broken{}))
	return resp, err
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A stream whose head left with a ping says in its trailers how it was served, and the log knows when its first byte came.
// While it flows it is counted.
func TestPingedStreamHasTrailers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script{steps: steps(later(18*time.Second, says(429, busy, "Retry-After", "1")), later(time.Second, flows(time.Second, slicesOf("data: {}\n\n", 10)...)))}
		var log Access
		m := over(t, dialects["openai"], up, func(c *Config) { c.Log = func(a Access) { log = a } }, batch.WithPlainLaw())
		defer m.shared.Close()
		streams := make(chan int)
		for _, at := range []time.Duration{19, 25} {
			time.AfterFunc(at*time.Second+time.Second/2, func() {
				st, err := m.Status(t.Context())
				if err != nil {
					t.Error(err)
				}
				streams <- st.Streams
			})
		}
		ended := make(chan *http.Response)
		go func() {
			resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", `{"stream":true,`+chatBody[1:]))
			ended <- resp
		}()
		if before, amid := <-streams, <-streams; before != 0 || amid != 1 {
			t.Errorf("%d streams before the answer, %d amid it", before, amid)
		}
		resp := <-ended
		if tr := resp.Trailer; tr.Get("X-Headrace-Attempts") != "2" || tr.Get("X-Headrace-Lane") != "m-1" || tr.Get("X-Headrace-Waited-Ms") == "" || resp.Header.Get("X-Headrace-Attempts") != "" {
			t.Errorf("trailers %v, headers %v", tr, resp.Header)
		}
		if log.First < 21*time.Second || log.First > 23*time.Second {
			t.Errorf("its first byte came after %v", log.First)
		}
		m.proves(t)
		if st, err := m.Status(t.Context()); err != nil || st.Streams != 0 {
			t.Errorf("%d streams at the end, %v", st.Streams, err)
		}
	})
}

// A client that goes away while it waits costs nothing; one that goes while its call is in flight has
// it cancelled at once, or finished and counted, as the server hears.
func TestClientThatGoes(t *testing.T) {
	for name, test := range map[string]struct {
		steps    []func(*http.Request) (*http.Response, error)
		finish   bool
		calls    int
		answered uint64
	}{
		"while it waits":             {steps(says(429, busy, "Retry-After", "600"), says(200, answered)), false, 1, 0},
		"while it waits, finishing":  {steps(says(429, busy, "Retry-After", "600"), says(200, answered)), true, 1, 0},
		"in flight":                  {steps(hangs), false, 1, 1},
		"in flight, finishing":       {steps(later(time.Minute, says(200, answered))), true, 1, 1},
		"in a stream":                {steps(flows(time.Second, slicesOf("data: {}\n\n", 60)...)), false, 1, 1},
		"in a stream, finishing":     {steps(flows(time.Second, slicesOf("data: {}\n\n", 60)...)), true, 1, 1},
		"in a stream that is silent": {steps(flows(time.Hour, "data: {}\n\n")), false, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up := &script{steps: test.steps}
				var log Access
				m := over(t, dialects["openai"], up, func(c *Config) {
					c.FinishGone = test.finish
					c.Log = func(a Access) { log = a }
				}, batch.WithPlainLaw())
				defer m.shared.Close()
				ctx, leave := context.WithTimeout(t.Context(), 30*time.Second)
				defer leave()
				began := time.Now()
				w := httptest.NewRecorder()
				m.ServeHTTP(w, m.request(ctx, "/v1/chat/completions", chatBody))
				took := time.Since(began)
				if strings.HasSuffix(name, "in flight, finishing") || strings.HasSuffix(name, "stream, finishing") {
					if took != time.Minute {
						t.Errorf("it ended after %v", took)
					}
				} else if took != 30*time.Second {
					t.Errorf("it ended after %v", took)
				}
				synctest.Wait()
				if c := m.proves(t); up.calls != test.calls || c.Settled != test.answered {
					t.Errorf("%d calls, %+v", up.calls, c)
				}
				if !log.Gone || log.Client != "one" || log.Attempts != test.calls {
					t.Errorf("%+v", log)
				}
			})
		})
	}
}

// Of requests that come together as many wait as may, one client has half of them, and all are
// answered within the provider's limit without any refusal that a client sees.
func TestLineIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mills(t, dialects["openai"], sim.Config{RPM: 60, Burst: time.Second, RetryAfter: sim.Always, Headers: true}, func(c *Config) { c.MaxWaiting = 40; c.MaxWait = time.Hour })
		defer m.shared.Close()
		statuses := make(chan int)
		for range 30 {
			go func() {
				resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
				if resp.StatusCode == 429 && (!strings.Contains(body, "headrace_queue_full") || resp.Header.Get("X-Should-Retry") != "true" || resp.Header.Get("Retry-After") != "1") {
					t.Errorf("%v %s", resp.Header, body)
				}
				statuses <- resp.StatusCode
			}()
		}
		got := map[int]int{}
		for range 30 {
			got[<-statuses]++
		}
		if got[200] < 20 || got[200]+got[429] != 30 || got[429] == 0 {
			t.Errorf("%v", got)
		}
		synctest.Wait()
		m.proves(t)
	})
}

// Bodies share one bound, and give it back.
func TestBodiesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script{steps: steps(later(time.Minute, says(200, answered)))}
		m := over(t, dialects["openai"], up, func(c *Config) { c.MaxBody, c.MaxBodies = 200_000, 300_000 }, batch.WithPlainLaw())
		defer m.shared.Close()
		long := strings.Replace(chatBody, "water", strings.Repeat("water ", 30_000), 1)
		first := make(chan int)
		go func() {
			resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", long))
			first <- resp.StatusCode
		}()
		synctest.Wait()
		if resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", long)); resp.StatusCode != 429 || !strings.Contains(body, "headrace_queue_full") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		unsized := m.request(t.Context(), "/v1/chat/completions", long)
		unsized.ContentLength = -1
		if resp, body := m.ask(unsized); resp.StatusCode != 429 {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		if got := <-first; got != 200 {
			t.Error(got)
		}
		if resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", long)); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		m.proves(t)
	})
}

// A server that drains refuses new requests and those that wait, lets calls in flight end, and cuts
// off the rest when its time is up.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script{steps: steps(later(time.Minute, says(200, answered)), later(time.Hour, says(200, answered)))}
		m := over(t, dialects["openai"], up, func(c *Config) { c.Timeout = 2 * time.Hour }, batch.WithPlainLaw(), batch.WithConcurrency(2))
		defer m.shared.Close()
		ends := make([]chan int, 3)
		for i := range ends {
			ends[i] = make(chan int, 1)
			go func() {
				resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
				ends[i] <- resp.StatusCode
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, errors.New("time is up"))
		defer cancel()
		closed := make(chan error)
		began := time.Now()
		go func() { closed <- m.Close(ctx) }()
		synctest.Wait()
		if got := <-ends[2]; got != 503 || time.Since(began) != 0 {
			t.Errorf("the one that waited got %d after %v", got, time.Since(began))
		}
		if resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody)); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("X-Should-Retry") != "true" {
			t.Errorf("a new one got %d %v", resp.StatusCode, resp.Header)
		}
		if resp, _ := m.ask(httptest.NewRequest(http.MethodGet, pathReady, nil)); resp.StatusCode != 503 {
			t.Errorf("ready: %d", resp.StatusCode)
		}
		if got := <-ends[0]; got != 200 || time.Since(began) != time.Minute {
			t.Errorf("the one in flight got %d after %v", got, time.Since(began))
		}
		if got := <-ends[1]; got != 503 || time.Since(began) != 10*time.Minute {
			t.Errorf("the long one got %d after %v", got, time.Since(began))
		}
		if err := <-closed; err == nil || err.Error() != "time is up" {
			t.Error(err)
		}
		m.proves(t)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
