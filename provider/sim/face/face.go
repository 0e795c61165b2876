package face

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
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

	// Read reads a request for which Find answered Ask or List. It returns for any body;
	// a request that the provider would not take is Invalid in its Call.
	Read(r *http.Request, e Errand, body string) Request

	// Models lists the models, of which there is at least one; it is shown where Find says List.
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
	Flex     bool   // it asks for the flex tier of service
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
	NoRoom            Kind = "no_room" // in the flex tier
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
	case RateLimited, TooLarge, InsufficientQuota, NoRoom:
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

// Prompt holds what every face reads of a request: enough to charge and to answer it.
type Prompt struct {
	Model     string
	Texts     []string // texts to answer: one, or one for each element of an array
	Chars     int      // of all the text that a model would read
	MaxTokens float64  // 0: not answered

	Complaint string // not empty: the request is invalid, and why
	Param     string // what the complaint is about
}

// Complain keeps the first complaint.
func (p *Prompt) Complain(param, message string) {
	if p.Complaint == "" {
		p.Param, p.Complaint = param, message
	}
}

// Forget drops the input read so far: JSON keys may come twice, and the last one
// counts, as with most parsers.
func (p *Prompt) Forget() { p.Texts, p.Chars = nil, 0 }

// Add takes in a text that has an answer of its own.
func (p *Prompt) Add(text string) {
	p.Texts = append(p.Texts, text)
	p.Charge(text)
}

// Charge takes in a text that is read and charged, but not answered.
func (p *Prompt) Charge(text string) { p.Chars += utf8.RuneCountInString(text) }

// Turns takes in a conversation: it answers the user's last turn, and reads all. A turn of the
// user's without words, such as the result of a tool, is passed over if another has some.
func (p *Prompt) Turns(turns gjson.Result, parts string) {
	answered := false
	turns.ForEach(func(_, turn gjson.Result) bool {
		text := TextOf(turn.Get(parts))
		ofUser := turn.Get("role").Str == "user" && text != ""
		if ofUser || !answered {
			p.Texts, answered = []string{text}, ofUser
		}
		p.Charge(text)
		return true
	})
}

// TextOf joins the text parts of a content, which is a string or an array of parts.
func TextOf(content gjson.Result) string {
	if !content.IsArray() {
		return content.String()
	}
	var parts []string
	content.ForEach(func(_, part gjson.Result) bool {
		if text := part.Get("text"); text.Exists() {
			parts = append(parts, text.String())
		}
		return true
	})
	return strings.Join(parts, "\n")
}

// Write returns the text that answers one prompt, cut at the bound.
func (p *Prompt) Write(prompt string) (text string, whole bool) {
	text = Answer(prompt)
	if p.MaxTokens == 0 || p.MaxTokens*4 >= float64(len(text)) {
		return text, true
	}
	return text[:int(p.MaxTokens)*4], false
}

// Read returns the input in tokens.
func (p *Prompt) Read() int { return TokensOf(p.Chars) }

// Written returns the output in tokens.
func (p *Prompt) Written() (tokens int) {
	for _, prompt := range p.Texts {
		text, _ := p.Write(prompt)
		tokens += TokensOf(len(text))
	}
	return tokens
}

// First returns the prompt of a request with a single one: "" if there is none.
func (p *Prompt) First() string {
	if len(p.Texts) == 0 {
		return ""
	}
	return p.Texts[0]
}
