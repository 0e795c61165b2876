package command

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/provider/sim"
	simanthropic "github.com/headrace/headrace/provider/sim/anthropic"
	simconverse "github.com/headrace/headrace/provider/sim/converse"
	simface "github.com/headrace/headrace/provider/sim/face"
	simgemini "github.com/headrace/headrace/provider/sim/gemini"
	simopenai "github.com/headrace/headrace/provider/sim/openai"
)

// streamedRun says how a run asks for the answers of a dialect that streams.
type streamedRun struct {
	name string
	face simface.Face
	args []string
}

var streamedRuns = []streamedRun{
	{"chat", simopenai.Face{}, nil},
	{"responses", simopenai.Face{}, []string{"--endpoint", "/v1/responses"}},
	{"messages", simanthropic.Face{}, []string{"--provider", "anthropic"}},
	{"gemini", simgemini.Face{}, []string{"--provider", "gemini"}},
	{"converse", simconverse.Face{}, []string{"--provider", "bedrock", "--region", "eu-west-1"}},
}

// inEachDialect does it in all of them at once, for most of the time they wait.
func inEachDialect(do func(streamedRun)) {
	var all sync.WaitGroup
	for _, c := range streamedRuns {
		all.Go(func() { do(c) })
	}
	all.Wait()
}

// cutWord is the reason with which an answer ends that is cut at its bound.
var cutWord = map[string]string{"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens", "gemini": "MAX_TOKENS", "converse": "max_tokens"}

// asked runs prompts against a simulated provider, and returns its lines without ids and times.
func asked(t *testing.T, base, in string, args ...string) (lines map[string]any, code int, stderr string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "o.jsonl")
	code, _, stderr = inWorld(t, nil, map[string]string{"K": "the-key-123"}, append([]string{"run", in, "-o", out, "--base-url", base, "--api-key-env", "K", "--model", "m"}, args...)...)
	lines = plainLines(t, out)
	for _, line := range lines {
		response, _ := line.(map[string]any)["response"].(map[string]any)
		delete(response, "request_id")
		body, _ := response["body"].(map[string]any)
		for _, name := range []string{"id", "created", "created_at", "responseId", "metrics"} {
			delete(body, name)
		}
		if output, is := body["output"].([]any); is { // of Responses
			delete(output[0].(map[string]any), "id")
		}
	}
	return lines, code, stderr
}

// A thousand prompts in each dialect have the same lines with and without streams, but for ids and
// times; and the provider has counted the same.
func TestStreamsOfEachDialectGiveTheSameLines(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 100
	}
	in := streamedInput(t, `{"prompt":"How deep is the river at mark %d?","max_tokens":21}`, n)
	for _, c := range streamedRuns {
		t.Run(c.name, func(t *testing.T) {
			var lines [2]map[string]any
			var books [2]sim.Books
			for i, when := range []string{"never", "always"} {
				server := sim.New(sim.Config{Face: c.face}, clockwork.NewRealClock())
				var streams atomic.Int64
				front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					server.ServeHTTP(w, r)
					if strings.Contains(w.Header().Get("Content-Type"), "stream") {
						streams.Add(1)
					}
				}))
				t.Cleanup(front.Close)
				var code int
				var stderr string
				if lines[i], code, stderr = asked(t, front.URL+c.face.Base(), in, append([]string{"--stream", when}, c.args...)...); code != 0 {
					t.Fatalf("%s: exit %d: %s", when, code, stderr)
				}
				if got := int(streams.Load()); got != i*n {
					t.Errorf("%s: %d streams", when, got)
				}
				books[i] = server.Books()
			}
			if len(lines[0]) != n || len(lines[1]) != n {
				t.Fatalf("%d lines, and %d as streams", len(lines[0]), len(lines[1]))
			}
			for id, plain := range lines[0] {
				if !reflect.DeepEqual(lines[1][id], plain) {
					t.Fatalf("%s: as a stream\n%v\nand plain\n%v", id, lines[1][id], plain)
				}
			}
			if ends := strings.Count(fmt.Sprint(lines[0]), cutWord[c.name]); ends == 0 || ends == n {
				t.Errorf("%d of %d answers are cut", ends, n)
			}
			if !reflect.DeepEqual(books[0], books[1]) || books[0].Accepted != n {
				t.Errorf("books %+v, and of streams %+v", books[0], books[1])
			}
		})
	}
}

// Streams that are cut, that fail in the middle or fall silent are asked for again, in each dialect,
// until all are answered.
func TestBrokenStreamsAreAskedForAgain(t *testing.T) {
	t.Parallel() // it mostly waits
	const n = 60
	in := streamedInput(t, `{"prompt":"How deep is the river at mark %d?"}`, n)
	faults := sim.Rates{Truncated: 0.1, StreamError: 0.1, StreamSilent: 0.05}
	inEachDialect(func(c streamedRun) {
		server := sim.New(sim.Config{Face: c.face, Errors: faults, TrackIDs: true, Seed: 3}, clockwork.NewRealClock())
		front := httptest.NewServer(server)
		t.Cleanup(front.Close)
		lines, code, stderr := asked(t, front.URL+c.face.Base(), in, append([]string{"--stream", "always", "--stream-idle", "2s", "--max-attempts", "9"}, c.args...)...)
		if code != 0 || len(lines) != n {
			t.Errorf("%s: exit %d, %d lines: %s", c.name, code, len(lines), stderr)
		}
		b := server.Books()
		for _, kind := range []sim.Kind{sim.Truncated, sim.StreamError, sim.StreamSilent} {
			if b.Errors[kind] == 0 {
				t.Errorf("%s: no %s: %+v", c.name, kind, b)
			}
		}
		if b.Distinct != n {
			t.Errorf("%s: %+v", c.name, b)
		}
	})
}

// An answer takes eleven seconds, and the gateway ends calls that are silent for two. In one piece the
// answer is cut; as a stream it comes whole. These are eleven minutes through nginx in small.
func TestLongAnswersOfEachDialect(t *testing.T) {
	t.Parallel() // it mostly waits
	if testing.Short() {
		t.Skip("takes eleven seconds")
	}
	in := streamedInput(t, `{"prompt":"How deep is the river at mark %d?"}`, 1)
	inEachDialect(func(c streamedRun) {
		server := sim.New(sim.Config{Face: c.face, Latency: sim.Latency{Median: 11 * time.Second}}, clockwork.NewRealClock())
		front := httptest.NewServer(server)
		t.Cleanup(front.Close)
		gateway := idleProxy(t, front.URL, 2*time.Second) + c.face.Base()
		ask := func(when string) (map[string]any, int, string) {
			return asked(t, gateway, in, append([]string{"--max-attempts", "1", "--first-answer", "0", "--timeout", "8s", "--stream", when}, c.args...)...)
		}
		if lines, code, stderr := ask("never"); code == 0 || len(lines) != 0 || !strings.Contains(stderr, "504") {
			t.Errorf("%s in one piece: exit %d, %d lines: %s", c.name, code, len(lines), stderr)
		}
		if lines, code, stderr := ask("always"); code != 0 || len(lines) != 1 {
			t.Errorf("%s as a stream: exit %d, %d lines: %s", c.name, code, len(lines), stderr)
		}
	})
}
