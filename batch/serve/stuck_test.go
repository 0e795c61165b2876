package serve

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
)

// endless is an answer that has always more.
type endless struct{ ctx context.Context }

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), e.ctx.Err()
}

func (endless) Close() error { return nil }

// A client that takes nothing more of its answer has it cut off: after the silence that a stream may have, and at once
// when the call's time is over, when the client half closes its connection, or when the server is cut. Its place is free then.
func TestClientThatDoesNotRead(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		stream bool
		then   func(m *mill, c *net.TCPConn)
	}{
		"a stream":        {stream: true, change: func(c *Config) { c.StreamIdle = 300 * time.Millisecond }},
		"an answer":       {change: func(c *Config) { c.StreamIdle = 300 * time.Millisecond }},
		"the call's time": {change: func(c *Config) { c.Timeout = 300 * time.Millisecond }},
		"a closed half":   {then: func(_ *mill, c *net.TCPConn) { _ = c.CloseWrite() }},
		"a server that ends": {then: func(m *mill, _ *net.TCPConn) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			_ = m.Close(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := over(t, dialects["openai"], trip(func(r *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, r.Body)
				resp, err := says(200, "")(r)
				resp.Body, resp.ContentLength = endless{r.Context()}, -1
				return resp, err
			}), test.change)
			server := httptest.NewServer(m)
			defer server.Close()
			conn, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			body := chatBody
			if test.stream {
				body = `{"stream":true,` + chatBody[1:]
			}
			_, _ = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+
				"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
			inFlight := func() int {
				st, err := m.Status(context.WithoutCancel(t.Context()))
				if err != nil && test.then == nil {
					t.Fatal(err)
				}
				return st.InFlight
			}
			for inFlight() == 0 {
				time.Sleep(time.Millisecond)
			}
			if test.then != nil {
				time.Sleep(100 * time.Millisecond) // until the connection is full
				test.then(m, conn.(*net.TCPConn))
			}
			for i := 0; inFlight() > 0; i++ {
				if i > 3000 {
					t.Fatal("the call still has its place")
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// pipes is a listener of connections without any buffer.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error { close(p.closed); return nil }
func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A waiting client that takes no ping has its turn all the same, and holds up nobody behind it for longer than a stream may
// be silent.
func TestClientThatTakesNoPing(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		counts bool
	}{
		"an answer":      {says(200, answered), false},
		"with its usage": {says(200, answered), true},
		"a refusal":      {says(400, wrong), false},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { takesNoPing(t, test.answer, test.counts) }) })
	}
}

func takesNoPing(t *testing.T, answer func(*http.Request) (*http.Response, error), counts bool) {
	m := over(t, dialects["openai"], trip(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"stream":true`) {
			return later(30*time.Second, answer)(r)
		}
		return later(30*time.Second, says(200, answered))(r)
	}), func(c *Config) {
		c.StreamIdle = 30 * time.Second
		c.InjectUsage = counts
	}, batch.WithConcurrency(1))
	defer m.shared.Close()
	l := &pipes{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: m}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close() }()

	statuses := make(chan int, 3)
	ask := func() {
		resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
		statuses <- resp.StatusCode
	}
	for range 2 { // one flies, and one has its turn
		go ask()
		synctest.Wait()
	}
	l.conns <- theirs
	body := `{"stream":true,` + chatBody[1:]
	_, _ = io.WriteString(ours, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+token+
		"\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	synctest.Wait()
	go ask()
	for range 3 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	time.Sleep(time.Minute)
	m.proves(t)
}

// A client that is refused before its body is read has a minute for that, and then its connection is closed: nobody holds
// one for ever, least of all without a token.
func TestBodyThatNobodyReads(t *testing.T) {
	for name, head := range map[string]string{
		"no token":       "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
		"a foreign name": "POST /v1/chat/completions HTTP/1.1\r\nHost: evil.example\r\n",
		"a health check": "GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
		"another type":   "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Type: text/plain\r\n",
		"half a body":    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\n",
	} {
		for _, length := range []string{"Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := over(t, dialects["openai"], trip(says(200, answered)), nil)
					defer m.shared.Close()
					l := &pipes{make(chan net.Conn), make(chan struct{})}
					server := &http.Server{Handler: m}
					go func() { _ = server.Serve(l) }()
					defer func() { _ = server.Close() }()
					ours, theirs := net.Pipe()
					defer func() { _ = ours.Close() }()
					l.conns <- theirs
					began := time.Now()
					go func() { _, _ = io.WriteString(ours, head+length) }()
					ended := make(chan struct{})
					go func() { _, _ = io.Copy(io.Discard, ours); close(ended) }()
					select {
					case <-ended:
					case <-time.After(time.Hour):
						t.Error("the connection is still open")
					}
					if took := time.Since(began); took > bodyTimeout+time.Second {
						t.Errorf("it was open for %v", took)
					}
				})
			})
		}
	}
}
