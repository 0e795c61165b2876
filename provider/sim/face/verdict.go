package face

import (
	"net/http"
	"time"
)

// Call is one request as the model sees it.
type Call struct {
	Requests float64 // 0 counts as 1
	Tokens   float64 // charged beforehand: the provider's estimate
	Key      string  // as it came, without the word before it
	Keyless  bool    // no key came where the provider demands one: refused, whatever keys are known
	Model    string
	ID       string // the same for every try at one item
	Invalid  bool   // the body cannot be read: 400 and no charge
	Stream   bool   // the answer is to come as a stream
	Body     Digest // of the body as it came; all zero where bodies are not told apart
}

// Digest is the SHA-256 of a request's body.
type Digest [32]byte

// Kind says in a word what became of a call.
type Kind string

// The kinds. All but Accepted are failures. Truncated, Malformed and those of streams have
// status 200, Reset and Hung none.
const (
	Accepted          Kind = "accepted"
	RateLimited       Kind = "rate_limited"
	TooLarge          Kind = "too_large"
	InsufficientQuota Kind = "insufficient_quota"
	Unauthorized      Kind = "unauthorized"
	ModelNotFound     Kind = "model_not_found"
	BadRequest        Kind = "bad_request"
	ServerError       Kind = "server_error"
	Overloaded        Kind = "overloaded"
	ResetByPeer       Kind = "reset"
	Hung              Kind = "hang"
	Truncated         Kind = "truncated"
	Malformed         Kind = "malformed"
	StreamError       Kind = "stream_error"  // an error stands within the stream
	StreamSilent      Kind = "stream_silent" // the stream begins and never ends
)

// Status returns the HTTP status of the kind at OpenAI, from which other faces start; 0 if no
// answer comes.
func (k Kind) Status() int {
	switch k {
	case RateLimited, TooLarge, InsufficientQuota:
		return http.StatusTooManyRequests
	case Unauthorized:
		return http.StatusUnauthorized
	case ModelNotFound:
		return http.StatusNotFound
	case BadRequest:
		return http.StatusBadRequest
	case ServerError:
		return http.StatusInternalServerError
	case Overloaded:
		return http.StatusServiceUnavailable
	case ResetByPeer, Hung:
		return 0
	default:
		return http.StatusOK
	}
}

// Dimension names the quota that a refused call lacked.
type Dimension string

// The dimensions, as error bodies and headers spell them.
const (
	Requests Dimension = "requests"
	Tokens   Dimension = "tokens"
)

// Quota is one dimension in the form of headers; all zero where it is unlimited.
type Quota struct {
	Limit     float64       // per minute
	Remaining float64       // after this call; never negative
	Reset     time.Duration // until the gauge is full, or the window ends
}

// Verdict is the decision on one call.
type Verdict struct {
	Status int // HTTP, as at OpenAI; 0 when Reset or Hang
	Kind   Kind

	// Latency is from the call's arrival to its answer, or to its reset.
	Latency time.Duration

	// RetryAfter is the wait that a 429 names: whole seconds, or milliseconds
	// with RetryAfterMS. Only meant with HasRetryAfter.
	RetryAfter    time.Duration
	HasRetryAfter bool
	RetryAfterMS  bool

	// Wait is the least time after which a rate-limited call would have been
	// accepted, were it alone; Dimension is the one that asks for it.
	Wait      time.Duration
	Dimension Dimension

	// Requests and Tokens are the gauges after the call; HasHeaders says that
	// the answer's headers show them.
	Requests, Tokens Quota
	HasHeaders       bool

	Terse bool // the message of the refusal does not spell out the limit
	Reset bool // the connection breaks after Latency
	Hang  bool // no answer comes until the caller leaves
}
