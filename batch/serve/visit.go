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
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	client *door.Client
	began  time.Time

	face          provider.Face
	operation     string
	model         string
	pathStreams   bool // the path asks for a stream
	streams       bool // the request asks for one
	wishes        wishes
	body          []byte
	bodyWithUsage []byte // the body with a question for the usage; nil: there is none
	otherModels   []byte // the models that may answer in the place of the model; nil: none
	bodyRoom      int64  // that it has taken for its body

	header http.Header // what the provider gets of the client's
	query  string

	ticket  *queue.Ticket // for the request's turn
	home    Home          // in which it waits; zero: it waits in its pool
	entered time.Time     // when it entered the line

	input, output float64       // tokens, estimated
	price, cost   limiter.Money // of its call: before, and after it
	costKnown     bool
	reservations  int // of the price: one for each call that may be billed

	waitToken chan struct{} // holds a token while the request waits: the one that has taken it decides whether it leaves
	out       *out
	tries     int
	lane      string
	leftAt    time.Time // when its last call left; zero: none has
	inFlight  bool      // its call is in flight
	itemEnd   batch.End

	failedKind batch.Kind // why its last call failed

	cancel   context.CancelCauseFunc // ends its call
	recorder *provider.Recorder      // of its last call
}

// route finds the dialect that serves the path, and the operation and the model in it. It returns false if none
// does.
func (v *visit) route() bool {
	path := v.r.URL.EscapedPath()
	for _, f := range faces {
		if operation, model, streams, ok := f.Find(path); ok {
			v.face, v.operation, v.model, v.pathStreams = f, operation, model, streams
			return true
		}
	}
	return false
}

// serve handles the request from its head to its end: it checks it, makes its call, finishes the answer and logs
// it.
func (v *visit) serve() {
	if refusal := v.server.countIn(); refusal != nil {
		writeRefusal(v.w, v.face, beforeLine(refusal))
		return
	}
	defer func() { v.server.countOut(v.bodyRoom) }()
	var why *refused
	v.out = newOut(v)
	if refusal := v.check(); refusal != nil {
		why = new(beforeLine(refusal))
	} else if refusal, err := v.call(); err != nil {
		why = refusal
	}
	status, aborted := v.out.finish(why)
	v.report(status, why)
	if aborted {
		panic(http.ErrAbortHandler)
	}
}

// check reads the request. It returns a refusal for one that cannot be a call.
func (v *visit) check() (refusal *provider.Refusal) {
	if refusal = door.Unfit(v.r); refusal != nil {
		return refusal
	}
	if v.wishes, refusal = v.server.readWishes(v.r.Header, v.client, v.began); refusal != nil {
		return refusal
	}
	if refusal = v.readBody(); refusal != nil {
		return refusal
	}
	if refusal = v.readFields(); refusal != nil {
		return refusal
	}
	if v.wishes.timeout > 0 && v.server.cfg.Clock.Now().Sub(v.began) >= v.wishes.timeout {
		return tooOld()
	}
	if !v.mayAsk() {
		return &provider.Refusal{Status: http.StatusForbidden, Code: "headrace_model", Message: "this client may not ask this model"}
	}
	v.header, v.query = requestHeaders(v.r.Header), requestQuery(v.r.URL.RawQuery)
	return nil
}

// mayAsk reports whether the client may ask the model, and each other model that may answer in its place.
func (v *visit) mayAsk() bool {
	if v.client.Models == nil || !v.client.May(v.model) {
		return v.client.Models == nil
	}
	if len(v.otherModels) == 0 || string(v.otherModels) == "null" {
		return true
	}
	if v.otherModels[0] != '[' {
		return false
	}
	for walk := rawjson.WalkIn(v.otherModels); walk.Next(); {
		if name := walk.Skip(); !rawjson.IsString(name) || !v.client.May(string(rawjson.Unquote(name))) {
			return false
		}
	}
	return true
}

// bodyTimeout is the time that the body of a request may take: what an uplink of 10 Mbit/s needs for the
// longest body. It also bounds the body of a request that is refused unread, which net/http reads before it answers.
const bodyTimeout = time.Minute

// bodyPiece is the least room that is taken for a body, in bytes. More is taken as more comes: a length that is only announced
// would keep others out.
const bodyPiece = 64 << 10

