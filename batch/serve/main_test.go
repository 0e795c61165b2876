package serve

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
	"github.com/headrace/headrace/provider/sim"
	simanthropic "github.com/headrace/headrace/provider/sim/anthropic"
	simconverse "github.com/headrace/headrace/provider/sim/converse"
	"github.com/headrace/headrace/provider/sim/face"
	simgemini "github.com/headrace/headrace/provider/sim/gemini"
	simopenai "github.com/headrace/headrace/provider/sim/openai"
	"github.com/headrace/headrace/provider/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The client's token, and the key that only the provider may see.
const (
	token  = "hr-token-of-the-client-0123456789"
	ownKey = "sk-key-of-the-provider-0123456789"
)

// dialect is one way to call: its request, and how the provider takes its key.
type dialect struct {
	provider.Dialect
	face              face.Face
	path, stream      string
	body, streamBody  string
	tokenIn, keyIn    string // headers
	keyPrefix, prefix string
	words             string // in each whole answer
}

const chatBody = `{"model":"m-1","messages":[{"role":"user","content":"How deep is the water?"}],"max_tokens":16}`

var dialects = map[string]dialect{
	"openai": {
		openai.Dialect{},
		simopenai.Face{},
		"/v1/chat/completions", "/v1/chat/completions", chatBody, `{"stream":true,` + chatBody[1:],
		"Authorization", "Authorization", "Bearer ", "Bearer ", `"chat.completion"`,
	},
	"anthropic": {
		anthropic.Dialect{},
		simanthropic.Face{},
		"/v1/messages", "/v1/messages", chatBody, `{"stream":true,` + chatBody[1:],
		"X-Api-Key", "X-Api-Key", "", "", `"type":"message"`,
	},
	"gemini": {
		gemini.Dialect{},
		simgemini.Face{},
		"/v1beta/models/m-1:generateContent", "/v1beta/models/m-1:streamGenerateContent?alt=sse",
		`{"contents":[{"role":"user","parts":[{"text":"How deep is the water?"}]}]}`, `{"contents":[{"role":"user","parts":[{"text":"How deep is the water?"}]}]}`,
		"X-Goog-Api-Key", "X-Goog-Api-Key", "", "", `"candidates"`,
	},
	"converse": {
		converse.Dialect{},
		simconverse.Face{},
		"/model/m-1/converse", "/model/m-1/converse-stream",
		`{"messages":[{"role":"user","content":[{"text":"How deep is the water?"}]}]}`, `{"messages":[{"role":"user","content":[{"text":"How deep is the water?"}]}]}`,
		"Authorization", "Authorization", "Bearer ", "Bearer ", `"stopReason"`,
	},
}

// mill is a server over a provider.
type mill struct {
	*Server
	sim    *sim.Server
	shared *batch.Shared
	d      dialect
}

// mills makes a server over a simulated provider that accepts ownKey alone. change may change how.
func mills(t *testing.T, d dialect, cfg sim.Config, change func(*Config), opts ...batch.Option) *mill {
	t.Helper()
	cfg.Face, cfg.Keys = d.face, []string{ownKey}
	server := sim.New(cfg, clockwork.NewRealClock())
	m := over(t, d, sim.NewTransport(server), change, opts...)
	m.sim = server
	return m
}

// over makes a server over a transport.
func over(t *testing.T, d dialect, base http.RoundTripper, change func(*Config), opts ...batch.Option) *mill {
	t.Helper()
	shared, err := batch.NewShared(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(shared.Close)
	key, err := auth.NewKey(d.keyIn, d.keyPrefix, ownKey)
	if err != nil {
		t.Fatal(err)
	}
	client, err := wire.New(wire.Config{Dialect: d.Dialect, BaseURL: "http://provider.invalid", Auth: key, Transport: base})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Shared: shared, Upstream: func(string) Upstream { return client },
		Clients: []door.Client{{Name: "one", SHA256: sha256.Sum256([]byte(token))}},
	}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &mill{Server: s, shared: shared, d: d}
}

// request makes one of the client's.
func (m *mill) request(ctx context.Context, path, body string, header ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost:8470"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(m.d.tokenIn, m.d.prefix+token)
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Del(header[i]); header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	return r
}

// ask sends a request and returns the whole answer.
func (m *mill) ask(r *http.Request) (*http.Response, string) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	resp := w.Result()
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

// proves fails the test unless the line's two sums hold and nothing is left of any request.
func (m *mill) proves(t *testing.T) batch.Counters {
	t.Helper()
	st, err := m.Status(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if !st.Totals.Proves() || st.Waiting != 0 || st.InFlight != 0 || st.Bodies != 0 || len(st.Clients) != 0 || st.Machine.Held != 0 {
		t.Errorf("%+v", st)
	}
	return st.Totals
}

// trip is an http.RoundTripper made of a function.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
