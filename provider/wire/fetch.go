package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// firstRead is the length up to which a body gets its memory before it has come, and without
// asking for room. A server may claim any length; beyond this it gets memory for what it
// sends, as there is room.
const firstRead = 64 << 10

// drain is the number of bytes of a failed answer read beyond the part that is kept, so that
// its connection can be used again. Reading more costs more than a connection.
const drain = 256 << 10

// Exchange is one call on the wire: an answer, or why there is none. A body that
// broke off leaves a status and an error.
type Exchange struct {
	Status int
	Header http.Header
	Body   []byte
	Err    error

	req   *http.Request
	long  *longAnswer // the room that Body takes; nil: none
	stale bool        // the proof of who calls was refused, and there is a fresher one

	usage  []byte // the usage that a stream has reported, as an object; nil: none
	counts bool   // it was asked to tell its usage
}

// Release gives back the room that a long body takes. Each exchange must be released once
// its body is not held any more; it may be released more than once.
func (x *Exchange) Release() { x.long.giveBack() }

// Fetch sends one request, once, and reads its answer to the end or to its bound.
func (c *Client) Fetch(req *http.Request) Exchange {
	if s, is := req.Context().(*streamed); is {
		return c.fetchStream(s, req)
	}
	resp, err := c.send(req)
	if err != nil {
		return Exchange{Err: err, req: req}
	}
	defer func() { _ = resp.Body.Close() }() // it was read: nothing is left that could fail
	return c.readWhole(req, resp)
}

// readWhole reads an answer that comes in one piece. It keeps the connection usable: it also reads a
// little of a failed answer that is too long.
func (c *Client) readWhole(req *http.Request, resp *http.Response) Exchange {
	x := Exchange{Status: resp.StatusCode, Header: resp.Header, req: req}
	if resp.StatusCode/100 == 2 {
		x.Body, x.long, x.Err = c.readAnswer(req.Context(), resp)
		x.Body = c.redact(x.Body)
	} else {
		// If the rest does not come, that does not matter: the status is known.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, provider.MaxErrorBody))
		_, _ = io.CopyN(io.Discard, resp.Body, drain)
		x.Body = c.Keep(body)
	}
	return x
}

// send is http.Client.Do without its preparations for a redirect, which hardly any call
// meets: it copies the headers of each. A redirect is left to Do.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	if c.custom {
		return c.http.Do(req)
	}
	resp, err := c.http.Transport.RoundTrip(req)
	if err != nil {
		return nil, &url.Error{Op: "Post", URL: req.URL.String(), Err: err}
	}
	if resp.StatusCode/100 != 3 || resp.Header.Get("Location") == "" {
		return resp, nil
	}
	follower := *c.http
	follower.Transport = &replay{first: resp, base: c.http.Transport}
	again := req.Clone(req.Context())
	again.Body = http.NoBody // it was sent; for the next address GetBody has it
	return follower.Do(again)
}

// replay answers first with the response that has come already, so that http.Client takes a
// redirect from there and nothing is sent twice.
type replay struct {
	first *http.Response
	base  http.RoundTripper
}

func (r *replay) RoundTrip(req *http.Request) (*http.Response, error) {
	if resp := r.first; resp != nil {
		r.first = nil
		return resp, nil
	}
	return r.base.RoundTrip(req)
}

// errTooLong is the end of an answer over MaxBody.
var errTooLong = errors.New("the answer is longer than allowed")

// readAnswer reads a good answer, of at most MaxBody bytes. A body longer than firstRead takes
// room, which the second result gives back; nil: it has none. If a shorter one breaks off, the part
// that has come is returned with the error.
func (c *Client) readAnswer(ctx context.Context, resp *http.Response) ([]byte, *longAnswer, error) {
	switch n := resp.ContentLength; {
	case n > c.cfg.MaxBody:
		return nil, nil, errTooLong
	case n > 0 && n <= firstRead && !c.custom: // a custom transport may unpack, and leave the length as it was
		body, err := readAll(resp.Body, int(n))
		return body, nil, err
	}
	var head bytes.Buffer
	n, err := head.ReadFrom(io.LimitReader(resp.Body, min(firstRead, c.cfg.MaxBody+1)))
	switch {
	case n > c.cfg.MaxBody:
		return nil, nil, errTooLong
	case err != nil || n < firstRead:
		return head.Bytes(), nil, err
	}
	return c.readLong(ctx, resp.Body, head.Bytes())
}

