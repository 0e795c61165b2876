package sim_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/sim"
)

var update = flag.Bool("update", false, "write the golden files anew")

// exchange is a request of the golden file.
type exchange struct{ method, path, body string }

func chat(prompt string) string {
	return `{"model":"gpt-4o","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"` + prompt + `"}]}`
}

// exchanges ask for all that OpenAI's face answers.
var exchanges = []exchange{
	{"POST", "/v1/chat/completions", chat("Why is the sky blue?")},
	{"POST", "/v1/chat/completions", `{"model":"m","max_tokens":3,"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}`},
	{"POST", "/v1/completions", `{"model":"m","prompt":["one","two"],"max_tokens":300}`},
	{"POST", "/v1/embeddings", `{"model":"m","input":["one","two"]}`},
	{"POST", "/v1/embeddings", `{"model":"m","input":[1,2],"encoding_format":"base64"}`},
	{"POST", "/v1/responses", `{"model":"m","input":"one"}`},
	{"POST", "/v1/responses", `{"model":"m","max_output_tokens":2,"input":[{"role":"user","content":"one"}]}`},
	{"POST", "/v1/messages", `{"model":"claude","max_tokens":64,"messages":[{"role":"user","content":"one"}]}`},
	{"POST", "/v1/chat/completions", `{"model":`},
	{"POST", "/v1/chat/completions", `[]`},
	{"POST", "/v1/chat/completions", `{"messages":[]}`},
	{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"stream":true}`},
	{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_completion_tokens":0.5}`},
	{"POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"a"}],"max_tokens":70000}`},
	{"GET", "/v1/models", ""},
	{"GET", "/v1/chat/completions", ""},
	{"POST", "/v1/models", ""},
	{"POST", "/v2/chat", "{}"},
	{"GET", "/healthz", ""},
	{"POST", "/healthz", ""},
	{"GET", "/sim/books", ""},
	{"DELETE", "/sim/books", ""},
}

// The answers of OpenAI's face are what they were, byte for byte: tests of clients and
// files that were written rest on them.
func TestOpenAIByteForByte(t *testing.T) {
	var out bytes.Buffer
	for _, world := range []struct {
		name string
		cfg  sim.Config
	}{
		{"free", sim.Config{}},
		{"limited", sim.Config{RPM: 120, TPM: 60_000, Burst: time.Second, Headers: true, RetryAfter: sim.Always, TrackIDs: true}},
		{"milliseconds", sim.Config{RPM: 60, Burst: time.Second, RetryAfter: sim.Always, RetryAfterMS: true, Terse: true}},
		{"keys", sim.Config{Keys: []string{"k"}, Models: []string{"m"}}},
		{"models", sim.Config{Models: []string{"gpt-4o", "n"}, QuotaAfter: 1}},
		{"500", sim.Config{Errors: sim.Rates{Server500: 1}, Headers: true, RPM: 6000}},
		{"503", sim.Config{Errors: sim.Rates{Overloaded503: 1}}},
		{"400", sim.Config{Errors: sim.Rates{BadRequest400: 1}}},
		{"truncated", sim.Config{Errors: sim.Rates{Truncated: 1}}},
		{"malformed", sim.Config{Errors: sim.Rates{Malformed200: 1}, Headers: true, RPM: 6000}},
	} {
		server := sim.New(world.cfg, clockwork.NewFakeClockAt(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)))
		for _, e := range exchanges {
			fmt.Fprintf(&out, "== %s: %s %s %s\n", world.name, e.method, e.path, e.body)
			answerTo(t, &out, server, e)
		}
	}
	const golden = "testdata/openai.golden"
	if *update {
		must.Do(t, os.WriteFile(golden, out.Bytes(), 0o600))
	}
	want := must.Get(os.ReadFile(golden))(t)
	have, should := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(have), len(should)) {
		if have[i] != should[i] {
			t.Fatalf("line %d is\n%s\nand was\n%s", i+1, have[i], should[i])
		}
	}
	if len(have) != len(should) {
		t.Errorf("%d lines, and were %d", len(have), len(should))
	}
}

// answerTo prints an answer: status, headers by name, body.
func answerTo(t *testing.T, out io.Writer, server *sim.Server, e exchange) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), e.method, "http://sim"+e.path, strings.NewReader(e.body)))(t)
	resp := must.Get(sim.NewTransport(server).RoundTrip(r))(t)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Fprintln(out, resp.Status, resp.ContentLength, err)
	var names []string
	for name := range resp.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(out, "%s: %q\n", name, resp.Header[name])
	}
	fmt.Fprintf(out, "%s\n", body)
}

// What a face says is understood by the client's reading of answers, which was written from
// what providers said and knows nothing of the faces.
func TestRefusalsAreUnderstood(t *testing.T) {
	for _, sp := range speakers {
		for _, c := range []struct {
			cfg  sim.Config
			want provider.Kind
		}{
			{sim.Config{RPM: 1, RetryAfter: sim.Always}, provider.Throttled},
			{sim.Config{RPM: 1, Terse: true}, provider.Throttled},
			{sim.Config{TPM: 1e4, Burst: 1}, provider.Throttled},
			{sim.Config{Keys: []string{"another"}}, provider.Unauthorized},
			{sim.Config{Errors: sim.Rates{BadRequest400: 1}}, provider.Invalid},
			{sim.Config{Errors: sim.Rates{Overloaded503: 1}}, provider.Overloaded},
			{sim.Config{Errors: sim.Rates{Server500: 1}}, provider.Server},
			{sim.Config{QuotaAfter: 1}, provider.QuotaExhausted},
		} {
			s := sp.server(c.cfg)
			g := sp.says(t, s, "one")
			for n := 0; g.Status == 200 && n < 3; n++ {
				g = sp.says(t, s, "one")
			}
			e := provider.Classify(g.Status, g.Header, []byte(g.Body.Raw))
			if sp.name == "gemini on vertex" && c.want == provider.QuotaExhausted {
				c.want = provider.Unauthorized // a 403: that it is about money is for Gemini's own dialect to know
			}
			if waits := c.cfg.RetryAfter == sim.Always && sp.name != "gemini on vertex"; waits && (e == nil || e.RetryAfter != time.Minute) {
				t.Errorf("%s: no wait of a minute: %v", sp.name, e)
			}
			if e == nil || e.Kind != c.want {
				t.Errorf("%s: %d %v %s: %v, want %v", sp.name, g.Status, g.Header, g.Body.Raw, e, c.want)
			}
		}
	}
}

// Whatever a face sends in place of an answer is worth another try.
func TestGarbledAnswersAreTriedAgain(t *testing.T) {
	for _, sp := range speakers {
		s := sp.server(sim.Config{Errors: sim.Rates{Malformed200: 1}})
		for i := range 12 {
			g := sp.says(t, s, fmt.Sprint("garbled ", i))
			e := provider.Classify(g.Status, g.Header, []byte(g.Body.Raw))
			if e == nil || e.Kind != provider.Server && e.Kind != provider.EmptyAnswer && e.Kind != provider.TransportFault {
				t.Errorf("%s: %v %q: %v", sp.name, g.Header, g.Body.Raw, e)
			}
		}
	}
}
