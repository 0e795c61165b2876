package wire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// Frames of HTTP/2, as far as these tests speak it.
const (
	frameHeaders, frameReset, frameSettings, frameGoAway = 0x1, 0x3, 0x4, 0x7
	endStreamAndHeaders                                  = 0x5
	frameHead                                            = 9
)

// frame is one frame's bytes.
func frame(kind, flags byte, stream uint32, payload ...byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return append(binary.BigEndian.AppendUint32(append(head, flags), stream), payload...)
}

// speak reads the calls of a connection and answers each with what answer says of its stream.
func speak(t *testing.T, conn net.Conn, answer func(stream uint32) []byte) {
	const preface = 24
	if _, err := io.CopyN(io.Discard, conn, preface); err != nil {
		t.Error(err)
		return
	}
	head := make([]byte, frameHead)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return // the client has ended it
		}
		_, _ = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head)>>8))
		if head[3] == frameHeaders {
			_, _ = conn.Write(answer(binary.BigEndian.Uint32(head[5:])))
		}
	}
}

// newFramed starts a server over TLS that serves connections of HTTP/2 frame by frame.
func newFramed(serve func(net.Conn)) *httptest.Server {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{NextProtos: []string{protocol2}, MinVersion: tls.VersionTLS12}
	server.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){
		protocol2: func(_ *http.Server, conn *tls.Conn, _ http.Handler) { serve(conn) },
	}
	server.StartTLS()
	return server
}

// A call with which the server has certainly not begun is sent again, with its whole body. Any
// other has failed.
func TestOnlyUnbegunCallsAreSentAgain(t *testing.T) {
	const refused, internal = 0x7, 0x2
	for name, c := range map[string]struct {
		refuse func(stream uint32) []byte
		tries  int32
	}{
		"a stream is refused":     {func(s uint32) []byte { return frame(frameReset, 0, s, 0, 0, 0, refused) }, 2},
		"a stream breaks":         {func(s uint32) []byte { return frame(frameReset, 0, s, 0, 0, 0, internal) }, 1},
		"GOAWAY before the call":  {func(uint32) []byte { return frame(frameGoAway, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, 2},
		"GOAWAY, and it is ended": {func(uint32) []byte { return frame(frameGoAway, 0, 0, 0, 0, 0, 1, 0, 0, 0, internal) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int32
			server := newFramed(func(conn net.Conn) {
				_, _ = conn.Write(frame(frameSettings, 0, 0))
				speak(t, conn, func(stream uint32) []byte {
					if tries.Add(1) > 1 {
						return frame(frameHeaders, endStreamAndHeaders, stream, 0x88) // 200
					}
					out := c.refuse(stream)
					if strings.HasSuffix(name, "ended") {
						_, _ = conn.Write(out)
						_ = conn.Close()
					}
					return out
				})
			})
			defer server.Close()
			client := over(t, server.URL, (&tier{Server: server}).transport())
			req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}")))(t)
			x := client.Fetch(req)
			if (x.Err == nil) != (c.tries > 1) || tries.Load() != c.tries {
				t.Errorf("%d tries, status %d, %v", tries.Load(), x.Status, x.Err)
			}
			client.CloseIdle()
		})
	}
}

// Connections on which the server takes no calls are not kept.
func TestServerTakesNoCalls(t *testing.T) {
	server := newFramed(func(conn net.Conn) {
		_, _ = conn.Write(frame(frameSettings, 0, 0, 0, 3, 0, 0, 0, 0))
		speak(t, conn, func(stream uint32) []byte { return frame(frameHeaders, endStreamAndHeaders, stream, 0x88) })
	})
	defer server.Close()
	client := over(t, server.URL, (&tier{Server: server}).transport())
	defer client.CloseIdle()
	for range 3 {
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, _ = ask(ctx, client, "{}") // it is answered if it was sent before the server spoke
		stop()
	}
	awaitEnd(client)
}

// lossy is a way to a server that may lose all packets, and ends no connection for it.
type lossy struct {
	net.Conn
	lost *atomic.Bool
}

// Write loses what is sent.
func (l lossy) Write(p []byte) (int, error) {
	if l.lost.Load() {
		return len(p), nil
	}
	return l.Conn.Write(p)
}

// pipes is a listener of connections in memory, for the time of a test's bubble.
type pipes struct {
	came chan net.Conn
	done context.Context
	stop func()
}

func newPipes() *pipes {
	ctx, stop := context.WithCancel(context.Background())
	return &pipes{make(chan net.Conn), ctx, stop}
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }
func (p *pipes) Close() error   { p.stop(); return nil }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.came:
		return c, nil
	case <-p.done.Done():
		return nil, net.ErrClosed
	}
}

