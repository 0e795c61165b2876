package serve

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/internal/queue"
	"github.com/headrace/headrace/provider"
)

// Causes with which the server ends the context of a call.
var (
	errPatience = errors.New("serve: the request has waited as long as its client lets it")
	errDeadline = errors.New("serve: the deadline of the request has passed")
	errTimeout  = errors.New("serve: the call took longer than a call may")
	errIdle     = errors.New("serve: the stream was silent for too long")
	errStopping = errors.New("serve: the server is stopping")
	errUnpriced = errors.New("serve: nobody knows what the call costs, and there is a cap")
	errGone     = errors.New("serve: the client has gone")
)

// refused is a refusal with what its client should do next.
type refused struct {
	provider.Refusal
	again bool          // another try may pass
	wait  time.Duration // before it; 0: nobody knows
}

// maxAskedWait is the longest wait that an SDK is asked for. openai-node takes a longer one for a mistake
// and comes back after half a second.
const maxAskedWait = time.Minute

// reasonOf returns the refusal for a call that ended by err, in words for its client.
func reasonOf(ctx context.Context, err error) refused {
	cause := context.Cause(ctx)
	is := func(target error) bool { return errors.Is(cause, target) || errors.Is(err, target) }
	var late *queue.LateError
	switch {
	case is(queue.ErrFull):
		return refused{Refusal: provider.Refusal{Status: http.StatusTooManyRequests, Code: "headrace_queue_full", Message: "too many requests wait already"}, again: true, wait: time.Second}
	case is(queue.ErrDrained), is(queue.ErrClosed):
		return refused{Refusal: *stopping(), again: true, wait: time.Second}
	case errors.As(err, &late) && late.Forecast.Wait >= 0:
		return tooLate(late.Forecast)
	case is(errPatience), late != nil:
		return refused{Refusal: provider.Refusal{Status: http.StatusTooManyRequests, Code: "headrace_wait_too_long", Message: "no call could be made in the time that this request may wait"}, again: true, wait: maxAskedWait}
	case is(errDeadline):
		return refused{Refusal: *tooOld()}
	case is(errTimeout), is(batch.ErrItemTimeout):
		return refused{Refusal: provider.Refusal{Status: http.StatusGatewayTimeout, Code: "headrace_timeout", Message: "the provider took longer than a call may"}}
	case is(errIdle):
		return refused{Refusal: provider.Refusal{Status: http.StatusGatewayTimeout, Code: "headrace_timeout", Message: "the provider's stream was silent for too long"}}
	case is(errStopping), is(batch.ErrClosed):
		return refused{Refusal: *stopping(), again: true, wait: time.Second}
	case is(errUnpriced):
		return refused{Refusal: provider.Refusal{Status: http.StatusPaymentRequired, Code: "headrace_budget", Message: "the price of this model is not known, and there is a cap on costs"}}
	case is(batch.ErrMaxCost):
		return refused{Refusal: provider.Refusal{Status: http.StatusPaymentRequired, Code: "headrace_budget", Message: "the budget does not cover this request"}}
	case is(batch.ErrStopped):
		return refused{Refusal: provider.Refusal{Status: http.StatusServiceUnavailable, Code: "headrace_stopped", Message: "the provider no longer serves this lane: " + providerText(err)}}
	case is(batch.ErrConfig):
		return refused{Refusal: provider.Refusal{Status: http.StatusInternalServerError, Code: "headrace_config", Message: "this server is configured wrongly"}}
	}
	return refused{Refusal: provider.Refusal{Status: http.StatusBadGateway, Code: "headrace_upstream", Message: "the provider did not answer: " + providerText(err)}}
}

func tooOld() *provider.Refusal {
	return &provider.Refusal{Status: http.StatusGatewayTimeout, Code: "headrace_deadline", Message: "the deadline of this request has passed"}
}

// tooLate refuses a request with the forecast. A client that would wait longer than SDKs do is not asked to come back.
func tooLate(f queue.Forecast) refused {
	return refused{
		Refusal: provider.Refusal{Status: http.StatusTooManyRequests, Code: "headrace_wait_too_long", Message: "this request would wait longer than it may: " + f.String()},
		again:   f.Wait <= maxAskedWait, wait: f.Wait,
	}
}

// providerText returns the provider's words, or the kind of the failure. Other errors may name addresses, and stay
// in the log.
func providerText(err error) string {
	if e := (*provider.Error)(nil); errors.As(err, &e) {
		if e.Message != "" {
			return e.Message
		}
		return e.Kind.String()
	}
	return provider.ClassifyErr(err).Kind.String()
}

// setHeaders sets the headers by which the client learns whether and when to try again.
func (r *refused) setHeaders(h http.Header) {
	h.Set("X-Should-Retry", strconv.FormatBool(r.again))
	if r.again && r.wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(min(max((r.wait+time.Second-1)/time.Second, 1), maxAskedWait/time.Second)), 10))
	}
}

// beforeLine returns a refusal that comes before the line. Another try helps only where there was no room, or the
// server stops.
func beforeLine(r *provider.Refusal) refused {
	again := r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable
	return refused{Refusal: *r, again: again, wait: time.Second}
}

// writeRefusal writes a refusal as a whole answer.
func writeRefusal(w http.ResponseWriter, face provider.Face, r refused) {
	h, body := face.Refuse(r.Refusal)
	for name, values := range h {
		w.Header()[name] = values
	}
	r.setHeaders(w.Header())
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(r.Status)
	_, _ = w.Write(body) // the client may have gone
}
