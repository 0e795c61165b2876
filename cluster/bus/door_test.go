package bus

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// tryConnect is one attempt to join, and must end soon whatever the answer.
func tryConnect(t *testing.T, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(testContext(t), patience/2)
	defer cancel()
	b, err := Connect(ctx, Config{URL: url, Name: "w"})
	if err == nil {
		b.Close()
	}
	return err
}

func parsed(t *testing.T, url string) Address {
	t.Helper()
	a := must.Get(ParseAddress(url))(t)
	return a
}

// Who does not know the token is refused, at once, and the error names neither his token nor the right one.
func TestTokenRefused(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	for _, token := range []string{"", "a-wrong-token-of-some-length"} {
		a := parsed(t, hub.JoinURL())
		a.Token = token
		err := tryConnect(t, a.String())
		if !errors.Is(err, ErrRefused) {
			t.Errorf("token %q: %v", token, err)
		}
		if err != nil && (strings.Contains(err.Error(), tokenForTests) || token != "" && strings.Contains(err.Error(), token)) {
			t.Errorf("the error names a token: %v", err)
		}
	}
}

// With TLS only the authority that the join line names is let in, and nobody is spoken to without.
func TestTLS(t *testing.T) {
	t.Parallel()
	hub := startHub(t, func(c *HubConfig) { c.TLS = true })
	other := startHub(t, func(c *HubConfig) { c.TLS = true })
	open := startHub(t, nil)
	pinned, strange := parsed(t, hub.JoinURL()), parsed(t, other.JoinURL())
	if pinned.CA == "" || pinned.CA == strange.CA {
		t.Fatalf("fingerprints %q and %q", pinned.CA, strange.CA)
	}
	if err := tryConnect(t, hub.JoinURL()); err != nil {
		t.Errorf("the right fingerprint: %v", err)
	}
	mixed := pinned
	mixed.CA = strange.CA
	if err := tryConnect(t, mixed.String()); !errors.Is(err, ErrRefused) || !errors.Is(err, ErrNotTheHub) {
		t.Errorf("another's fingerprint: %v", err)
	}
	unpinned := pinned
	unpinned.CA, unpinned.TLS = "", false
	if err := tryConnect(t, unpinned.String()); !errors.Is(err, ErrRefused) {
		t.Errorf("no fingerprint: %v", err)
	}
	downgraded := pinned
	downgraded.Hosts = parsed(t, open.JoinURL()).Hosts
	if err := tryConnect(t, downgraded.String()); !errors.Is(err, ErrRefused) {
		t.Errorf("a server without TLS where the line asks for it: %v", err)
	}
}

// Other hosts are let in only with TLS and a token, which are made if nobody gave them, and stay the same.
func TestOtherHosts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "hub")
	config := HubConfig{Dir: dir, Listen: "0.0.0.0:0", Advertise: "127.0.0.1"}
	var lines []string
	for range 2 {
		hub, err := StartHub(config)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, hub.JoinURL())
		err = tryConnect(t, hub.JoinURL())
		hub.Shutdown()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := parsed(t, lines[0])
	if a.CA == "" || len(a.Token) < MinToken {
		t.Errorf("the join line has no fingerprint or no token: %s", lines[0])
	}
	if lines[0] != lines[1] {
		t.Errorf("the line changed over a restart:\n%s\n%s", lines[0], lines[1])
	}
	for _, secret := range []string{"token", "tls/ca.key"} {
		if info, err := os.Stat(filepath.Join(dir, secret)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", secret, info.Mode(), err)
		}
	}
	config.Token = "short"
	if _, err := StartHub(config); err == nil {
		t.Error("a short token was taken")
	}
}

// Connect waits for a hub that is not there yet, until its context ends, and then says what it tried.
func TestConnectWaits(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // somebody who never says a word
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Connect(ctx, Config{URL: "nats://" + tokenForTests + "@" + l.Addr().String(), Name: "w"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), l.Addr().String()) || strings.Contains(err.Error(), tokenForTests) {
		t.Errorf("%v", err)
	}
}

