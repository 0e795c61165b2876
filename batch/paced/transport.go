package paced

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// Transport returns an http.RoundTripper that makes each call as [batch.Do] on shared. base sends
// it; nil means http.DefaultTransport. One line paces a client:
//
//	config.HTTPClient = &http.Client{Transport: paced.Transport(shared, nil)}
//
// A call waits in the lane of its model and host, or in the one that [batch.WithPoolOf] names, until
// the limits let it leave. The headers of answers teach the lane its limits. A call that was refused
// for now (429, 503, 529) or that broke goes back in line, within the bounds of a run. The client
// then gets the first answer, or the provider's last refusal. It gets an error if there was no
// answer: the call's own, or [batch.ErrStopped] if the lane has stopped before.
//
// Once the head of an answer has come, the answer is the client's: nothing is repeated after
// that. It holds its place in flight until its body was read or closed, so a stream does so to its
// end. What would stop a lane in a run stops none here: no quota, a refused key, an unknown model,
// or a named wait over 15 minutes. The client gets those answers at once.
//
// The options are those of [batch.Do], for each call, without [batch.WithSummary]; a wrong one is
// the error of each call. Turn off the retries of the SDK: each is a call of its own here. A timeout of
// the http.Client includes the wait in line, while [batch.WithAttemptTimeout] does not. Close of
// the Shared waits until the answers of calls in flight were read or closed.
func Transport(shared *batch.Shared, base http.RoundTripper, opts ...batch.Option) http.RoundTripper {
	t := &transport{shared: shared, base: provider.Transport{Base: base}, opts: slices.Clone(opts)}
	for _, o := range opts {
		if strings.HasPrefix(o.String(), "WithSummary(") {
			t.fault = fmt.Errorf("%w: paced: WithSummary cannot be used here: all calls would write to one Summary at once; use WithEnds", batch.ErrConfig)
		}
	}
	return t
}

type transport struct {
	shared *batch.Shared
	base   provider.Transport
	opts   []batch.Option
	fault  error // what is wrong with opts, beyond what batch.Do refuses
}

// CloseIdleConnections closes those of the base, if it can.
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// RoundTrip returns once the head of the answer has come, or the call has ended without one. The
// call's goroutine ends when the answer was read or closed, or ctx has ended.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, err := newCall(req)
	if err != nil {
		return nil, err
	}
	if t.fault != nil {
		c.close()
		return nil, t.fault
	}
	f := &flight{err: errGone, base: &t.base, answer: make(chan *http.Response, 1), done: make(chan struct{})}
	f.give = f.passAnswer
	go func() {
		defer close(f.done)
		defer c.close()
		_, f.err = batch.Do(req.Context(), t.shared, c, f.tryOnce, t.opts...)
	}()
	select {
	case resp := <-f.answer:
		return resp, nil
	case <-f.done:
	}
	select {
	case resp := <-f.answer:
		return resp, nil
	default:
	}
	return f.finalAnswer(req.Context())
}

// Forward makes the call c as [Transport] does, in the caller's goroutine and with no other. give
// gets the one good answer, reads and closes its body, and the call holds its place until give
// returns. An error of give's is that of the call, which is not repeated; it is marked as cut off.
//
// Forward returns nil and nil if give had the answer and no error. Otherwise it returns the
// provider's last refusal, whose body is in memory, or an error as Transport does. If ctx ends while a
// refused call waits for its next try, Forward returns both. The request of c needs
// no body: c.Body is sent, all of it. It is for programs that stand between a client and a
// provider, such as package serve.
func Forward(ctx context.Context, shared *batch.Shared, base http.RoundTripper, c *Call, give func(*http.Response) error, opts ...batch.Option) (*http.Response, error) {
	c.isWhole = true
	f := &flight{base: &provider.Transport{Base: base}}
	f.give = func(ctx context.Context, resp *http.Response) error {
		err := give(resp)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		provider.RecorderFrom(ctx).Cut()
		return f.endWith(err)
	}
	_, f.err = batch.Do(ctx, shared, c, f.tryOnce, opts...)
	if f.err == nil {
		return nil, nil //nolint:nilnil // the answer was given
	}
	if ctx.Err() != nil {
		return f.refusal, f.err
	}
	return f.finalAnswer(ctx)
}

// flight is one call on its way. Its goroutine owns the fields until done is closed.
type flight struct {
	base   http.RoundTripper
	give   func(ctx context.Context, resp *http.Response) error // brings the good answer to the client
	answer chan *http.Response                                  // has room for the one answer that the client gets
	done   chan struct{}

	refusal *http.Response // of the latest try
	lastErr error          // of the try after which there must be no other; nil: there may be
	err     error          // of batch.Do
}

// finalAnswer returns what the client gets of a call that has ended without a good answer: the last refusal, or an
// error.
func (f *flight) finalAnswer(ctx context.Context) (*http.Response, error) {
	switch {
	case ctx.Err() != nil:
	case f.refusal != nil:
		return f.refusal, nil
	case f.lastErr != nil:
		return nil, f.lastErr
	}
	return nil, f.err
}

