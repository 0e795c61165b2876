package auth

import (
	"context"
	"net/http"

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
