package provider

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// An answer whose headers are longer than a megabyte is a fault of the transport, and is
// not read on; one that is as long as any in use passes.
func TestHeadersAreBounded(t *testing.T) {
	for _, c := range []struct {
		bytes int
		fits  bool
	}{{maxHeader / 2, true}, {maxHeader + 1, false}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for range c.bytes / 1024 {
				w.Header().Add("X-Padding", strings.Repeat("a", 1024))
			}
		}))
		err := get(t, NewHTTPTransport(1), server.URL)
		if c.fits && err != nil {
			t.Errorf("headers of %d bytes: %v", c.bytes, err)
		}
		if !c.fits && (err == nil || ClassifyErr(err).Kind != TransportFault) {
			t.Errorf("headers of %d bytes: %v, %v", c.bytes, ClassifyErr(err), err)
		}
		server.Close()
	}
}

// get makes one call over a transport, and reads nothing of its answer's body.
func get(t *testing.T, tr *http.Transport, url string) error {
	t.Helper()
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err == nil {
		_ = resp.Body.Close() // nothing of it is wanted
	}
	return err
}

// A dead HTTP/2 connection is found within half a minute, and a living one has time to answer.
func TestPingsFindADeadConnection(t *testing.T) {
	const within, roundTrip = 30 * time.Second, 5 * time.Second
	h := NewHTTPTransport(1).HTTP2
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
	tr := NewHTTPTransport(1)
	tr.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	if err := get(t, tr, server.URL); err == nil || window != maxUnread {
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
