package serve

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/serve/internal/stream"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/gemini"
)

// out is the answer to one request. The goroutine of the request writes it, and so does the one that
// pings: the one that has taken the turn is alone with it.
type out struct {
	v       *visit
	turn    chan struct{} // has room for the one
	control *http.ResponseController

	status  int           // that the client has; 0: none yet
	events  bool          // the answer is a stream of events
	tap     *stream.Tap   // of a stream
	hider   *stream.Hider // takes the usage out of a stream; nil: nothing is taken out
	blanks  bool          // it is JSON, before which blanks may come
	pinged  bool          // its head was sent before the provider's had come
	waits   string        // the forecast of the latest ping; "": it had none
	news    chan string   // has room for the latest one, for the next ping
	broken  error         // the client takes no more
	bytes   int64
	first   time.Time // of the answer's bytes; zero: none has come
	last    time.Time // of the latest bytes
	hurried bool      // a write has a deadline; of the goroutine of the request
	torn    bool      // its end did not come, and the client has to see that
}

func newOut(v *visit) *out {
	o := &out{v: v, turn: make(chan struct{}, 1), news: make(chan string, 1), control: http.NewResponseController(v.w)}
	o.turn <- struct{}{}
	return o
}

// alone runs f in its turn.
func (o *out) alone(f func()) {
	<-o.turn
	defer func() { o.turn <- struct{}{} }()
	f()
}

// pings reports whether the client may get something before its answer.
func (v *visit) pings() bool {
	if _, is := v.face.(gemini.Dialect); is && v.streams && v.r.URL.Query().Get("alt") != "sse" {
		return false // its stream is one JSON array
	}
	if v.streams {
		return v.face.Ping("") != nil
	}
	return v.wishes.keep
}

// pingEvery is the time between two pings: well under the 60 s of silence after which common load
// balancers cut a connection, and the 30 s of the most impatient.
const pingEvery = 10 * time.Second

