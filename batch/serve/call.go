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

// shell returns the request of the call as the line sees it: it never leaves.
func (v *visit) shell() *http.Request {
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
			case <-v.line:
				cancel(cause)
			case <-ctx.Done():
			}
		}
	}
	gone := func() { cancel(errGone) }
	if v.s.cfg.FinishGone {
		gone = whileWaiting(errGone)
	}
	all := []func() bool{
		v.s.alarm(max(v.wishes.maxWait-v.since(), 1), whileWaiting(errPatience)),
		onEnd(v.r.Context(), gone),
		onEnd(v.s.stopped, whileWaiting(errStopping)),
		onEnd(v.s.cut, func() { cancel(errStopping) }),
	}
	if v.wishes.whole > 0 {
		all = append(all, v.s.alarm(max(v.wishes.whole-v.since(), 1), func() { cancel(errDeadline) }))
	}
	v.cancel = cancel
	calm := onEnd(ctx, v.out.hurry)
	return func() {
		v.out.hurried = !calm() || v.out.hurried
		cancel(nil)
		for _, stop := range all {
			stop()
		}
	}
}

// startPinging pings the client after CommitAfter, until stop. stop waits until no ping runs.
func (v *visit) startPinging() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(v.r.Context()))
	stopAlarm := v.s.alarm(v.s.cfg.CommitAfter, func() { v.out.ping(ctx) })
	return func() {
		cancel()
		v.out.hurry() // a ping may hold the turn
		v.out.hurried = true
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
	if !v.flies {
		select {
		case <-v.line:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		v.s.departs(v.wishes.client, v.wishes.class)
		v.ticket.Left()
		v.out.says("")
	}
	v.tries, v.lane, v.left, v.flies = v.tries+1, batch.LaneFrom(ctx), v.s.cfg.Clock.Now(), true
	v.recorder = provider.RecorderFrom(ctx)
	return v.send(ctx)
}

// called puts the request back among those that wait, if its call is to be repeated. All of the refusal was read by
// then: the end of the client's patience takes nothing of it away.
func (v *visit) called(c batch.Call) { //nolint:gocritic // its type is batch's
	if v.failed = c.Kind; c.Again && v.flies {
		v.s.returns(v.wishes.client, v.wishes.class)
		v.flies = false
		v.line <- struct{}{}
		if c.Doubtful.Calls > 0 {
			v.paysAgain()
		}
	}
}

// tells reports whether the client gets the provider's words when ctx has ended: its patience has, and the last call
// has failed. A limit is no failure, and a later try may pass.
func (v *visit) tells(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), errPatience) && v.failed != provider.Throttled && v.failed != provider.Overloaded
}

func (v *visit) send(ctx context.Context) (*http.Response, error) {
	up := v.s.cfg.Upstream(v.lane)
	if up == nil {
		return nil, batch.Permanent(fmt.Errorf("serve: lane %.64q has no way to a provider", v.lane))
	}
	resp, err := v.pass(ctx, up)
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

// give brings the answer to the client, as it comes.
func (v *visit) give(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }() // its end is known
	clock := v.s.cfg.Clock
	late := v.s.alarm(max(v.s.cfg.Timeout-clock.Now().Sub(v.left), 1), func() { v.cancel(errTimeout) })
	defer late()
	idle := clock.AfterFunc(v.s.cfg.StreamIdle, func() { v.cancel(errIdle) })
	defer idle.Stop()
	tap := v.out.begin(resp)
	if tap != nil || v.streams {
		v.s.with(func(b *books) { b.streams++ })
		defer v.s.with(func(b *books) { b.streams-- })
	}
	err := v.out.copy(resp.Body, func() { idle.Reset(v.s.cfg.StreamIdle) })
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
func (v *visit) report(status int, why *refused) {
	if v.s.cfg.Log == nil {
		return
	}
	now := v.s.cfg.Clock.Now()
	a := Access{
		At: v.began, Client: v.wishes.client, Class: v.wishes.class, Path: v.r.URL.Path, Model: v.model, Lane: v.lane, Status: status,
		Streamed: v.streams, Waited: now.Sub(v.began), Took: now.Sub(v.began), Attempts: v.tries, Bytes: v.out.bytes,
		Usage: v.end.Usage, Finish: v.end.Finish, Cost: v.cost, Priced: v.costKnown, Gone: v.r.Context().Err() != nil,
	}
	if !isModel(a.Model) {
		a.Model = "" // it is some text of the client's, of any length
	}
	if a.Client == "" {
		a.Client = v.client.Name
	}
	if !v.left.IsZero() {
		a.Waited = v.left.Sub(v.began)
	}
	if !v.out.first.IsZero() {
		a.First = v.out.first.Sub(v.began)
	}
	if why != nil {
		a.Code = why.Code
	}
	v.s.cfg.Log(a)
}
