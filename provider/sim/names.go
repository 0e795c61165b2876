package sim

import "github.com/headrace/headrace/provider/sim/face"

// The faces read what the model takes in and word what it returns: these types are theirs.
type (
	// Call is one request as the model sees it.
	Call = face.Call
	// Verdict is the model's decision on one call.
	Verdict = face.Verdict
	// Kind says in a word what became of a call.
	Kind = face.Kind
	// Quota is one dimension in the form of headers.
	Quota = face.Quota
	// Dimension names the quota that a refused call lacked.
	Dimension = face.Dimension
	// Digest is the SHA-256 of a request's body.
	Digest = face.Digest
)

// The kinds.
const (
	Accepted          = face.Accepted
	RateLimited       = face.RateLimited
	TooLarge          = face.TooLarge
	InsufficientQuota = face.InsufficientQuota
	Unauthorized      = face.Unauthorized
	ModelNotFound     = face.ModelNotFound
	BadRequest        = face.BadRequest
	ServerError       = face.ServerError
	Overloaded        = face.Overloaded
	ResetByPeer       = face.ResetByPeer
	Hung              = face.Hung
	Truncated         = face.Truncated
	Malformed         = face.Malformed
	StreamError       = face.StreamError
	StreamSilent      = face.StreamSilent
)

// The dimensions.
const (
	Requests = face.Requests
	Tokens   = face.Tokens
)

// Answer returns the simulated provider's answer to a prompt, whatever its face: see
// [face.Answer].
func Answer(prompt string) string { return face.Answer(prompt) }

// Checksum returns 16 hexadecimal digits that tell one text from another.
func Checksum(text string) string { return face.Checksum(text) }

// Embedding returns the vector for a text: always the same, of length one.
func Embedding(text string) []float32 { return face.Embedding(text) }
