package serve

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A client's token goes to no provider, wherever it stands. A word that stands for a key where none is needed takes no
// header with it that happens to have its letters.
func TestHeadersWithATokenStay(t *testing.T) {
	for _, test := range []struct {
		token, value string
		passes       bool
	}{
		{token, "x " + token + " y", false},
		{token, token, false},
		{token, "x", true},
		{"x", "extended-cache-ttl", true},
		{"x", "x", false},
		{"-", "prompt-caching", true},
		{"EMPTY", "EMPTY-2", true},
		{"", "any", true},
	} {
		for _, in := range [...]string{"Authorization", "X-Api-Key"} {
			h := http.Header{"Anthropic-Beta": {test.value}, in: {test.token}}
			if in == "Authorization" {
				h.Set(in, "Bearer  "+test.token)
			}
			if got := outgoing(h); (got.Get("Anthropic-Beta") != "") != test.passes || got.Get(in) != "" {
				t.Errorf("%q in %s: %v", test.token, in, got)
			}
		}
	}
}

// The log has no text of a client's in the place of a model that cannot be one.
func TestLogHasNoFalseModel(t *testing.T) {
	var log Access
	m := over(t, dialects["openai"], trip(says(200, answered)), func(c *Config) { c.Log = func(a Access) { log = a } })
	for name, model := range map[string]string{"long": strings.Repeat("x", 300), "two lines": `a\nb`} {
		resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", `{"model":"`+model+`"}`))
		if resp.StatusCode != http.StatusBadRequest || log.Code != "headrace_body" || log.Model != "" {
			t.Errorf("%s: %d %+v", name, resp.StatusCode, log)
		}
	}
}

// The deadline of a request counts from its head, also if its body comes slowly.
func TestDeadlineWithASlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &script{steps: steps(hangs)}
		m := over(t, dialects["openai"], up, nil)
		defer m.shared.Close()
		for _, by := range []func() string{func() string { return "30s" }, func() string { return time.Now().Add(30 * time.Second).UTC().Format(time.RFC3339) }} {
			deadline := by()
			from, to := io.Pipe()
			go func() {
				time.Sleep(20 * time.Second)
				_, _ = io.WriteString(to, chatBody)
				_ = to.Close()
			}()
			r := m.request(t.Context(), "/v1/chat/completions", "", "X-Headrace-Deadline", deadline)
			r.Body, r.ContentLength = from, -1
			began := time.Now()
			if resp, _ := m.ask(r); resp.StatusCode != http.StatusGatewayTimeout {
				t.Errorf("%d", resp.StatusCode)
			}
			if took := time.Since(began); took != 30*time.Second {
				t.Errorf("%s: it took %v", deadline, took)
			}
		}
	})
}

// A body takes room as it comes: a length that is only announced keeps no other request out.
func TestRoomIsTakenAsABodyComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := over(t, dialects["openai"], trip(says(200, answered)), func(c *Config) { c.MaxBody, c.MaxBodies = 1<<20, 1<<20 })
		defer m.shared.Close()
		from, to := io.Pipe()
		r := m.request(t.Context(), "/v1/chat/completions", "")
		r.Body, r.ContentLength = from, 1<<20
		ended := make(chan int)
		go func() {
			resp, _ := m.ask(r)
			ended <- resp.StatusCode
		}()
		synctest.Wait()
		if st, err := m.Status(context.WithoutCancel(t.Context())); err != nil || st.Bodies > 1<<16 {
			t.Errorf("%d bytes are held, %v", st.Bodies, err)
		}
		_ = to.CloseWithError(io.ErrUnexpectedEOF)
		if status := <-ended; status != http.StatusBadRequest {
			t.Error(status)
		}
		m.proves(t)
	})
}

// A panic of the way to a provider costs one request its list of models, and no later one.
func TestModelsAfterAPanic(t *testing.T) {
	broken := true
	m := over(t, dialects["openai"], trip(func(r *http.Request) (*http.Response, error) {
		if broken {
			panic("broken")
		}
		return says(200, `{}`)(r)
	}), func(c *Config) { c.Models = "m-1" })
	ask := func() (status int) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		defer func() { _ = recover() }()
		r := m.request(ctx, pathModels, "", "Content-Type", "")
		r.Method = http.MethodGet
		resp, body := m.ask(r)
		if body == "" {
			return 0
		}
		return resp.StatusCode
	}
	ask()
	broken = false
	if status := ask(); status != http.StatusOK {
		t.Error(status)
	}
}

// A client of some models may name them as spare ones.
func TestSpareModels(t *testing.T) {
	m := over(t, dialects["openai"], trip(says(200, answered)), func(c *Config) {
		c.Clients[0].Models = []string{"m-1", "m-2"}
	})
	for body, want := range map[string]int{
		`{"model":"m-1","models":["m-2","m-1"]}`: 200,
		`{"model":"m-1","models":["m-3"]}`:       403,
		`{"model":"m-1","models":{"a":"m-3"}}`:   403,
		`{"model":"m-1","models":[]}`:            200,
		`{"model":"m-1","models":null}`:          200,
	} {
		if resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", body)); resp.StatusCode != want {
			t.Errorf("%s: %d", body, resp.StatusCode)
		}
	}
}
