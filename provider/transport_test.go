package provider_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
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

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// An answer whose headers are longer than a megabyte is a fault of the transport, and is
// not read on; one that is as long as any in use passes.
func TestHeadersAreBounded(t *testing.T) {
	const longestHeader = 1 << 20
	for _, c := range []struct {
		bytes int
		fits  bool
	}{{longestHeader / 2, true}, {longestHeader + 1, false}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range c.bytes / 1024 {
				w.Header().Add("X-Padding", strings.Repeat("a", 1024))
			}
		}))
		err := fetch(t, provider.NewHTTPTransport(1), server.URL)
		if c.fits && err != nil {
			t.Errorf("headers of %d bytes: %v", c.bytes, err)
		}
		if !c.fits && (err == nil || provider.ClassifyErr(err).Kind != provider.TransportFault) {
			t.Errorf("headers of %d bytes: %v, %v", c.bytes, provider.ClassifyErr(err), err)
		}
		server.Close()
	}
}

// fetch makes one call over a transport, and reads nothing of its answer's body.
func fetch(t *testing.T, tr *http.Transport, url string) error {
	t.Helper()
	defer tr.CloseIdleConnections()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))(t)
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err == nil {
		_ = resp.Body.Close() // nothing of it is wanted
	}
	return err
}

// A dead HTTP/2 connection is found within half a minute, and a living one has time to answer.
func TestPingsFindADeadConnection(t *testing.T) {
	const within, roundTrip = 30 * time.Second, 5 * time.Second
	h := provider.NewHTTPTransport(1).HTTP2
	if h.SendPingTimeout+h.PingTimeout > within || h.SendPingTimeout < roundTrip || h.PingTimeout < roundTrip {
		t.Errorf("a ping after %v, and %v for its answer", h.SendPingTimeout, h.PingTimeout)
	}
}

// What lies about of an HTTP/2 answer that nobody reads is bounded: the client says so to
// the server, in its first frame.
func TestUnreadIsBounded(t *testing.T) {
	var window uint32
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		"h2": func(_ *http.Server, conn *tls.Conn, _ http.Handler) {
			window = initialWindow(t, conn)
			_ = conn.Close() // the call fails, and is not asked about
		},
	}
	server.StartTLS()
	defer server.Close()
	tr := provider.NewHTTPTransport(1)
	tr.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	if err := fetch(t, tr, server.URL); err == nil || window != 1<<20 {
		t.Errorf("the client lets the server send %d bytes unread, %v", window, err)
	}
}

// initialWindow reads, from the beginning of an HTTP/2 connection, how much the client
// takes of an answer before it has read of it; 0 if it does not say.
func initialWindow(t *testing.T, conn io.Reader) uint32 {
	t.Helper()
	const preface, header, setting, window = 24, 9, 6, 4
	head := make([]byte, preface+header)
	_, err := io.ReadFull(conn, head)
	frame := make([]byte, binary.BigEndian.Uint32(head[preface-1:])&0xFFFFFF)
	_, more := io.ReadFull(conn, frame)
	if err := errors.Join(err, more); err != nil {
		t.Error(err)
	}
	for ; len(frame) >= setting; frame = frame[setting:] {
		if binary.BigEndian.Uint16(frame) == window {
			return binary.BigEndian.Uint32(frame[2:])
		}
	}
	return 0
}

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
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody))(t)
	resp := must.Get(client.Do(req))(t)
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
	req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, "http://host", http.NoBody))(t)
	resp := must.Get((&provider.Transport{Base: endless{}}).RoundTrip(req))(t)
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
		req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody))(t)
		resp := must.Get(client.Do(req))(t)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if u := rec.Snapshot().Usage; u.InputTokens != 27 || u.OutputTokens != 12 {
		t.Errorf("%+v", u)
	}
}

// through makes a call to a host of https by way of a proxy, and gives its error.
func through(t *testing.T, proxy string) error {
	t.Helper()
	u := must.Get(url.Parse(proxy))(t)
	tr := provider.NewHTTPTransport(1)
	defer tr.CloseIdleConnections()
	tr.Proxy = http.ProxyURL(u)
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.invalid/v1", http.NoBody))(t)
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("it was answered")
	}
	return err
}

// What a proxy refuses is not taken for the provider's word, and never reached it. One
// that wants a password is a matter of configuration.
func TestProxyThatRefusesIsNamed(t *testing.T) {
	for status, kind := range map[int]provider.Kind{
		403: provider.TransportFault, 502: provider.TransportFault, 407: provider.Misconfigured,
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer proxy.Close()
		err := through(t, proxy.URL)
		host := strings.TrimPrefix(proxy.URL, "http://")
		if e := provider.ClassifyErr(err); e.Kind != kind || e.Status != 0 || !strings.Contains(err.Error(), fmt.Sprintf("the proxy at %s answers %d", host, status)) {
			t.Errorf("%d: %v, kind %v", status, err, e.Kind)
		}
		if !provider.Unsent(err) {
			t.Errorf("%d: it is taken for sent", status)
		}
	}
}

// So it is with one that is not there.
func TestProxyThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	err = through(t, "http://"+address)
	if e := provider.ClassifyErr(err); e.Kind != provider.TransportFault || !provider.Unsent(err) || !strings.Contains(err.Error(), "proxyconnect") {
		t.Errorf("%v, kind %v, unsent %v", err, e.Kind, provider.Unsent(err))
	}
}
