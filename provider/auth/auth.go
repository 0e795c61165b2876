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

// A Source proves who sends a request. It may be used by many goroutines at once.
type Source interface {
	// Apply puts the proof into the headers of a request. The caller passes the request's whole
	// body as well. An error is a *provider.Error without any secret in it.
	Apply(ctx context.Context, r *http.Request, body []byte) error

	// Refused notes that the provider did not accept what Apply put into a request. It reports
	// whether another try may fare better: there is something fresher, or nobody has looked for it
	// since. It returns true once for each key or token.
	Refused(r *http.Request) bool

	// Secrets returns the keys and tokens that are or were in use, the latest few. Callers take
	// them out of answers and of all that is shown to anybody; see IsPlaceholder.
	Secrets() []string
}

// Dated is a Source whose proof contains the time: the provider refuses it if the clock is wrong.
type Dated interface {
	Source

	// RefusedFor is Refused with the answer to the request: the error, and the headers with the
	// provider's own time. It is called in place of Refused.
	RefusedFor(r *http.Request, why *provider.Error, answer http.Header) bool
}

// Fixed is a Source whose headers are the same for every request. A client that sends many
// requests may put them into all at once, and need not call Apply.
type Fixed interface {
	Source
	Header() http.Header
}

// Join returns a Source that applies each of the sources, in order. So a request has a key of its
// provider and one of a gateway, each in its own header. A source that signs requests comes last:
// it signs what the others have put in. Nil sources are left out. The result of several is a [Dated],
// and a [Fixed] if all sources are.
func Join(sources ...Source) Source {
	var all joined
	for _, s := range sources {
		if _, none := s.(None); s != nil && !none {
			all = append(all, s)
		}
	}
	isFixed := func(s Source) bool { _, is := s.(Fixed); return is }
	switch {
	case len(all) == 0:
		return None{}
	case len(all) == 1:
		return all[0]
	case !slices.ContainsFunc(all, func(s Source) bool { return !isFixed(s) }):
		return fixedJoined{all, all.Secrets()}
	}
	return all
}

// joined is several sources.
type joined []Source

// Apply stops at the first error.
func (j joined) Apply(ctx context.Context, r *http.Request, body []byte) error {
	for _, s := range j {
		if err := s.Apply(ctx, r, body); err != nil {
			return err
		}
	}
	return nil
}

// Refused asks each source, as each may have something fresher.
func (j joined) Refused(r *http.Request) (again bool) {
	for _, s := range j {
		again = s.Refused(r) || again
	}
	return again
}

// RefusedFor asks each source. One without a clock is asked only about an Unauthorized call.
func (j joined) RefusedFor(r *http.Request, why *provider.Error, answer http.Header) (again bool) {
	for _, s := range j {
		if dated, is := s.(Dated); is {
			again = dated.RefusedFor(r, why, answer) || again
		} else if why.Kind == provider.Unauthorized {
			again = s.Refused(r) || again
		}
	}
	return again
}

// Secrets returns those of all.
func (j joined) Secrets() (all []string) {
	for _, s := range j {
		all = append(all, s.Secrets()...)
	}
	return all
}

// String hides the keys from %v.
func (j joined) String() string { return "several sources" }

// GoString hides the keys from %#v.
func (j joined) GoString() string { return j.String() }

// fixedJoined is several sources whose headers are the same for every request.
type fixedJoined struct {
	joined
	secrets []string // of all: they stay the same, too
}

// Header has those of all.
func (f fixedJoined) Header() http.Header {
	all := http.Header{}
	for _, s := range f.joined {
		maps.Copy(all, s.(Fixed).Header()) // Join has looked
	}
	return all
}

// Secrets returns those of all.
func (f fixedJoined) Secrets() []string { return f.secrets }

// The header of most providers, and the prefix before a key in it.
const (
	Authorization = "Authorization"
	BearerPrefix  = "Bearer "
)

// name begins every error of this package.
const name = "auth"

// A Key is sent in a header, the same with every request. It is a [Fixed].
type Key struct {
	place   keyHeader
	values  []string // of the header; nil: there is no key, and nothing is sent
	secrets []string
}

// NewKey sends a key in a header, behind a prefix such as "Bearer ". Spaces and line ends
// around the key, as files and shells leave them, are cut off. "" sends no header, as for local
// servers. An error is a *provider.Error of kind Misconfigured that does not contain the
// key: the header cannot hold one, or the key has a character that no header may have.
func NewKey(header, prefix, key string) (*Key, error) {
	p, err := newKeyHeader(header, prefix)
	if err != nil {
		return nil, err
	}
	if key = strings.TrimSpace(key); key == "" {
		return &Key{place: p}, nil
	}
	if !isHeaderSafe(key) {
		return nil, misconfigured("the key has a character that headers cannot have")
	}
	return &Key{place: p, values: p.values(key), secrets: prependSecrets(nil, key)}, nil
}

