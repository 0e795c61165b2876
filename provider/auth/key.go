package auth

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider"
)

// The header of most providers, and what stands in it before a key.
const (
	Authorization = "Authorization"
	BearerPrefix  = "Bearer "
)

// name begins every error of this package.
const name = "auth"

// A Key is sent in a header, the same with every request. It is a [Fixed].
type Key struct {
	place   place
	values  []string // of the header; nil: there is no key, and nothing is sent
	secrets []string
}

// NewKey sends a key in a header, behind a prefix such as "Bearer ". Spaces and line ends
// around the key, as files and shells leave them, are cut off. "" sends no header, as local
// servers like it. An error is a *provider.Error of kind Misconfigured that does not have the
// key in it: the header cannot hold one, or the key has a character that no header may have.
func NewKey(header, prefix, key string) (*Key, error) {
	p, err := newPlace(header, prefix)
	if err != nil {
		return nil, err
	}
	if key = strings.TrimSpace(key); key == "" {
		return &Key{place: p}, nil
	}
	if !fits(key) {
		return nil, misconfigured("the key has a character that headers cannot have")
	}
	return &Key{place: p, values: p.values(key), secrets: remember(nil, key)}, nil
}

// Bearer is NewKey as most providers have it: Authorization: Bearer KEY.
func Bearer(key string) (*Key, error) { return NewKey(Authorization, BearerPrefix, key) }

// Apply never fails.
func (k *Key) Apply(_ context.Context, r *http.Request, _ []byte) error {
	k.place.put(r, k.values)
	return nil
}

// Refused is false: there is no other key.
func (k *Key) Refused(*http.Request) bool { return false }

// Secrets is the key, unless it is a placeholder.
func (k *Key) Secrets() []string { return k.secrets }

// Header is a copy.
func (k *Key) Header() http.Header {
	h := http.Header{}
	if k.values != nil {
		h[k.place.header] = slices.Clone(k.values)
	}
	return h
}

// String hides the key from %v.
func (k *Key) String() string { return "a key in " + k.place.header }

// GoString hides the key from %#v.
func (k *Key) GoString() string { return k.String() }

// None sends nothing: some servers ask nobody who he is. It is a [Fixed].
type None struct{}

// Apply never fails.
func (None) Apply(context.Context, *http.Request, []byte) error { return nil }

// Refused is false.
func (None) Refused(*http.Request) bool { return false }

// Secrets is nil.
func (None) Secrets() []string { return nil }

// Header is empty.
func (None) Header() http.Header { return http.Header{} }

// place is where in a request a key or a token is: a header, in the form that net/http has
// it in, and what stands before the key there.
type place struct{ header, prefix string }

func newPlace(header, prefix string) (place, error) {
	if !isHeaderName(header) || slices.Contains(notForKeys, http.CanonicalHeaderKey(header)) {
		return place{}, misconfigured("this header cannot hold a key")
	}
	if !fits(prefix) {
		return place{}, misconfigured("the prefix of the key has a character that headers cannot have")
	}
	return place{header: http.CanonicalHeaderKey(header), prefix: prefix}, nil
}

// notForKeys are headers that say something else, and that net/http makes by itself.
var notForKeys = []string{"Host", "Connection", "Content-Type", "Content-Length", "Transfer-Encoding", "Trailer"}

// values are those of the header. All requests share them: nobody may change them.
func (p place) values(key string) []string { return []string{p.prefix + key} }

func (p place) put(r *http.Request, values []string) {
	if values == nil {
		return
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header[p.header] = values
}

// in is the key that a request was sent with; "" if there is none.
func (p place) in(r *http.Request) string {
	values := r.Header[p.header]
	if len(values) == 0 {
		return ""
	}
	key, found := strings.CutPrefix(values[0], p.prefix)
	if !found {
		return ""
	}
	return key
}

// fits reports whether a text may stand in a header.
func fits(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// isHeaderName knows what RFC 9110 calls a token.
func isHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// remembered is how many secrets are known at most: each is looked for in every answer, and
// a token of before those has ended long ago.
const remembered = 4

// remember puts a secret, and what of it is one by itself, in front of those that are known. It
// leaves these as they are: somebody may be reading them.
func remember(known []string, secret string) []string {
	var all []string
	for _, s := range secretsIn(secret) {
		if !IsPlaceholder(s) && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, s := range known {
		if len(all) < remembered && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// secretsIn are a header's value and its parts that an echo may have alone: of "Bearer KEY" the key,
// and of an object of JSON, as gateways take it, the members with a key's name. The parts come first:
// without them an object that is echoed is still one.
func secretsIn(value string) (all []string) {
	if _, key, has := strings.Cut(value, " "); has {
		all = append(all, strings.TrimSpace(key))
	}
	var object any
	if strings.HasPrefix(value, "{") && json.Unmarshal([]byte(value), &object) == nil {
		all = append(all, secretMembers(object)...)
	}
	return append(all, value)
}

// secretMember ends the names of members that are secrets.
var secretMember = regexp.MustCompile(`(?i)(?:key|token|secret|password|authorization|auth)$`)

// secretMembers are the texts with such names in a value of JSON.
func secretMembers(value any) (all []string) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			all = append(all, secretMembers(one)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if text, is := value[name].(string); is && secretMember.MatchString(name) {
				all = append(all, text)
			}
			all = append(all, secretMembers(value[name])...)
		}
	}
	return all
}

// IsPlaceholder tells the keys that servers which check none are given, such as
// "lm-studio" and "not-needed": they are no secrets, and an answer may well use such a word.
// Keys have digits in them, or are longer.
func IsPlaceholder(key string) bool { return len(key) < 16 && !strings.ContainsAny(key, "0123456789") }

func misconfigured(what string) error {
	return &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: errors.New(what)}
}
