package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Grace is the time that calls in flight have when the server shuts down;
// then they are cut. Hanging calls are cut at once.
const Grace = 10 * time.Second

// readHeaderTimeout frees a connection whose client says nothing.
const readHeaderTimeout = 10 * time.Second

// ServeOption changes how Serve listens.
type ServeOption func(*serving)

// OnReady calls tell with the bound address before the first request is taken.
func OnReady(tell func(net.Addr)) ServeOption {
	return func(s *serving) { s.ready = tell }
}

type serving struct {
	ready func(net.Addr)
	alive sync.WaitGroup // connections, and the calls on them
}

// ErrPublic is the refusal to listen where other machines can connect.
var ErrPublic = errors.New("not a loopback address")

// Serve listens on addr ("host:port"; no host is 127.0.0.1, port 0 is any) and
// serves until ctx ends, which is not an error. When it returns, the port is
// free and nothing of it runs.
func Serve(ctx context.Context, addr string, server *Server, opts ...ServeOption) error {
	s := &serving{ready: func(net.Addr) {}}
	for _, o := range opts {
		o(s)
	}
	listener, err := listen(ctx, addr)
	if err != nil {
		return fmt.Errorf("sim: listen on %s: %w", addr, err)
	}
	s.ready(listener.Addr())
	return s.serve(ctx, listener, server)
}

// listen opens the port, on a loopback address only. For any other host the error is ErrPublic.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, ErrPublic
	}
	var config net.ListenConfig
	return config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
}

// serve answers requests until ctx ends or the listener fails. Every connection and call has ended
// when it returns. The end of ctx is no error.
func (s *serving) serve(ctx context.Context, l net.Listener, server *Server) error {
	// Requests outlive ctx by the grace; only what hangs looks at its end.
	base := context.WithValue(context.WithoutCancel(ctx), closingKey{}, ctx.Done())
	httpServer := &http.Server{
		Handler:           s.counted(server),
		ReadHeaderTimeout: readHeaderTimeout,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnState:         s.count,
	}
	failed := make(chan error, 1)
	go func() { failed <- httpServer.Serve(l) }()
	select {
	case err := <-failed:
		_ = httpServer.Close()
		s.alive.Wait()
		return fmt.Errorf("sim: serve: %w", err)
	case <-ctx.Done():
	}
	shutDown(httpServer, server)
	err := <-failed
	s.alive.Wait()
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("sim: serve: %w", err)
	}
	return nil
}

// count follows each connection to its end. New connections are announced by
// the accept loop alone, so none is added once that has returned.
func (s *serving) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.alive.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.alive.Done()
	default: // in between
	}
}

// counted follows the calls too, for a hijacked connection ends before its
// handler does. The connection is still counted when its call is added.
func (s *serving) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.alive.Add(1)
		defer s.alive.Done()
		h.ServeHTTP(w, r)
	})
}

// shutDown lets calls in flight end within Grace, and then closes their connections.
func shutDown(httpServer *http.Server, server *Server) {
	grace, cut := context.WithCancel(context.Background())
	defer cut()
	timer := server.clock.AfterFunc(Grace, cut)
	defer timer.Stop()
	if httpServer.Shutdown(grace) != nil {
		_ = httpServer.Close()
	}
}

// Transport is an http.RoundTripper that asks a Server in the caller's own
// goroutine: no socket, no other goroutine, no connection to close. It ignores the
// host of a request's URL.
type Transport struct {
	server *Server
}

// NewTransport returns a transport over a server: &http.Client{Transport: sim.NewTransport(server)}
// is a client of the server, in any SDK that takes one.
func NewTransport(server *Server) *Transport {
	return &Transport{server: server}
}

// RoundTrip returns when the answer is due or the request's context ends, with
// the context's cause. A reset is an error for which errors.Is(err,
// syscall.ECONNRESET). The request's body is read before the latency begins. A stream
// is returned when its first piece is due, and its body waits for the others.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if err := context.Cause(r.Context()); err != nil {
		return nil, err
	}
	a, err := t.server.respond(r)
	if err != nil {
		return nil, err
	}
	return response(a, r), nil
}

// response makes an HTTP response of an answer. A cut one breaks off in the middle, yet announces
// its whole length, as over a socket. A stream has no length.
func response(a answer, r *http.Request) *http.Response {
	body, length := io.NopCloser(bytes.NewReader(a.Body)), int64(len(a.Body))
	switch {
	case a.flow != nil:
		body, length = a.flow, -1
	case a.Cut:
		body = io.NopCloser(io.MultiReader(bytes.NewReader(a.Body[:len(a.Body)/2]), broken{}))
	}
	return &http.Response{
		Status:        strconv.Itoa(a.Status) + " " + http.StatusText(a.Status),
		StatusCode:    a.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        a.Header,
		Body:          body,
		ContentLength: length,
		Request:       r,
	}
}

// broken ends a body in the way of a connection that closes too early.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
