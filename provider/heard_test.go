package provider_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/provider"
)

const heardAnswer = `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}}`

// What a good answer used, and why it ended, is known of any client that reads it as
// clients do: to its end, or by a decoder that stops after the value; packed on the way or in
// pieces. Of a stream, of what is too long, not read, or no answer, nothing is known.
func TestTransportHearsUsage(t *testing.T) {
	write := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			_, _ = io.WriteString(w, text)
		}
	}
	all := func(body io.Reader) { _, _ = io.Copy(io.Discard, body) }
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		read   func(io.Reader)
		known  bool
	}{
		{"to its end", write(heardAnswer), all, true},
		{"decoded", write(heardAnswer + strings.Repeat("\n", 64<<10)), func(body io.Reader) { _ = json.NewDecoder(body).Decode(new(any)) }, true},
		{"without a type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, heardAnswer)
		}, all, true},
		{"in pieces", func(w http.ResponseWriter, _ *http.Request) {
			for _, c := range heardAnswer {
				_, _ = io.WriteString(w, string(c))
				_ = http.NewResponseController(w).Flush()
			}
		}, all, true},
		{"packed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, heardAnswer)
			_ = z.Close()
		}, all, true},
		{"half of it", write(heardAnswer), func(body io.Reader) { _, _ = io.ReadFull(body, make([]byte, 50)) }, false},
		{"nothing of it", write(heardAnswer), func(io.Reader) {}, false},
		{"no answer", write(`{"error":{"code":429},"usage":{"prompt_tokens":9}}`), all, false},
		{"too long", write(heardAnswer + strings.Repeat(" ", provider.MaxHeard)), all, false},
		{"of the bound's length", write(heardAnswer + strings.Repeat(" ", provider.MaxHeard-len(heardAnswer))), all, true},
		{"a stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, heardAnswer)
		}, all, false},
	} {
		rec := heard(t, c.answer, c.read, &provider.Transport{Base: provider.NewHTTPTransport(1)}).Snapshot()
		want := provider.Usage{}
		if c.known {
			want = provider.Usage{InputTokens: 9, OutputTokens: 4}
		}
		if rec.HasUsage != c.known || rec.Usage != want || (rec.Finish == "stop") != c.known {
			t.Errorf("%s: %+v, %t, %q", c.name, rec.Usage, rec.HasUsage, rec.Finish)
		}
	}
}

// heard makes a call over a transport, reads the answer in its own way, and closes it.
func heard(t *testing.T, answer http.HandlerFunc, read func(io.Reader), transport *provider.Transport) *provider.Recorder {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client := &http.Client{Transport: transport}
	t.Cleanup(client.CloseIdleConnections)
	ctx, rec := provider.WithRecorder(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	read(resp.Body)
	_ = resp.Body.Close()
	_ = resp.Body.Close()
	return rec
}

// An answer counts once: over two transports, and where the client says itself what it
// has used.
func TestHeardUsageCountsOnce(t *testing.T) {
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, heardAnswer) }
	failure := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "bad gateway")
	}
	all := func(body io.Reader) { _, _ = io.Copy(io.Discard, body) }
	twice := func() *provider.Transport {
		return &provider.Transport{Base: &provider.Transport{Base: provider.NewHTTPTransport(1)}}
	}
	rec := heard(t, answer, all, twice())
	if u := rec.Snapshot().Usage; u.InputTokens != 9 {
		t.Errorf("over two transports: %+v", u)
	}
	rec.Usage(provider.Usage{InputTokens: 10})
	rec.Finish("length")
	if r := rec.Snapshot(); r.Usage.InputTokens != 10 || r.Finish != "length" {
		t.Errorf("told as well: %+v, %q", r.Usage, r.Finish)
	}
	if body := heard(t, failure, all, twice()).Snapshot().ErrorBody; string(body) != "bad gateway" {
		t.Errorf("a failure over two transports: %q", body)
	}
	if r := heard(t, answer, all, &provider.Transport{Base: provider.NewHTTPTransport(1), HeadersOnly: true}).Snapshot(); r.HasUsage || r.Status != 200 {
		t.Errorf("of headers only: %+v", r)
	}
}

// A body may be closed while it is read.
func TestHeardBodyIsClosedWhileItIsRead(t *testing.T) {
	ctx, rec := provider.WithRecorder(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&provider.Transport{Base: endless{}}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.CopyN(io.Discard, resp.Body, 1000) })
	_ = resp.Body.Close()
	reading.Wait()
	if rec.Snapshot().HasUsage {
		t.Error("usage of an answer that never came")
	}
}

// endless answers with a body that does not end, and knows no close.
type endless struct{}

func (endless) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: io.NopCloser(endless{})}, nil
}

func (endless) Read(p []byte) (int, error) {
	p[0] = ' '
	return 1, nil
}

// Several answers of one attempt add up, and the last one says why it ended.
func TestHeardAnswersAddUp(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, heardAnswer) }))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: &provider.Transport{Base: provider.NewHTTPTransport(1)}}
	t.Cleanup(client.CloseIdleConnections)
	ctx, rec := provider.WithRecorder(context.Background())
	for range 3 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if u := rec.Snapshot().Usage; u.InputTokens != 27 || u.OutputTokens != 12 {
		t.Errorf("%+v", u)
	}
}
