package auth

import (
	"context"
	"net/http"
)

// A Source proves who sends a request. It may be used by many goroutines at once.
type Source interface {
	// Apply puts what proves it into the headers of a request, whose body is given beside
	// it, whole. An error is a *provider.Error without any secret in it.
	Apply(ctx context.Context, r *http.Request, body []byte) error

	// Refused is told that the provider did not accept what Apply put into a request, and
	// reports whether another try may fare better: there is something fresher, or it has
	// not been looked for since. It says so once for each key or token.
	Refused(r *http.Request) bool

	// Secrets are the keys and tokens that are or were in use, the latest few: they are
	// taken out of whatever is shown to anybody.
	Secrets() []string
}

// Fixed is a Source whose headers are the same for every request: whoever sends many may
// put them into all at once, and need not ask Apply.
type Fixed interface {
	Source
	Header() http.Header
}

// Key is a key that is sent in a header as it is.
type Key struct {
	header http.Header
	secret []string
}

// Bearer is a key in the Authorization header.
func Bearer(key string) *Key {
	return &Key{http.Header{"Authorization": {"Bearer " + key}}, []string{key}}
}

// Header has the key.
func (k *Key) Header() http.Header { return k.header }

// Apply puts the key into a request's headers.
func (k *Key) Apply(_ context.Context, r *http.Request, _ []byte) error {
	for name, values := range k.header {
		r.Header[name] = values
	}
	return nil
}

// Refused is false: there is no other key.
func (k *Key) Refused(*http.Request) bool { return false }

// Secrets is the key.
func (k *Key) Secrets() []string { return k.secret }