// ping keeps the client's connection from falling silent, until ctx ends. A client that has no head yet
// gets it, and can hear of an error only by an event from then on.
func (o *out) ping(ctx context.Context) {
	for {
		var next time.Duration
		o.alone(func() { next = o.pingOnce() })
		t := o.v.s.cfg.Clock.NewTimer(next)
		select {
		case <-t.Chan():
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// pingOnce returns the time until the next ping.
func (o *out) pingOnce() time.Duration {
	v := o.v
	if silent := v.s.cfg.Clock.Now().Sub(o.last); o.status != 0 && silent < pingEvery {
		return pingEvery - silent
	}
	switch {
	case o.broken != nil:
	case o.status == 0 && v.streams:
		o.pinged, o.events, o.tap = true, true, new(stream.Tap)
		o.head(http.StatusOK, "text/event-stream")
		o.write(v.face.Ping(o.words()))
	case o.status == 0:
		o.pinged, o.blanks = true, true
		o.head(http.StatusOK, "application/json")
		o.write([]byte("\n"))
	case o.events && o.tap.Between():
		o.write(v.face.Ping(o.words()))
	case o.blanks && o.bytes == 0:
		o.write([]byte("\n"))
	}
	return pingEvery
}

// says has the next ping tell another forecast. It does not wait for a ping that the client does not take.
func (o *out) says(waits string) {
	select {
	case <-o.news:
	default:
	}
	o.news <- waits // has room: only the goroutine of the request sends
}

// words says what the client waits for.
func (o *out) words() string {
	select {
	case o.waits = <-o.news:
	default:
	}
	if o.waits == "" {
		return "headrace waits for the provider"
	}
	return "headrace " + o.waits
}

// head sends the head of an answer.
func (o *out) head(status int, contentType string) {
	h := o.v.w.Header()
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	if o.pinged {
		h["Trailer"] = []string{headerWaited, headerAttempts, headerLane}
	}
	if o.v.streams || o.events {
		h.Set("X-Accel-Buffering", "no")
		h.Set("Cache-Control", "no-cache, no-transform")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	o.status, o.last = status, o.v.s.cfg.Clock.Now()
	o.v.w.WriteHeader(status)
}

// write sends bytes at once.
func (o *out) write(p []byte) {
	if o.broken != nil {
		return
	}
	o.last = o.v.s.cfg.Clock.Now()
	if _, o.broken = o.v.w.Write(p); o.broken == nil {
		if err := o.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
			o.broken = err
		}
	}
}

// lastWord bounds the time that a client may take for the end of its answer, once its call is over: a stream's last event fits into
// any connection of which something is read.
const lastWord = time.Second

// hurry ends a write that the client does not take, soon. Nothing else would: a context ends no write.
func (o *out) hurry() { _ = o.control.SetWriteDeadline(o.v.s.cfg.Clock.Now().Add(lastWord)) }

// relax undoes hurry: the connection may have further requests.
func (o *out) relax() { _ = o.control.SetWriteDeadline(time.Time{}) }

// begin sends the head of the provider's answer, unless a ping was faster. It returns the tap of a
// stream.
func (o *out) begin(resp *http.Response) (tap *stream.Tap) {
	v := o.v
	o.alone(func() {
		o.events = false // also where a ping has said so: nothing may stand within an answer in one piece
		kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
		switch strings.TrimSpace(strings.ToLower(kind)) {
		case "text/event-stream":
			o.events = true
			tap = new(stream.Tap)
		case "application/vnd.amazon.eventstream":
			if of, can := v.face.(provider.Streamer); can {
				splitter, _ := of.Stream(v.operation)
				tap = stream.Over(splitter)
			}
		}
		if o.tap = tap; o.status != 0 {
			return
		}
		h := v.w.Header()
		incoming(h, resp.Header)
		v.setServed(h)
		if resp.ContentLength >= 0 && tap == nil {
			h.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
		}
		o.head(resp.StatusCode, "")
	})
	return tap
}

// The headers of an answer that say how the request was served. An answer that was pinged has them as trailers.
const (
	headerWaited   = prefix + "Waited-Ms"
	headerAttempts = prefix + "Attempts"
	headerLane     = prefix + "Lane"
)

// setServed writes into the headers how long the request waited, its tries and its lane.
func (v *visit) setServed(h http.Header) {
	waited := v.s.cfg.Clock.Now().Sub(v.began) // where no call has left
	if !v.left.IsZero() {
		waited = v.left.Sub(v.began)
	}
	h.Set(headerWaited, strconv.FormatInt(waited.Milliseconds(), 10))
	h.Set(headerAttempts, strconv.Itoa(v.tries))
	if v.lane != "" {
		h.Set(headerLane, v.lane)
	}
}

// Sizes in bytes of what is read at once: some events of a stream, as thousands of streams may be open, and of a whole
// answer as much as the connection has ready.
const (
	streamSize = 2 << 10
	wholeSize  = 8 << 10
)

// copy passes on a body as it comes, and calls came after each piece. With FinishGone it reads on when the client has gone. Its
// error is errGone, or the body's.
func (o *out) copy(body io.Reader, came func()) error {
	streams := o.tap != nil || o.v.streams
	size := wholeSize
	if streams {
		size = streamSize
	}
	p := make([]byte, size)
	for {
		n, err := body.Read(p)
		if n > 0 {
			came()
		}
		gone := false
		o.alone(func() {
			if n > 0 {
				o.take(p[:n], streams)
			}
			// the hider keeps an unfinished line back: at the end it is the client's
			if err != nil && o.hider != nil && len(o.hider.Rest()) > 0 {
				o.write(o.hider.Rest())
			}
			gone = o.broken != nil && !o.v.s.cfg.FinishGone
		})
		switch {
		case gone:
			return errGone
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			o.torn = true
			return err
		}
	}
}

// take passes on a piece of the answer. An answer in one piece is not flushed: it has its length.
func (o *out) take(p []byte, streams bool) {
	if o.bytes == 0 {
		o.first = o.v.s.cfg.Clock.Now()
	}
	o.bytes += int64(len(p))
	if o.tap != nil {
		o.tap.Write(p)
	}
	if o.hider != nil && o.events {
		if p = o.hider.Pass(p); len(p) == 0 {
			return
		}
	}
	if streams || o.pinged {
		o.write(p)
	} else if o.broken == nil {
		o.last = o.v.s.cfg.Clock.Now()
		_, o.broken = o.v.w.Write(p)
	}
}

// pass gives the client the provider's last refusal, which is no reason to come back: the line has
// tried.
func (o *out) pass(resp *http.Response) {
	body, _ := io.ReadAll(resp.Body) // it is in memory
	if o.v.pings() {
		o.hurry() // a ping may hold the turn
		o.hurried = true
	}
	o.alone(func() {
		if o.status != 0 {
			fault := provider.Classify(resp.StatusCode, resp.Header, body)
			o.fault(provider.Refusal{Status: resp.StatusCode, Code: fault.Code, Message: saidBy(fault)})
			return
		}
		h := o.v.w.Header()
		incoming(h, resp.Header)
		o.v.setServed(h)
		h.Set("X-Should-Retry", "false")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		o.head(resp.StatusCode, "")
		o.bytes += int64(len(body))
		_, o.broken = o.v.w.Write(body)
	})
}

// fault tells an error to a client that has the head of its answer.
func (o *out) fault(r provider.Refusal) {
	switch {
	case o.events && o.tap.Between():
		o.write(o.v.face.Fault(o.v.operation, r))
	case o.blanks && o.bytes == 0:
		_, body := o.v.face.Refuse(r)
		o.write(body)
	default:
		o.torn = true
	}
}

// finish ends the answer: with a refusal, if there was none. It returns the status that the client
// has, and whether the connection has to be cut off, so that the client sees that the end is missing.
// Nobody pings any more.
func (o *out) finish(why *refused) (status int, aborted bool) {
	<-o.turn
	defer func() {
		if o.hurried && o.broken == nil {
			o.relax()
		}
	}()
	if o.pinged {
		o.v.setServed(o.v.w.Header()) // as trailers: the head has left
	}
	switch {
	case o.v.r.Context().Err() != nil: // nobody sees it
		return o.status, false
	case why == nil:
	case o.status == 0:
		if o.v.tries > 0 {
			o.v.setServed(o.v.w.Header())
		}
		plain(o.v.w, o.v.face, *why)
		o.status = why.Status
	default:
		o.torn = false
		o.fault(why.Refusal)
		return o.status, o.torn
	}
	return o.status, o.torn
}
