package provider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// get makes a call with any client over Transport and a library that tells its
// caller nothing but "failed".
func get(t *testing.T, h http.HandlerFunc) (string, provider.Record) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &provider.Transport{Base: provider.NewHTTPTransport(1)}}
	t.Cleanup(client.CloseIdleConnections)
	ctx, rec := provider.WithRecorder(context.Background())
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}")))(t)
	req.Header.Set("Authorization", "Bearer sk-secret-of-the-test")
	resp := must.Get(client.Do(req))(t)
	body := must.Get(io.ReadAll(resp.Body))(t)
	_ = resp.Body.Close()
	return string(body), rec.Snapshot()
}

// Transport records what a failed answer's headers say and changes nothing, and
// an error that says nothing is classified by the recorded answer.
func TestTransportServesAnySDK(t *testing.T) {
	const sent = `{"error":{"code":"insufficient_quota","message":"key sk-secret-of-the-test is broke"}}`
	body, rec := get(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Request-Id", "req_7")
		w.Header().Set("X-Ratelimit-Limit-Requests", "60")
		w.Header().Set("X-Ratelimit-Remaining-Requests", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, sent)
	})
	if body != sent {
		t.Errorf("the library read %q, want %q", body, sent)
	}
	if !rec.Sent || rec.Status != 429 || rec.RetryAfter != 7*time.Second || rec.RequestID != "req_7" || len(rec.Limits) != 1 {
		t.Errorf("recorded %+v", rec)
	}
	if strings.Contains(string(rec.ErrorBody), "sk-secret") {
		t.Errorf("the key is in %s", rec.ErrorBody)
	}
	failed := errors.New("failed")
	e := rec.Failure(failed)
	if e.Kind != provider.QuotaExhausted || e.Status != 429 || e.RequestID != "req_7" || !errors.Is(e, failed) {
		t.Errorf("classified as %+v", e)
	}
}

// An error that tells its kind is not overruled by what was recorded, and a call
// that succeeded has no failure.
func TestFailureAsksTheErrorFirst(t *testing.T) {
	rec := provider.Record{Status: 500}
	for err, want := range map[error]provider.Kind{
		context.DeadlineExceeded: provider.Timeout, provider.Permanent(io.EOF): provider.Invalid,
		errors.New("odd"): provider.Server,
	} {
		if e := rec.Failure(err); e.Kind != want {
			t.Errorf("%v: %v, want %v", err, e.Kind, want)
		}
	}
	if e := rec.Failure(nil); e != nil {
		t.Errorf("no error gave %v", e)
	}
	if e := (provider.Record{Status: 200}).Failure(errors.New("odd")); e.Kind != provider.Unknown {
		t.Errorf("after a 200: %v, want unknown", e.Kind)
	}
}

// What a stray goroutine writes is neither lost nor a race, and a snapshot does
// not change any more.
func TestRecorderIsSharedByGoroutines(t *testing.T) {
	ctx, rec := provider.WithRecorder(context.Background())
	before := rec.Snapshot()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			r := provider.RecorderFrom(ctx)
			r.Response(200, header("x-request-id", "a"))
			r.Usage(provider.Usage{InputTokens: 1, OutputTokens: 2})
			r.Finish("stop")
			_ = r.Snapshot()
		})
	}
	all.Wait()
	after := rec.Snapshot()
	if after.Usage.InputTokens != 50 || after.Usage.OutputTokens != 100 || !after.HasUsage || after.Finish != "stop" {
		t.Errorf("recorded %+v", after)
	}
	if before.HasUsage || before.Sent {
		t.Errorf("the snapshot changed: %+v", before)
	}
}

// A call whose context is over before it starts has sent nothing.
func TestCancelledCallIsNotSent(t *testing.T) {
	ctx, rec := provider.WithRecorder(context.Background())
	ctx, stop := context.WithCancel(ctx)
	stop()
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1", nil))(t)
	resp, err := (&http.Client{Transport: &provider.Transport{Base: provider.NewHTTPTransport(1)}}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) || rec.Snapshot().Sent {
		t.Errorf("got %v, sent %v", err, rec.Snapshot().Sent)
	}
}

