package face

import (
	"net/http"
	"time"
)

// A Face is the language of one provider: its addresses, its demands on a request, and the words
// and headers of its answers. It is a value without state and may be used by many goroutines. It
// does not decide what becomes of a call.
type Face interface {
	// Name returns the dialect's name.
	Name() string

	// Base returns the path below which clients of the dialect look: "/v1", or "".
	Base() string

	// Find says what a method and an address ask for. It does not read the body.
	Find(r *http.Request) Errand

	// Read reads a request for which Find said Ask or List. It returns for any body;
	// a request that the provider would not take is Invalid in its Call.
	Read(r *http.Request, e Errand, body string) Request

	// Models lists the models; it is shown where Find says List.
	Models(names []string, s Stamp) []byte

	// Fault answers requests that were never judged: 404 if nothing is at an address, and 405
	// if the address has another method. 413 is for a body that is longer than the server
	// reads.
	Fault(status int, r *http.Request, s Stamp) Reply

	// Mark puts the headers of every answer on an answer, such as its id.
	Mark(h http.Header, r *http.Request, s Stamp)
}

// Request is one request as its face has read it.
type Request interface {
	// Call returns what the model judges. It does not fill ID and Body.
	Call() Call

	// Answer returns the whole of a good answer.
	Answer(s Stamp) Reply

	// Refuse says in the provider's way that the call failed. For Malformed it is an error
	// inside an answer that calls itself good.
	Refuse(v Verdict, s Stamp) Reply

	// Tell puts headers on the answer of a call that was judged, good or not: the state of
	// the quota, where the verdict has it and the provider tells it; how long to wait.
	Tell(h http.Header, v Verdict, s Stamp)
}

// Aim is the purpose of a request.
type Aim int

// The aims. The zero value is an address that the provider does not have.
const (
	Nowhere Aim = iota
	Ask         // a model
	List        // which models there are
	Misuse      // of an address by a method that it does not have
)

// Errand is the request that a method and an address make.
type Errand struct {
	Aim       Aim
	Operation string // the face's own word for the operation
	Model     string // where it stands in the address, without escapes
	Allow     string // with Misuse: the method that there is
}

// ByMethod returns the errand if it comes by the right method, else its misuse.
func (e Errand) ByMethod(r *http.Request, method string) Errand {
	if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
		return e
	}
	return Errand{Aim: Misuse, Allow: method}
}

// Stamp holds the parts of an answer that depend on its moment.
type Stamp struct {
	Now    time.Time
	Judged time.Time     // when the gauges were read; resets count from here
	Took   time.Duration // from then to the end of the answer
	Serial uint64        // of the answer, from 1
	ID     string        // of the item: the same for every try at it
}

// Reply is an answer before it is put on a wire.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	Cut    bool // only half of the body arrives, then the connection breaks

	// Pieces make the answer a stream, and Body does not count. They are sent one by one
	// over the latency of the call.
	Pieces [][]byte
	// Failure says within a stream, in the provider's way, that it cannot go on. It comes
	// after half of the pieces, rounded down.
	Failure []byte
}

// Stream returns a good reply that comes in pieces.
func Stream(contentType string, pieces [][]byte, failure []byte) Reply {
	r := Typed(http.StatusOK, contentType, nil)
	r.Pieces, r.Failure = pieces, failure
	return r
}

// JSON returns a reply with a body of JSON.
func JSON(status int, body []byte) Reply {
	return Typed(status, "application/json", body)
}

// Typed returns a reply with a body of a content type.
func Typed(status int, contentType string, body []byte) Reply {
	return Reply{Status: status, Body: body, Header: http.Header{"Content-Type": {contentType}}}
}
