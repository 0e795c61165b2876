package sim

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
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

// An address that others can reach is refused unless it is allowed; one that
// cannot be bound is an error.
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
	for addr, opts := range map[string][]ServeOption{"localhost:0": nil, "127.0.0.1:0": nil, "0.0.0.0:0": {AllowPublic()}, ":0": {AllowPublic()}} {
		ctx, stop := context.WithCancel(t.Context())
		opts = append(opts, OnReady(func(net.Addr) { stop() }))
		if err := Serve(ctx, addr, s, opts...); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		stop()
	}
}
