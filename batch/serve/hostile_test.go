package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/provider/sim"
)

// Each hostile request is refused, and none reaches the provider. They are bytes on the wire, as a
// browser, a proxy or an attacker would send them.
func TestHostileRequests(t *testing.T) {
	m := mills(t, dialects["openai"], sim.Config{}, func(c *Config) {
		c.MaxBody, c.Models = 1<<20, "m-1"
		c.Clients[0].Models = []string{"m-1"}
	})
	server := httptest.NewServer(m)
	defer server.Close()
	const (
		host    = "Host: localhost\r\n"
		mine    = "Authorization: Bearer " + token + "\r\n"
		json    = "Content-Type: application/json\r\n"
		chat    = "POST /v1/chat/completions HTTP/1.1\r\n"
		closing = "Connection: close\r\n"
	)
	length := func(body string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) }
	good := length(chatBody)
	long := strings.Repeat("x", 2<<20)
	for name, test := range map[string]struct {
		bytes  string
		status int
	}{
		"no token":                 {chat + host + json + closing + good, 401},
		"a wrong token":            {chat + host + "Authorization: Bearer x" + token + "\r\n" + json + closing + good, 401},
		"the token as Basic":       {chat + host + "Authorization: Basic " + token + "\r\n" + json + closing + good, 401},
		"the token in the address": {"POST /v1/chat/completions?key=" + token + " HTTP/1.1\r\n" + host + json + closing + good, 401},
		"a name that rebinds":      {chat + "Host: evil.example\r\n" + mine + json + closing + good, 403},
		"a name like ours":         {chat + "Host: localhost.evil.example\r\n" + mine + json + closing + good, 403},
		"no name":                  {chat + "Host: \r\n" + mine + json + closing + good, 403},
		"two names":                {chat + host + "Host: evil.example\r\n" + mine + json + closing + good, 400},
		"an address elsewhere":     {"POST http://evil.example/v1/chat/completions HTTP/1.1\r\n" + host + mine + json + closing + good, 403},
		"a page":                   {chat + host + "Origin: https://evil.example\r\n" + mine + json + closing + good, 403},
		"a page without a name":    {chat + host + "Origin: null\r\n" + mine + json + closing + good, 403},
		"a page's image":           {"GET /v1/models HTTP/1.1\r\n" + host + "Sec-Fetch-Site: cross-site\r\n" + mine + closing + "\r\n", 403},
		"a preflight":              {"OPTIONS /v1/chat/completions HTTP/1.1\r\n" + host + mine + closing + "\r\n", 405},
		"a form's text":            {chat + host + mine + "Content-Type: text/plain\r\n" + closing + good, 415},
		"a form":                   {chat + host + mine + "Content-Type: application/x-www-form-urlencoded\r\n" + closing + good, 415},
		"no type":                  {chat + host + mine + closing + good, 415},
		"two types":                {chat + host + mine + json + "Content-Type: text/plain\r\n" + closing + good, 415},
		"another charset":          {chat + host + mine + "Content-Type: application/json; charset=utf-7\r\n" + closing + good, 415},
		"a packed body":            {chat + host + mine + json + "Content-Encoding: gzip\r\n" + closing + good, 415},
		"a second coding":          {chat + host + mine + json + "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n" + closing + good, 415},
		"a foreign model in store": {chat + host + mine + json + closing + length(`{"model":"m-1","mod\u0065ls":["m-1","m-2"]}`), 403},
		"a deadline that is over":  {chat + host + mine + json + closing + "X-Headrace-Deadline: 2001-01-01T00:00:00Z\r\n" + good, 504},
		"no time at all":           {chat + host + mine + json + closing + "X-Headrace-Deadline: 0\r\n" + good, 504},
		"a path with dots":         {"POST /v1/../v1/chat/completions HTTP/1.1\r\n" + host + mine + json + closing + good, 404},
		"an escaped path":          {"POST /v1/chat%2fcompletions HTTP/1.1\r\n" + host + mine + json + closing + good, 404},
		"two slashes":              {"POST //v1/chat/completions HTTP/1.1\r\n" + host + mine + json + closing + good, 404},
		"another path":             {"POST /v1/files HTTP/1.1\r\n" + host + mine + json + closing + good, 404},
		"a model with dots":        {"POST /v1beta/models/..%2f..%2fsecrets:generateContent HTTP/1.1\r\n" + host + mine + json + closing + length(`{}`), 400},
		"a model that breaks":      {"POST /v1beta/models/a%0d%0ab:generateContent HTTP/1.1\r\n" + host + mine + json + closing + length(`{}`), 400},
		"a foreign model":          {chat + host + mine + json + closing + length(`{"model":"m-2"}`), 403},
		"two models":               {chat + host + mine + json + closing + length(`{"model":"m-1","mod\u0065l":"m-2"}`), 400},
		"a model that is a list":   {chat + host + mine + json + closing + length(`{"model":["m-1"]}`), 400},
		"no JSON":                  {chat + host + mine + json + closing + length(`{"model":"m-1"`), 400},
		"a body after the body":    {chat + host + mine + json + closing + length(`{"model":"m-1"}{"model":"m-1"}`), 400},
		"a long body":              {chat + host + mine + json + closing + length(long), 413},
		"a long body in pieces":    {chat + host + mine + json + closing + "Transfer-Encoding: chunked\r\n\r\n200000\r\n" + long, 413},
		"an announced length":      {chat + host + mine + json + closing + "Content-Length: 109951162777\r\n\r\n{}", 413},
		"two lengths":              {chat + host + mine + json + closing + "Content-Length: 2\r\nContent-Length: 90\r\n\r\n{}", 400},
		"a negative length":        {chat + host + mine + json + closing + "Content-Length: -1\r\n\r\n{}", 400},
		"an odd coding":            {chat + host + mine + json + closing + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
		"a name that is none":      {chat + host + mine + json + closing + "X-Headrace-Client: a}\t{b\r\n" + good, 400},
		"a header with a NUL":      {chat + host + mine + json + closing + "X-Headrace-Client: a\x00b\r\n" + good, 400},
		"a tag that is none":       {chat + host + mine + json + closing + "X-Headrace-Tag: a b\r\n" + good, 400},
		"an unknown class":         {chat + host + mine + json + closing + "X-Headrace-Priority: root\r\n" + good, 400},
		"a wait that is none":      {chat + host + mine + json + closing + "X-Headrace-Max-Wait: -5s\r\n" + good, 400},
		"a long header":            {chat + host + mine + json + closing + "X-A: " + long + "\r\n" + good, 431},
		"the status":               {"GET /headrace/status HTTP/1.1\r\n" + host + mine + closing + "\r\n", 401},
		"a foreign ready":          {"POST /readyz HTTP/1.1\r\n" + host + closing + good, 405},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			go func() { _, _ = io.WriteString(conn, test.bytes) }() // the server may close before all is written
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != test.status {
				t.Errorf("%d %s, want %d", resp.StatusCode, body, test.status)
			}
			if strings.Contains(string(body), token) || strings.Contains(string(body), ownKey) || resp.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%v %s", resp.Header, body)
			}
		})
	}
	if got := m.sim.Books().Received; got != 0 {
		t.Errorf("%d of them reached the provider", got)
	}
	if c := m.proves(t); c.Calls != 0 {
		t.Errorf("%+v", c)
	}
	resp, body := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody))
	if resp.StatusCode != http.StatusOK {
		t.Errorf("a good request after them: %d %s", resp.StatusCode, body)
	}
}