// readBody reads the body, within its own bound and that of all bodies together. It takes room for the body as it
// comes.
func (v *visit) readBody() *provider.Refusal {
	length, maxBody := v.r.ContentLength, v.server.cfg.MaxBody
	tooLong := &provider.Refusal{Status: http.StatusRequestEntityTooLarge, Code: "headrace_too_large", Message: "the body is longer than this server takes"}
	if length > maxBody {
		v.w.Header().Set("Connection", "close") // nobody reads it
		return tooLong
	}
	var buffer bytes.Buffer
	for {
		if needed := int64(buffer.Len()) + bodyPiece; needed > v.bodyRoom {
			bound := maxBody + 1
			if length >= 0 {
				bound = max(length, 1)
			}
			if needed = min(max(needed, 2*v.bodyRoom), bound); needed > v.bodyRoom {
				if !v.server.takeRoom(needed - v.bodyRoom) {
					return queueFull("the bodies of requests that wait take all the room there is")
				}
				v.bodyRoom = needed
			}
			buffer.Grow(int(v.bodyRoom) - buffer.Len() + bytes.MinRead)
		}
		n, err := io.CopyN(&buffer, v.r.Body, min(bodyPiece, maxBody+1-int64(buffer.Len())))
		switch {
		case int64(buffer.Len()) > maxBody:
			v.w.Header().Set("Connection", "close")
			return tooLong
		case errors.Is(err, io.EOF):
			v.body = buffer.Bytes()
			_ = http.NewResponseController(v.w).SetReadDeadline(time.Time{})
			return nil
		case err != nil || n == 0:
			v.w.Header().Set("Connection", "close")
			return &provider.Refusal{Status: http.StatusBadRequest, Code: "headrace_body", Message: "the body did not come whole"}
		}
	}
}

// readFields finds the model and the wish for a stream in the body. Two models, or two such wishes, are refused:
// the provider might read the other one.
func (v *visit) readFields() *provider.Refusal {
	refuse := func(message string) *provider.Refusal {
		return &provider.Refusal{Status: http.StatusBadRequest, Code: "headrace_body", Message: message}
	}
	object := rawjson.Trim(v.body)
	if !rawjson.IsObject(object) || !rawjson.Valid(object) {
		return refuse("the body is not a JSON object")
	}
	inBody, modelFields, streamFields, otherFields := v.model == "", 0, 0, 0
	for walk := rawjson.WalkIn(object); walk.Next(); {
		name := string(walk.Name)
		value := walk.Skip()
		switch {
		case name == "model" && inBody:
			if modelFields++; !rawjson.IsString(value) {
				return refuse("the model is not a text")
			}
			v.model = string(rawjson.Unquote(value))
		case name == "models": // those that answer if it does not, at OpenRouter and its like
			otherFields++
			v.otherModels = value
		case name == "stream":
			streamFields++
			v.streams = string(value) == "true"
		}
	}
	if modelFields > 1 || streamFields > 1 || otherFields > 1 {
		return refuse("the body has two members of one name")
	}
	if inBody {
		if modelFields == 0 {
			return refuse("the body names no model")
		}
	} else {
		v.streams = v.pathStreams
	}
	if !isModel(v.model) {
		return refuse("the name of the model cannot be one")
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

// remaining returns what remains of a bound after the time that has passed, at least 1. A bound of 0 means none,
// and stays 0.
func remaining(whole, passed time.Duration) time.Duration {
	if whole > 0 {
		whole = max(whole-passed, 1)
	}
	return whole
}

// place returns the place of the request in the line: whose it is, what it costs and how long it may wait.
func (v *visit) place() line.Place {
	if v.entered.IsZero() {
		v.entered = v.server.cfg.Clock.Now()
		v.wishes.timeout = remaining(v.wishes.timeout, v.entered.Sub(v.began))
	}
	patience := v.wishes.maxWait
	if v.wishes.timeout > 0 {
		patience = min(patience, v.wishes.timeout)
	}
	v.input, v.output = estimate.For(v.operation, v.body)
	return line.Place{
		Class: v.wishes.class, Client: v.wishes.client, Key: v.client.Name, Weight: v.client.Weight, Tag: v.wishes.tag, Cost: v.input + v.output,
		Latest: v.entered.Add(patience), MaxWaiting: v.client.MaxWaiting, MaxInFlight: v.client.MaxInFlight,
	}
}

// enter puts the request into the line of its home, if it has one, and else into that of its pool.
func (v *visit) enter(pool string) (err error) {
	if v.server.cfg.Home != nil && v.entersHome(pool) {
		return nil
	}
	v.ticket, err = v.server.queue.Enter(pool, v.place())
	return err
}

// entersHome puts the request into the line of its home, if it has one and would leave there within the home's
// patience.
func (v *visit) entersHome(pool string) (waits bool) {
	if v.home = v.server.cfg.Home(pool, v.body); v.home.Pool == "" {
		return false
	}
	place := v.place()
	if patient := v.entered.Add(v.home.Patience); patient.Before(place.Latest) {
		place.Latest = patient
	}
	t, err := v.server.queue.Enter(v.home.Pool, place)
	if err != nil {
		v.home = Home{}
		return false // its pool says why it cannot wait, if it cannot
	}
	v.ticket = t
	return true
}

// leaveLine takes the request out of the line, wherever it is.
func (v *visit) leaveLine() { v.ticket.Done() }

// moveToPool takes a request out of the line of its home, and puts it into that of its pool.
func (v *visit) moveToPool(pool string) error {
	v.ticket.Done()
	t, err := v.server.queue.Enter(pool, v.place())
	if err == nil {
		v.ticket = t
	}
	return err
}

// leavesHome reports whether the request waits in its pool from now on: its home has stopped, or lets it wait too
// long. err is why it no longer waits at home.
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
			v.out.setForecast(f.String())
		case err := <-v.ticket.Refused():
			if v.wishes.timeout > 0 && v.waited() >= v.wishes.timeout {
				return errDeadline
			}
			if !v.leavesHome(err) {
				return err
			}
			if err := v.moveToPool(pool); err != nil {
				return err
			}
		case <-v.r.Context().Done():
			return errGone
		case <-v.server.waitingStopped.Done():
			return errStopping
		case <-v.server.allStopped.Done():
			return errStopping
		}
	}
}

