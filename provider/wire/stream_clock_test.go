package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/wire"
)

// slowly is a transport whose answer comes in pieces, with a wait before each.
type slowly struct {
	pieces []string
	waits  func(i int) time.Duration
}

func (s slowly) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: req,
		Body: io.NopCloser(&slowBody{slowly: s, ctx: req.Context()}), ContentLength: -1,
	}, nil
}

type slowBody struct {
	slowly
	ctx context.Context
	i   int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.i == len(b.pieces) {
		return 0, io.EOF
	}
	select {
	case <-time.After(b.waits(b.i)):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	n := copy(p, b.pieces[b.i])
	if b.pieces[b.i] = b.pieces[b.i][n:]; b.pieces[b.i] == "" {
		b.i++
	}
	return n, nil
}

// clock counts how often an attempt's clock is stopped.
type clock struct {
	stopped int
	at      time.Time
}

func (c *clock) AnswerBegins() { c.stopped, c.at = c.stopped+1, time.Now() }

// Silence ends a stream after its first byte, and nothing else does: neither how long the first
// byte takes, nor how long the answer.
func TestSilenceEndsAStream(t *testing.T) {
	for name, c := range map[string]struct {
		idle, first, gap time.Duration
		took             time.Duration // until it fails; 0: it does not
	}{
		"by default, just in time":  {0, time.Hour, 59 * time.Second, 0},
		"by default, too late":      {0, time.Hour, 61 * time.Second, time.Hour + time.Minute},
		"a bound of one's own":      {5 * time.Minute, 0, 299 * time.Second, 0},
		"a bound of one's own, met": {5 * time.Minute, 0, 301 * time.Second, 5 * time.Minute},
		"no bound":                  {-1, time.Hour, 24 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			events, _ := eventsOf(t, "chat")
			synctest.Test(t, func(t *testing.T) {
				transport := slowly{events, func(i int) time.Duration {
					if i == 0 {
						return c.first
					}
					return c.gap
				}}
				began, stops := time.Now(), new(clock)
				ctx, rec := provider.WithRecorder(t.Context())
				rec.SetClock(stops)
				_, err := client(t, wire.Config{Dialect: openai.Dialect{}, BaseURL: "http://127.0.0.1:1", Transport: transport, Stream: wire.StreamAlways, StreamIdle: c.idle}).
					Do(ctx, provider.Request{Endpoint: provider.Chat, Body: []byte(`{}`)})
				took := time.Since(began)
				if c.took == 0 && err != nil || c.took > 0 && (!errors.Is(err, provider.TransportFault) || took != c.took) {
					t.Errorf("after %v: %v", took, err)
				}
				if stops.stopped != 1 || stops.at.Sub(began) != c.first {
					t.Errorf("the clock was stopped %d times, after %v", stops.stopped, stops.at.Sub(began))
				}
			})
		})
	}
}

// An attempt that is over ends its stream with its own cause.
func TestAttemptEndsAStream(t *testing.T) {
	events, _ := eventsOf(t, "chat")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := client(t, wire.Config{Dialect: openai.Dialect{}, BaseURL: "http://127.0.0.1:1", Stream: wire.StreamAlways, Transport: slowly{events, func(int) time.Duration { return 700 * time.Millisecond }}}).
			Do(ctx, provider.Request{Endpoint: provider.Chat, Body: []byte(`{}`)})
		if !errors.Is(err, provider.Timeout) {
			t.Errorf("%v", err)
		}
	})
}

// A long answer needs room as any does, and the wait for room is not the server's silence.
func TestStreamsWaitForRoom(t *testing.T) {
	var events []string
	for i := range 60 {
		events = append(events, fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}`+"\n\n", strings.Repeat(fmt.Sprint(i%10), 8000)))
	}
	events = append(events, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n")
	synctest.Test(t, func(t *testing.T) {
		c := client(t, wire.Config{
			Dialect: openai.Dialect{}, BaseURL: "http://127.0.0.1:1", Stream: wire.StreamAlways, StreamIdle: time.Second,
			MaxBody: 1 << 20, MaxBodies: 1 << 19, HoldBodies: true,
			Transport: fresh(func() http.RoundTripper {
				return slowly{append([]string{}, events...), func(int) time.Duration { return 0 }}
			}),
		})
		do := func() provider.Reply {
			reply, err := c.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Body: []byte(`{}`)})
			if err != nil || reply.Done == nil || len(reply.Body) < 480_000 {
				t.Errorf("%d bytes: %v", len(reply.Body), err)
			}
			return reply
		}
		first := do() // it takes all of the room
		began, second := time.Now(), make(chan time.Duration)
		go func() {
			reply := do()
			reply.Done()
			second <- time.Since(began)
		}()
		time.Sleep(time.Hour)
		first.Done()
		if took := <-second; took != time.Hour {
			t.Errorf("the second answer took %v", took)
		}
	})
}

// A long stream that breaks gives back its room.
func TestBrokenStreamsLeaveNoRoomTaken(t *testing.T) {
	var events []string
	for range 40 {
		events = append(events, `data: {"choices":[{"index":0,"delta":{"content":"`+strings.Repeat("x", 8000)+`"},"finish_reason":null}]}`+"\n\n")
	}
	c := client(t, wire.Config{
		Dialect: openai.Dialect{}, BaseURL: "http://127.0.0.1:1", Stream: wire.StreamAlways, MaxBody: 1 << 20, MaxBodies: 1 << 19, HoldBodies: true,
		Transport: fresh(func() http.RoundTripper {
			return slowly{append([]string{}, events...), func(int) time.Duration { return 0 }}
		}),
	})
	for range 20 { // more would wait for ever
		if _, err := c.Do(t.Context(), provider.Request{Endpoint: provider.Chat, Body: []byte(`{}`)}); !errors.Is(err, provider.TransportFault) {
			t.Fatal(err)
		}
	}
}

type fresh func() http.RoundTripper

func (f fresh) RoundTrip(req *http.Request) (*http.Response, error) { return f().RoundTrip(req) }
