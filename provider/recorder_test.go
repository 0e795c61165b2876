package provider_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

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
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer sk-secret-of-the-test")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
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
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
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
