package serve

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
)

// streaming is a provider in as few bytes as can be: it answers each connection with the head and one event of a stream, and
// keeps that open.
func streaming(t *testing.T) (base string) {
	t.Helper()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	conns := make(chan net.Conn, 10_000)
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\na\r\ndata: {}\n\n\r\n")
			conns <- conn
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-answers
		close(conns)
		for conn := range conns {
			_ = conn.Close()
		}
	})
	return "http://" + ln.Addr().String()
}

// Two thousand open streams need less than 160 MiB: 80 KiB each, of which the buffers of net/http for two connections and the
// stacks of its four goroutines are two thirds.
func TestMemoryOfStreams(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector has memory of its own for each goroutine")
	}
	const n, most = 500, 80 << 10
	base := streaming(t)
	m, at := loopback(t, base, n)
	stream := `{"stream":true,` + chatBody[1:]
	head := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nUser-Agent: test\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", token, len(stream))
	before := used()
	for range n {
		conn := must.Get(net.Dial("tcp", at[len("http://"):]))(t)
		defer func() { _ = conn.Close() }()
		must.Get(conn.Write([]byte(head + stream)))(t)
	}
	for must.Get(m.Status(t.Context()))(t).Streams < n {
		time.Sleep(time.Millisecond)
	}
	if each := (used() - before) / n; each > most {
		t.Errorf("an open stream needs %d bytes, want at most %d", each, most)
	} else {
		t.Logf("an open stream needs %d bytes", each)
	}
}
