package servers

import (
	"net/http"
	"sync/atomic"
	"time"
)

// The refusals of llm-d-inference-sim, word for word (its failures.go and simulator.go). The
// limit in the first is made up, whatever the server can do, and "org-xxx" is the name that
// it gives to everybody, not a placeholder of ours.
const (
	llmdInjected = `{"error":{"message":"Rate limit reached for m in organization org-xxx on requests per min (RPM): Limit 3, Used 3, Requested 1.","type":"RateLimitError","param":null,"code":429}}`
	llmdFull     = `{"error":{"message":"Failed to enqueue request, waiting requests queue is full","type":"RateLimitError","param":null,"code":429}}`
)

// LLMD refuses as llm-d-inference-sim does. It is a reference of ours and not that server.
// The module proxy has neither that module nor llm-d-router, on which it is built, so a
// clone could not build it.
type LLMD struct {
	MaxNumSeqs            int           // calls at work at once
	MaxWaitingQueueLength int64         // calls that wait for that; one more is refused
	TimeToFirstToken      time.Duration // and to the last
	FailureInjectionRate  int           // per cent, refused at once, before the queue
}

// Start starts it.
func (l LLMD) Start() Start {
	return inProcess(func() http.Handler {
		die, work := newDie(), l.queue()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			read(r)
			switch {
			case die()*100 < float64(l.FailureInjectionRate):
				refuse(w, http.StatusTooManyRequests, llmdInjected)
			case !work():
				refuse(w, http.StatusTooManyRequests, llmdFull)
			default:
				reply(w)
			}
		})
	})
}

// queue returns the function that does the work of a call when its turn comes. That returns
// false if the queue has no place for the call.
func (l LLMD) queue() func() bool {
	seqs := make(chan struct{}, l.MaxNumSeqs)
	var inside atomic.Int64
	return func() bool {
		defer inside.Add(-1)
		if inside.Add(1) > int64(l.MaxNumSeqs)+l.MaxWaitingQueueLength {
			return false
		}
		seqs <- struct{}{} // the longest waiter is next
		defer func() { <-seqs }()
		time.Sleep(l.TimeToFirstToken)
		return true
	}
}
