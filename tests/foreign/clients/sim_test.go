package clients

import (
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/tests/foreign/part"
)

// genai counts by a library that starts a goroutine when the program does.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// What is asked of the simulated providers. The limit leaves room for one call: the
// second is refused.
const (
	question = "What is in the river?"
	simModel = "sim-1"
	apiKey   = "key-of-a-test" // any is taken
	bound    = 64              // tokens of an answer: above what any has
)

var (
	limited    = []string{"--rpm", "1", "--burst", "1s", "--retry-after", "always", "--headers"}
	overloaded = []string{"--errors", "503=1"}
)

// startSim starts headrace sim and says where, without a path.
func startSim(t *testing.T, dialect string, flags ...string) string {
	t.Helper()
	argv := append([]string{part.Headrace(t), "sim", "--profile", "fast", "--addr", "127.0.0.1:0", "--dialect", dialect}, flags...)
	address := part.Serve(t, part.Command(t, argv...), "listening on ")
	scheme, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// httpClient leaves no connection behind.
func httpClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// says checks an answer: the simulator's begin alike.
func says(t *testing.T, text string) {
	t.Helper()
	if !strings.HasPrefix(text, "Simulated answer ") {
		t.Errorf("the answer is %q", text)
	}
}

// waits checks what a refusal says of the time: at most the minute after which there is
// room again.
func waits(t *testing.T, h http.Header) {
	t.Helper()
	if s := h.Get("Retry-After"); s == "" || s == "0" {
		t.Errorf("Retry-After is %q", s)
	}
}
