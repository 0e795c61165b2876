package bus

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"
)

// What stands between a machine and its bus is said by its name, with what to do about it, and without the token.
func TestUnreachedSaysWhy(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	listener.Close()
	good := hub.JoinURL()
	for name, c := range map[string]struct{ line, says string }{
		"a wrong token":    {strings.Replace(good, tokenForTests, "another-token-of-somebody", 1), "the token (or user and password) is wrong"},
		"no token":         {strings.Replace(good, tokenForTests+"@", "", 1), "the token (or user and password) is wrong"},
		"nobody listens":   {"nats://t@" + closed, "nobody listens there"},
		"TLS where none":   {strings.Replace(good, "nats://", "tls://", 1), "it speaks no TLS"},
		"no host":          {"nats://t@no-such-host.invalid:4222", "there is no such host"},
		"no line":          {"http://x", "this is not a line to join by"},
		"nothing but hope": {"", "this is not a line to join by"},
	} {
		ctx, stop := context.WithTimeout(testContext(t), 3*time.Second)
		b, err := Connect(ctx, Config{URL: c.line, Name: "w"})
		stop()
		if err == nil {
			b.Close()
			t.Errorf("%s: it is let in", name)
			continue
		}
		f := Unreached(c.line, err)
		if !strings.Contains(f.What, c.says) || f.Why == "" || !f.Unsafe {
			t.Errorf("%s: %+v of %v", name, f, err)
		}
		if text := f.What + f.Why + err.Error(); strings.Contains(text, tokenForTests) || strings.Contains(text, "another-token") {
			t.Errorf("%s: the token is said: %s", name, text)
		}
	}
}

// Unreached distinguishes a certificate of another authority from a wrong token.
func TestUnreachedByACertificate(t *testing.T) {
	t.Parallel()
	hub := startHub(t, func(c *HubConfig) { c.Listen, c.Advertise = "0.0.0.0:0", "127.0.0.1" })
	line := hub.JoinURL()
	at := strings.Index(line, "sha256:") + len("sha256:")
	other := line[:at] + strings.Repeat("0", 64) + line[at+64:]
	_, err := Connect(testContext(t), Config{URL: other, Name: "w"})
	if f := Unreached(other, err); err == nil || !strings.Contains(f.What, "certificate is not of the authority") {
		t.Errorf("%+v of %v", f, err)
	}
	without, _, _ := strings.Cut(line, "?")
	_, err = Connect(testContext(t), Config{URL: without, Name: "w"})
	if f := Unreached(without, err); err == nil || !strings.Contains(f.Why, "line") {
		t.Errorf("%+v of %v", f, err)
	}
}
