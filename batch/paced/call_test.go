package paced

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
)

// The lane of a call is its host and its model, wherever the dialect has the model.
func TestLaneAndCostOfACall(t *testing.T) {
	long := strings.Repeat("m", maxModel+1)
	for _, test := range []struct{ method, url, body, lane, operation string }{
		{"POST", "https://api.openai.com/v1/chat/completions", `{"model":"gpt-4o"}`, "api.openai.com/gpt-4o", "/v1/chat/completions"},
		{"POST", "https://api.openai.com/v1/responses", `{"model":"gp\u0074"}`, "api.openai.com/gpt", "/v1/responses"},
		{"POST", "https://api.anthropic.com/v1/messages", `{"model":"claude"}`, "api.anthropic.com/claude", "/v1/messages"},
		{"POST", "https://g.example/v1beta/models/gemini-2:streamGenerateContent?alt=sse", `{}`, "g.example/gemini-2", ":generateContent"},
		{"POST", "https://b.example/model/us.claude-v1%3A0/converse-stream", `{}`, "b.example/us.claude-v1:0", "/converse"},
		{"POST", "https://a.example/openai/deployments/mine/chat/completions?api-version=1", `{"model":"x"}`, "a.example/mine", "/v1/chat/completions"},
		{"POST", "http://localhost:8000/v1/completions", `{"model":7}`, "localhost:8000", "/v1/completions"},
		{"POST", "http://h/v1/chat/completions", `{"model":"` + long + `"}`, "h", "/v1/chat/completions"},
		{"POST", "http://h/v1/chat/completions", `no JSON`, "h", "/v1/chat/completions"},
		{"POST", "http://h/v1/messages/batches", `{"model":"m"}`, "h", ""},
		{"POST", "http://h/v1/files", `{"model":"m"}`, "h", ""},
		{"GET", "http://h/v1/chat/completions", ``, "h", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), test.method, test.url, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		c, err := newCall(req)
		if err != nil {
			t.Fatal(err)
		}
		if c.Pool() != test.lane || c.Operation != test.operation || string(c.Body) != test.body {
			t.Errorf("%s: lane %q, operation %q, body %q; want %q %q", test.url, c.Pool(), c.Operation, c.Body, test.lane, test.operation)
		}
	}
	c, err := newCall(post(t.Context(), "http://h", chat))
	if err != nil {
		t.Fatal(err)
	}
	if cost := c.Cost(); cost.Requests != 1 || cost.Input < 5 || cost.Input > 20 || cost.Output != 16 {
		t.Errorf("%+v", cost)
	}
}

// closer is a body without a GetBody that counts its closes, and may break.
type closer struct {
	io.Reader
	closed int
}

func (c *closer) Close() error { c.closed++; return nil }

// A body leaves byte for byte at each try, whatever its length. One that is too long to be kept
// is sent again only if the client can repeat it.
func TestBodyLeavesAsItCame(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), MaxBody/16)
	longer := append(bytes.Clone(long), '!')
	for name, test := range map[string]struct {
		body    []byte
		getBody bool
		tries   int
	}{
		"none":             {nil, false, 2},
		"short":            {[]byte(chat), false, 2},
		"as long as fits":  {long, false, 2},
		"longer":           {longer, false, 1},
		"longer, repeated": {longer, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			shared := shares(t, batch.WithPlainLaw())
			from := &closer{Reader: bytes.NewReader(test.body)}
			req := post(t.Context(), "http://h", "")
			req.Body, req.ContentLength, req.GetBody = from, int64(len(test.body)), nil
			if test.getBody {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(test.body)), nil }
			}
			var tries int
			base := trip(func(r *http.Request) (*http.Response, error) {
				tries++
				got, err := io.ReadAll(r.Body)
				if err != nil || !bytes.Equal(got, test.body) || r.ContentLength != int64(len(test.body)) {
					t.Errorf("try %d: %d bytes %v, length %d; want %d", tries, len(got), err, r.ContentLength, len(test.body))
				}
				if again := r.GetBody; again != nil {
					if b, err := again(); err != nil || b == nil {
						t.Error(err)
					}
				}
				_ = r.Body.Close()
				if tries == 1 {
					return reply(429, "busy", "Retry-After-Ms", "1"), nil
				}
				return reply(200, answered), nil
			})
			resp, err := Transport(shared, base).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if tries != test.tries || from.closed == 0 {
				t.Errorf("%d tries, want %d; the body was closed %d times", tries, test.tries, from.closed)
			}
		})
	}
}

// A body that cannot be read is the call's error, and nothing is sent. A body of a call that is
// never sent is closed.
func TestBodyIsClosedInAnyCase(t *testing.T) {
	shared := shares(t)
	base := trip(func(*http.Request) (*http.Response, error) { t.Error("sent"); return nil, io.EOF })
	paced := Transport(shared, base)
	broken := &closer{Reader: errorReader{io.ErrNoProgress}}
	req := post(t.Context(), "http://h", "")
	req.Body = broken
	if _, err := paced.RoundTrip(req); !errors.Is(err, io.ErrNoProgress) || broken.closed != 1 {
		t.Errorf("%v, closed %d times", err, broken.closed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	endless := &closer{Reader: neverEnds{}}
	req = post(ctx, "http://h", "")
	req.Body = endless
	if _, err := paced.RoundTrip(req); !errors.Is(err, context.Canceled) || endless.closed == 0 {
		t.Errorf("%v, closed %d times", err, endless.closed)
	}
}

type neverEnds struct{}

func (neverEnds) Read(p []byte) (int, error) { return len(p), nil }
