package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// slowly is a server of chats and messages whose answers have five words, with a wait before
// each. A stream has each in its own event; an answer in one piece comes when all are there.
type slowly struct {
	wait    time.Duration
	calls   atomic.Int32
	streams atomic.Int32
}

var slowWords = [...]string{"One", " two", " three", " four", " five"}

func (s *slowly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.Add(1)
	var asked struct {
		Stream  bool
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
		return
	}
	isChat := strings.HasSuffix(r.URL.Path, "/chat/completions")
	if !asked.Stream {
		if !s.pause(r, len(slowWords)) {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		text := strings.Join(slowWords[:], "")
		if isChat {
			fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q,"refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":5,"total_tokens":7}}`, text)
			return
		}
		fmt.Fprintf(w, `{"id":"m","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":2,"output_tokens":5}}`, text)
		return
	}
	s.streams.Add(1)
	w.Header().Set("Content-Type", "text/event-stream")
	tell := func(format string, args ...any) {
		fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		_ = http.NewResponseController(w).Flush()
	}
	const chunk = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]%s}`
	if !isChat {
		tell(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":2,"output_tokens":1}}}`)
		tell(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	}
	for i, word := range slowWords {
		if !s.pause(r, 1) {
			return
		}
		switch {
		case !isChat:
			tell(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, word)
		case i == 0:
			tell(chunk, fmt.Sprintf(`{"index":0,"delta":{"role":"assistant","content":%q,"refusal":null},"logprobs":null,"finish_reason":null}`, word), "")
		default:
			tell(chunk, fmt.Sprintf(`{"index":0,"delta":{"content":%q},"logprobs":null,"finish_reason":null}`, word), "")
		}
	}
	if !isChat {
		tell(`{"type":"content_block_stop","index":0}`)
		tell(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`)
		tell(`{"type":"message_stop"}`)
		return
	}
	tell(chunk, `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`, "")
	if asked.Options.Usage {
		tell(chunk, "", `,"usage":{"prompt_tokens":2,"completion_tokens":5,"total_tokens":7}`)
	}
	tell("[DONE]")
}

func (s *slowly) pause(r *http.Request, times int) bool {
	select {
	case <-time.After(time.Duration(times) * s.wait):
		return true
	case <-r.Context().Done():
		return false
	}
}

func serveSlowly(t *testing.T, wait time.Duration) (*slowly, string) {
	t.Helper()
	s := &slowly{wait: wait}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// plainLines are an output's lines, by their ids, without what differs from run to run.
func plainLines(t *testing.T, path string) map[string]any {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	lines := map[string]any{}
	for line := range strings.Lines(string(text)) {
		var one map[string]any
		must.Do(t, json.Unmarshal([]byte(line), &one))
		delete(one, "id")
		if own, is := one["headrace"].(map[string]any); is {
			for _, name := range []string{"sum", "latency_ms", "queued_ms", "waited_ms"} {
				delete(own, name)
			}
		}
		lines[fmt.Sprint(one["custom_id"])] = one
	}
	return lines
}

var streamedLines = map[string]string{
	"openai":    `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"count %[1]d"}]}}`,
	"anthropic": `{"custom_id":"%d","params":{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"count %[1]d"}]}}`,
}

func streamedInput(t *testing.T, format string, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i)
	}
	return writeLines(t, b.String())
}

// Streams give the lines that plain answers give, and a run goes on with the other setting: a
// line's key does not change.
func TestStreamsGiveTheSameLines(t *testing.T) {
	for provider, format := range streamedLines {
		server, base := serveSlowly(t, 0)
		in, dir := streamedInput(t, format, 30), t.TempDir()
		outs := map[string]string{}
		for _, when := range []string{"never", "always", "auto"} {
			out := filepath.Join(dir, when+".jsonl")
			outs[when] = out
			code, _, stderr := inWorld(t, nil, map[string]string{"K": "the-key-123"}, "run", in, "-o", out, "--provider", provider, "--base-url", base, "--api-key-env", "K", "--stream", when)
			if code != 0 {
				t.Fatalf("%s: exit %d: %s", provider, code, stderr)
			}
		}
		if got := server.streams.Load(); got != 30 { // auto: these are short
			t.Errorf("%s: %d streams", provider, got)
		}
		plain := plainLines(t, outs["never"])
		if streamed := plainLines(t, outs["always"]); !reflect.DeepEqual(streamed, plain) || len(plain) != 30 {
			t.Errorf("%s: as streams\n%v\nplain\n%v", provider, streamed["3"], plain["3"])
		}
		before := server.calls.Load()
		code, _, stderr := inWorld(t, nil, map[string]string{"K": "the-key-123"}, "run", in, "-o", outs["never"], "--provider", provider, "--base-url", base, "--api-key-env", "K", "--stream", "always")
		if code != 0 || server.calls.Load() != before {
			t.Errorf("%s: %d more calls, exit %d: %s", provider, server.calls.Load()-before, code, stderr)
		}
	}
}

// A line that asks for a stream itself is refused whatever the flag says, and auto takes long
// answers of Anthropic's as streams.
func TestWhichLinesAreStreamed(t *testing.T) {
	server, base := serveSlowly(t, 0)
	for i, c := range []struct {
		provider, members, when string
		code                    int
		streams                 int32
	}{
		{"openai", `"stream":true,`, "always", 2, 0},
		{"openai", `"stream":false,"stream_options":{"include_usage":false},`, "always", 0, 1},
		{"openai", `"max_tokens":100000,`, "auto", 0, 0},
		{"anthropic", `"stream":true,"max_tokens":9,`, "always", 2, 0},
		{"anthropic", `"max_tokens":21333,`, "auto", 0, 0},
		{"anthropic", `"max_tokens":21334,`, "auto", 0, 1},
		{"anthropic", `"max_tokens":21334,`, "never", 0, 0},
	} {
		before := server.streams.Load()
		body := `{` + c.members + `"model":"m","messages":[{"role":"user","content":"Hi"}]}`
		line := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` + body + `}`
		if c.provider == "anthropic" {
			line = `{"custom_id":"a","params":` + body + `}`
		}
		in := writeLines(t, line+"\n")
		code, _, stderr := inWorld(t, nil, map[string]string{"K": "the-key-123"}, "run", in, "-o", filepath.Join(t.TempDir(), "o.jsonl"),
			"--provider", c.provider, "--base-url", base, "--api-key-env", "K", "--stream", c.when)
		if got := server.streams.Load() - before; code != c.code || got != c.streams {
			t.Errorf("case %d: exit %d, %d streams: %s", i, code, got, stderr)
		}
	}
}

