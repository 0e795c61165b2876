package paced

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shares makes a Shared that is closed at the end of the test.
func shares(t *testing.T, opts ...batch.Option) *batch.Shared {
	t.Helper()
	shared, err := batch.NewShared(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shared.Close)
	return shared
}

const chat = `{"model":"m-1","messages":[{"role":"user","content":"How deep is the water?"}],"max_tokens":16}`

// post makes a request for a chat.
func post(ctx context.Context, url, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req
}

// ask sends a request, and reads and closes the answer.
func ask(client *http.Client, req *http.Request) (status int, body string, err error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), errors.Join(err, resp.Body.Close())
}

// books counts the ends of calls.
type books struct {
	mu   sync.Mutex
	ends map[string]int
}

// options are those by which b hears of each end.
func (b *books) options() []batch.Option {
	b.ends = map[string]int{}
	return []batch.Option{
		batch.WithEnds(func(e batch.End) {
			b.mu.Lock()
			defer b.mu.Unlock()
			switch {
			case e.Err == nil:
				b.ends["answered"]++
			case errors.Is(e.Err, batch.ErrNotRun):
				b.ends["not run"]++
			default:
				b.ends["failed"]++
			}
		}),
	}
}

// patient lets no call fail for the chance that it meets one fault after the other.
var patient = batch.WithMaxAttempts(20)

// proves fails the test unless the Shared's two sums hold, with so many items.
func proves(t *testing.T, shared *batch.Shared, items uint64) batch.Counters {
	t.Helper()
	s, err := shared.Status(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if c := s.Totals; !c.Proves() || c.Offered != items || s.Held != 0 {
		t.Errorf("%d items, and the books say %+v, %d held", items, c, s.Held)
	}
	return s.Totals
}

// trip is an http.RoundTripper made of a function.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// reply is an answer with a body and headers.
func reply(status int, body string, header ...string) *http.Response {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{
		Status: fmt.Sprint(status), StatusCode: status, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}
