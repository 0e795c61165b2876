package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/provider"
)

// lineRequest returns the request of the call as the line sees it. It is never sent.
func (v *visit) lineRequest() *http.Request {
	return &http.Request{Method: http.MethodPost, URL: &url.URL{Path: v.operation}, Header: http.Header{}}
}

// watch ends the call for each reason but its own end: the client has gone or its patience is over, its
// deadline has passed, or the server stops. stop ends the watch, and waits until nothing of it runs.
func (v *visit) watch(ctx context.Context, cancel context.CancelCauseFunc) (stop func()) {
	// whileWaiting cancels the call once it waits, now or after a refusal: then it has not left, and
	// never leaves.
	whileWaiting := func(cause error) func() {
		return func() {
			select {
			case <-v.waitToken:
				cancel(cause)
			case <-ctx.Done():
			}
		}
	}
	gone := func() { cancel(errGone) }
	if v.server.cfg.FinishGone {
		gone = whileWaiting(errGone)
	}
	stops := []func() bool{
		v.server.alarm(max(v.wishes.maxWait-v.waited(), 1), whileWaiting(errPatience)),
		onEnd(v.r.Context(), gone),
		onEnd(v.server.waitingStopped, whileWaiting(errStopping)),
		onEnd(v.server.allStopped, func() { cancel(errStopping) }),
	}
	if v.wishes.timeout > 0 {
		stops = append(stops, v.server.alarm(max(v.wishes.timeout-v.waited(), 1), func() { cancel(errDeadline) }))
	}
	v.cancel = cancel
	stopHurry := onEnd(ctx, v.out.setDeadline)
	return func() {
		v.out.hasDeadline = !stopHurry() || v.out.hasDeadline
		cancel(nil)
		for _, stop := range stops {
			stop()
		}
	}
}

// startPinging pings the client after CommitAfter, until stop. stop waits until no ping runs.
func (v *visit) startPinging() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.r.Context()))
	stopAlarm := v.server.alarm(v.server.cfg.CommitAfter, func() { v.out.ping(ctx) })
	return func() {
		cancel()
		v.out.setDeadline() // a ping may hold the turn
		v.out.hasDeadline = true
		stopAlarm()
	}
}

// alarm runs f once d is over, unless it is stopped before. stop waits for f if that has begun.
func (s *Server) alarm(d time.Duration, f func()) (stop func() bool) {
	done := make(chan struct{})
	t := s.cfg.Clock.AfterFunc(d, func() { defer close(done); f() })
	return func() bool {
		if t.Stop() {
			return true
		}
		<-done
		return false
	}
}

// onEnd runs f once ctx has ended, unless it is stopped before. stop waits for f if that has begun.
func onEnd(ctx context.Context, f func()) (stop func() bool) {
	done := make(chan struct{})
	leave := context.AfterFunc(ctx, func() { defer close(done); f() })
	return func() bool {
		if leave() {
			return true
		}
		<-done
		return false
	}
}

// RoundTrip sends the call to the provider of its lane, once. The line calls it, in the goroutine of
// the visit.
func (v *visit) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	if !v.inFlight {
		select {
		case <-v.waitToken:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		v.server.countDeparture(v.wishes.client, v.wishes.class)
		v.ticket.Left()
		v.out.setForecast("")
	}
	v.tries, v.lane, v.leftAt, v.inFlight = v.tries+1, batch.LaneFrom(ctx), v.server.cfg.Clock.Now(), true
	v.recorder = provider.RecorderFrom(ctx)
	return v.send(ctx)
}

// callEnded puts the request back among those that wait, if its call is to be repeated. All of the refusal was read
// by then: the end of the client's patience takes nothing of it away.
func (v *visit) callEnded(c batch.Call) { //nolint:gocritic // its type is batch's
	if v.failedKind = c.Kind; c.Again && v.inFlight {
		v.server.countReturn(v.wishes.client, v.wishes.class)
		v.inFlight = false
		v.waitToken <- struct{}{}
		if c.Doubtful.Calls > 0 {
			v.reserveAgain()
		}
	}
}

// showsRefusal reports whether the client gets the provider's words when ctx has ended. It does if its patience has
// ended and the last call has failed. A limit is no failure, as a later try may pass.
func (v *visit) showsRefusal(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errPatience) && v.failedKind != provider.Throttled && v.failedKind != provider.Overloaded
}

// send sends the call to the provider of the visit's lane. It returns an error for an answer whose status no client
// may get.
func (v *visit) send(ctx context.Context) (*http.Response, error) {
	up := v.server.cfg.Upstream(v.lane)
	if up == nil {
		return nil, batch.Permanent(fmt.Errorf("serve: lane %.64q has no way to a provider", v.lane))
	}
	resp, err := v.sendAskingUsage(ctx, up)
	if err == nil && !mayPass(resp.StatusCode) {
		_ = resp.Body.Close()
		return nil, batch.Permanent(fmt.Errorf("serve: the provider's answer has status %d: want 200..299 or 400..999", resp.StatusCode))
	}
	return resp, err
}

// mayPass reports whether an answer of that status may go to a client. A redirect leads elsewhere, where no client may
// follow. Below 200 is no answer, and net/http panics over what has not three digits.
func mayPass(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices || status >= http.StatusBadRequest && status <= 999
}

// deliver brings the answer to the client as it comes, and records the usage that a stream reports.
func (v *visit) deliver(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }() // its end is known
	clock := v.server.cfg.Clock
	late := v.server.alarm(max(v.server.cfg.Timeout-clock.Now().Sub(v.leftAt), 1), func() { v.cancel(errTimeout) })
	defer late()
	idle := clock.AfterFunc(v.server.cfg.StreamIdle, func() { v.cancel(errIdle) })
	defer idle.Stop()
	tap := v.out.begin(resp)
	if tap != nil || v.streams {
		v.server.withBooks(func(b *books) { b.streams++ })
		defer v.server.withBooks(func(b *books) { b.streams-- })
	}
	err := v.out.copy(resp.Body, func() { idle.Reset(v.server.cfg.StreamIdle) })
	if tap != nil {
		if used, has := tap.Usage(); has {
			v.recorder.Usage(used)
		}
		if word := tap.Finish(); word != "" {
			v.recorder.Finish(word)
		}
	}
	return err
}

// report tells the log of the visit's end.
func (v *visit) report(status int, refusal *refused) {
	if v.server.cfg.Log == nil {
		return
	}
	now := v.server.cfg.Clock.Now()
	access := Access{
		At: v.began, Client: v.wishes.client, Class: v.wishes.class, Path: v.r.URL.Path, Model: v.model, Lane: v.lane, Status: status,
		Streamed: v.streams, Waited: now.Sub(v.began), Took: now.Sub(v.began), Attempts: v.tries, Bytes: v.out.bytes,
		Usage: v.itemEnd.Usage, Finish: v.itemEnd.Finish, Cost: v.cost, Priced: v.costKnown, Gone: v.r.Context().Err() != nil,
	}
	if !isModel(access.Model) {
		access.Model = "" // it is some text of the client's, of any length
	}
	if access.Client == "" {
		access.Client = v.client.Name
	}
	if !v.leftAt.IsZero() {
		access.Waited = v.leftAt.Sub(v.began)
	}
	if !v.out.first.IsZero() {
		access.First = v.out.first.Sub(v.began)
	}
	if refusal != nil {
		access.Code = refusal.Code
	}
	v.server.cfg.Log(access)
}