// Bearer is NewKey in the form of most providers: Authorization: Bearer KEY.
func Bearer(key string) (*Key, error) { return NewKey(Authorization, BearerPrefix, key) }

// Apply never fails.
func (k *Key) Apply(_ context.Context, r *http.Request, _ []byte) error {
	k.place.put(r, k.values)
	return nil
}

// Refused is false: there is no other key.
func (k *Key) Refused(*http.Request) bool { return false }

// Secrets returns the key, unless it is a placeholder.
func (k *Key) Secrets() []string { return k.secrets }

// Header returns a copy of the header.
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

// None sends nothing: some servers ask for no proof. It is a [Fixed].
type None struct{}

// Apply never fails.
func (None) Apply(context.Context, *http.Request, []byte) error { return nil }

// Refused is false.
func (None) Refused(*http.Request) bool { return false }

// Secrets is nil.
func (None) Secrets() []string { return nil }

// Header is empty.
func (None) Header() http.Header { return http.Header{} }

// keyHeader is the place of a key or a token in a request: a header, in net/http's canonical form,
// and the prefix before the key.
type keyHeader struct{ header, prefix string }

// newKeyHeader checks a header and a prefix. It refuses headers that have another meaning.
func newKeyHeader(header, prefix string) (keyHeader, error) {
	if !isHeaderName(header) || slices.Contains(notForKeys, http.CanonicalHeaderKey(header)) {
		return keyHeader{}, misconfigured("this header cannot hold a key")
	}
	if !isHeaderSafe(prefix) {
		return keyHeader{}, misconfigured("the prefix of the key has a character that headers cannot have")
	}
	return keyHeader{header: http.CanonicalHeaderKey(header), prefix: prefix}, nil
}

// notForKeys lists headers with another meaning, which net/http sets by itself.
var notForKeys = []string{"Host", "Connection", "Content-Type", "Content-Length", "Transfer-Encoding", "Trailer"}

// values returns the values of the header. All requests share them: nobody may change them.
func (p keyHeader) values(key string) []string { return []string{p.prefix + key} }

// put sets the header of a request. Without values it leaves the request as it is.
func (p keyHeader) put(r *http.Request, values []string) {
	if values == nil {
		return
	}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header[p.header] = values
}

// in returns the key that a request was sent with; "" if there is none.
func (p keyHeader) in(r *http.Request) string {
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

// isHeaderSafe reports whether a text may stand in a header.
func isHeaderSafe(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// isHeaderName reports whether a text is a token in the sense of RFC 9110.
func isHeaderName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// remembered is the largest number of secrets that are kept. Each is searched for in every
// answer, and tokens older than those have ended long ago.
const remembered = 4

// prependSecrets returns a list with a secret, and the parts of it that are secrets by themselves, in
// front of the known ones. It leaves known as it is: another goroutine may be reading it.
func prependSecrets(known []string, secret string) []string {
	var secrets []string
	for _, s := range secretsIn(secret) {
		if !IsPlaceholder(s) && !slices.Contains(secrets, s) {
			secrets = append(secrets, s)
		}
	}
	for _, s := range known {
		if len(secrets) < remembered && !slices.Contains(secrets, s) {
			secrets = append(secrets, s)
		}
	}
	return secrets
}

// secretsIn returns a header's value and those of its parts that an echo may repeat alone. Of
// "Bearer KEY" that is the key, and of a JSON object, as gateways take it, the members with a
// key's name. The parts come first: without them an echoed object is still one.
func secretsIn(value string) (secrets []string) {
	if _, key, has := strings.Cut(value, " "); has {
		secrets = append(secrets, strings.TrimSpace(key))
	}
	var object any
	if strings.HasPrefix(value, "{") && json.Unmarshal([]byte(value), &object) == nil {
		secrets = append(secrets, secretMembers(object)...)
	}
	return append(secrets, value)
}

// secretMember ends the names of members that are secrets.
var secretMember = regexp.MustCompile(`(?i)(?:key|token|secret|password|authorization|auth)$`)

// secretMembers returns the texts in a JSON value whose names match secretMember, at any depth.
func secretMembers(value any) (secrets []string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			secrets = append(secrets, secretMembers(element)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if text, is := value[name].(string); is && secretMember.MatchString(name) {
				secrets = append(secrets, text)
			}
			secrets = append(secrets, secretMembers(value[name])...)
		}
	}
	return secrets
}

// IsPlaceholder reports whether a key is one for servers that check none, such as "lm-studio"
// and "not-needed". Such keys are no secrets, and an answer may well use such a word. Real keys
// have digits in them, or are longer.
func IsPlaceholder(key string) bool { return len(key) < 16 && !strings.ContainsAny(key, "0123456789") }

func misconfigured(what string) error {
	return &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: errors.New(what)}
}
