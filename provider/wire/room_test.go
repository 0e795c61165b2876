package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// Bounds of these tests: small, and no multiples of a piece.
const (
	testBody   = 1<<20 + 1000
	testBodies = 4 << 20
	testCalls  = 64
)

// wire serves bodies and counts the bytes of those that are open.
type wire struct {
	body func(prompt string) io.Reader

	mu         sync.Mutex
	open, most int
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	prompt, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: -1,
		Body: &counted{wire: w, ctx: req.Context(), in: w.body(string(prompt))},
	}, nil
}

func (w *wire) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
	w.most = max(w.most, w.open)
}

// counted comes at a millisecond a piece, so that all bodies come together.
type counted struct {
	wire *wire
	ctx  context.Context
	in   io.Reader
	n    int
}

func (c *counted) Read(p []byte) (int, error) {
	select {
	case <-time.After(time.Millisecond):
	case <-c.ctx.Done():
		return 0, c.ctx.Err()
	}
	n, err := c.in.Read(p)
	c.n += n
	c.wire.count(n)
	return n, err
}

func (c *counted) Close() error {
	c.wire.count(-c.n)
	return nil
}

// forever never ends.
type forever struct{}

func (forever) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("a"), len(p))), nil }

// roomyClient is one of the bounds above, but for what cfg says.
func roomyClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	if cfg.MaxBody == 0 {
		cfg.MaxBody = testBody
	}
	if cfg.MaxBodies == 0 {
		cfg.MaxBodies = testBodies
	}
	c := must.Get(New(local(cfg)))(t)
	return c
}

func ask(ctx context.Context, c *Client, prompt string) ([]byte, error) {
	reply, err := c.Do(ctx, provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(prompt)})
	return reply.Body, err
}

// Each call with an endless body fails by itself. All of them together never hold more than
// allowed, apart from the first 64 KiB of each.
func TestEndlessBodiesAreBoundedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{body: func(string) io.Reader { return forever{} }}
		c := roomyClient(t, Config{Transport: w})
		var calls sync.WaitGroup
		for range testCalls {
			calls.Go(func() {
				if _, err := ask(t.Context(), c, "{}"); !errors.Is(err, errTooLong) || !errors.Is(err, provider.Invalid) {
					t.Errorf("%v", err)
				}
			})
		}
		calls.Wait()
		// The last piece of an answer may reach beyond MaxBody, of each that has a leave.
		if most := testBodies + testCalls*firstRead + cap(c.room.exemptions)*piece; w.most > most || w.most < testBodies/2 {
			t.Errorf("%d bytes at the most; want at most %d, and the room used", w.most, most)
		}
	})
}

// numbers are as many bytes as a test may ask for, and no two pieces of them are alike.
var numbers = sync.OnceValue(func() string {
	var text strings.Builder
	for i := 0; text.Len() <= testBody; i++ {
		fmt.Fprintf(&text, "%d ", i)
	}
	return text.String()
})

// answerOf is a chat completion of exactly n bytes.
func answerOf(n int) string {
	const head, tail = `{"choices":[{"message":{"content":"`, `"},"finish_reason":"stop"}]}`
	return head + numbers()[:n-len(head)-len(tail)] + tail
}

