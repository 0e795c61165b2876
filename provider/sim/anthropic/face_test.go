package anthropic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/provider/sim/anthropic"
	"github.com/headrace/headrace/provider/sim/face"
	"github.com/headrace/headrace/provider/sim/simtest"
)

// ask sends a request with a key and a version; an empty header is taken out again.
func ask(t *testing.T, s *sim.Server, path, body string, header ...string) (int, http.Header, gjson.Result) {
	t.Helper()
	a := simtest.Ask(t, s, path, body, append([]string{"X-Api-Key", "k", "Anthropic-Version", "2023-06-01"}, header...)...)
	return a.Status, a.Header, a.Body
}

func server(cfg sim.Config) (*sim.Server, *clockwork.FakeClock) {
	cfg.Face = anthropic.Face{}
	clock := clockwork.NewFakeClockAt(simtest.Epoch)
	return sim.New(cfg, clock), clock
}

const (
	messages = "/v1/messages"
	hello    = `{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"hello"}]}`
)

// with puts a field into hello.
func with(field string) string { return "{" + field + "," + hello[1:] }

// What Anthropic would refuse is refused, with the field's path and in its words.
func TestRequestsAreChecked(t *testing.T) {
	s, _ := server(sim.Config{})
	for _, c := range []struct{ body, says string }{
		{`{"model":`, "not valid JSON"},
		{`[]`, "Input should be a valid dictionary"},
		{`{"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, "model: Field required"},
		{`{"model":"m","messages":[{"role":"user","content":"a"}]}`, "max_tokens: Field required"},
		{`{"model":"m","max_tokens":1}`, "messages: Field required"},
		{`{"model":"m","max_tokens":1,"messages":[]}`, "messages: List should have at least 1 item"},
		{`{"model":"m","max_tokens":0,"messages":[{"role":"user","content":"a"}]}`, "max_tokens: Input should be greater than or equal to 1"},
		{`{"model":"m","max_tokens":"9","messages":[{"role":"user","content":"a"}]}`, "max_tokens: Input should be a valid integer"},
		{`{"model":"m","max_tokens":1.5,"messages":[{"role":"user","content":"a"}]}`, "max_tokens: Input should be a valid integer"},
		{with(`"temperature":1.5`), "temperature: Input should be less than or equal to 1"},
		{with(`"temperature":-1`), "temperature: Input should be greater than or equal to 0"},
		{with(`"seed":1`), "seed: Extra inputs are not permitted"},
		{with(`"response_format":{"type":"text"}`), "response_format: Extra inputs are not permitted"},
		{with(`"metadata":{"user":"x"}`), "metadata.user: Extra inputs are not permitted"},
		{with(`"stop_sequences":["a",1]`), "stop_sequences.1: Input should be a valid string"},
		{with(`"stream":"yes"`), "stream: Input should be a valid boolean"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"system","content":"a"}]}`, "messages.0.role: Input should be 'user', 'assistant'"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user"}]}`, "messages.0.content: Field required"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a","name":"x"}]}`, "messages.0.name: Extra inputs are not permitted"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, "messages.0.content.0.type: Input should be"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"text":"a"}]}]}`, "messages.0.content.0.type: Field required"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":""}]}]}`, "text content blocks must be non-empty"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":""}]}`, "messages.0: all messages must have non-empty content"},
		{`{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":"a"}]}`, `first message must use the "user" role`},
	} {
		status, _, body := ask(t, s, messages, c.body)
		if status != 400 || body.Get("error.type").Str != "invalid_request_error" || !strings.Contains(body.Get("error.message").Str, c.says) {
			t.Errorf("%s: %d %s, want %s", c.body, status, body.Raw, c.says)
		}
	}
	for _, body := range []string{
		with(`"temperature":1`), with(`"temperature":0,"top_p":0.5,"top_k":3`), with(`"system":"Be brief."`), with(`"system":[{"type":"text","text":"a"}]`),
		with(`"stop_sequences":["x"]`), with(`"tools":[{"name":"t","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"}`), with(`"stream":false`),
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":""}]}`,
	} {
		if status, _, answer := ask(t, s, messages, body); status != 200 {
			t.Errorf("%s: %d %s", body, status, answer.Raw)
		}
	}
}

// A version must be named, and the newest takes no sampling.
func TestVersions(t *testing.T) {
	s, _ := server(sim.Config{})
	for _, c := range []struct {
		version, body string
		status        int
	}{
		{"", hello, 400},
		{"2024-01-01", hello, 400},
		{"2023-01-01", hello, 200},
		{"2026-10-21", hello, 200},
		{"2026-10-21", with(`"temperature":1`), 400},
		{"2026-10-21", with(`"top_k":1`), 400},
		{"2026-10-21", with(`"top_p":1`), 400},
		{"2023-06-01", with(`"top_p":1`), 200},
	} {
		if status, _, answer := ask(t, s, messages, c.body, "Anthropic-Version", c.version); status != c.status {
			t.Errorf("%s %s: %d %s", c.version, c.body, status, answer.Raw)
		}
	}
}

