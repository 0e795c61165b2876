package paced

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
)

const answered = `{"id":"1","object":"chat.completion","choices":[{"message":{"role":"assistant","content":"Deep."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`

// script answers each try with the next of its steps, the last one again and again.
func script(tries *int, steps ...trip) trip {
	return func(r *http.Request) (*http.Response, error) {
		step := steps[min(*tries, len(steps)-1)]
		*tries++
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return step(r)
	}
}

// says answers with a status and a body.
func says(status int, body string, header ...string) trip {
	return func(*http.Request) (*http.Response, error) { return reply(status, body, header...), nil }
}

func breaks(err error) trip { return func(*http.Request) (*http.Response, error) { return nil, err } }

// A call is tried again where a run would do so, and where that does no harm. The client gets the
// first answer or the last refusal, as the provider wrote it.
func TestWhatIsTriedAgain(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	unsent := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	const many = -1 // a call that is alone probes its lane, as long as an outage may last
	const busy, noQuota = `{"error":{"message":"slow down"}}`, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`
	ok := says(200, answered)
	tests := map[string]struct {
		method, path string
		steps        []trip
		tries        int
		status       int // 0: an error
		body         string
	}{
		"a 429":                          {steps: []trip{says(429, busy, "Retry-After", "7"), ok}, tries: 2, status: 200, body: answered},
		"a 503":                          {steps: []trip{says(503, busy, "Retry-After", "7"), ok}, tries: 2, status: 200, body: answered},
		"a 529":                          {steps: []trip{says(529, busy), ok}, tries: 2, status: 200, body: answered},
		"a 500":                          {steps: []trip{says(500, busy), ok}, tries: 2, status: 200, body: answered},
		"always a 500":                   {steps: []trip{says(500, busy)}, tries: batch.DefaultMaxAttempts, status: 500, body: busy},
		"always a 429":                   {steps: []trip{says(429, busy, "Retry-After", "1")}, tries: many, status: 429, body: busy},
		"a broken connection":            {steps: []trip{breaks(reset), ok}, tries: 2, status: 200, body: answered},
		"always a broken connection":     {steps: []trip{breaks(reset)}, tries: batch.DefaultMaxAttempts},
		"a 400":                          {steps: []trip{says(400, busy), ok}, tries: 1, status: 400, body: busy},
		"a refused key":                  {steps: []trip{says(401, busy), ok}, tries: 1, status: 401, body: busy},
		"an unknown model":               {steps: []trip{says(404, `{"error":{"code":"model_not_found"}}`), ok}, tries: 1, status: 404},
		"no quota":                       {steps: []trip{says(429, noQuota), ok}, tries: 1, status: 429, body: noQuota},
		"a wait of a day":                {steps: []trip{says(429, busy, "Retry-After", "80000"), ok}, tries: 1, status: 429, body: busy},
		"an upload that breaks":          {path: "/v1/files", steps: []trip{breaks(reset), ok}, tries: 1},
		"an upload and a 500":            {path: "/v1/files", steps: []trip{says(500, busy), ok}, tries: 1, status: 500, body: busy},
		"an upload and a 429":            {path: "/v1/files", steps: []trip{says(429, busy), ok}, tries: 2, status: 200, body: answered},
		"an upload that never left":      {path: "/v1/files", steps: []trip{breaks(unsent), ok}, tries: 2, status: 200, body: answered},
		"an upload, refused and broken":  {path: "/v1/files", steps: []trip{says(429, busy), breaks(reset), ok}, tries: 2},
		"a message of a thread":          {path: "/v1/threads/t/messages", steps: []trip{breaks(reset), ok}, tries: 1},
		"a list that breaks":             {method: "GET", path: "/v1/models", steps: []trip{breaks(reset), ok}, tries: 2, status: 200, body: answered},
		"a redirect":                     {steps: []trip{says(307, "elsewhere"), ok}, tries: 1, status: 307, body: "elsewhere"},
		"an answer without a body":       {steps: []trip{func(*http.Request) (*http.Response, error) { r := reply(204, ""); r.Body = http.NoBody; return r, nil }}, tries: 1, status: 204},
		"a Base that panics":             {steps: []trip{func(*http.Request) (*http.Response, error) { panic("broken base") }}, tries: 1},
		"a refusal over what is kept":    {steps: []trip{says(400, strings.Repeat("x", maxRefusal+1))}, tries: 1, status: 400, body: strings.Repeat("x", maxRefusal)},
		"a refusal as long as what fits": {steps: []trip{says(400, strings.Repeat("x", maxRefusal))}, tries: 1, status: 400, body: strings.Repeat("x", maxRefusal)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := shares(t, batch.WithPlainLaw())
				defer shared.Close()
				var tries int
				req := post(t.Context(), "http://api.example", chat)
				if test.path != "" {
					req.URL.Path = test.path
				}
				if test.method != "" {
					req.Method, req.Body, req.GetBody, req.ContentLength = test.method, nil, nil, 0
				}
				resp, err := Transport(shared, script(&tries, test.steps...)).RoundTrip(req)
				if tries != test.tries && (test.tries != many || tries < batch.MaxRefusals) {
					t.Errorf("%d tries, want %d", tries, test.tries)
				}
				if test.status == 0 {
					if err == nil {
						t.Errorf("%+v, want an error", resp)
					}
					proves(t, shared, 1)
					return
				}
				if err != nil || resp.StatusCode != test.status || resp.Request != req {
					t.Fatalf("%v %+v, want %d", err, resp, test.status)
				}
				body, err := io.ReadAll(resp.Body)
				if test.body != "" && string(body) != test.body || (err != nil) != (len(test.body) == maxRefusal && strings.Contains(name, "over")) {
					t.Errorf("%d bytes %.80s %v, want %.80s", len(body), body, err, test.body)
				}
				if err := resp.Body.Close(); err != nil {
					t.Error(err)
				}
				proves(t, shared, 1)
				if test.status < 400 || test.tries != 1 {
					return
				}
				// A failure that is the call's own does not stop the lane.
				next, err := Transport(shared, says(200, answered)).RoundTrip(post(t.Context(), "http://api.example", chat))
				if err != nil || next.StatusCode != http.StatusOK {
					t.Fatalf("the next call: %v %+v", err, next)
				}
				_ = next.Body.Close()
			})
		})
	}
}

// An upload whose try was cut off by its timeout is not sent twice: it may have arrived.
func TestUploadThatTimesOutIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := shares(t, batch.WithPlainLaw())
		defer shared.Close()
		var tries int
		req := post(t.Context(), "http://api.example", chat)
		req.URL.Path = "/v1/files"
		hang := func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		_, err := Transport(shared, script(&tries, hang), batch.WithAttemptTimeout(time.Minute)).RoundTrip(req)
		if err == nil || tries != 1 {
			t.Errorf("%v after %d tries", err, tries)
		}
		proves(t, shared, 1)
	})
}

// A client that goes away after a refusal gets the error of its ctx, and no answer.
func TestClientThatGoesAwayAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := shares(t, batch.WithPlainLaw())
		defer shared.Close()
		var tries int
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Transport(shared, script(&tries, says(429, "busy", "Retry-After", "300"))).RoundTrip(post(ctx, "http://api.example", chat))
		if !errors.Is(err, context.DeadlineExceeded) || tries != 1 {
			t.Errorf("%v after %d tries", err, tries)
		}
		proves(t, shared, 1)
	})
}

// An answer that begins at the very instant at which its time is up is given to the client, or
// the call is made again: never both.
func TestAnswerAtTheInstantOfTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := shares(t, batch.WithPlainLaw())
		defer shared.Close()
		for range 200 {
			var tries int
			late := func(r *http.Request) (*http.Response, error) {
				if tries == 1 {
					time.Sleep(time.Minute)
				}
				return reply(200, answered), nil
			}
			resp, err := Transport(shared, script(&tries, late), batch.WithAttemptTimeout(time.Minute)).RoundTrip(post(t.Context(), "http://api.example", chat))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			had := tries
			_ = resp.Body.Close()
			if tries != had || tries > 2 {
				t.Fatalf("%d tries, %d while the client had its answer", tries, had)
			}
		}
		proves(t, shared, 200)
	})
}

// A call holds its place until its answer was read or closed, or its client has gone: as long as
// one stream goes on, no other call leaves a Shared with one place.
func TestAnswerHoldsItsPlaceToItsEnd(t *testing.T) {
	for name, end := range map[string]func(resp *http.Response, cancel func()){
		"read":   func(resp *http.Response, _ func()) { _, _ = io.Copy(io.Discard, resp.Body) },
		"closed": func(resp *http.Response, _ func()) { _ = resp.Body.Close() },
		"left":   func(_ *http.Response, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := shares(t, batch.WithPlainLaw(), batch.WithConcurrency(1))
				defer shared.Close()
				base := says(200, "data: 1\n\ndata: [DONE]\n\n", "Content-Type", "text/event-stream")
				var b books
				// The clock of the try stops at the head: the stream outlasts it.
				paced := Transport(shared, base, append(b.options(), batch.WithAttemptTimeout(time.Minute))...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first, err := paced.RoundTrip(post(ctx, "http://api.example", chat))
				if err != nil {
					t.Fatal(err)
				}
				came := make(chan *http.Response)
				go func() {
					second, err := paced.RoundTrip(post(t.Context(), "http://api.example", chat))
					if err != nil {
						t.Error(err)
					}
					came <- second
				}()
				select {
				case <-came:
					t.Fatal("a second call left while the first held the one place")
				case <-time.After(time.Hour):
				}
				end(first, cancel)
				second := <-came
				_ = first.Body.Close()
				_ = second.Body.Close()
				_ = second.Body.Close() // harmless
				synctest.Wait()
				proves(t, shared, 2)
				if want := map[bool]int{true: 1, false: 2}[name == "left"]; b.ends["answered"] != want {
					t.Errorf("%v, want %d answered", b.ends, want)
				}
			})
		})
	}
}

// An answer that breaks after its head is the client's to judge: it sees the error, and nothing is
// sent again. The call is doubtful.
func TestAnswerThatBreaksIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := shares(t, batch.WithPlainLaw())
		defer shared.Close()
		var tries, doubtful int
		broken := func(*http.Request) (*http.Response, error) {
			r := reply(200, "")
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader(answered[:20]), errorReader{io.ErrUnexpectedEOF}))
			return r, nil
		}
		client := &http.Client{Transport: Transport(shared, script(&tries, broken), batch.WithEnds(func(e batch.End) { doubtful += e.Doubtful.Calls }))}
		_, body, err := ask(client, post(t.Context(), "http://api.example", chat))
		if !errors.Is(err, io.ErrUnexpectedEOF) || body != answered[:20] || tries != 1 || doubtful != 1 {
			t.Errorf("%q %v after %d tries, %d doubtful", body, err, tries, doubtful)
		}
		proves(t, shared, 1)
	})
}

// The usage of an answer corrects what its call was taken for.
func TestUsageOfAnAnswerIsKnown(t *testing.T) {
	shared := shares(t)
	var end batch.End
	client := &http.Client{Transport: Transport(shared, says(200, answered), batch.WithEnds(func(e batch.End) { end = e }))}
	if _, body, err := ask(client, post(t.Context(), "http://api.example", chat)); err != nil || body != answered {
		t.Errorf("%v %s", err, body)
	}
	if end.Usage.InputTokens != 9 || end.Usage.OutputTokens != 2 || end.Finish != "stop" || end.Lane != "api.example/m-1" {
		t.Errorf("%+v", end)
	}
}

// A lane that has stopped, a Shared that has closed and a wrong option are errors of the call.
func TestErrorsOfTheLine(t *testing.T) {
	var tries int
	base := script(&tries, says(200, answered))
	closed := shares(t)
	closed.Close()
	for name, test := range map[string]struct {
		shared *batch.Shared
		opts   []batch.Option
		want   error
	}{
		"closed": {closed, nil, batch.ErrClosed},
		"nil":    {nil, nil, batch.ErrConfig},
		"option": {shares(t), []batch.Option{batch.WithConcurrency(3)}, batch.ErrConfig},
		"sums":   {shares(t), []batch.Option{batch.WithSummary(new(batch.Summary))}, batch.ErrConfig},
	} {
		_, err := Transport(test.shared, base, test.opts...).RoundTrip(post(t.Context(), "http://api.example", chat))
		if !errors.Is(err, test.want) || tries > 0 {
			t.Errorf("%s: %v after %d tries, want %v", name, err, tries, test.want)
		}
	}
}

// A client of a real server, which refuses, breaks connections and is slow, gets each answer, and
// nothing runs after it.
func TestServerThatMisbehaves(t *testing.T) {
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != chat {
			t.Errorf("the body came as %q, %v", body, err)
		}
		switch k := n.Add(1); {
		case k == 1:
			w.Header().Set("Retry-After-Ms", "5")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"slow down"}}`)
		case k%7 == 3:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answered)
		}
	}))
	defer server.Close()
	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	shared := shares(t, batch.WithPlainLaw(), batch.WithBackoff(time.Millisecond, 5*time.Millisecond))
	client := &http.Client{Transport: Transport(shared, base, patient)}
	ends := make(chan error)
	for range 24 {
		go func() {
			_, body, err := ask(client, post(context.Background(), server.URL, chat))
			if err == nil && body != answered {
				err = errors.New(body)
			}
			ends <- err
		}()
	}
	for range 24 {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
	proves(t, shared, 24)
}
