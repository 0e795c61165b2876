package sim

import (
	"encoding/hex"
	"maps"

	"github.com/headrace/headrace/provider/sim/face"
)

// Books are the provider's own counts.
// Received = Accepted + Refused429 + the sum of Errors.
type Books struct {
	Received   int `json:"received"`
	Accepted   int `json:"accepted"`    // answered whole with 200
	Refused429 int `json:"refused_429"` // rate limits; not insufficient_quota, not too_large

	// Errors counts every other end by its kind.
	Errors map[Kind]int `json:"errors"`

	// Abandoned calls were accepted, but their caller left before the answer.
	Abandoned int `json:"abandoned"`

	// ChargedRequests and ChargedTokens are the charges that passed the gauges, including those of
	// calls that met a fault afterwards.
	ChargedRequests float64 `json:"charged_requests"`
	ChargedTokens   float64 `json:"charged_tokens"`

	// Answered counts whole answers by ID, without those abandoned. Distinct is
	// the number of IDs answered, MaxRepeats the most answers any one had: 1
	// when none was answered twice. All are empty without TrackIDs.
	Answered   map[string]int `json:"answered,omitempty"`
	Distinct   int            `json:"distinct"`
	MaxRepeats int            `json:"max_repeats"`

	// Bodies counts the received bodies by their SHA-256, in hexadecimal digits: whatever became of
	// the call, and with its repetitions. It is empty without TrackBodies.
	Bodies map[string]int `json:"bodies,omitempty"`
}

// tally holds the counts of one ID.
type tally struct{ received, answered int }

// ledger keeps the books. Its Books count no IDs and no bodies: copy fills these in.
type ledger struct {
	Books
	ids    map[string]*tally // nil: not tracked
	bodies map[Digest]int    // nil: not tracked
}

func newLedger(track, bodies bool) ledger {
	l := ledger{Books: Books{Errors: map[Kind]int{}}}
	if track {
		l.ids = map[string]*tally{}
	}
	if bodies {
		l.bodies = map[Digest]int{}
	}
	return l
}

// callNumber returns the number of the next call: among the tries of its ID if IDs are tracked, else
// among all calls.
func (l *ledger) callNumber(id string) uint64 {
	if l.ids == nil {
		return uint64(l.Received)
	}
	if t := l.ids[id]; t != nil {
		return uint64(t.received)
	}
	return 0
}

// add counts a call under exactly one kind, so that Received is the sum of the other counts.
func (l *ledger) add(c Call, k Kind) {
	l.Received++
	switch k {
	case Accepted:
		l.Accepted++
	case RateLimited:
		l.Refused429++
	default:
		l.Errors[k]++
	}
	if l.ids != nil {
		l.addToID(c.ID, k)
	}
	if l.bodies != nil {
		l.bodies[c.Body]++
	}
}

// addToID counts a call among the tries of its ID.
func (l *ledger) addToID(id string, k Kind) {
	counts := l.ids[id]
	if counts == nil {
		counts = &tally{}
		l.ids[id] = counts
	}
	counts.received++
	if k == Accepted {
		counts.answered++
	}
}

func (l *ledger) abandon(id string) {
	l.Abandoned++
	if t := l.ids[id]; t != nil {
		t.answered--
	}
}

// snapshot returns the books with the counts of IDs and bodies filled in. Its maps are copies: they do
// not change when the next call is entered.
func (l *ledger) snapshot() Books {
	b := l.Books
	b.Errors = maps.Clone(l.Errors)
	if l.ids != nil {
		b.Answered = make(map[string]int, len(l.ids))
	}
	if l.bodies != nil {
		b.Bodies = make(map[string]int, len(l.bodies))
	}
	for sum, n := range l.bodies {
		b.Bodies[hex.EncodeToString(sum[:])] = n
	}
	for id, t := range l.ids {
		if t.answered == 0 {
			continue
		}
		b.Answered[id] = t.answered
		b.Distinct++
		b.MaxRepeats = max(b.MaxRepeats, t.answered)
	}
	return b
}

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
	NoRoom            = face.NoRoom
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