// Where two keys come, x-api-key counts; without any the answer says which is missing.
func TestKeys(t *testing.T) {
	s, _ := server(sim.Config{Keys: []string{"k"}})
	for _, c := range []struct {
		header []string
		status int
	}{
		{nil, 200},
		{[]string{"Authorization", "Bearer other"}, 200},
		{[]string{"X-Api-Key", "other", "Authorization", "Bearer k"}, 401},
		{[]string{"X-Api-Key", "", "Authorization", "Bearer k"}, 200},
		{[]string{"X-Api-Key", ""}, 401},
		{[]string{"X-Api-Key", "", "Authorization", "k"}, 401},
	} {
		if status, _, answer := ask(t, s, messages, hello, c.header...); status != c.status {
			t.Errorf("%v: %d %s", c.header, status, answer.Raw)
		}
	}
	free, _ := server(sim.Config{})
	if status, _, answer := ask(t, free, messages, hello, "X-Api-Key", ""); status != 401 || answer.Get("error.message").Str != "x-api-key header is required" {
		t.Errorf("%d %s", status, answer.Raw)
	}
}

// The headers of limits are Anthropic's; their resets are instants, told from when the
// gauges were read and not from when the answer came.
func TestLimits(t *testing.T) {
	s, clock := server(sim.Config{RPM: 120, TPM: 40_000, Burst: time.Second, Headers: true, RetryAfter: sim.Always, Refusal: 10 * time.Second})
	status, h, _ := ask(t, s, messages, hello)
	charged := 2 + (len(sim.Answer("hello"))+3)/4
	for name, want := range map[string]string{
		"Anthropic-Ratelimit-Requests-Limit": "120", "Anthropic-Ratelimit-Requests-Remaining": "1", "Anthropic-Ratelimit-Requests-Reset": "2030-01-01T00:00:01Z",
		"Anthropic-Ratelimit-Tokens-Limit": "40000", "Anthropic-Ratelimit-Tokens-Remaining": fmt.Sprint(666 - charged), "Anthropic-Ratelimit-Tokens-Reset": "2030-01-01T00:00:01Z",
		"Retry-After": "", "X-Ratelimit-Limit-Requests": "",
	} {
		if h.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, h.Get(name), want)
		}
	}
	if status != 200 || !strings.HasPrefix(h.Get("Request-Id"), "req_") || h.Get("Anthropic-Organization-Id") == "" {
		t.Errorf("%d %v", status, h)
	}
	ask(t, s, messages, hello)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		status, h, body := ask(t, s, messages, hello)
		if status != 429 || h.Get("Retry-After") != "1" || h.Get("X-Should-Retry") != "true" || h.Get("Anthropic-Ratelimit-Requests-Reset") != "2030-01-01T00:00:01Z" {
			t.Errorf("%d %v", status, h)
		}
		if !strings.HasPrefix(body.Get("error.message").Str, "This request would exceed your organization's rate limit of 120 requests per minute") ||
			body.Get("type").Str != "error" || body.Get("request_id").Str != h.Get("Request-Id") {
			t.Error(body.Raw)
		}
	}()
	must.Do(t, clock.BlockUntilContext(t.Context(), 1))
	clock.Advance(10 * time.Second)
	<-asked
}

// Other doors have no headers of limits, a Vertex model stands in the path, and a Vertex
// body has its version in it and no model.
func TestOtherDoors(t *testing.T) {
	s, _ := server(sim.Config{RPM: 60, Headers: true, Models: []string{"m", "claude@1"}})
	if status, h, _ := ask(t, s, "/anthropic/v1/messages", hello); status != 200 || h.Get("Anthropic-Ratelimit-Requests-Limit") != "" {
		t.Errorf("%d %v", status, h)
	}
	const raw = "/v1/projects/p/locations/l/publishers/anthropic/models/claude%401:rawPredict"
	const good = `{"anthropic_version":"vertex-2023-10-16","max_tokens":64,"messages":[{"role":"user","content":"hello"}]}`
	for body, want := range map[string]int{good: 200, hello: 400, `{"model":"m",` + good[1:]: 400, strings.Replace(good, "2023", "2022", 1): 400} {
		status, _, answer := ask(t, s, raw, body, "Authorization", "Bearer k", "Anthropic-Version", "")
		if status != want || want == 200 && answer.Get("model").Str != "claude@1" {
			t.Errorf("%s: %d %s", body, status, answer.Raw)
		}
	}
	if status, _, _ := ask(t, s, raw, good); status != 401 {
		t.Errorf("x-api-key at Vertex: %d", status)
	}
}

