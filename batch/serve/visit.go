package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/paced"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/batch/serve/internal/line"
	"github.com/headrace/headrace/batch/serve/internal/queue"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/estimate"
	"github.com/headrace/headrace/provider/rawjson"
)

// visit is one request on its way. The goroutine of its connection owns it.
type visit struct {
	s      *Server
	w      http.ResponseWriter
	r      *http.Request
	client *door.Client
	began  time.Time

	face      provider.Face
	operation string
	model     string
	path      bool // the path asks for a stream
	streams   bool // the request asks for one
	wishes    wishes
	body      []byte
	counting  []byte // the body with a question for the usage; nil: there is none
	spare     []byte // the models that may answer in the place of the model; nil: none
	room      int64  // that it has taken for its body

	header http.Header // what the provider gets of the client's
	query  string

	ticket  *queue.Ticket // for the request's turn
	home    Home          // in which it waits; zero: it waits in its pool
	entered time.Time     // the line

	input, output float64       // tokens, estimated
	price, cost   limiter.Money // of its call: before, and after it
	costKnown     bool
	reserved      int // how often the price is: once for each call that may be billed

	line  chan struct{} // holds a token while the request waits: the one that has taken it decides whether it leaves
	out   *out
	tries int
	lane  string
	left  time.Time // when its last call left; zero: none has
	flies bool      // it is in flight
	end   batch.End

	failed batch.Kind // why its last call did

	cancel   context.CancelCauseFunc // ends its call
	recorder *provider.Recorder      // of its last call
}

// route finds the face and what is asked.
func (v *visit) route() bool {
	path := v.r.URL.EscapedPath()
	for _, f := range faces {
		if operation, model, streams, ok := f.Find(path); ok {
			v.face, v.operation, v.model, v.path = f, operation, model, streams
			return true
		}
	}
	return false
}

// serve takes the request from its head to its end.
func (v *visit) serve() {
	if refusal := v.s.comesIn(); refusal != nil {
		plain(v.w, v.face, atTheDoor(refusal))
		return
	}
	defer func() { v.s.goesOut(v.room) }()
	var why *refused
	v.out = newOut(v)
	if refusal := v.check(); refusal != nil {
		why = new(atTheDoor(refusal))
	} else if refusal, err := v.call(); err != nil {
		why = refusal
	}
	status, aborted := v.out.finish(why)
	v.report(status, why)
	if aborted {
		panic(http.ErrAbortHandler)
	}
}

// check reads the request. It refuses one that cannot be a call.
func (v *visit) check() (refusal *provider.Refusal) {
	if refusal = door.Unfit(v.r); refusal != nil {
		return refusal
	}
	if v.wishes, refusal = v.s.read(v.r.Header, v.client, v.began); refusal != nil {
		return refusal
	}
	if refusal = v.readBody(); refusal != nil {
		return refusal
	}
	if refusal = v.readWords(); refusal != nil {
		return refusal
	}
	if v.wishes.whole > 0 && v.s.cfg.Clock.Now().Sub(v.began) >= v.wishes.whole {
		return tooOld()
	}
	if !v.mayAsk() {
		return &provider.Refusal{Status: http.StatusForbidden, Code: "headrace_model", Message: "this client may not ask this model"}
	}
	v.header, v.query = outgoing(v.r.Header), outgoingQuery(v.r.URL.RawQuery)
	return nil
}

// mayAsk reports whether the client may ask the model, and each that is to answer in its place.
func (v *visit) mayAsk() bool {
	if v.client.Models == nil || !v.client.May(v.model) {
		return v.client.Models == nil
	}
	if len(v.spare) == 0 || string(v.spare) == "null" {
		return true
	}
	if v.spare[0] != '[' {
		return false
	}
	for w := rawjson.WalkIn(v.spare); w.Next(); {
		if name := w.Skip(); !rawjson.IsString(name) || !v.client.May(string(rawjson.Unquote(name))) {
			return false
		}
	}
	return true
}

// slowest is the time that the body of a request may take: what an uplink of 10 Mbit/s needs for the
// longest body. It also bounds the body of a request that is refused unread, which net/http reads before it answers.
const slowest = time.Minute

// piece is the least room that is taken for a body, in bytes. More is taken as more comes: a length that is only announced
// would keep others out.
const piece = 64 << 10