// readAll reads a body of n bytes, and tries to read one more, which finds the end. A body whose
// end was not seen is broken off when it is closed, and HTTP/2 tells the server so.
func readAll(body io.Reader, n int) ([]byte, error) {
	room := make([]byte, n+1)
	got, err := io.ReadFull(body, room)
	if got == n && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return room[:got], err
}

// Keep cuts a body to the length that an error keeps, and takes the secrets out of it.
func (c *Client) Keep(body []byte) []byte {
	if len(body) > provider.MaxErrorBody {
		body = bytes.Clone(body[:provider.MaxErrorBody]) // what is kept must not hold the rest
	}
	body = c.redact(body)
	return body[:min(len(body), provider.MaxErrorBody)] // what replaces a key may be longer
}

// Read returns the good answer or the error that an exchange comes to. It gives the attempt's Recorder
// the usage and finish reason: an error may report a usage, too.
func (c *Client) Read(ctx context.Context, x *Exchange) (provider.Reply, *provider.Error) {
	provider.RecorderFrom(ctx).Hide(c.cfg.Auth.Secrets()...)
	reply, e := c.classify(ctx, x)
	tellRecorder(ctx, x, &reply, e)
	if e == nil {
		reply.RequestID, reply.Dialect = c.quietText(reply.RequestID), c.dialect.Name()
		return reply, nil
	}
	own := c.named(e)
	if own.Status == 0 {
		own.Status = x.Status
	}
	if own.RequestID == "" {
		own.RequestID = c.quietText(provider.RequestID(x.Header))
	}
	if c.mayRetry(x, own) {
		own.Kind, x.stale = provider.Server, true // with a fresher proof another try may pass
	}
	return provider.Reply{Usage: reply.Usage, HasUsage: reply.HasUsage}, own
}

// mayRetry asks the source of the key whether another try may succeed. Some vendors call a wrong
// clock a wrong configuration.
func (c *Client) mayRetry(x *Exchange, why *provider.Error) bool {
	dated, is := c.cfg.Auth.(auth.Dated)
	switch {
	case is && (why.Kind == provider.Unauthorized || why.Kind == provider.Misconfigured):
		return dated.RefusedFor(x.req, why, x.Header)
	case !is && why.Kind == provider.Unauthorized:
		return c.cfg.Auth.Refused(x.req)
	}
	return false
}

// named returns an error of this client's, without secrets. The given one may be the redirect
// policy's or that of the user's transport.
func (c *Client) named(e *provider.Error) *provider.Error {
	own := e.Without(c.cfg.Auth.Secrets()...)
	own.Provider = c.cfg.Name
	return own
}

// classify returns the reply or the error that an exchange comes to: by the fault on the way, or else
// by the dialect.
func (c *Client) classify(ctx context.Context, x *Exchange) (provider.Reply, *provider.Error) {
	switch {
	case errors.Is(x.Err, errTooLong):
		return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Err: fmt.Errorf("%w: over %d bytes", errTooLong, c.cfg.MaxBody)}
	case x.Err != nil && ctx.Err() != nil:
		return x.torn(), contextError(ctx)
	case x.Err != nil:
		return x.torn(), provider.ClassifyErr(x.Err)
	}
	return c.dialect.Answer(x.Status, x.Header, x.Body, c.cfg.Wording) // without secrets, as Fetch leaves it
}

// torn returns what an answer that broke off had reported before.
func (x *Exchange) torn() (r provider.Reply) {
	r.Usage, r.HasUsage = provider.TornUsage(x.Body)
	return r
}

