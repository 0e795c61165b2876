package provider

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"
)

// Record holds what one attempt learned from the wire. Of several calls in one
// attempt the last answer counts; usage adds up.
type Record struct {
	// Status is the HTTP status, 0 if no answer came.
	Status    int
	RequestID string
	// RetryAfter means something only if HasRetryAfter.
	RetryAfter time.Duration
	// Limits are the rate limits the headers showed, of failed answers too.
	Limits []RateLimit
	// Usage means something only if HasUsage.
	Usage Usage
	// Finish is the provider's word for why the answer ended, "" if unknown.
	Finish string
	// ErrorBody is the part of a failed answer's body that was read, at most
	// MaxErrorBody bytes, with the request's credentials taken out.
	ErrorBody []byte

	// Sent is true once a request was handed to the network. A call that
	// failed before (its own checks, a cancelled context) has used nothing.
	Sent bool
	// Cut is true if the answer was cut off after its status had come.
	Cut                     bool
	HasRetryAfter, HasUsage bool // side by side with it: there is a record for each call

	refused bool // the last call was answered, but not by the model
	header  http.Header
}

// Failure classifies the error of an attempt with the help of the record.
// It is for functions that use a library of their own over Transport:
// most libraries' errors carry neither headers nor the whole body. A nil error
// gives nil. The recorded answer counts only if err itself says nothing.
func (r Record) Failure(err error) *Error {
	e := ClassifyErr(err)
	if e == nil || e.Kind != Unknown || e.Status != 0 || r.Status < http.StatusBadRequest {
		return e
	}
	e = Classify(r.Status, r.header, r.ErrorBody)
	e.RequestID = r.RequestID // the header may have the key in it
	e.Err = err
	return e
}

// Recorder collects the Record of one attempt. It travels in the request's
// context. All methods work on a nil Recorder and then do nothing.
//
// It has a lock, unlike all decision-making code in this project: a goroutine that a
// user's function left behind may still write after the function has returned
// and the attempt has been read. The lock is held for a few assignments only.
type Recorder struct {
	clock   Clock // of the attempt; nil: it has none, or runs no more
	mu      sync.Mutex
	record  Record
	answer  *Reply // what Transport read from good answers, nil if nothing
	secrets []string
	room    [1]string // for secrets: nearly every request has one
	hidden  []string  // further secrets, that a client has named
}

// A Clock ends an attempt that has no answer in time.
type Clock interface {
	// AnswerBegins stops the clock. It is called at most once.
	AnswerBegins()
}

type recorderKey struct{}

// An Attempt is the context of one attempt with its Recorder in it. It is what
// WithRecorder returns, for callers that put more into a context and want one
// allocation for all of it. It is used by its address and not copied.
type Attempt struct {
	context.Context
	Recorder Recorder
}

// Value returns the Recorder, and asks the parent for all other keys.
func (a *Attempt) Value(key any) any {
	if key == (recorderKey{}) {
		return &a.Recorder
	}
	return a.Context.Value(key)
}

// WithRecorder returns a context that carries a new Recorder. Each attempt
// needs its own.
func WithRecorder(ctx context.Context) (context.Context, *Recorder) {
	a := &Attempt{Context: ctx}
	return a, &a.Recorder
}

// RecorderFrom returns the Recorder that ctx carries, nil if none.
func RecorderFrom(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}