// readBody reads the body, within its own bound and that of all.
func (v *visit) readBody() *provider.Refusal {
	length, most := v.r.ContentLength, v.s.cfg.MaxBody
	tooLong := &provider.Refusal{Status: http.StatusRequestEntityTooLarge, Code: "headrace_too_large", Message: "the body is longer than this server takes"}
	if length > most {
		v.w.Header().Set("Connection", "close") // nobody reads it
		return tooLong
	}
	var b bytes.Buffer
	for {
		if want := int64(b.Len()) + piece; want > v.room {
			bound := most + 1
			if length >= 0 {
				bound = max(length, 1)
			}
			if want = min(max(want, 2*v.room), bound); want > v.room {
				if !v.s.room(want - v.room) {
					return full("the bodies of requests that wait take all the room there is")
				}
				v.room = want
			}
			b.Grow(int(v.room) - b.Len() + bytes.MinRead)
		}
		n, err := io.CopyN(&b, v.r.Body, min(piece, most+1-int64(b.Len())))
		switch {
		case int64(b.Len()) > most:
			v.w.Header().Set("Connection", "close")
			return tooLong
		case errors.Is(err, io.EOF):
			v.body = b.Bytes()
			_ = http.NewResponseController(v.w).SetReadDeadline(time.Time{})
			return nil
		case err != nil || n == 0:
			v.w.Header().Set("Connection", "close")
			return &provider.Refusal{Status: http.StatusBadRequest, Code: "headrace_body", Message: "the body did not come whole"}
		}
	}
}

// readWords finds the model and the wish for a stream in the body. Two models, or two such wishes, are
// refused: the provider might take another one than is seen here.
func (v *visit) readWords() *provider.Refusal {
	bad := func(message string) *provider.Refusal {
		return &provider.Refusal{Status: http.StatusBadRequest, Code: "headrace_body", Message: message}
	}
	object := rawjson.Trim(v.body)
	if !rawjson.IsObject(object) || !rawjson.Valid(object) {
		return bad("the body is not a JSON object")
	}
	inBody, models, wishes, spares := v.model == "", 0, 0, 0
	for w := rawjson.WalkIn(object); w.Next(); {
		name := string(w.Name)
		value := w.Skip()
		switch {
		case name == "model" && inBody:
			if models++; !rawjson.IsString(value) {
				return bad("the model is not a text")
			}
			v.model = string(rawjson.Unquote(value))
		case name == "models": // those that answer if it does not, at OpenRouter and its like
			spares++
			v.spare = value
		case name == "stream":
			wishes++
			v.streams = string(value) == "true"
		}
	}
	if models > 1 || wishes > 1 || spares > 1 {
		return bad("the body has two members of one name")
	}
	if inBody {
		if models == 0 {
			return bad("the body names no model")
		}
	} else {
		v.streams = v.path
	}
	if !isModel(v.model) {
		return bad("the name of the model cannot be one")
	}
	return nil
}

// maxModel bounds the name of a model in bytes: the ARN of an inference profile has some hundred.
const maxModel = 256

// isModel reports whether a text may be the name of a model, and a part of a path.
func isModel(s string) bool {
	if s == "" || len(s) > maxModel || s == "." || s == ".." {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f || r > 0x7f && r < 0xa0 || r == 0xfffd || r == '\\' {
			return false
		}
	}
	return !hasDots(s)
}

// hasDots reports whether a part of a path is "..".
func hasDots(s string) bool {
	for part := range bytes.SplitSeq([]byte(s), []byte{'/'}) {
		if string(part) == ".." {
			return true
		}
	}
	return false
}

// leftOf returns what is left of a bound; 0: there is none.
func leftOf(whole, passed time.Duration) time.Duration {
	if whole > 0 {
		whole = max(whole-passed, 1)
	}
	return whole
}

// place says where the request stands in the line.
func (v *visit) place() line.Place {
	if v.entered.IsZero() {
		v.entered = v.s.cfg.Clock.Now()
		v.wishes.whole = leftOf(v.wishes.whole, v.entered.Sub(v.began))
	}
	patience := v.wishes.maxWait
	if v.wishes.whole > 0 {
		patience = min(patience, v.wishes.whole)
	}
	v.input, v.output = estimate.For(v.operation, v.body)
	return line.Place{
		Class: v.wishes.class, Client: v.wishes.client, Key: v.client.Name, Weight: v.client.Weight, Tag: v.wishes.tag, Cost: v.input + v.output,
		Latest: v.entered.Add(patience), MaxWaiting: v.client.MaxWaiting, MaxInFlight: v.client.MaxInFlight,
	}
}

// enter puts the request into the line of a pool.
func (v *visit) enter(pool string) (err error) {
	if v.s.cfg.Home != nil && v.entersHome(pool) {
		return nil
	}
	v.ticket, err = v.s.queue.Enter(pool, v.place())
	return err
}