// Without a Recorder in the context all of it does nothing.
func TestNilRecorder(t *testing.T) {
	r := provider.RecorderFrom(context.Background())
	r.Response(200, nil)
	r.Usage(provider.Usage{})
	r.Finish("")
	if rec := r.Snapshot(); rec.Sent || rec.HasUsage {
		t.Errorf("a nil recorder has %+v", rec)
	}
}

// A record of an attempt's second answer holds nothing of the first.
func TestLastAnswerCounts(t *testing.T) {
	_, rec := provider.WithRecorder(context.Background())
	rec.Response(429, header("retry-after", "9"))
	rec.Response(200, header())
	if r := rec.Snapshot(); r.Status != 200 || r.HasRetryAfter || r.RetryAfter != 0 || r.ErrorBody != nil {
		t.Errorf("recorded %+v", r)
	}
}

// Redirects stay on host, port and scheme, keep the method, and end.
func TestRefuseForeignRedirect(t *testing.T) {
	request := func(method, s string) *http.Request {
		u := must.Get(url.Parse(s))(t)
		return &http.Request{Method: method, URL: u}
	}
	first := request("POST", "https://api.host/v1/x")
	for s, allowed := range map[string]bool{
		"POST https://api.host/v2": true, "POST https://api.host:443/v1/y": true,
		"POST http://api.host/v1/x": false, "POST https://api.host:8443/v1/x": false, "POST https://evil.api.host/v1/x": false,
		"POST https://api.host.evil/v1/x": false, "GET https://api.host/v2": false,
	} {
		method, target, _ := strings.Cut(s, " ")
		err := provider.RefuseForeignRedirect(request(method, target), []*http.Request{first})
		if (err == nil) != allowed || err != nil && !errors.Is(err, provider.Misconfigured) {
			t.Errorf("%s: %v, want allowed %v", s, err, allowed)
		}
	}
	for s, says := range map[string]string{
		"http://api.host/v1/x":       "redirect from https to http refused: try http://api.host",
		"https://api.host:8443/v1/x": "redirect to another port refused: https://api.host:8443",
		"http://evil.host/v1/x":      "redirect to another host refused: http://evil.host:80",
	} {
		if err := provider.RefuseForeignRedirect(request("POST", s), []*http.Request{first}); !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", s, err, says)
		}
	}
	via := make([]*http.Request, 10)
	for i := range via {
		via[i] = first
	}
	if provider.RefuseForeignRedirect(first, via) == nil {
		t.Error("redirects without end were allowed")
	}
}

// The transport keeps the given number of connections per host, and bounds
// connecting but not answering.
func TestNewHTTPTransport(t *testing.T) {
	tr := provider.NewHTTPTransport(100)
	if tr.MaxIdleConnsPerHost != 100 || tr.MaxIdleConns != 100 || tr.MaxConnsPerHost != 0 || !tr.ForceAttemptHTTP2 {
		t.Errorf("connections: %+v", tr)
	}
	if tr.ResponseHeaderTimeout != 0 || tr.TLSHandshakeTimeout == 0 || tr.IdleConnTimeout == 0 {
		t.Errorf("timeouts: %+v", tr)
	}
	if provider.NewHTTPTransport(-1).MaxIdleConnsPerHost != 1 {
		t.Error("a wrong number was not corrected")
	}
}

