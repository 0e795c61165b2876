package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is one without headers.
func request(t *testing.T) *http.Request {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://host/path", http.NoBody))(t)
	return r
}

// applied are the headers of a request that a source was asked for.
func applied(t *testing.T, s auth.Source) *http.Request {
	t.Helper()
	r := request(t)
	must.Do(t, s.Apply(t.Context(), r, []byte("{}")))
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
		k := must.Get(auth.NewKey(tt.header, tt.prefix, tt.key))(t)
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
		k := must.Get(auth.Bearer(key))(t)
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
		k := must.Get(auth.Bearer(key))(t)
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
	k := must.Get(auth.Bearer("sk-0123456789"))(t)
	k.Header()["Authorization"][0] = "x"
	if got := applied(t, k).Header.Get("Authorization"); got != "Bearer sk-0123456789" {
		t.Errorf("%q", got)
	}
}

// Nothing is allocated for a key, in a request that has headers.
func TestKeyAllocatesNothing(t *testing.T) {
	k := must.Get(auth.Bearer("sk-0123456789"))(t)
	r := applied(t, k)
	if n := testing.AllocsPerRun(100, func() { _ = k.Apply(t.Context(), r, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func newKey(t *testing.T, header, prefix, key string) *auth.Key {
	t.Helper()
	k := must.Get(auth.NewKey(header, prefix, key))(t)
	return k
}

// Keys of a provider and of a gateway go out together, and all of them are secrets. They are the
// same for every request, so nobody asks again.
func TestJoinOfKeys(t *testing.T) {
	j := auth.Join(newKey(t, "Authorization", "Bearer ", "sk-0123456789abcdef"), nil, auth.None{}, newKey(t, "x-portkey-api-key", "", "pk-0123456789abcdef"))
	want := http.Header{"Authorization": {"Bearer sk-0123456789abcdef"}, "X-Portkey-Api-Key": {"pk-0123456789abcdef"}}
	fixed, is := j.(auth.Fixed)
	if !is || !reflect.DeepEqual(fixed.Header(), want) || !reflect.DeepEqual(applied(t, j).Header, want) {
		t.Errorf("%v: %v", is, applied(t, j).Header)
	}
	if got := j.Secrets(); !slices.Contains(got, "sk-0123456789abcdef") || !slices.Contains(got, "pk-0123456789abcdef") {
		t.Errorf("%q", got)
	}
	if j.Refused(applied(t, j)) {
		t.Error("there is another key")
	}
	for _, text := range []string{fmt.Sprint(j), fmt.Sprintf("%v %+v %#v", j, j, j)} {
		if strings.Contains(text, "0123456789") {
			t.Errorf("there is a key in %s", text)
		}
	}
	if _, none := auth.Join(nil, auth.None{}).(auth.None); !none {
		t.Error("nothing is not None")
	}
	if k := newKey(t, "a-key", "", "k"); auth.Join(nil, k) != auth.Source(k) {
		t.Error("one is not itself")
	}
}

// Of "Bearer KEY" the key alone is a secret, too: a provider may repeat it so.
func TestKeyBehindItsScheme(t *testing.T) {
	for _, secret := range newKey(t, "Helicone-Auth", "", "Bearer sk-helicone-0123456789").Secrets() {
		if secret == "sk-helicone-0123456789" {
			return
		}
	}
	t.Error("the key alone is not among the secrets")
}

// Of an object of JSON the members with a key's name are secrets by themselves, all of them, and of
// a file that changes only the latest few.
func TestKeysInAnObject(t *testing.T) {
	const object = `{"retry":{"attempts":3},"provider":"openai-2024-01-01","targets":[{"virtual_key":"vk-0123456789-a"},{"api_key":"ak-0123456789-b","apiKey":"ak-0123456789-c"},` +
		`{"Authorization":"Bearer-0123456789-d"},{"aws_secret":"s-0123456789-e","aws_token":"t-0123456789-f"}]}`
	got := newKey(t, "x-portkey-config", "", object).Secrets()
	for _, want := range []string{object, "vk-0123456789-a", "ak-0123456789-b", "ak-0123456789-c", "Bearer-0123456789-d", "s-0123456789-e", "t-0123456789-f"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if slices.Contains(got, "openai-2024-01-01") {
		t.Error("a provider's name is no secret")
	}
	if echo := provider.Redact([]byte(`{"config":`+object+`}`), got...); !json.Valid(echo) || strings.Contains(string(echo), "0123456789") {
		t.Errorf("an echo is %s", echo)
	}
}

// A file among the sources is read again, and each source is asked when a key is refused.
func TestJoinAsksEach(t *testing.T) {
	path, write := keyFile(t, "key-1-0123456789abc")
	file := newFile(t, path)
	for _, j := range []auth.Source{
		auth.Join(file, newKey(t, "Authorization", "", "sk-0123456789abcdef")),
		auth.Join(newKey(t, "Authorization", "", "sk-0123456789abcdef"), file),
	} {
		if _, is := j.(auth.Fixed); is {
			t.Error("a file may change")
		}
		write("key-1-0123456789abc")
		file.Refused(applied(t, file))
		r := applied(t, j)
		write("key-2-0123456789abc")
		if !j.Refused(r) || applied(t, j).Header.Get("X-Api-Key") != "key-2-0123456789abc" {
			t.Error("the file was not asked")
		}
	}
	path2, write2 := keyFile(t, "key-3-0123456789abc")
	other := must.Get(auth.NewFile(path2, "x-gateway-key", ""))(t)
	j := auth.Join(file, other)
	r := applied(t, j)
	write("key-5-0123456789abc")
	write2("key-4-0123456789abc")
	if again := j.Refused(r); !again || applied(t, j).Header.Get("X-Gateway-Key") != "key-4-0123456789abc" {
		t.Error("only one file was asked")
	}
}

// failing is a Source that has no token.
type failing struct{ auth.None }

func (failing) Apply(context.Context, *http.Request, []byte) error {
	return &provider.Error{Kind: provider.Unauthorized, Err: errors.New("no token")}
}

// dated is a Source that signs what is there, and proves with the time.
type dated struct {
	saw   *string
	again bool
}

func (d dated) Apply(_ context.Context, r *http.Request, _ []byte) error {
	*d.saw = r.Header.Get("X-Amz-Meta")
	return nil
}
func (dated) Refused(*http.Request) bool { return false }
func (dated) Secrets() []string          { return nil }
func (d dated) RefusedFor(_ *http.Request, why *provider.Error, _ http.Header) bool {
	return d.again && why.Kind == provider.Misconfigured
}

// A source that signs sees the headers of those before it, and is still asked about its clock. The
// others are asked only about calls that are Unauthorized. An error of one ends the request.
func TestJoinWithASignature(t *testing.T) {
	saw := ""
	path, write := keyFile(t, "key-1-0123456789abc")
	file := newFile(t, path)
	j := auth.Join(newKey(t, "x-amz-meta", "", "m-1"), file, dated{&saw, true})
	d, is := j.(auth.Dated)
	if r := applied(t, j); !is || saw != "m-1" {
		t.Fatalf("%T signs after it saw %q", j, saw)
	} else if clock := (&provider.Error{Kind: provider.Misconfigured}); !d.RefusedFor(r, clock, nil) {
		t.Error("the signature was not asked")
	}
	d = auth.Join(file, dated{&saw, false}).(auth.Dated)
	r := applied(t, d)
	write("key-2-0123456789abc")
	if d.RefusedFor(r, &provider.Error{Kind: provider.Misconfigured}, nil) || !d.RefusedFor(r, &provider.Error{Kind: provider.Unauthorized}, nil) {
		t.Error("the file was asked about the clock, or not about who calls")
	}
	if err := auth.Join(failing{}, file).Apply(t.Context(), request(t), nil); !errors.Is(err, provider.Unauthorized) {
		t.Errorf("%v", err)
	}
}
