package auth

import (
	"context"
	"net/http"

	"github.com/headrace/headrace/provider"
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
	// taken out of whatever is shown to anybody, and out of answers; see IsPlaceholder.
	Secrets() []string
}

// Dated is a Source that proves with the time, too: a clock that is wrong has it refused.
type Dated interface {
	Source

	// RefusedFor is Refused with what came in answer to the request: the error, and the headers
	// with the provider's own time. It is called in place of Refused.
	RefusedFor(r *http.Request, why *provider.Error, answer http.Header) bool
}

// Fixed is a Source whose headers are the same for every request: whoever sends many may
// put them into all at once, and need not ask Apply.
type Fixed interface {
	Source
	Header() http.Header
}