// idleProxy passes everything on, and cuts what has been silent for as long as nginx's
// proxy_read_timeout says.
func idleProxy(t *testing.T, to string, idle time.Duration) string {
	t.Helper()
	target := must.Get(url.Parse(to))(t)
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{}
	proxy.Transport = idleTransport{transport, idle}
	proxy.ErrorLog = nil
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusGatewayTimeout) }
	server := httptest.NewServer(proxy)
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	return server.URL
}

// idleTransport ends a call whose server is silent for too long.
type idleTransport struct {
	http.RoundTripper
	idle time.Duration
}

func (tr idleTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := afterSilence(tr.idle, cancel)
	defer stop()
	resp, err := tr.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &idleBody{resp.Body, tr.idle, cancel}
	return resp, nil
}

// idleBody ends when a read takes too long.
type idleBody struct {
	io.ReadCloser
	idle   time.Duration
	cancel context.CancelFunc
}

func (b *idleBody) Read(p []byte) (int, error) {
	stop := afterSilence(b.idle, b.cancel)
	defer stop()
	return b.ReadCloser.Read(p)
}

func (b *idleBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// afterSilence calls f after that time, unless it is stopped before. It counts ticks: a machine that stalls misses them, and
// then both sides of a proxy are silent.
func afterSilence(d time.Duration, f func()) (stop func()) {
	const ticks = 20
	over, ticker := make(chan struct{}), time.NewTicker(d/ticks)
	go func() {
		defer ticker.Stop()
		for range ticks {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
		}
		f()
	}()
	return func() { close(over) }
}

// An answer that takes five times as long as a gateway waits, and longer than --timeout, comes
// whole as a stream, and not in one piece. The clocks run sixty times as fast as those of an
// answer of five minutes through nginx.
func TestLongAnswersComeThroughGateways(t *testing.T) {
	t.Parallel() // it mostly waits
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	server, base := serveSlowly(t, time.Second)
	gateway := idleProxy(t, base, 2500*time.Millisecond)
	in := streamedInput(t, streamedLines["openai"], 1)
	try := func(when string) (code int, stderr string, lines map[string]any) {
		out := filepath.Join(t.TempDir(), "o.jsonl")
		code, _, stderr = inWorld(t, nil, nil, "run", in, "-o", out, "--base-url", gateway+"/v1", "--stream", when,
			"--timeout", "4500ms", "--max-attempts", "1", "--first-answer", "0")
		return code, stderr, plainLines(t, out)
	}
	if code, stderr, lines := try("never"); code != 1 || len(lines) != 0 {
		t.Errorf("in one piece: exit %d, %d lines: %s", code, len(lines), stderr)
	}
	code, stderr, lines := try("always")
	if code != 0 || len(lines) != 1 || !strings.Contains(fmt.Sprint(lines), strings.Join(slowWords[:], "")) || server.streams.Load() != 1 {
		t.Errorf("as a stream: exit %d, %v: %s", code, lines, stderr)
	}
}
