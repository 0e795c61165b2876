package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is one without headers.
func request(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host/path", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// applied are the headers of a request that a source was asked for.
func applied(t *testing.T, s auth.Source) *http.Request {
	t.Helper()
	r := request(t)
	if err := s.Apply(t.Context(), r, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return r
}

// A key stands in its header behind its prefix, without what is around it, in requests and
// in the headers for all of them.
func TestKey(t *testing.T) {
	for _, tt := range []struct{ header, prefix, key, in, want string }{
		{"Authorization", "Bearer ", "sk-0123456789", "Authorization", "Bearer sk-0123456789"},
		{"x-api-key", "", " sk-0123456789\r\n", "X-Api-Key", "sk-0123456789"},
		{"api-key", "", "\t0123456789abcdef\n\n", "Api-Key", "0123456789abcdef"},
		{"X-Goog-Api-Key", "", "AIza0123", "X-Goog-Api-Key", "AIza0123"},
		{"authorization", "Token ", "t 1", "Authorization", "Token t 1"},
		{"Authorization", "Bearer ", "EMPTY", "Authorization", "Bearer EMPTY"},
	} {
		k, err := auth.NewKey(tt.header, tt.prefix, tt.key)
		if err != nil {
			t.Fatal(err)
		}
		want := http.Header{tt.in: {tt.want}}
		r := applied(t, k)
		if !reflect.DeepEqual(r.Header, want) || !reflect.DeepEqual(k.Header(), want) {
			t.Errorf("%q: %v and %v, not %v", tt.key, r.Header, k.Header(), want)
		}
		if k.Refused(r) {
			t.Errorf("%q: a key is what it is", tt.key)
		}
	}
}

// Without a key nothing is sent.
func TestNoKey(t *testing.T) {
	for _, key := range []string{"", " \r\n"} {
		k, err := auth.Bearer(key)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []auth.Fixed{k, auth.None{}} {
			r := applied(t, s)
			if len(r.Header)+len(s.Header())+len(s.Secrets()) != 0 || s.Refused(r) {
				t.Errorf("%v: %v, %v, %v", s, r.Header, s.Header(), s.Secrets())
			}
		}
	}
}

// What no header may have is refused, without the key in the error.
func TestKeyRefused(t *testing.T) {
	const key = "sk-very-secret-0123"
	for _, tt := range []struct{ header, prefix, key string }{
		{"Authorization", "Bearer ", key + "\nX-Evil: 1"},
		{"Authorization", "Bearer ", key + "\x00"},
		{"Authorization", "Bearer ", "\ufeff" + key},
		{"Authorization", "Bearer ", key + "é"},
		{"Authorization", "Bearer ", key + "\x7f" + key},
		{"Authorization", "Bearer\n", key},
		{"", "", key},
		{"X Key", "", key},
		{"X-Key:", "", key},
		{"X-Kéy", "", key},
		{"content-length", "", key},
		{"Host", "", key},
	} {
		k, err := auth.NewKey(tt.header, tt.prefix, tt.key)
		var e *provider.Error
		if k != nil || !errors.As(err, &e) || e.Kind != provider.Misconfigured {
			t.Errorf("%q: %v", tt, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), "auth: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", tt, err)
		}
	}
}

// Keys are secrets, and are not shown; what servers that check none are given is none.
func TestSecretsOfKeys(t *testing.T) {
	for key, secret := range map[string]bool{
		"sk-0123456789": true, "abcdefghijklmnop": true, "k-1": true,
		"EMPTY": false, "lm-studio": false, "not-needed": false, "abcdefghijklmno": false,
	} {
		k, err := auth.Bearer(key)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(k.Secrets(), key) != secret {
			t.Errorf("%q: secrets %q", key, k.Secrets())
		}
		if shown := fmt.Sprintf("%v %+v %#v", k, k, k); secret && strings.Contains(shown, key) {
			t.Errorf("%q is shown: %s", key, shown)
		}
	}
}

// Who changes the headers that were given out changes no other's.
func TestKeyIsNotChanged(t *testing.T) {
	k, err := auth.Bearer("sk-0123456789")
	if err != nil {
		t.Fatal(err)
	}
	k.Header()["Authorization"][0] = "x"
	if got := applied(t, k).Header.Get("Authorization"); got != "Bearer sk-0123456789" {
		t.Errorf("%q", got)
	}
}

// Nothing is allocated for a key, in a request that has headers.
func TestKeyAllocatesNothing(t *testing.T) {
	k, err := auth.Bearer("sk-0123456789")
	if err != nil {
		t.Fatal(err)
	}
	r := applied(t, k)
	if n := testing.AllocsPerRun(100, func() { _ = k.Apply(t.Context(), r, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