// tellRecorder gives the attempt's Recorder the usage and finish reason of an answer. It also reports
// that the answer broke off or that the request never left. An answer that turns into a refusal
// counts as a refusal.
func tellRecorder(ctx context.Context, x *Exchange, r *provider.Reply, e *provider.Error) {
	rec := provider.RecorderFrom(ctx)
	switch {
	case x.Err == nil:
	case x.Status != 0 && !e.Kind.Cools():
		rec.Cut()
	case x.Status == 0 && !hasLeft(x.req):
		rec.Unsent()
	}
	if r.HasUsage {
		rec.Usage(r.Usage)
	}
	if r.Finish != "" {
		rec.Finish(r.Finish)
	}
}

// contextError returns the error for a context that is over, by its cause. Callers that limit an
// attempt by a clock of their own cancel with context.DeadlineExceeded, or with a
// provider.Kind, as the cause.
func contextError(ctx context.Context) *provider.Error {
	cause := context.Cause(ctx)
	e := provider.ClassifyErr(cause)
	if e.Kind == provider.Unknown {
		return &provider.Error{Kind: provider.Canceled, Err: cause}
	}
	return e
}

func (c *Client) redact(body []byte) []byte { return provider.Redact(body, c.cfg.Auth.Secrets()...) }

func (c *Client) quietText(s string) string { return provider.RedactText(s, c.cfg.Auth.Secrets()...) }

// Quiet replaces an error whose text has a secret in it, chain and all. A
// transport of the user's might make such an error.
func (c *Client) Quiet(err error) error {
	if err == nil || c.quietText(err.Error()) == err.Error() {
		return err
	}
	return errors.New(c.quietText(err.Error()))
}

// departure is the context of a request that goes out by net/http's own transport. It notes
// whether the request left: a request leaves when there is a connection to write it to.
//
// The body cannot note that there. net/http sends headers and body in one packet only if the body
// has one of its own types. A body of our type takes two packets, with twice the system calls.
type departure struct {
	context.Context
	left  atomic.Bool
	trace httptrace.ClientTrace
}

// departureKey finds the departure in a request's context.
type departureKey struct{}

// watched returns a context whose departure hasLeft knows.
func watched(ctx context.Context) context.Context {
	d := &departure{Context: ctx}
	d.trace.WroteHeaders = func() { d.left.Store(true) }
	return httptrace.WithClientTrace(d, &d.trace)
}

// Value returns the departure, and asks the parent for all other keys.
func (d *departure) Value(key any) any {
	if key == (departureKey{}) {
		return d
	}
	return d.Context.Value(key)
}

// upload is the body of a request on its way out by a transport of the user's, which may not tell
// when it writes. The body is first read when there is a connection to write it to.
type upload struct {
	left  atomic.Bool // some of it was read
	first reader
}

// reader reads the body of a request once.
type reader struct {
	bytes.Reader
	of *upload
}

// load gives a request its body. A connection that was closed as it was used needs the body again.
func load(req *http.Request, body []byte) {
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body = io.NopCloser(bytes.NewReader(body))
}

// loadTracked gives a request a body that notes whether it was read.
func loadTracked(req *http.Request, body []byte) {
	u := new(upload)
	u.first.Reset(body)
	u.first.of = u
	req.Body, req.ContentLength = &u.first, int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) {
		again := &reader{of: u}
		again.Reset(body)
		return again, nil
	}
}

// hasLeft reports whether any part of a request left. It returns true if nobody notes the request's
// departure.
func hasLeft(req *http.Request) bool {
	if req == nil {
		return true
	}
	if r, is := req.Body.(*reader); is {
		return r.of.left.Load()
	}
	d, is := req.Context().Value(departureKey{}).(*departure)
	return !is || d.left.Load()
}

// Read notes that the body leaves.
func (r *reader) Read(p []byte) (int, error) {
	r.of.left.Store(true)
	return r.Reader.Read(p)
}

// WriteTo notes it too.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	r.of.left.Store(true)
	return r.Reader.WriteTo(w)
}

// Close has nothing to do.
func (r *reader) Close() error { return nil }