// maxRefusal bounds the part of a refusal's body that the client gets, in bytes. No provider's
// has a hundredth of it; it must be read before the next try.
const maxRefusal = 1 << 20

// mostWait is the longest named wait for which a call goes back in line. A longer one would stop
// the lane, and its client had better know.
const mostWait = 15 * time.Minute

// The ends of a try whose words are elsewhere.
var (
	errRefused = errors.New("paced: the provider refused the call") // its words are in the record
	errGone    = errors.New("paced: a function of the caller ended the goroutine of the call")
	errPassed  = errors.New("paced: the client has the answer")
)

// tryOnce sends the request once. An error that it marks as permanent ends the call.
//
// A try that was cut off by its timeout is judged without regard to such a mark. Then there is one more, which
// sends nothing.
func (f *flight) tryOnce(ctx context.Context, c *Call) (none struct{}, err error) {
	if f.lastErr != nil {
		return none, batch.Permanent(f.lastErr)
	}
	f.refusal = nil
	req, err := c.request(ctx)
	if err != nil {
		return none, f.endWith(err)
	}
	resp, err := f.base.RoundTrip(req)
	switch {
	case err != nil:
		if !c.mayRepeat(provider.Unsent(err)) {
			return none, f.endWith(err)
		}
		return none, err
	case resp.StatusCode >= http.StatusBadRequest:
		resp.Request = c.Request
		return none, f.keepRefusal(ctx, c, resp)
	}
	resp.Request = c.Request
	return none, f.begin(ctx, resp)
}

// endWith marks err as the last error of the call, after which there is no other try.
func (f *flight) endWith(err error) error {
	f.lastErr = err
	return batch.Permanent(err)
}

// keepRefusal keeps a failed answer for the client, and returns its error, which decides whether the call is tried
// again. An answer that would stop the lane ends the call. So does a 403 in unknown words, such as the page of a
// firewall: a client that sends the same again is blocked for longer.
func (f *flight) keepRefusal(ctx context.Context, c *Call, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal+1))
	switch {
	case err != nil:
	case len(body) > maxRefusal:
		body, err = body[:maxRefusal], io.ErrUnexpectedEOF
	default:
		err = io.EOF
	}
	_ = resp.Body.Close() // all that the client gets was read
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), errorReader{err}))
	f.refusal = resp

	record := provider.RecorderFrom(ctx).Snapshot()
	fault := record.Failure(errRefused)
	stopsAfter, _ := fault.Kind.StopsLaneAfter()
	blocked := resp.StatusCode == http.StatusForbidden && fault.Kind == provider.TransportFault
	undone := fault.Kind == provider.Throttled || fault.Kind == provider.Overloaded
	if fault.Kind.StopsLane() || stopsAfter > 0 || blocked || max(fault.RetryAfter, record.RetryAfter) > mostWait || !c.mayRepeat(undone) {
		return f.endWith(fault)
	}
	return fault
}

// errorReader is a reader that has nothing but its error.
type errorReader struct{ error }

func (e errorReader) Read([]byte) (int, error) { return 0, e.error }

// begin stops the clock of the try: from here on the client decides how long it waits, and there is
// no other try.
func (f *flight) begin(ctx context.Context, resp *http.Response) error {
	if provider.RecorderFrom(ctx).AnswerBegins(); ctx.Err() != nil { // the clock was faster
		_ = resp.Body.Close()
		return ctx.Err()
	}
	f.lastErr = errPassed
	return f.give(ctx, resp)
}

// passAnswer gives the answer to the client, and waits until it was read or closed.
func (f *flight) passAnswer(ctx context.Context, resp *http.Response) error {
	if resp.Body == nil || resp.Body == http.NoBody {
		f.answer <- resp
		return nil
	}
	held := &body{ReadCloser: resp.Body, ended: make(chan error, 1), done: f.done}
	if w, both := resp.Body.(io.Writer); both { // the connection itself, after an upgrade
		resp.Body = struct {
			*body
			io.Writer
		}{held, w}
	} else {
		resp.Body = held
	}
	f.answer <- resp
	select {
	case err := <-held.ended:
		if err == nil {
			return nil
		}
		provider.RecorderFrom(ctx).Cut()
		return batch.Permanent(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// body is an answer's body that reports its end: it was read, it broke, or it was closed. To close
// it early is an end as good as any: clients close a stream after its last event.
type body struct {
	io.ReadCloser
	ended chan error // has room for the first end
	done  <-chan struct{}
}

// Read reads from the body, and reports its end when it comes.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		b.reportEnd(nil)
	case err != nil:
		b.reportEnd(err)
	}
	return n, err
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.reportEnd(nil)
	return err
}

// reportEnd reports the first end, and waits until the call's place is free.
func (b *body) reportEnd(err error) {
	select {
	case b.ended <- err:
	default:
	}
	<-b.done
}
