package exposition

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// pipes is a listener whose connections are in memory, where time is virtual.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }
func (pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// A client that keeps a connection idle, or never ends the head or the body of a request, is cut off.
func TestSilentClientsAreCutOff(t *testing.T) {
	const ask, host = "GET / HTTP/1.1\r\n", "Host: localhost\r\n"
	for name, c := range map[string]struct {
		sent string
		want time.Duration
	}{
		"nothing":  {"", headerWait},
		"a head":   {ask, headerWait},
		"a body":   {ask + host + "Content-Length: 10\r\n\r\n", bodyWait},
		"in parts": {ask + host + "Transfer-Encoding: chunked\r\n\r\n", bodyWait},
		"idle":     {ask + host + "\r\n", idleWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ln := make(pipes)
				s := serve(ln, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				here, there := net.Pipe()
				ln <- there
				began := time.Now()
				_, err := io.WriteString(here, c.sent)
				must.Do(t, err)
				_, _ = io.Copy(io.Discard, here) // to its end, however that comes
				if took := time.Since(began); took != c.want {
					t.Errorf("the connection ended after %v, want %v", took, c.want)
				}
				must.Do(t, s.Close())
			})
		})
	}
}