// withLock runs a change of the Recorder under its lock. On a nil Recorder it does nothing.
func (r *Recorder) withLock(change func()) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// Response records an answer's status and headers. It reads the wall clock only
// for headers that are dates, and only if the answer has no Date of its own.
func (r *Recorder) Response(status int, h http.Header) {
	if r == nil {
		return
	}
	now := time.Now()
	limits, id := limitsIn(h, now, status == http.StatusTooManyRequests), RequestID(h)
	wait, directed := ParseRetryAfter(h, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := &r.record
	rec.Sent, rec.Status, rec.RequestID, rec.Limits = true, status, id, limits
	rec.RetryAfter, rec.HasRetryAfter = wait, directed
	rec.ErrorBody, rec.header, rec.refused = nil, nil, status >= http.StatusMultipleChoices // such an answer is not the model's
	if status >= http.StatusBadRequest {
		rec.header = h.Clone()
	}
}

// Usage adds the tokens of one call. Once it is called, the usage that Transport has read from
// answers of the attempt does not count.
func (r *Recorder) Usage(u Usage) {
	r.withLock(func() { r.record.Usage, r.record.HasUsage = r.record.Usage.Add(u), true })
}

// Cut records that the answer of the last call was cut off: the body broke, or a stream ended
// before its end. The usage that it reported is doubtful then, see [Record.Doubtful].
func (r *Recorder) Cut() { r.withLock(func() { r.record.Cut = true }) }

// Unsent records that the last call did not leave: no connection was there to write it to.
func (r *Recorder) Unsent() { r.withLock(func() { r.record.Sent = false }) }

// Finish records why the answer ended, as one line of at most 256 bytes.
func (r *Recorder) Finish(reason string) {
	r.withLock(func() { r.record.Finish = clip(reason, maxWord) })
}

// SetClock gives the attempt a clock, before its function runs.
func (r *Recorder) SetClock(c Clock) { r.clock = c }

// AnswerBegins stops the attempt's clock: the first byte of a stream has come. From then on
// the stream's own silence ends it, and its length does not.
func (r *Recorder) AnswerBegins() {
	r.withLock(func() {
		if r.clock != nil {
			r.clock.AnswerBegins()
			r.clock = nil
		}
	})
}

// Close takes the clock away at the end of an attempt: a goroutine that the attempt left
// behind would stop the clock of the next one.
func (r *Recorder) Close() { r.withLock(func() { r.clock = nil }) }

// Snapshot returns the record so far. It does not change while the
// Recorder goes on.
func (r *Recorder) Snapshot() Record {
	if r == nil {
		return Record{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.record
	if r.answer != nil { // the client may well have read and reported the same answer
		if !rec.HasUsage {
			rec.Usage, rec.HasUsage = r.answer.Usage, r.answer.HasUsage
		}
		rec.Finish = cmp.Or(rec.Finish, r.answer.Finish)
	}
	for _, secrets := range [...][]string{r.secrets, r.hidden} {
		if len(rec.ErrorBody) > 0 {
			rec.ErrorBody = bytes.Clone(boundBody(Redact(rec.ErrorBody, secrets...)))
		}
		rec.RequestID = RedactText(rec.RequestID, secrets...)
		rec.Finish = RedactText(rec.Finish, secrets...)
	}
	return rec
}

// Hide names secrets that no record may contain. Those in the usual headers of a request, such as
// Authorization, need not be named.
func (r *Recorder) Hide(secrets ...string) {
	if len(secrets) > 0 {
		r.withLock(func() { r.hidden = secrets })
	}
}

// addAnswer records the usage and the finish reason that Transport has read from a good answer.
func (r *Recorder) addAnswer(reply *Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answer == nil {
		r.answer = new(Reply)
	}
	if reply.HasUsage {
		r.answer.Usage, r.answer.HasUsage = r.answer.Usage.Add(reply.Usage), true
	}
	r.answer.Finish = reply.Finish
}

// sent records that a request goes out, with the credentials that no record of
// its answer may repeat.
func (r *Recorder) sent(req *http.Request) {
	r.withLock(func() {
		r.record.Sent, r.record.Cut, r.record.refused = true, false, false
		r.secrets = appendCredentials(r.room[:0], req)
	})
}

// errorBody records a piece of a failed answer's body, up to MaxErrorBody in all.
func (r *Recorder) errorBody(p []byte) {
	r.withLock(func() {
		room := MaxErrorBody - len(r.record.ErrorBody)
		r.record.ErrorBody = append(r.record.ErrorBody, p[:min(room, len(p))]...)
	})
}

// boundBody cuts a body to MaxErrorBody; an empty one is nil.
func boundBody(body []byte) []byte {
	switch {
	case len(body) == 0:
		return nil
	case len(body) > MaxErrorBody:
		return bytes.Clone(body[:MaxErrorBody]) // what is kept must not hold the rest
	}
	return body
}

// Doubtful counts calls that were sent and whose answer did not come whole. A provider may
// bill such a call, and nothing says how much.
type Doubtful struct {
	Calls int
	// Usage is the usage that these answers reported before they were cut off. The calls may have
	// used more, and most answers report nothing so early.
	Usage Usage
}

// Add returns the sum of both.
func (d Doubtful) Add(e Doubtful) Doubtful {
	return Doubtful{Calls: d.Calls + e.Calls, Usage: d.Usage.Add(e.Usage)}
}

// Doubtful returns what is doubtful of an attempt that ended with err: the call and its usage,
// or nothing. It returns nothing if the attempt succeeded, if no request left, or if the
// provider refused it. A refusal is an answer, and its usage counts.
func (r *Record) Doubtful(err error) Doubtful {
	sent := r.Sent || r.HasUsage // what never left reports no usage
	if err == nil || !sent || !r.Cut && (r.refused || !endsInDoubt(err)) {
		return Doubtful{}
	}
	return Doubtful{Calls: 1, Usage: r.Usage}
}

// endsInDoubt reports whether an error leaves open what the provider did with the call.
func endsInDoubt(err error) bool {
	switch ClassifyErr(err).Kind {
	case Timeout, TransportFault, Canceled:
		return !Unsent(err)
	}
	return false
}
