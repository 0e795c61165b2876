package coordinator

import "github.com/headrace/headrace/coordinator/machine"

// What may be said to the loop: a fact for the machine, or one of three
// questions. Each question carries the channel for its answer, of capacity one,
// so that answering never makes the loop wait.
type message struct {
	fact     machine.Event
	question any // nil, openQuestion, statusQuestion or closeQuestion
}

// openQuestion asks for a session. Sent by Open.
type openQuestion struct {
	config machine.RunConfig
	reply  chan *Session // nil: the coordinator is closing
}

// statusQuestion asks for a picture. Sent by Status.
type statusQuestion struct {
	lanes int
	reply chan machine.Status
}

// closeQuestion asks for the end; the answer is that the loop returns. Sent by
// Close.
type closeQuestion struct{}