// dial makes a connection of two pipes, which loses packets both ways once lost is true.
func (p *pipes) dial(lost *atomic.Bool) net.Conn {
	near, far := net.Pipe()
	p.came <- lossy{far, lost}
	return lossy{near, lost}
}

// A connection on which packets vanish is found within half a minute, though neither side ends
// it: the calls on it fail as faults of the transport, and the next try finds another connection.
func TestDeadConnectionIsFound(t *testing.T) {
	const calls, within = 10, 30 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var (
			net1  = newPipes()
			lost  atomic.Pointer[atomic.Bool]
			dials atomic.Int32
			stuck = make(chan struct{}) // of the handlers whose packets are lost
		)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.Copy(io.Discard, req.Body)
			if dials.Load() == 1 {
				<-stuck
			}
			_, _ = io.WriteString(w, chat)
		}))
		_ = server.Listener.Close()
		server.Listener, server.EnableHTTP2 = net1, true
		server.StartTLS()
		base := (&tier{Server: server}).transport()
		base.DialContext = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			lost.Store(new(atomic.Bool))
			return net1.dial(lost.Load()), nil
		}
		client := over(t, "https://127.0.0.1", base)

		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				if _, err := ask(t.Context(), client, "{}"); !errors.Is(err, provider.TransportFault) {
					t.Errorf("a call on a dead connection: %v", err)
				}
			})
		}
		synctest.Wait() // the server has them all
		lost.Load().Store(true)
		began := time.Now()
		all.Wait()
		if took := time.Since(began); took > within {
			t.Errorf("the connection was given up after %v; want at most %v", took, within)
		}
		if _, err := ask(t.Context(), client, "{}"); err != nil || dials.Load() != 2 {
			t.Errorf("the next try: %v, %d connections", err, dials.Load())
		}
		close(stuck)
		client.CloseIdle()
		server.CloseClientConnections()
		server.Close()
	})
}

// A call over TLS costs this much, with so many in flight and warm connections.
func BenchmarkCalls(b *testing.B) {
	for _, streams := range []int{0, 128} {
		for _, calls := range []int{64, 512} {
			b.Run(fmt.Sprintf("http%d/%d", 1+min(streams, 1), calls), func(b *testing.B) {
				s := newTier(b, streams, nil)
				c := s.client(b, calls)
				s.send(b, c, calls) // all connections are there, and the server waits for nothing more
				b.ReportAllocs()
				b.ResetTimer()
				inFlight(b, c, calls, b.N)
			})
		}
	}
}

// BenchmarkColdStart makes so many calls at once without a connection.
func BenchmarkColdStart(b *testing.B) {
	for _, streams := range []int{0, 128} {
		for _, calls := range []int{64, 512} {
			b.Run(fmt.Sprintf("http%d/%d", 1+min(streams, 1), calls), func(b *testing.B) {
				for range b.N {
					s := newTier(b, streams, nil)
					c := s.client(b, calls)
					b.StartTimer()
					s.send(b, c, calls)
					b.StopTimer()
					c.CloseIdle()
					s.Close()
				}
			})
		}
	}
}

// inFlight makes calls, so many at a time.
func inFlight(b *testing.B, c *Client, at, calls int) {
	var (
		work = make(chan struct{}, at)
		all  sync.WaitGroup
	)
	for range at {
		all.Go(func() {
			for range work {
				if _, err := ask(b.Context(), c, "{}"); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for range calls {
		work <- struct{}{}
	}
	close(work)
	all.Wait()
}