// Thoughts stand before the text, and a cache's tokens are counted separately from the input's.
func TestThoughtsAndCaches(t *testing.T) {
	s, _ := server(sim.Config{})
	_, _, body := ask(t, s, messages, with(`"thinking":{"type":"enabled","budget_tokens":1024}`))
	thinking := body.Get("content.0.thinking").Str
	if !strings.Contains(thinking, sim.Checksum("hello")) || body.Get("content.1.text").Str != sim.Answer("hello") ||
		body.Get("usage.output_tokens").Int() != int64((len(thinking)+3)/4+(len(sim.Answer("hello"))+3)/4) {
		t.Error(body.Raw)
	}
	system := strings.Repeat("x", 400)
	_, _, body = ask(t, s, messages, with(`"system":[{"type":"text","text":"`+system+`","cache_control":{"type":"ephemeral"}}]`))
	if body.Get("usage.cache_creation_input_tokens").Int() != 100 || body.Get("usage.input_tokens").Int() != 2 ||
		body.Get("usage.cache_creation.ephemeral_5m_input_tokens").Int() != 100 {
		t.Error(body.Get("usage").Raw)
	}
}

// The result of a tool is read, and the user's last words are answered.
func TestToolsAndPictures(t *testing.T) {
	s, _ := server(sim.Config{})
	_, _, body := ask(t, s, messages, `{"model":"m","max_tokens":64,"messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64","data":"AAAA"}},{"type":"text","text":"two"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"3"}]}]}`)
	if body.Get("content.0.text").Str != sim.Answer("one\ntwo") || body.Get("usage.input_tokens").Int() < 1000 {
		t.Error(body.Raw)
	}
	picture := `{"type":"image","source":{"type":"base64","data":"` + strings.Repeat("A", 100_000) + `"}}`
	for where, turn := range map[string]string{
		"in a turn":   `[{"type":"text","text":"one"},` + picture + `]`,
		"in a result": `[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"3"},` + picture + `]}]`,
	} {
		_, _, body = ask(t, s, messages, `{"model":"m","max_tokens":64,"messages":[{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"t","input":{}}]},{"role":"user","content":`+turn+`}]}`)
		if tokens := body.Get("usage.input_tokens").Int(); tokens < 1000 || tokens > 1100 {
			t.Errorf("a picture %s: %d input tokens, want 1000 and some: %.300s", where, tokens, body.Raw)
		}
	}
}

// A body above Anthropic's bound is too large whatever is in it.
func TestTooLarge(t *testing.T) {
	s, _ := server(sim.Config{})
	status, _, body := ask(t, s, messages, strings.Repeat(" ", 32<<20)+hello)
	if status != 413 || body.Get("error.type").Str != "request_too_large" {
		t.Errorf("%d %s", status, body.Raw)
	}
}

// Whatever comes, it is answered or refused in Anthropic's form, and nothing panics.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		hello, with(`"stream":true`), ``, `{}`, `[]`, `null`, `"`, with(`"temperature":1e999`), `{"messages":{"a":[]},"max_tokens":1e30,"model":7}`, `{"messages":[[],{},null,1]}`,
		`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[[],{"type":"text","text":{}},null]}]}`, `{"model":"\ud800","system":{"text":"\ud800` + "\xff" + `"}}`,
		with(`"system":[{"type":"text","text":"a","cache_control":{}}],"thinking":{"type":"adaptive"}`), `{"":1,"messages.0":2}`, strings.Repeat("[", 5000),
	} {
		f.Add("2023-06-01", body)
		f.Add("2026-10-21", body)
	}
	limited, _ := server(sim.Config{TPM: 100, RetryAfter: sim.Always, Headers: true})
	free, _ := server(sim.Config{})
	f.Fuzz(func(t *testing.T, version, body string) {
		if strings.ContainsAny(version, "\r\n\x00") {
			return
		}
		for _, s := range []*sim.Server{limited, free} {
			for _, path := range []string{messages, "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict"} {
				status, _, answer := ask(t, s, path, body, "Anthropic-Version", version, "Authorization", "Bearer k")
				fine := status == 200 && answer.Get("#(type==message_stop)").Exists() || status == 200 && answer.Get("content.#").Num > 0 && answer.Get("usage.input_tokens").Num >= 0
				if !fine && !answer.Get("error.message").Exists() || !gjson.Valid(answer.Raw) {
					t.Errorf("%d %s", status, answer.Raw)
				}
			}
		}
	})
}

var _ face.Face = anthropic.Face{}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
