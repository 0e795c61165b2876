package sim

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
)

const streamOfOne = `{"stream":true,"model":"m","messages":[{"role":"user","content":"one"}]}`

// opened asks over a socket for a stream.
func opened(ctx context.Context, t *testing.T, base string, client *http.Client) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", strings.NewReader(streamOfOne))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || len(resp.TransferEncoding) != 1 || resp.ContentLength != -1 {
		t.Errorf("%s, %v, length %d", resp.Status, resp.TransferEncoding, resp.ContentLength)
	}
	return resp
}

// step lets time pass to the next piece, once the server waits for it.
func step(t *testing.T, clock *clockwork.FakeClock, gap time.Duration) {
	t.Helper()
	blocked(t, clock, 1)
	clock.Advance(gap)
}

// pieces returns the number of pieces of a stream: the server waits before each.
func pieces(t *testing.T) (n int) {
	t.Helper()
	s, _ := newServer(Config{})
	g := post(t, s, "/v1/chat/completions", streamOfOne)
	return len(g.body.Array())
}

// Over a socket each piece comes when it is due and not before; the last one when a plain answer would.
func TestStreamsDribble(t *testing.T) {
	n := pieces(t)
	latency := time.Duration(n) * time.Second
	s, clock := newServer(Config{Latency: Latency{Median: latency}})
	base, client := socket(t, s)
	go func() { _ = clock.BlockUntilContext(t.Context(), 1); clock.Advance(time.Second) }()
	resp := opened(t.Context(), t, base, client)
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := range n {
		if i > 0 {
			step(t, clock, time.Second)
		}
		for range 2 { // a line of data, and an empty one
			if line, err := in.ReadString('\n'); err != nil {
				t.Fatalf("piece %d: %q, %v", i, line, err)
			}
		}
		if in.Buffered() > 0 && i < n-1 {
			t.Fatalf("after piece %d the next one is there already", i)
		}
	}
	rest, err := io.ReadAll(in)
	if string(rest) != "data: [DONE]\n\n" || err != nil || clock.Since(epoch) != latency {
		t.Errorf("%q, %v after %v", rest, err, clock.Since(epoch))
	}
	if b := s.Books(); b.Accepted != 1 || b.Abandoned != 0 {
		t.Errorf("%+v", b)
	}
}

// A caller that leaves in the middle ends the stream, and the books say so; one that has all but the
// end of the connection has not left.
func TestLeavingAStream(t *testing.T) {
	t.Run("socket", func(t *testing.T) {
		s, clock := newServer(Config{Latency: Latency{Median: time.Hour}, TrackIDs: true})
		base, client := socket(t, s)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() { _ = clock.BlockUntilContext(t.Context(), 1); clock.Advance(time.Hour / 2) }()
		resp := opened(ctx, t, base, client)
		defer resp.Body.Close()
		leave()
		for s.Books().Abandoned == 0 && t.Context().Err() == nil {
			runtime.Gosched()
		}
		if b := s.Books(); b.Accepted != 1 || b.Abandoned != 1 || b.Distinct != 0 {
			t.Errorf("%+v", b)
		}
	})
	for after, want := range map[int]int{0: 1, 3: 1, pieces(t): 0} {
		s, _ := newServer(Config{TrackIDs: true})
		resp := inStream(t.Context(), t, s)
		for range after {
			if _, err := resp.Body.Read(make([]byte, 1024)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // a second close is no second leave
			_ = resp.Body.Close()
		}
		if b := s.Books(); b.Abandoned != want {
			t.Errorf("after %d pieces: %+v", after, b)
		}
	}
	s, clock := newServer(Config{Latency: Latency{Median: time.Hour}})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() { _ = clock.BlockUntilContext(t.Context(), 1); clock.Advance(time.Hour / 2) }()
	resp := inStream(ctx, t, s)
	cancel(cause)
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, cause) || s.Books().Abandoned != 1 {
		t.Errorf("%v, %+v", err, s.Books())
	}
}

// inStream asks in process for a stream.
func inStream(ctx context.Context, t *testing.T, s *Server) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim/v1/chat/completions", strings.NewReader(streamOfOne))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := NewTransport(s).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A stream is cut in its middle: the pieces before arrive, and then the connection is broken.
func TestCutStreams(t *testing.T) {
	cfg := Config{Errors: Rates{Truncated: 1}}
	whole, _ := newServer(Config{})
	all, _ := io.ReadAll(inStream(t.Context(), t, whole).Body)
	s, _ := newServer(cfg)
	near, err := io.ReadAll(inStream(t.Context(), t, s).Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("in process: %v", err)
	}
	s, _ = newServer(cfg)
	base, client := socket(t, s)
	resp := opened(t.Context(), t, base, client)
	defer resp.Body.Close()
	far, err := io.ReadAll(resp.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || string(far) != string(near) {
		t.Errorf("over a socket: %v, %d bytes, and %d in process", err, len(far), len(near))
	}
	if rest, begins := strings.CutPrefix(string(all), string(near)); !begins || strings.Count(rest, "data: ")-strings.Count(string(near), "data: ") > 2 {
		t.Errorf("%d of %d bytes", len(near), len(all))
	}
}

// A silent stream begins, says nothing more, and ends when the caller leaves or the server does.
func TestSilentStreams(t *testing.T) {
	cfg, half := Config{Errors: Rates{StreamSilent: 1}}, pieces(t)/2
	s, _ := newServer(cfg)
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	resp := inStream(ctx, t, s)
	for range half { // a piece at a time
		if _, err := resp.Body.Read(make([]byte, 1024)); err != nil {
			t.Fatal(err)
		}
	}
	cancel(cause)
	if said, err := io.ReadAll(resp.Body); len(said) > 0 || !errors.Is(err, cause) {
		t.Errorf("in process: %q, %v", said, err)
	}
	s, _ = newServer(cfg)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	bound, served := make(chan net.Addr, 1), make(chan error, 1)
	go func() { served <- Serve(ctx, ":0", s, OnReady(func(a net.Addr) { bound <- a })) }()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp = opened(t.Context(), t, "http://"+(<-bound).String(), client)
	defer resp.Body.Close()
	stop()
	if said, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) || strings.Count(string(said), "data: ") != half {
		t.Errorf("over a socket: %q, %v", said, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if b := s.Books(); b.Errors[StreamSilent] != 1 || b.Abandoned != 0 {
		t.Errorf("%+v", b)
	}
}
