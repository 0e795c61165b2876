package face

import (
	"net/http"
	"time"
)

// A Face is how one provider is spoken to: its addresses, what it demands of a request,
// and the words and headers of its answers. It is a value without state and may be used by
// many goroutines. What becomes of a call it does not decide.
type Face interface {
	// Name is the dialect's.
	Name() string

	// Base is the path below which clients of the dialect look: "/v1", or "".
	Base() string

	// Find says what a method and an address ask for. The body is not read.
	Find(r *http.Request) Errand

	// Read reads a request for which Find said Ask or List. Whatever the body, it returns;
	// what the provider would not take is Invalid in its Call.
	Read(r *http.Request, e Errand, body string) Request

	// Models lists what may be asked; it is shown where Find says List.
	Models(names []string, s Stamp) []byte

	// Fault answers what never came to be judged: 404 where nothing is at an address, 405
	// where another method is, 413 where a body is longer than the server reads.
	Fault(status int, r *http.Request, s Stamp) Reply

	// Mark puts the headers on an answer that every one has, such as its id.
	Mark(h http.Header, r *http.Request, s Stamp)
}

// Request is one request as its face has read it.
type Request interface {
	// Call is what is judged. ID and Body are not its to fill.
	Call() Call

	// Answer is the whole of a good answer.
	Answer(s Stamp) Reply

	// Refuse says in the provider's way that the call failed. For Malformed it is an error
	// inside an answer that calls itself good.
	Refuse(v Verdict, s Stamp) Reply

	// Tell puts headers on the answer of a call that was judged, good or not: the state of
	// the quota, where the verdict has it and the provider tells it; how long to wait.
	Tell(h http.Header, v Verdict, s Stamp)
}

// Aim is what a request wants.
type Aim int

// The aims. The zero value is an address that the provider does not have.
const (
	Nowhere Aim = iota
	Ask         // a model
	List        // which models there are
	Misuse      // of an address by a method that it does not have
)

// Errand is what a method and an address ask for.
type Errand struct {
	Aim       Aim
	Operation string // the face's own word for what is asked
	Model     string // where it stands in the address, without escapes
	Allow     string // with Misuse: the method that there is
}

// ByMethod is the errand if it comes by the right method, else its misuse.
func (e Errand) ByMethod(r *http.Request, method string) Errand {
	if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
		return e
	}
	return Errand{Aim: Misuse, Allow: method}
}

// Stamp is what an answer has of its moment.
type Stamp struct {
	Now    time.Time
	Judged time.Time     // when the gauges were read; resets are told from here
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

	// Pieces make the answer a stream, and Body is not looked at. They are sent one by one
	// over the latency of the call.
	Pieces [][]byte
	// Failure says within a stream, in the provider's way, that it cannot go on. It comes
	// after half of the pieces, rounded down.
	Failure []byte
}

// Stream is a good reply that comes in pieces.
func Stream(contentType string, pieces [][]byte, failure []byte) Reply {
	r := Typed(http.StatusOK, contentType, nil)
	r.Pieces, r.Failure = pieces, failure
	return r
}

// JSON is a reply with a body of JSON.
func JSON(status int, body []byte) Reply {
	return Typed(status, "application/json", body)
}

// Typed is a reply with a body of a content type.
func Typed(status int, contentType string, body []byte) Reply {
	return Reply{Status: status, Body: body, Header: http.Header{"Content-Type": {contentType}}}
}
