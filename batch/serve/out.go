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
	visit      *visit
	turn       chan struct{} // has room for the one
	controller *http.ResponseController

	status      int           // that the client has; 0: none yet
	events      bool          // the answer is a stream of events
	tap         *stream.Tap   // of a stream
	hider       *stream.Hider // takes the usage out of a stream; nil: nothing is taken out
	mayBlank    bool          // it is JSON, before which blanks may come
	pinged      bool          // its head was sent before the provider's had come
	forecast    string        // the forecast of the latest ping; "": it had none
	news        chan string   // has room for the latest one, for the next ping
	writeErr    error         // the client takes no more
	bytes       int64
	first       time.Time // of the answer's bytes; zero: none has come
	last        time.Time // of the latest bytes
	hasDeadline bool      // a write has a deadline; of the goroutine of the request
	incomplete  bool      // its end did not come, and the client has to see that
}

// newOut returns the answer to a visit, of which nothing is sent yet.
func newOut(v *visit) *out {
	o := &out{visit: v, turn: make(chan struct{}, 1), news: make(chan string, 1), controller: http.NewResponseController(v.w)}
	o.turn <- struct{}{}
	return o
}

// exclusively runs f while no other goroutine writes the answer.
func (o *out) exclusively(f func()) {
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
	return v.wishes.keepAlive
}

// pingEvery is the time between two pings: well under the 60 s of silence after which common load
// balancers cut a connection, and the 30 s of the most impatient.
const pingEvery = 10 * time.Second

// ping keeps the client's connection from falling silent, until ctx ends. A client that has no head yet
// gets it, and can hear of an error only by an event from then on.
func (o *out) ping(ctx context.Context) {
	for {
		var next time.Duration
		o.exclusively(func() { next = o.pingOnce() })
		t := o.visit.server.cfg.Clock.NewTimer(next)
		select {
		case <-t.Chan():
		case <-ctx.Done():
			t.Stop()
			return
		}
	}
}

// pingOnce pings the client if nothing was sent for pingEvery, and returns the time until the next ping. The first
// ping sends the head.
func (o *out) pingOnce() time.Duration {
	v := o.visit
	if silent := v.server.cfg.Clock.Now().Sub(o.last); o.status != 0 && silent < pingEvery {
		return pingEvery - silent
	}
	switch {
	case o.writeErr != nil:
	case o.status == 0 && v.streams:
		o.pinged, o.events, o.tap = true, true, new(stream.Tap)
		o.sendHead(http.StatusOK, "text/event-stream")
		o.write(v.face.Ping(o.pingText()))
	case o.status == 0:
		o.pinged, o.mayBlank = true, true
		o.sendHead(http.StatusOK, "application/json")
		o.write([]byte("\n"))
	case o.events && o.tap.Between():
		o.write(v.face.Ping(o.pingText()))
	case o.mayBlank && o.bytes == 0:
		o.write([]byte("\n"))
	}
	return pingEvery
}

// setForecast sets the forecast that the next ping shows. It does not wait for a ping that the client does not
// take.
func (o *out) setForecast(waits string) {
	select {
	case <-o.news:
	default:
	}
	o.news <- waits // has room: only the goroutine of the request sends
}

// pingText returns the text of a ping: what the client waits for.
func (o *out) pingText() string {
	select {
	case o.forecast = <-o.news:
	default:
	}
	if o.forecast == "" {
		return "headrace waits for the provider"
	}
	return "headrace " + o.forecast
}

// sendHead sends the head of an answer. An empty contentType leaves the header as it is.
func (o *out) sendHead(status int, contentType string) {
	h := o.visit.w.Header()
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	if o.pinged {
		h["Trailer"] = []string{headerWaited, headerAttempts, headerLane}
	}
	if o.visit.streams || o.events {
		h.Set("X-Accel-Buffering", "no")
		h.Set("Cache-Control", "no-cache, no-transform")
	}
	h.Set("X-Content-Type-Options", "nosniff")
	o.status, o.last = status, o.visit.server.cfg.Clock.Now()
	o.visit.w.WriteHeader(status)
}

// write sends bytes at once.
func (o *out) write(p []byte) {
	if o.writeErr != nil {
		return
	}
	o.last = o.visit.server.cfg.Clock.Now()
	if _, o.writeErr = o.visit.w.Write(p); o.writeErr == nil {
		if err := o.controller.Flush(); !errors.Is(err, http.ErrNotSupported) {
			o.writeErr = err
		}
	}
}

// endTimeout bounds the time that a client may take for the end of its answer, once its call is over: a stream's last event fits into
// any connection of which something is read.
const endTimeout = time.Second