// A Recorder keeps only bounded and printable values, whatever their source: a request id that
// repeats a key, whole or cut, and a finish reason of any length.
func TestRecorderKeepsLittle(t *testing.T) {
	const key = "sk-secret-of-the-test"
	for _, id := range []string{"req-" + key, "req-" + key[:12]} {
		_, rec := get(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Request-Id", id) })
		if strings.Contains(rec.RequestID, key[:8]) {
			t.Errorf("the id %q is kept as %q", id, rec.RequestID)
		}
	}
	_, recorder := provider.WithRecorder(context.Background())
	recorder.Finish(strings.Repeat("x", 5000) + "\x1b[2J")
	if got := recorder.Snapshot().Finish; len(got) > 256 || strings.Contains(got, "\x1b") {
		t.Errorf("%d bytes are kept", len(got))
	}
}

// answers is a way to the server on which each call gets that status; 0: it breaks.
type answers int

func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	if a == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: int(a), Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// A call is doubtful if it was sent and its answer did not come whole. An attempt that succeeded,
// a call that never left and an answer that refuses are not, whatever came before in the attempt.
func TestDoubtful(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	used := provider.Usage{InputTokens: 9, OutputTokens: 2, CachedTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 1}
	uses := func(r *provider.Recorder) { r.Usage(used) }
	for _, c := range []struct {
		name  string
		calls []answers
		then  func(*provider.Recorder)
		err   error
		want  provider.Doubtful
	}{
		{"no answer", []answers{0}, nil, io.ErrUnexpectedEOF, provider.Doubtful{Calls: 1}},
		{"no answer in time", []answers{0}, nil, fmt.Errorf("late: %w", context.DeadlineExceeded), provider.Doubtful{Calls: 1}},
		{"canceled", []answers{0}, nil, context.Canceled, provider.Doubtful{Calls: 1}},
		{"a body that broke", []answers{200}, uses, provider.TransportFault, provider.Doubtful{Calls: 1, Usage: used}},
		{"cut off by an error of another kind", []answers{200}, (*provider.Recorder).Cut, provider.Overloaded, provider.Doubtful{Calls: 1}},
		{"broken after a refusal", []answers{401, 0}, nil, provider.TransportFault, provider.Doubtful{Calls: 1}},
		{"only usage was told", nil, uses, provider.Timeout, provider.Doubtful{Calls: 1, Usage: used}},

		{"success", []answers{200}, uses, nil, provider.Doubtful{}},
		{"not sent at all", nil, nil, provider.Timeout, provider.Doubtful{}},
		{"never left", []answers{0}, (*provider.Recorder).Unsent, provider.Timeout, provider.Doubtful{}},
		{"no connection", []answers{0}, nil, dial, provider.Doubtful{}},
		{"a whole answer that is an error", []answers{200}, uses, provider.EmptyAnswer, provider.Doubtful{}},
		{"refused", []answers{500}, uses, provider.Server, provider.Doubtful{}},
		{"refused by a body that broke", []answers{502}, uses, io.ErrUnexpectedEOF, provider.Doubtful{}},
		{"led away", []answers{302}, nil, provider.TransportFault, provider.Doubtful{}},
		{"refused after one that broke", []answers{0, 401}, nil, provider.Unauthorized, provider.Doubtful{}},
	} {
		ctx, rec := provider.WithRecorder(t.Context())
		for _, way := range c.calls {
			rec.Cut() // what was said of an earlier call does not hold for the next
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://h/", nil)
			if resp, err := (&provider.Transport{Base: way}).RoundTrip(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		if c.then != nil {
			c.then(rec)
		}
		snapshot := rec.Snapshot()
		if got := snapshot.Doubtful(c.err); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	var nobody *provider.Recorder
	nobody.Cut()
	nobody.Unsent()
}

// Of an answer that was cut off the usage is known from the byte on with which it had come whole,
// and never in part.
func TestTornUsage(t *testing.T) {
	for _, c := range []struct{ whole, ends string }{
		{heardAnswer, `"total_tokens":13}`},
		{`{"usage":{"input_tokens":9,"output_tokens":4},"content":[{"text":"\"usage\":{\"input_tokens\":1}"}],"stop_reason":"end_turn"}`, `"output_tokens":4}`},
		{"\n" + `{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4},"x":1}`, `Count":4}`},
		{`{"id":"a","meta":{"tokens":{"input_tokens":9,"output_tokens":4}}}`, `"output_tokens":4}}`},
	} {
		from := strings.Index(c.whole, c.ends) + len(c.ends)
		for n := range len(c.whole) {
			want, known := provider.Usage{}, n >= from
			if known {
				want = provider.Usage{InputTokens: 9, OutputTokens: 4}
			}
			if got, counted := provider.TornUsage([]byte(c.whole[:n])); got != want || counted != known {
				t.Errorf("%s: %+v, %t", c.whole[:n], got, counted)
			}
			reply, e := provider.ReplyOf(http.StatusOK, nil, []byte(c.whole[:n]))
			if e == nil || reply.HasUsage != known || reply.Usage != want {
				t.Errorf("read as an answer, %s: %+v, %v", c.whole[:n], reply.Usage, e)
			}
		}
	}
	for text, want := range map[string]provider.Usage{
		`{"service_tier":"flex","usage":{"input_tokens":9,"output_tokens":4},"us`: {InputTokens: 9, OutputTokens: 4, Tier: provider.FlexTier},
		`{"usage":{"input_tokens":9,"output_tokens":4},"service_tier":"fl`:        {InputTokens: 9, OutputTokens: 4},
		`{"meta":{"id":1},"usage":{"input_tokens":9,"output_tokens":4},"us`:       {InputTokens: 9, OutputTokens: 4},
		`{"usage":null,"usageMetadata":{"promptTokenCount":9},"x`:                 {InputTokens: 9},
	} {
		if got, counted := provider.TornUsage([]byte(text)); got != want || !counted {
			t.Errorf("%s: %+v, %t", text, got, counted)
		}
	}
	for _, other := range []string{"", " ", "<html>", `[{"usage":{"input_tokens":9}}`, `{"answer":{"usage":{"input_tokens":9}}`, `{"usage":7,`, `{"service_tier":"flex","usage":{"input_tokens":9`, `{"usage":{"input_tokens":09},`} {
		if got, counted := provider.TornUsage([]byte(other)); counted || got != (provider.Usage{}) {
			t.Errorf("%s: %+v", other, got)
		}
	}
}

// A client of somebody else's over Transport meets an answer that breaks off: usage that had come
// by then is doubtful.
func TestTransportHearsTornUsage(t *testing.T) {
	torn := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, heardAnswer[:len(heardAnswer)-1])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	var broke error
	read := func(body io.Reader) { _, broke = io.Copy(io.Discard, body) }
	rec := heard(t, torn, read, &provider.Transport{Base: provider.NewHTTPTransport(1)}).Snapshot()
	if got := rec.Doubtful(broke); got != (provider.Doubtful{Calls: 1, Usage: provider.Usage{InputTokens: 9, OutputTokens: 4}}) {
		t.Errorf("%+v after %v, of %+v", got, broke, rec)
	}
}

// By whatever header, or parameter of the URL, a provider is given a credential: an
// answer that repeats it is recorded without.
func TestCredentialsAreTakenOut(t *testing.T) {
	const secret = "sk-a/secret+of-the-test"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "id "+secret)
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "refused: "+secret+" sk-a%2Fsecret%2Bof-the-test")
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &provider.Transport{Base: provider.NewHTTPTransport(1)}}
	t.Cleanup(client.CloseIdleConnections)
	for _, way := range []string{
		"Authorization: Bearer ", "Authorization: ", "Proxy-Authorization: Basic ", "X-Api-Key: ", "Api-Key: ", "X-Goog-Api-Key: ",
		"X-Goog-Iam-Authorization-Token: ", "X-Amz-Security-Token: ", "?key=", "?a=b&api_key=", "?api-key=", "?apikey=", "?access_token=",
		"?X-Amz-Security-Token=", "?X-Amz-Signature=", "?sig=",
	} {
		ctx, rec := provider.WithRecorder(context.Background())
		req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody))(t)
		if name, value, ok := strings.Cut(way, ": "); ok {
			req.Header.Set(name, value+secret)
		} else {
			req.URL.RawQuery = strings.TrimPrefix(way, "?") + "sk-a%2Fsecret%2Bof-the-test"
		}
		resp := must.Get(client.Do(req))(t)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		r := rec.Snapshot()
		if text := r.RequestID + string(r.ErrorBody); strings.Contains(text, secret) || strings.HasPrefix(way, "?") && strings.Contains(text, "%2F") {
			t.Errorf("%s: %s", way, text)
		}
	}
}
