package clients

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/headrace/headrace/tests/foreign/part"
)

// servedAs are the providers whose face serve shows to a client, by the dialect of the simulated one,
// and the path of their base URL.
var servedAs = map[string]struct{ provider, base string }{
	"openai": {"openai", "/v1"}, "anthropic": {"anthropic", ""}, "gemini": {"gemini", "/v1beta"}, "converse": {"bedrock", ""},
}

// startServe starts headrace serve over a simulated provider and says where, without a path.
func startServe(t *testing.T, dialect, sim string, flags ...string) string {
	t.Helper()
	as := servedAs[dialect]
	argv := append([]string{
		part.Headrace(t), "serve", "--provider", as.provider, "--base-url", sim + as.base, "--api-key-env", "KEY_OF_A_TEST", "--open", "--addr", "127.0.0.1:0",
	}, flags...)
	cmd := part.Command(t, argv...)
	cmd.Env = append(os.Environ(), "KEY_OF_A_TEST=key-of-the-provider", "AWS_REGION=eu-west-1")
	_, rest, _ := strings.Cut(part.Serve(t, cmd, " at "), "://")
	host, _, _ := strings.Cut(rest, "/")
	return "http://" + strings.TrimSpace(host)
}

// isServed reports whether serve has the paths that a judge calls.
func isServed(name, dialect string) bool {
	_, has := servedAs[dialect]
	return has && !strings.Contains(name, "Vertex")
}

// Each official client, unchanged, gets the same answer through serve as from the provider itself,
// whole and as a stream.
func TestServe(t *testing.T) {
	for name, judge := range judges {
		if !isServed(name, judge.sim) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := startSim(t, judge.sim, dribble...)
			through := startServe(t, judge.sim, url)
			for _, stream := range []bool{false, true} {
				want, err := judge.ask(t, url, stream)
				if err != nil {
					t.Fatal(err)
				}
				got, err := judge.ask(t, through, stream)
				if err != nil || got != want {
					t.Errorf("stream %v: %+v, %v; the provider itself says %+v", stream, got, err, want)
				}
			}
		})
	}
}

// A client that turned its retries off meets no refusal: its calls wait. A stream that waits is pinged,
// and its client reads on as if nothing had come.
func TestServeWaits(t *testing.T) {
	for name, judge := range judges {
		if !isServed(name, judge.sim) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := startSim(t, judge.sim, "--rpm", "20", "--burst", "1s", "--retry-after", "always", "--headers", "--latency", "300ms")
			through := startServe(t, judge.sim, url, "--commit-after", "1s")
			want, err := judge.ask(t, through, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, stream := range []bool{true, false} {
				if got, err := judge.ask(t, through, stream); err != nil || got != want {
					t.Errorf("stream %v: %+v, %v; want %+v", stream, got, err, want)
				}
			}
		})
	}
}

// A request that would wait for too long is refused at once, in a form that each client reads as a
// limit.
func TestServeRefuses(t *testing.T) {
	for name, judge := range judges {
		if !isServed(name, judge.sim) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			through := startServe(t, judge.sim, startSim(t, judge.sim, "--rpm", "1", "--burst", "1s", "--retry-after", "always", "--headers"), "--max-wait", "2s")
			if _, err := judge.ask(t, through, false); err != nil {
				t.Fatal(err)
			}
			for _, stream := range []bool{false, true} {
				if got, err := judge.ask(t, through, stream); statusOf(err) != http.StatusTooManyRequests {
					t.Errorf("stream %v: %+v, %v", stream, got, err)
				}
			}
		})
	}
}
