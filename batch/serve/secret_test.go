package serve

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// The provider's key comes out in no answer, and the client's token goes to no provider: not if a
// server echoes all that it gets, in its headers, its errors, its answers and its streams, however
// these come in pieces; and not if the client puts its token everywhere.
func TestNoSecretPasses(t *testing.T) {
	var seen strings.Builder
	echo := func(status int, kind string, size int) trip {
		return func(r *http.Request) (*http.Response, error) {
			var all strings.Builder
			_ = r.Header.Write(&all)
			seen.WriteString(r.URL.String() + all.String())
			text := fmt.Sprintf("data: {\"echo\":%q,\"key\":%q,\"again\":\"%s%s\"}\n\n", all.String(), ownKey, ownKey[:20], ownKey)
			resp, err := says(status, text, "Content-Type", kind, "X-Echo", r.Header.Get("Authorization"), "Set-Cookie", "a="+ownKey)(r)
			resp.Body = io.NopCloser(&pieces{text, size})
			return resp, err
		}
	}
	for _, status := range []int{200, 400, 401} {
		for _, kind := range []string{"application/json", "text/event-stream"} {
			for _, size := range []int{1, 7, 1000} {
				m := over(t, dialects["openai"], echo(status, kind, size), nil)
				r := m.request(t.Context(), "/v1/chat/completions?key="+token+"&alt=sse&token="+token, chatBody,
					"Cookie", "session="+token, "X-Mine", "a "+token+" b", "X-Api-Key", token, "Connection", "X-Hop", "X-Hop", "hop", "X-Forwarded-For", "10.0.0.1")
				resp, body := m.ask(r)
				if resp.StatusCode != status || !strings.Contains(body, `"echo"`) {
					t.Errorf("%d %s: %d %s", status, kind, resp.StatusCode, body)
				}
				if all := fmt.Sprint(resp.Header, body); strings.Contains(all, ownKey) || strings.Contains(all, ownKey[:19]+`"`) || resp.Header.Get("Set-Cookie") != "" {
					t.Errorf("%d %s in pieces of %d: the key comes out: %s", status, kind, size, all)
				}
			}
		}
	}
	if all := seen.String(); strings.Contains(all, token) || strings.Contains(all, "hop") || strings.Contains(all, "10.0.0.1") || !strings.Contains(all, "alt=sse") {
		t.Errorf("the provider saw %s", all)
	}
}

// pieces brings a text in pieces.
type pieces struct {
	rest string
	size int
}

func (p *pieces) Read(to []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// The list of models is asked for once in ten minutes, by one request at a time, and without a list the
// path is not served.
func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls int
		base := trip(func(r *http.Request) (*http.Response, error) {
			calls++
			if r.Header.Get("X-Own") != "" || r.Header.Get("Openai-Organization") != "" {
				t.Errorf("one client's headers are in the list of all: %v", r.Header)
			}
			if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer "+ownKey {
				t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
			}
			time.Sleep(time.Second)
			if calls == 1 {
				return says(500, fault)(r)
			}
			return says(200, `{"object":"list","data":[]}`, "X-Request-Id", "r")(r)
		})
		m := over(t, dialects["openai"], base, func(c *Config) { c.Models = "m-1" })
		defer m.shared.Close()
		ask := func() (*http.Response, string) {
			r := m.request(t.Context(), pathModels, "", "Content-Type", "", "X-Own", "x", "Openai-Organization", "mine")
			r.Method = http.MethodGet
			return m.ask(r)
		}
		if resp, body := ask(); resp.StatusCode != 502 || !strings.Contains(body, "headrace_upstream") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		statuses := make(chan int)
		for range 20 {
			go func() { resp, _ := ask(); statuses <- resp.StatusCode }()
		}
		for range 20 {
			if got := <-statuses; got != 200 {
				t.Error(got)
			}
		}
		if resp, body := ask(); calls != 2 || body != `{"object":"list","data":[]}` || resp.Header.Get("X-Request-Id") != "r" {
			t.Errorf("%d calls, %s %v", calls, body, resp.Header)
		}
		time.Sleep(listMaxAge)
		if _, _ = ask(); calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
	m := mills(t, dialects["openai"], sim.Config{}, nil)
	r := m.request(t.Context(), pathModels, "", "Content-Type", "")
	r.Method = http.MethodGet
	if resp, body := m.ask(r); resp.StatusCode != 404 || !strings.Contains(body, "/v1/chat/completions") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, _ := m.ask(httptest.NewRequest(http.MethodPost, "http://localhost/v1/models", nil)); resp.StatusCode != 401 {
		t.Error(resp.StatusCode)
	}
}

// Errors have the shape of the dialect that was called.
func TestErrorsHaveTheDialectsShape(t *testing.T) {
	for name, want := range map[string]string{
		"openai":    `{"error":{"message":"this client may not ask this model","type":"invalid_request_error","param":null,"code":"headrace_model"}}`,
		"anthropic": `{"type":"error","error":{"type":"permission_error","message":"this client may not ask this model","code":"headrace_model"}}`,
		"gemini":    `{"error":{"code":403,"message":"this client may not ask this model","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"headrace_model","domain":"headrace"}]}}`,
		"converse":  `{"message":"this client may not ask this model","code":"headrace_model"}`,
	} {
		d := dialects[name]
		m := mills(t, d, sim.Config{}, func(c *Config) { c.Clients[0].Models = []string{"other"} })
		if resp, body := m.ask(m.request(t.Context(), d.path, d.body)); resp.StatusCode != 403 || body != want || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}