// entersHome puts the request into the line of its home, if it has one and would leave there within the home's patience.
func (v *visit) entersHome(pool string) (waits bool) {
	if v.home = v.s.cfg.Home(pool, v.body); v.home.Pool == "" {
		return false
	}
	place := v.place()
	if patient := v.entered.Add(v.home.Patience); patient.Before(place.Latest) {
		place.Latest = patient
	}
	t, err := v.s.queue.Enter(v.home.Pool, place)
	if err != nil {
		v.home = Home{}
		return false // its pool says why it cannot wait, if it cannot
	}
	v.ticket = t
	return true
}

// leave takes the request out of the line, wherever it is.
func (v *visit) leave() { v.ticket.Done() }

// moves has a request that its home lets wait for too long wait in its pool.
func (v *visit) moves(pool string) error {
	v.ticket.Done()
	t, err := v.s.queue.Enter(pool, v.place())
	if err == nil {
		v.ticket = t
	}
	return err
}

// leavesHome reports whether the request waits in its pool from now on: its home has stopped, or lets it wait too long.
func (v *visit) leavesHome(err error) bool {
	if v.home.Pool == "" || err == nil {
		return false
	}
	for _, over := range []error{errDeadline, errGone, errStopping, queue.ErrDrained, queue.ErrClosed, queue.ErrFull} {
		if errors.Is(err, over) {
			return false
		}
	}
	v.home = Home{}
	return true
}

// awaitTurn waits until the request may ask the coordinator. Thousands wait here at once, so none has a context or a
// timer of its own for it: the queue knows their patience.
func (v *visit) awaitTurn(pool string) error {
	for {
		select {
		case <-v.ticket.Turn():
			return nil
		case f := <-v.ticket.News():
			v.out.says(f.String())
		case err := <-v.ticket.Refused():
			if v.wishes.whole > 0 && v.since() >= v.wishes.whole {
				return errDeadline
			}
			if !v.leavesHome(err) {
				return err
			}
			if err := v.moves(pool); err != nil {
				return err
			}
		case <-v.r.Context().Done():
			return errGone
		case <-v.s.stopped.Done():
			return errStopping
		case <-v.s.cut.Done():
			return errStopping
		}
	}
}

// since returns the time for which the request has stood in the line.
func (v *visit) since() time.Duration { return v.s.cfg.Clock.Now().Sub(v.entered) }

// call waits in line, makes the call, and brings the answer to the client. It returns a refusal if there
// was none.
func (v *visit) call() (*refused, error) {
	pool, opts, err := v.s.cfg.Pool(v.operation, v.model)
	if err != nil {
		return &refused{Refusal: provider.Refusal{Status: http.StatusNotFound, Code: "headrace_model", Message: err.Error()}}, err
	}
	if err := v.enter(pool); err != nil {
		return new(reasonOf(v.r.Context(), err)), err
	}
	defer v.leave()
	if v.pings() {
		defer v.startPinging()()
	}
	v.s.joinsLine(v.wishes.client, v.wishes.class)
	if err := v.awaitTurn(pool); err != nil {
		v.s.leaves(v.wishes.client, v.wishes.class, true)
		return new(reasonOf(v.r.Context(), err)), err
	}
	v.line = make(chan struct{}, 1)
	v.line <- struct{}{}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(v.r.Context()))
	defer v.watch(ctx, cancel)()
	if err := v.pays(ctx, pool); err != nil {
		v.s.leaves(v.wishes.client, v.wishes.class, true)
		return new(reasonOf(ctx, err)), err
	}
	defer v.settles()

	where := pool
	if v.home.Pool != "" {
		where, opts = v.home.Pool, v.home.Options
	}
	c := &paced.Call{Request: v.shell(), Operation: v.operation, Model: v.model, Body: v.body}
	opts = append(opts[:len(opts):len(opts)],
		batch.WithPoolOf(func(*paced.Call) string { return where }), batch.WithAttemptTimeout(v.s.cfg.Timeout),
		batch.WithCalls(v.called), batch.WithEnds(func(e batch.End) { v.end = e; v.end.In = nil }))
	refusal, err := paced.Forward(ctx, v.s.cfg.Shared, v, c, v.give, opts...) //nolint:bodyclose // it is in memory
	v.s.leaves(v.wishes.client, v.wishes.class, !v.flies)
	switch {
	case refusal != nil && (err == nil || v.tells(ctx)):
		v.out.pass(refusal)
		return nil, nil //nolint:nilnil // the client has the provider's words
	case err == nil:
		return nil, nil //nolint:nilnil // the client has its answer
	}
	return new(reasonOf(ctx, err)), err
}
