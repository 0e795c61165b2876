package serve

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch"
)

// counting is a provider of streams, which counts only where it is asked to, or refuses the question.
type counting struct {
	refuses string // its words; "": it counts
	bodies  []string
	heads   []http.Header
}

const (
	piece1   = "data: {\"choices\":[{\"delta\":{\"content\":\"deep\"},\"finish_reason\":\"stop\"}],\"usage\":null}\n\n"
	counts1  = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\n"
	doneLine = "data: [DONE]\n\n"
)

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.bodies, c.heads = append(c.bodies, string(body)), append(c.heads, r.Header.Clone())
	asked := strings.Contains(string(body), `"include_usage":true`)
	if asked && c.refuses != "" {
		return says(400, c.refuses)(r)
	}
	text := piece1 + doneLine
	if asked {
		text = piece1 + counts1 + doneLine
	}
	return says(200, text, "Content-Type", "text/event-stream")(r)
}

// With InjectUsage a stream is counted exactly, and its client sees what it would see without. A client that has asked, or
// wants none, is left alone, and so is a request for no stream.
func TestInjectUsage(t *testing.T) {
	const asks = `"stream_options":{"include_usage":true}`
	without, with := piece1+doneLine, piece1+counts1+doneLine
	for name, test := range map[string]struct {
		off        bool
		path, body string
		sent       string // in the body
		text       string
		tokens     int64 // written, as the log has them; 0: not known
	}{
		"a stream":               {body: `{"model":"m","stream":true,"messages":[]}`, sent: asks, text: without, tokens: 2},
		"with other options":     {body: `{"model":"m","stream":true,"stream_options":{"include_obfuscation":false}}`, sent: `"stream_options":{"include_usage":true,"include_obfuscation":false}`, text: without, tokens: 2},
		"that has asked":         {body: `{"model":"m","stream":true,` + asks + `}`, sent: asks, text: with, tokens: 2},
		"that wants none":        {body: `{"model":"m","stream":true,"stream_options":{"include_usage":false}}`, sent: `"include_usage":false`, text: without},
		"a completion":           {path: "/v1/completions", body: `{"model":"m","stream":true,"prompt":"a"}`, sent: asks, text: without, tokens: 2},
		"a response":             {path: "/v1/responses", body: `{"model":"m","stream":true,"input":"a"}`, text: without},
		"no stream":              {body: `{"model":"m","messages":[]}`, text: without},
		"where nothing is added": {off: true, body: `{"model":"m","stream":true,"messages":[]}`, text: without},
	} {
		t.Run(name, func(t *testing.T) {
			up := &counting{}
			var log Access
			m := over(t, dialects["openai"], up, func(c *Config) {
				c.InjectUsage, c.Log = !test.off, func(a Access) { log = a }
			}, batch.WithPlainLaw())
			w := httptest.NewRecorder()
			path := test.path
			if path == "" {
				path = "/v1/chat/completions"
			}
			m.ServeHTTP(w, m.request(t.Context(), path, test.body, "Accept-Encoding", "gzip"))
			if w.Code != http.StatusOK || w.Body.String() != test.text || log.Usage.OutputTokens != test.tokens {
				t.Errorf("%d %q, usage %+v", w.Code, w.Body, log.Usage)
			}
			if len(up.bodies) != 1 || !strings.Contains(up.bodies[0], test.sent) || test.sent == "" && up.bodies[0] != test.body {
				t.Errorf("it has sent %q", up.bodies)
			}
			if accepts := up.heads[0].Get("Accept-Encoding"); accepts != "identity" { // nothing can be taken out of what is compressed
				t.Errorf("accepts %q", accepts)
			}
		})
	}
}

// A server that refuses the question is asked without it at once, and never again with it. Another fault is the client's.
func TestServersThatDoNotCount(t *testing.T) {
	stream := `{"model":"m","stream":true,"messages":[]}`
	up := &counting{refuses: `{"error":{"message":"Unrecognized request argument supplied: stream_options"}}`}
	m := over(t, dialects["openai"], up, func(c *Config) { c.InjectUsage = true }, batch.WithPlainLaw())
	for range 2 {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, m.request(t.Context(), "/v1/chat/completions", stream))
		if w.Code != http.StatusOK || w.Body.String() != piece1+doneLine {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	}
	if len(up.bodies) != 3 || up.bodies[1] != stream || up.bodies[2] != stream {
		t.Errorf("%q", up.bodies)
	}
	up = &counting{refuses: wrong}
	m = over(t, dialects["openai"], up, func(c *Config) { c.InjectUsage = true }, batch.WithPlainLaw())
	w := httptest.NewRecorder()
	m.ServeHTTP(w, m.request(t.Context(), "/v1/chat/completions", stream))
	if w.Code != http.StatusBadRequest || w.Body.String() != wrong || len(up.bodies) != 1 {
		t.Errorf("%d %q, sent %q", w.Code, w.Body, up.bodies)
	}
}

// The larger body takes its room with those of others. Where there is none, the call goes out as it came.
func TestInjectedBodiesTakeRoom(t *testing.T) {
	up := &counting{}
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("x", 3000) + `"}]}`
	m := over(t, dialects["openai"], up, func(c *Config) { c.InjectUsage, c.MaxBody, c.MaxBodies = true, 4000, 5000 }, batch.WithPlainLaw())
	for range 2 {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, m.request(t.Context(), "/v1/chat/completions", body))
		if w.Code != http.StatusOK {
			t.Errorf("%d %q", w.Code, w.Body)
		}
	}
	if up.bodies[0] != body || up.bodies[1] != body {
		t.Error("it was sent with the question")
	}
}