// Long answers arrive whole, whatever their length, also where there is room for hardly
// one of them: who waits for room holds nobody up for good.
func TestLongAnswersArriveWhole(t *testing.T) {
	sizes := []int{
		firstRead - 1, firstRead, firstRead + 1, firstRead + piece - 1, firstRead + piece, firstRead + piece + 1,
		firstRead + 3*piece, testBody - 1, testBody,
	}
	for _, bodies := range []int64{1, piece, 8 * piece, testBodies} {
		synctest.Test(t, func(t *testing.T) {
			w := &wire{body: func(prompt string) io.Reader {
				var n int
				_, _ = fmt.Sscanf(prompt, `{"n":%d}`, &n)
				if n%2 == 0 { // the end comes with the last bytes, or after them
					return iotest.DataErrReader(strings.NewReader(answerOf(n)))
				}
				return iotest.HalfReader(strings.NewReader(answerOf(n)))
			}}
			c := roomyClient(t, Config{Transport: w, MaxBodies: bodies})
			var calls sync.WaitGroup
			for i := range testCalls {
				calls.Go(func() {
					n := sizes[i%len(sizes)]
					body, err := ask(t.Context(), c, fmt.Sprintf(`{"n":%d}`, n))
					if err != nil || string(body) != answerOf(n) {
						t.Errorf("room for %d: an answer of %d bytes came as %d, %v", bodies, n, len(body), err)
					}
				})
			}
			calls.Wait()
			if len(c.room.places) > 0 || len(c.room.exemptions) > 0 {
				t.Errorf("%d places and %d leaves are not given back", len(c.room.places), len(c.room.exemptions))
			}
		})
	}
}

// One byte more than MaxBody is too long, however many pieces that is.
func TestMaxBodyIsExactOfLongAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{body: func(string) io.Reader { return strings.NewReader(answerOf(testBody + 1)) }}
		if body, err := ask(t.Context(), roomyClient(t, Config{Transport: w}), "{}"); !errors.Is(err, errTooLong) {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	})
}

// Ordinary answers ask for no room: they pass while long ones, which do not come on, have
// taken all of it. Who waits for room waits no longer than its call may take.
func TestOnlyLongAnswersWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, cancel := context.WithCancel(t.Context())
		w := &wire{body: func(prompt string) io.Reader {
			switch prompt {
			case `{"short":1}`:
				return strings.NewReader(answerOf(firstRead - 1))
			case `{"long":1}`:
				return strings.NewReader(answerOf(firstRead + 1))
			}
			return io.MultiReader(io.LimitReader(forever{}, testBody/2), readerFunc(func([]byte) (int, error) {
				<-stuck.Done()
				return 0, io.ErrUnexpectedEOF
			}))
		}}
		c := roomyClient(t, Config{Transport: w})
		var calls sync.WaitGroup
		for range testCalls {
			calls.Go(func() { _, _ = ask(stuck, c, "{}") })
		}
		time.Sleep(time.Second) // of the bubble's: all are stuck
		if body, err := ask(t.Context(), c, `{"short":1}`); err != nil || len(body) != firstRead-1 {
			t.Errorf("a short answer: %d bytes, %v", len(body), err)
		}
		soon, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := ask(soon, c, `{"long":1}`); !errors.Is(err, provider.Timeout) {
			t.Errorf("a long answer: %v", err)
		}
		cancel()
		calls.Wait()
		if body, err := ask(t.Context(), c, `{"long":1}`); err != nil || len(body) != firstRead+1 {
			t.Errorf("after that: %d bytes, %v", len(body), err)
		}
	})
}

// A long answer that breaks off is no answer, and its room is given back.
func TestLongAnswerBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{body: func(string) io.Reader {
			return io.MultiReader(strings.NewReader(answerOf(firstRead+2*piece)), readerFunc(func([]byte) (int, error) {
				return 0, io.ErrUnexpectedEOF
			}))
		}}
		c := roomyClient(t, Config{Transport: w, MaxBodies: 1})
		for range 3 { // more than there are places and leaves
			if _, err := ask(t.Context(), c, "{}"); !errors.Is(err, provider.TransportFault) {
				t.Errorf("%v", err)
			}
		}
	})
}