// setDeadline makes a write fail soon if the client does not take it. Nothing else would end it: the end of a
// context ends no write.
func (o *out) setDeadline() {
	_ = o.controller.SetWriteDeadline(o.visit.server.cfg.Clock.Now().Add(endTimeout))
}

// clearDeadline undoes setDeadline: the connection may have further requests.
func (o *out) clearDeadline() { _ = o.controller.SetWriteDeadline(time.Time{}) }

// begin sends the head of the provider's answer, unless a ping was faster. It returns the tap of a
// stream.
func (o *out) begin(resp *http.Response) (tap *stream.Tap) {
	v := o.visit
	o.exclusively(func() {
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
		copyAnswerHeaders(h, resp.Header)
		v.setServed(h)
		if resp.ContentLength >= 0 && tap == nil {
			h.Set("Content-Length", strconv.FormatInt(resp.ContentLength, 10))
		}
		o.sendHead(resp.StatusCode, "")
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
	waited := v.server.cfg.Clock.Now().Sub(v.began) // where no call has left
	if !v.leftAt.IsZero() {
		waited = v.leftAt.Sub(v.began)
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

// copy passes on a body as it comes, and calls gotPiece after each piece. With FinishGone it reads on when the client has gone. Its
// error is errGone, or the body's.
func (o *out) copy(body io.Reader, gotPiece func()) error {
	streams := o.tap != nil || o.visit.streams
	size := wholeSize
	if streams {
		size = streamSize
	}
	buffer := make([]byte, size)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			gotPiece()
		}
		gone := false
		o.exclusively(func() {
			if n > 0 {
				o.writePiece(buffer[:n], streams)
			}
			// the hider keeps an unfinished line back: at the end it is the client's
			if err != nil && o.hider != nil && len(o.hider.Rest()) > 0 {
				o.write(o.hider.Rest())
			}
			gone = o.writeErr != nil && !o.visit.server.cfg.FinishGone
		})
		switch {
		case gone:
			return errGone
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			o.incomplete = true
			return err
		}
	}
}

// writePiece passes on a piece of the answer. An answer in one piece is not flushed: it has its length.
func (o *out) writePiece(p []byte, streams bool) {
	if o.bytes == 0 {
		o.first = o.visit.server.cfg.Clock.Now()
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
	} else if o.writeErr == nil {
		o.last = o.visit.server.cfg.Clock.Now()
		_, o.writeErr = o.visit.w.Write(p)
	}
}

// passRefusal gives the client the provider's last refusal, and advises it not to retry: the line has tried
// already.
func (o *out) passRefusal(resp *http.Response) {
	body, _ := io.ReadAll(resp.Body) // it is in memory
	if o.visit.pings() {
		o.setDeadline() // a ping may hold the turn
		o.hasDeadline = true
	}
	o.exclusively(func() {
		if o.status != 0 {
			fault := provider.Classify(resp.StatusCode, resp.Header, body)
			o.sendFault(provider.Refusal{Status: resp.StatusCode, Code: fault.Code, Message: providerText(fault)})
			return
		}
		h := o.visit.w.Header()
		copyAnswerHeaders(h, resp.Header)
		o.visit.setServed(h)
		h.Set("X-Should-Retry", "false")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		o.sendHead(resp.StatusCode, "")
		o.bytes += int64(len(body))
		_, o.writeErr = o.visit.w.Write(body)
	})
}

// sendFault sends an error to a client that has the head of its answer. If it can no longer be sent, the answer is
// incomplete.
func (o *out) sendFault(r provider.Refusal) {
	switch {
	case o.events && o.tap.Between():
		o.write(o.visit.face.Fault(o.visit.operation, r))
	case o.mayBlank && o.bytes == 0:
		_, body := o.visit.face.Refuse(r)
		o.write(body)
	default:
		o.incomplete = true
	}
}

// finish ends the answer: with a refusal, if there was none. It returns the status that the client
// has, and whether the connection has to be cut off, so that the client sees that the end is missing.
// Nobody pings any more.
func (o *out) finish(refusal *refused) (status int, aborted bool) {
	<-o.turn
	defer func() {
		if o.hasDeadline && o.writeErr == nil {
			o.clearDeadline()
		}
	}()
	if o.pinged {
		o.visit.setServed(o.visit.w.Header()) // as trailers: the head has left
	}
	switch {
	case o.visit.r.Context().Err() != nil: // nobody sees it
		return o.status, false
	case refusal == nil:
	case o.status == 0:
		if o.visit.tries > 0 {
			o.visit.setServed(o.visit.w.Header())
		}
		writeRefusal(o.visit.w, o.visit.face, *refusal)
		o.status = refusal.Status
	default:
		o.incomplete = false
		o.sendFault(refusal.Refusal)
		return o.status, o.incomplete
	}
	return o.status, o.incomplete
}
