package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	openai "github.com/sashabaranov/go-openai"
)

type ending struct {
	status int
	err    error
}

// started serves on a free port and posts one call, whose ending it hands on.
func started(t *testing.T, s *Server) (stop context.CancelFunc, addr string, served chan error, call chan ending) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	bound := make(chan net.Addr, 1)
	served, call = make(chan error, 1), make(chan ending, 1)
	go func() { served <- Serve(ctx, ":0", s, OnReady(func(a net.Addr) { bound <- a })) }()
	addr = (<-bound).String()
	go func() {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		resp, err := client.Post("http://"+addr+"/v1/embeddings", "", strings.NewReader(`{"model":"m","input":"a"}`))
		if err != nil {
			call <- ending{err: err}
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		call <- ending{status: resp.StatusCode}
	}()
	return stop, addr, served, call
}

// When the context ends, a call in flight still gets its answer; then the port
// is free.
func TestServeFinishesWhatIsInFlight(t *testing.T) {
	s, clock := newServer(Config{Latency: Latency{Median: time.Second}})
	stop, addr, served, call := started(t, s)
	if host, _, _ := net.SplitHostPort(addr); host != "127.0.0.1" {
		t.Errorf("bound to %s", addr)
	}
	blocked(t, clock, 1) // the latency
	stop()
	blocked(t, clock, 2) // and the grace
	clock.Advance(time.Second)
	if e := <-call; e.status != 200 {
		t.Errorf("%+v", e)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if l, err := net.Listen("tcp", addr); err != nil {
		t.Error(err)
	} else {
		l.Close()
	}
}

// What takes longer than the grace is cut.
func TestServeCutsAfterTheGrace(t *testing.T) {
	s, clock := newServer(Config{Latency: Latency{Median: time.Hour}})
	stop, _, served, call := started(t, s)
	blocked(t, clock, 1)
	stop()
	blocked(t, clock, 2)
	clock.Advance(Grace)
	if e := <-call; e.err == nil {
		t.Errorf("%+v", e)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if b := s.Books(); b.Abandoned != 1 {
		t.Errorf("%+v", b)
	}
}

// A hanging call does not hold up the shutdown, though its client stays.
func TestServeCutsWhatHangs(t *testing.T) {
	s, _ := newServer(Config{Errors: Rates{Hang: 1}})
	stop, _, served, call := started(t, s)
	received(t, s)
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if e := <-call; e.err == nil {
		t.Errorf("%+v", e)
	}
}

// An address that others can reach is refused; one that cannot be bound is an error.
func TestServeRefusesPublicAddresses(t *testing.T) {
	s, _ := newServer(Fast())
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.invalid:0"} {
		if err := Serve(t.Context(), addr, s); !errors.Is(err, ErrPublic) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"no port", "127.0.0.1:99999"} {
		if err := Serve(t.Context(), addr, s); err == nil || errors.Is(err, ErrPublic) {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"localhost:0", "127.0.0.1:0", ":0"} {
		ctx, stop := context.WithCancel(t.Context())
		if err := Serve(ctx, addr, s, OnReady(func(net.Addr) { stop() })); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		stop()
	}
}

// watched notices that it was closed.
type watched struct {
	io.Reader
	closed bool
}

func (w *watched) Close() error { w.closed = true; return nil }

// exchange is a call in process, from its body to that of its answer.
type exchange struct {
	sent     *watched
	length   int64
	received []byte
	err      error // of the call
	readErr  error // of reading the answer
}

func inProcess(ctx context.Context, s *Server) exchange {
	x := exchange{sent: &watched{Reader: strings.NewReader(chatBody("a"))}}
	r, _ := http.NewRequestWithContext(ctx, "POST", "https://api.example.invalid/v1/chat/completions", x.sent)
	resp, err := NewTransport(s).RoundTrip(r)
	if err != nil {
		x.err = err
		return x
	}
	defer resp.Body.Close()
	x.length = resp.ContentLength
	x.received, x.readErr = io.ReadAll(resp.Body)
	return x
}

// An SDK over the transport needs no socket and gets the prompt's answer.
func TestSDKInProcess(t *testing.T) {
	s, _ := newServer(Fast())
	cfg := openai.DefaultConfig("key")
	cfg.HTTPClient = &http.Client{Transport: NewTransport(s)}
	resp, err := openai.NewClientWithConfig(cfg).CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{
		Model: "m", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}},
	})
	if err != nil || resp.Choices[0].Message.Content != Answer("hello") {
		t.Errorf("%v %+v", err, resp)
	}
}

// Cancelling ends a call in its latency or in a hang with the context's cause;
// the body is closed, and no answer is counted.
func TestCancelInProcess(t *testing.T) {
	cause := errors.New("enough")
	for name, cfg := range map[string]Config{
		"before":  {},
		"latency": {Latency: Latency{Median: time.Hour}, TrackIDs: true},
		"hang":    {Outages: []Outage{{For: time.Hour, Mode: OutageHang}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := newServer(cfg)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			switch name {
			case "before":
				cancel(cause)
			case "latency":
				go func() { _ = clock.BlockUntilContext(t.Context(), 1); cancel(cause) }()
			case "hang":
				go func() { received(t, s); cancel(cause) }()
			}
			if x := inProcess(ctx, s); !errors.Is(x.err, cause) || !x.sent.closed {
				t.Errorf("%v, body closed: %v", x.err, x.sent.closed)
			}
			if b := s.Books(); name == "latency" && (b.Abandoned != 1 || b.Distinct != 0) || name == "before" && b.Received != 0 {
				t.Errorf("%+v", b)
			}
		})
	}
}

// A reset is the same error in process as over a socket, and a cut body ends in
// the same way.
func TestBrokenAnswersInProcess(t *testing.T) {
	s, _ := newServer(Config{Errors: Rates{Reset: 1}})
	if x := inProcess(t.Context(), s); !errors.Is(x.err, syscall.ECONNRESET) || !x.sent.closed {
		t.Errorf("%v", x.err)
	}
	s, _ = newServer(Config{Errors: Rates{Truncated: 1}})
	x := inProcess(t.Context(), s)
	if x.err != nil || x.length == 0 || len(x.received) != int(x.length)/2 || !errors.Is(x.readErr, io.ErrUnexpectedEOF) {
		t.Errorf("%v, %d of %d bytes, %v", x.err, len(x.received), x.length, x.readErr)
	}
}

// endless is a body that announces nothing and does not stop.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A body over the bound is refused with 413, announced or not, and is not read
// further.
func TestBodyIsBounded(t *testing.T) {
	for name, length := range map[string]int64{"announced": MaxBody + 1, "not announced": -1} {
		s, _ := newServer(Fast())
		r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://sim/v1/embeddings", endless{})
		r.ContentLength = length
		resp := must.Get(NewTransport(s).RoundTrip(r))(t)
		if resp.Status != "413 Request Entity Too Large" || resp.StatusCode != 413 || s.Books().Received != 0 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}