// Where answers are held, they have their room until they are done with: no more of them
// come than there is room for, at least one does, and when it is done with another does.
func TestKeptBodiesAreBoundedToo(t *testing.T) {
	const calls, size = 16, testBody / 2
	synctest.Test(t, func(t *testing.T) {
		w := &wire{body: func(string) io.Reader { return strings.NewReader(answerOf(size)) }}
		c := roomyClient(t, Config{Transport: w, HoldBodies: true})
		replies := make(chan provider.Reply, calls)
		for range calls {
			go func() {
				reply, err := c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte("{}")})
				if err != nil || string(reply.Body) != answerOf(size) || reply.Done == nil {
					t.Errorf("%d bytes, %v", len(reply.Body), err)
					reply.Done = func() {}
				}
				replies <- reply
			}()
		}
		for done := range calls {
			synctest.Wait() // until nothing more comes
			time.Sleep(time.Second)
			if kept := len(replies) * size; kept > testBodies || kept < size {
				t.Errorf("%d bytes are held after %d were done with, of %d", kept, done, testBodies)
			}
			reply := <-replies
			reply.Done()
			reply.Done() // which is no second room
		}
		if len(c.room.places) > 0 || len(c.room.exemptions) > 0 {
			t.Errorf("%d places and %d leaves are not given back", len(c.room.places), len(c.room.exemptions))
		}
	})
}

// All of the room is used. As many answers of one piece are held at once as half of the room has
// places, and one more for each of the longest answers that the other half holds; the next waits.
func TestAllOfTheRoomIsUsed(t *testing.T) {
	const places, leaves = 24, 3
	const bodies = 2 * places * piece
	synctest.Test(t, func(t *testing.T) {
		w := &wire{body: func(string) io.Reader { return strings.NewReader(answerOf(firstRead + 1)) }}
		c := roomyClient(t, Config{Transport: w, HoldBodies: true, MaxBodies: bodies, MaxBody: bodies / 2 / leaves})
		replies := make(chan provider.Reply, 2*(places+leaves))
		for range cap(replies) {
			go func() {
				reply, err := c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte("{}")})
				if err != nil || reply.Done == nil {
					t.Errorf("%d bytes, %v", len(reply.Body), err)
					reply.Done = func() {}
				}
				replies <- reply
			}()
		}
		time.Sleep(time.Minute) // of the bubble's: nothing more comes
		if kept := len(replies); kept != places+leaves {
			t.Errorf("%d answers are held; want %d with a place each, and %d with a leave", kept, places, leaves)
		}
		for range cap(replies) {
			reply := <-replies
			reply.Done()
		}
	})
}

// What is no answer holds nothing, and neither does one that is short.
func TestOnlyLongAnswersTakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, wrong := answerOf(firstRead-1), `{"error":{"message":"`+numbers()[:2*piece]+`"}}`
		w := &wire{body: func(prompt string) io.Reader {
			switch prompt {
			case `{"short":1}`:
				return strings.NewReader(short)
			case `{"wrong":1}`:
				return strings.NewReader(wrong)
			}
			return strings.NewReader(answerOf(testBody))
		}}
		c := roomyClient(t, Config{Transport: w, HoldBodies: true, MaxBodies: 1})
		for _, prompt := range []string{`{"short":1}`, `{"wrong":1}`} {
			reply, _ := c.Do(t.Context(), provider.Request{Endpoint: "/v1/chat/completions", Body: []byte(prompt)})
			if reply.Done != nil || cap(reply.Body) > provider.MaxErrorBody+piece {
				t.Errorf("%s: %d bytes are held: %t", prompt, cap(reply.Body), reply.Done != nil)
			}
		}
		if len(c.room.places) > 0 || len(c.room.exemptions) > 0 {
			t.Errorf("%d places and %d leaves are taken", len(c.room.places), len(c.room.exemptions))
		}
	})
}

// A transport that panics in the middle of a long answer has given its room back.
func TestPanicInALongAnswer(t *testing.T) {
	c := roomyClient(t, Config{Transport: &wire{body: func(string) io.Reader {
		return io.MultiReader(strings.NewReader(answerOf(firstRead+2*piece)), readerFunc(func([]byte) (int, error) { panic("no") }))
	}}})
	func() {
		defer func() { _ = recover() }()
		_, _ = ask(t.Context(), c, "{}")
	}()
	if len(c.room.places) > 0 || len(c.room.exemptions) > 0 {
		t.Errorf("%d places and %d leaves are taken", len(c.room.places), len(c.room.exemptions))
	}
}