// waited returns the time for which the request has been in the line.
func (v *visit) waited() time.Duration { return v.server.cfg.Clock.Now().Sub(v.entered) }

// call waits in line, makes the call, and brings the answer to the client. It returns a refusal if there
// was none.
func (v *visit) call() (*refused, error) {
	pool, opts, err := v.server.cfg.Pool(v.operation, v.model)
	if err != nil {
		return &refused{Refusal: provider.Refusal{Status: http.StatusNotFound, Code: "headrace_model", Message: err.Error()}}, err
	}
	if err := v.enter(pool); err != nil {
		return new(reasonOf(v.r.Context(), err)), err
	}
	defer v.leaveLine()
	if v.pings() {
		defer v.startPinging()()
	}
	v.server.countWaiting(v.wishes.client, v.wishes.class)
	if err := v.awaitTurn(pool); err != nil {
		v.server.countEnd(v.wishes.client, v.wishes.class, true)
		return new(reasonOf(v.r.Context(), err)), err
	}
	v.waitToken = make(chan struct{}, 1)
	v.waitToken <- struct{}{}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(v.r.Context()))
	defer v.watch(ctx, cancel)()
	if err := v.reservePrice(ctx, pool); err != nil {
		v.server.countEnd(v.wishes.client, v.wishes.class, true)
		return new(reasonOf(ctx, err)), err
	}
	defer v.settle()

	where := pool
	if v.home.Pool != "" {
		where, opts = v.home.Pool, v.home.Options
	}
	c := &paced.Call{Request: v.lineRequest(), Operation: v.operation, Model: v.model, Body: v.body}
	opts = append(opts[:len(opts):len(opts)],
		batch.WithPoolOf(func(*paced.Call) string { return where }), batch.WithAttemptTimeout(v.server.cfg.Timeout),
		batch.WithCalls(v.callEnded), batch.WithEnds(func(e batch.End) { v.itemEnd = e; v.itemEnd.In = nil }))
	refusal, err := paced.Forward(ctx, v.server.cfg.Shared, v, c, v.deliver, opts...) //nolint:bodyclose // it is in memory
	v.server.countEnd(v.wishes.client, v.wishes.class, !v.inFlight)
	switch {
	case refusal != nil && (err == nil || v.showsRefusal(ctx)):
		v.out.passRefusal(refusal)
		return nil, nil //nolint:nilnil // the client has the provider's words
	case err == nil:
		return nil, nil //nolint:nilnil // the client has its answer
	}
	return new(reasonOf(ctx, err)), err
}
