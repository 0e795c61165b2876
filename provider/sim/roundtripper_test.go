package sim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

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
		resp, err := NewTransport(s).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Status != "413 Request Entity Too Large" || resp.StatusCode != 413 || s.Books().Received != 0 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}