// An open server without clients shows its status to anybody on this machine, but to no page. With clients, only an
// admin sees it.
func TestStatusOfAnOpenServer(t *testing.T) {
	named := []door.Client{{Name: "one", SHA256: [32]byte{9}}}
	for name, test := range map[string]struct {
		clients []door.Client
		host    string
		header  [2]string
		status  int
	}{
		"open":                 {nil, "localhost:8470", [2]string{}, 200},
		"open, with a token":   {nil, "127.0.0.1:8470", [2]string{"Authorization", "Bearer none-needed"}, 200},
		"a name that rebinds":  {nil, "evil.example", [2]string{}, 403},
		"a page":               {nil, "localhost", [2]string{"Origin", "https://evil.example"}, 403},
		"a page's image":       {nil, "localhost", [2]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"open, and an admin's": {named, "localhost", [2]string{}, 401},
	} {
		m := mills(t, dialects["openai"], sim.Config{}, func(c *Config) { c.Open, c.Clients = true, test.clients })
		r := httptest.NewRequest(http.MethodGet, pathStatus, nil)
		r.Host = test.host
		if test.header[0] != "" {
			r.Header.Set(test.header[0], test.header[1])
		}
		if resp, body := m.ask(r); resp.StatusCode != test.status || m.Admin(r) != (test.status == 200) {
			t.Errorf("%s: %d %s, admin: %v", name, resp.StatusCode, body, m.Admin(r))
		}
	}
}

// Pages that were named may call, and get no CORS headers; clients over the user's own socket may
// have any host, and see the status.
func TestDoorsThatAreOpen(t *testing.T) {
	m := mills(t, dialects["openai"], sim.Config{}, func(c *Config) { c.AllowOrigin, c.Hosts = []string{"https://app.example"}, []string{"gate"} })
	page := m.request(t.Context(), "/v1/chat/completions", chatBody, "Origin", "https://app.example", "Sec-Fetch-Site", "cross-site")
	page.Host = "GATE:8470"
	if resp, body := m.ask(page); resp.StatusCode != http.StatusOK || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
	local := httptest.NewRequestWithContext(Local(t.Context()), http.MethodGet, pathStatus, nil)
	local.Host = "whatever"
	if resp, body := m.ask(local); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"waiting":0`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	for path, want := range map[string]int{pathHealth: 200, pathReady: 200} {
		if resp, _ := m.ask(httptest.NewRequest(http.MethodGet, path, nil)); resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if err := m.SetClients(nil); err == nil {
		t.Error("a server that nobody may enter was taken")
	}
	if err := m.SetClients([]door.Client{{Name: "other", SHA256: [32]byte{9}}}); err != nil {
		t.Error(err)
	}
	if resp, _ := m.ask(m.request(t.Context(), "/v1/chat/completions", chatBody)); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%d for a client that was taken off the list", resp.StatusCode)
	}
}
