package door

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// made makes a door that has to be right.
func made(t *testing.T, c Config) *Door {
	t.Helper()
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func client(name, token string) Client {
	return Client{Name: name, SHA256: sha256.Sum256([]byte(token))}
}

func asked(host string, header ...string) *http.Request {
	r := &http.Request{Host: host, Header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// A request may come in by the names of this machine and those that the server was given, in any case, with any port
// and with the dot of a full name. Names that only look like these may not.
func TestHosts(t *testing.T) {
	d := made(t, Config{Open: true, Hosts: []string{"gate.example", "2001:db8::1"}})
	for host, in := range map[string]bool{
		"localhost": true, "localhost:8470": true, "LocalHost": true, "localhost.": true, "localhost.:1": true,
		"127.0.0.1": true, "127.0.0.1:8470": true, "[::1]": true, "[::1]:8470": true, "::1": true,
		"gate.example": true, "GATE.example:443": true, "[2001:db8::1]:443": true,
		"": false, ":8470": false, ".": false, "evil.example": false, "localhost.evil.example": false, "evil.example.localhost": false,
		"127.0.0.1.nip.io": false, "127.0.0.2": false, "0.0.0.0": false, "[::]": false, "localhost..": false, "a.gate.example": false,
		"localhost@evil.example": false, "localhost evil": false, "localhost\x00": false, "lоcalhost": false,
	} {
		refusal := d.Foreign(asked(host), false)
		if (refusal == nil) != in || refusal != nil && (refusal.Status != http.StatusForbidden || refusal.Code != "headrace_host") {
			t.Errorf("Host %q: %+v", host, refusal)
		}
		if refusal := d.Foreign(asked(host), true); refusal != nil {
			t.Errorf("Host %q over a local socket: %+v", host, refusal)
		}
	}
}

// A page may call if its origin is named, letter for letter, and is the only one. A browser that says where a request
// came from without an origin is heard, too, over a socket as well.
func TestOrigins(t *testing.T) {
	d := made(t, Config{Open: true, Origins: []string{"https://app.example"}})
	for _, test := range []struct {
		header []string
		in     bool
	}{
		{nil, true},
		{[]string{"Origin", "https://app.example"}, true},
		{[]string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, true},
		{[]string{"Origin", "https://app.example", "Origin", "https://app.example"}, false},
		{[]string{"Origin", "https://app.example", "Origin", "https://evil.example"}, false},
		{[]string{"Origin", "http://app.example"}, false},
		{[]string{"Origin", "https://app.example:444"}, false},
		{[]string{"Origin", "https://APP.example"}, false},
		{[]string{"Origin", "null"}, false},
		{[]string{"Origin", ""}, false},
		{[]string{"Sec-Fetch-Site", "none"}, true},
		{[]string{"Sec-Fetch-Site", "same-origin"}, true},
		{[]string{"Sec-Fetch-Site", "same-site"}, false},
		{[]string{"Sec-Fetch-Site", "cross-site"}, false},
		{[]string{"Sec-Fetch-Site", "odd"}, false},
	} {
		for _, local := range []bool{false, true} {
			refusal := d.Foreign(asked("localhost", test.header...), local)
			if (refusal == nil) != test.in || refusal != nil && refusal.Code != "headrace_origin" {
				t.Errorf("%v, local %v: %+v", test.header, local, refusal)
			}
		}
	}
}

// Only plain JSON in UTF-8 may be read: no form can send that from a page.
func TestContentTypes(t *testing.T) {
	for _, test := range []struct {
		header []string
		in     bool
	}{
		{[]string{"Content-Type", "application/json"}, true},
		{[]string{"Content-Type", "Application/JSON"}, true},
		{[]string{"Content-Type", "application/json; charset=UTF-8"}, true},
		{[]string{"Content-Type", `application/json;charset="utf-8"`}, true},
		{[]string{"Content-Type", "application/json", "Content-Encoding", "identity"}, true},
		{nil, false},
		{[]string{"Content-Type", ""}, false},
		{[]string{"Content-Type", "text/plain"}, false},
		{[]string{"Content-Type", "text/plain; application/json"}, false},
		{[]string{"Content-Type", "text/json"}, false},
		{[]string{"Content-Type", "application/jsonp"}, false},
		{[]string{"Content-Type", "application/x-www-form-urlencoded"}, false},
		{[]string{"Content-Type", "multipart/form-data; boundary=application/json"}, false},
		{[]string{"Content-Type", "application/json; charset=utf-7"}, false},
		{[]string{"Content-Type", "application/json;"}, true},
		{[]string{"Content-Type", "application/json, text/plain"}, false},
		{[]string{"Content-Type", "application/json", "Content-Type", "application/json"}, false},
		{[]string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, false},
		{[]string{"Content-Type", "application/json", "Content-Encoding", "identity, gzip"}, false},
		{[]string{"Content-Type", "application/json", "Content-Encoding", "identity", "Content-Encoding", "gzip"}, false},
	} {
		refusal := Unfit(asked("localhost", test.header...))
		if (refusal == nil) != test.in || refusal != nil && (refusal.Status != http.StatusUnsupportedMediaType || refusal.Code != "headrace_content_type") {
			t.Errorf("%q: %+v", test.header, refusal)
		}
	}
}

// A token may stand in the header of each dialect. The first that is known counts, and a token in any other place is
// none.
func TestTokens(t *testing.T) {
	d := made(t, Config{Clients: []Client{client("one", "hr-1"), client("two", "hr-2")}})
	for _, test := range []struct {
		header []string
		tokens []string
		name   string // "": nobody
	}{
		{[]string{"Authorization", "Bearer hr-1"}, []string{"hr-1"}, "one"},
		{[]string{"Authorization", "bearer  hr-1 "}, []string{"hr-1"}, "one"},
		{[]string{"Authorization", "BEARER hr-2"}, []string{"hr-2"}, "two"},
		{[]string{"X-Api-Key", "hr-1"}, []string{"hr-1"}, "one"},
		{[]string{"x-api-key", " hr-2\t"}, []string{"hr-2"}, "two"},
		{[]string{"X-Goog-Api-Key", "hr-1"}, []string{"hr-1"}, "one"},
		{[]string{"Authorization", "Bearer wrong", "X-Api-Key", "hr-2"}, []string{"wrong", "hr-2"}, "two"},
		{[]string{"X-Goog-Api-Key", "hr-2", "Authorization", "Bearer hr-1"}, []string{"hr-1", "hr-2"}, "one"},
		{[]string{"Authorization", "Bearer wrong", "Authorization", "Bearer hr-1"}, []string{"wrong", "hr-1"}, "one"},
		{nil, nil, ""},
		{[]string{"Authorization", "hr-1"}, nil, ""},
		{[]string{"Authorization", "Basic hr-1"}, nil, ""},
		{[]string{"Authorization", "Bearerhr-1"}, nil, ""},
		{[]string{"Authorization", "Bearer "}, nil, ""},
		{[]string{"X-Api-Key", "  "}, nil, ""},
		{[]string{"X-Api-Key", "Bearer hr-1"}, []string{"Bearer hr-1"}, ""},
		{[]string{"Api-Key", "hr-1"}, nil, ""},
		{[]string{"Cookie", "hr-1"}, nil, ""},
		{[]string{"Authorization", "Bearer hr-"}, []string{"hr-"}, ""},
		{[]string{"Authorization", "Bearer hr-11"}, []string{"hr-11"}, ""},
		{[]string{"Authorization", "Bearer HR-1"}, []string{"HR-1"}, ""},
		{[]string{"Authorization", "Bearer hr-1,hr-2"}, []string{"hr-1,hr-2"}, ""},
	} {
		h := asked("localhost", test.header...).Header
		if got := Tokens(h); !slices.Equal(got, test.tokens) {
			t.Errorf("%q: tokens %q, want %q", test.header, got, test.tokens)
		}
		c, refusal := d.Client(h)
		switch {
		case test.name == "" && (c != nil || refusal == nil || refusal.Status != http.StatusUnauthorized || refusal.Code != "headrace_token"):
			t.Errorf("%q: %+v, %+v", test.header, c, refusal)
		case test.name != "" && (c == nil || c.Name != test.name || refusal != nil):
			t.Errorf("%q: %+v, %+v; want %s", test.header, c, refusal, test.name)
		}
	}
}

// At an open door a request is that of the client whose token it has, and otherwise anyone's. Anyone is an admin only
// where no client could be one.
func TestOpenDoor(t *testing.T) {
	for _, test := range []struct {
		clients []Client
		token   string
		name    string
		admin   bool
	}{
		{nil, "", Anyone, true},
		{nil, "x", Anyone, true},
		{[]Client{client("one", "hr-1")}, "", Anyone, false},
		{[]Client{client("one", "hr-1")}, "x", Anyone, false},
		{[]Client{client("one", "hr-1")}, "hr-1", "one", false},
	} {
		d := made(t, Config{Open: true, Clients: test.clients})
		if c, refusal := d.Client(asked("", "X-Api-Key", test.token).Header); refusal != nil || c.Name != test.name || c.Admin != test.admin {
			t.Errorf("%q: %+v, %+v", test.token, c, refusal)
		}
	}
}

// A door with a fault is not made, and the error names each.
func TestFaults(t *testing.T) {
	for want, c := range map[string]Config{
		"there is no client":                             {},
		`client "a b": a name has 1..64`:                 {Clients: []Client{client("a b", "t")}},
		`client "": a name has 1..64`:                    {Clients: []Client{client("", "t")}},
		"client a: the checksum of its token is missing": {Clients: []Client{{Name: "a"}}},
		"clients a and b have the same token":            {Clients: []Client{client("a", "t"), client("b", "t")}},
		"client a is there twice":                        {Clients: []Client{client("a", "t"), client("a", "u")}},
		"client c: the checksum":                         {Open: true, Clients: []Client{client("a", "t"), {Name: "c"}}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Names are what headers, files and metrics can hold.
func TestNames(t *testing.T) {
	for name, is := range map[string]bool{
		"a": true, "Nightly-1.2_x": true, strings.Repeat("n", MaxName): true,
		"": false, strings.Repeat("n", MaxName+1): false, "a b": false, "a/b": false, "ä": false, "a\n": false, `a"`: false, "a:b": false,
	} {
		if IsName(name) != is {
			t.Errorf("%q: %v", name, !is)
		}
	}
	for name, class := range map[string]Class{"interactive": Interactive, "normal": Normal, "batch": Batch} {
		if got, is := ClassOf(name); !is || got != class || Classes[class] != name {
			t.Errorf("%s: %v %v", name, got, is)
		}
	}
	if _, is := ClassOf("root"); is {
		t.Error("root is a class")
	}
}

// A client may ask the models of its list, or all if it has none. An empty list holds no model.
func TestMay(t *testing.T) {
	all, some, none := Client{MaxCostDay: limiter.USD(1)}, Client{Models: []string{"m-1"}}, Client{Models: []string{}}
	if !all.May("m-1") || !some.May("m-1") || some.May("m-12") || some.May("") || none.May("m-1") {
		t.Error(all.May("m-1"), some.May("m-1"), some.May("m-12"), some.May(""), none.May("m-1"))
	}
}