// Lines that are none are refused without being repeated.
func TestParseAddress(t *testing.T) {
	good := map[string]Address{
		"nats://tok@h:1":                           {Hosts: []string{"h:1"}, Token: "tok"},
		"nats://tok@h":                             {Hosts: []string{"h:4222"}, Token: "tok"},
		"nats://tok@h,g:5/":                        {Hosts: []string{"h:4222", "g:5"}, Token: "tok"},
		"nats://u:p%40@h?space=my.team":            {Hosts: []string{"h:4222"}, User: "u", Password: "p@", Space: "my.team"},
		"tls://[::1]:9":                            {Hosts: []string{"[::1]:9"}, TLS: true},
		"nats://t%2F@[::1]?ca=" + fingerprintOf(0): {Hosts: []string{"[::1]:4222"}, Token: "t/", TLS: true, CA: fingerprintOf(0)},
	}
	for line, want := range good {
		got, err := ParseAddress(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		again, err := ParseAddress(got.String())
		if err != nil || again.String() != got.String() || want.String() != got.String() {
			t.Errorf("%s: got %s, again %s, want %s; %v", line, got, again, want, err)
		}
		if s := got.Redacted(); got.Token != "" && strings.Contains(s, got.Token+"@") || strings.Contains(s, "p%40") {
			t.Errorf("%s: not redacted: %s", line, s)
		}
	}
	for _, line := range []string{
		"", "SECRET@h", "http://SECRET@h", "nats://SECRET@", "nats://SECRET@h:x", "nats://SECRET@h:0", "nats://SECRET@h:70000",
		"nats://SECRET@h?cq=1", "nats://SECRET@h?ca=sha256:SECRET", "nats://SECRET%zz@h", "nats://SECRET@h,,g", "nats://SECRET@h?ca=md5:1",
		"nats://SECRET@h?ca=sha256:" + strings.Repeat("g", 64),
	} {
		if _, err := ParseAddress(line); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %v", line, err)
		}
	}
}

func fingerprintOf(c byte) string { return "sha256:" + strings.Repeat(string('a'+rune(c)), 64) }

// Every name comes back from its token, and a token is one.
func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "a", ".", "a.b", "*", ">", " ", "=", "=2e", "\x00\xff", "größe", "$JS"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		token := escape(name)
		if back, err := unescape(token); err != nil || back != name {
			t.Fatalf("%q: %q: %q, %v", name, token, back, err)
		}
		if strings.ContainsAny(token, ".*> \t\r\n$") {
			t.Fatalf("%q: %q is more than a token", name, token)
		}
	})
}

// What nobody escaped is not read as something else.
func TestUnescapeRefuses(t *testing.T) {
	for _, token := range []string{"a b", "=", "=2", "=zz", "ä", "a=2"} {
		if name, err := unescape(token); err == nil {
			t.Errorf("%q: %q", token, name)
		}
	}
}

// A line names files, and gives them again as it got them: also where it is shown to people.
func TestALineNamesFiles(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"nats://h:4222?creds=%2Fetc%2Fa+b.creds", "nats://h:4222?nkey=%2Fetc%2Fseed.nk&space=two", "nats://h:4222?cert=c.pem&key=k.pem&ca=%2Fetc%2Fca.pem",
	} {
		a := parsed(t, line)
		if a.CA != "" || a.Cert != "" {
			if !a.TLS {
				t.Errorf("%s: no TLS", line)
			}
		}
		if again := parsed(t, a.String()); !reflect.DeepEqual(again, a) {
			t.Errorf("%s: %+v is read as %+v", line, a, again)
		}
		if a.Redacted() != a.String() {
			t.Errorf("%s is shown as %s", line, a.Redacted())
		}
	}
}

// A file that is not there, or is not what it should be, is named at once.
func TestFilesThatAreWrong(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad")
	must.Do(t, os.WriteFile(bad, []byte("nothing"), 0o600))
	for line, says := range map[string]string{
		"nats://h?creds=/no.creds":          "creds: stat /no.creds: no such file",
		"nats://h?nkey=/no.nk":              "nkey /no.nk: ",
		"nats://h?nkey=" + bad:              "nkey " + bad,
		"nats://h?cert=/no.pem&key=/no.key": "cert /no.pem: open /no.pem: no such file",
		"nats://h?cert=/no.pem":             "cert and key go together",
		"nats://h?ca=/no.pem":               "ca: open /no.pem: no such file",
		"nats://h?ca=" + bad:                "it has no certificate in PEM",
		"nats://h?ca=123456":                "no fingerprint",
		"nats://h?password=1":               `unknown "password" in the join line: want ca, space, creds, nkey, cert or key`,
	} {
		if err := tryConnect(t, line); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", line, err, says)
		}
	}
}

// A hub that cannot write down its port, as on a full disk, does not go on serving without an owner.
func TestAHubThatCannotWriteItsPortEnds(t *testing.T) {
	t.Parallel()
	address, dir := freePorts(t, 1)[0], filepath.Join(t.TempDir(), "hub")
	must.Do(t, os.MkdirAll(filepath.Join(dir, "port", "in-the-way"), 0o755))
	if hub, err := StartHub(HubConfig{Dir: dir, Listen: address, Token: tokenForTests}); err == nil {
		hub.Shutdown()
		t.Fatal("it serves")
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("its server still listens: %v", err)
	}
	_ = l.Close()
}
