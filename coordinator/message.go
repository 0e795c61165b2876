package coordinator

import "github.com/headrace/headrace/coordinator/machine"

// A message to the loop is a fact for the machine, or one of the questions below. Each question
// that wants an answer carries the channel for it, of capacity one, so that answering never
// makes the loop wait.
type message struct {
	fact     machine.Event
	question any // nil, or one of the types below
}

// offer brings items of a run, by the leave that the run got. Sent by Offer.
type offer struct {
	session *Session
	items   []*machine.Item
}

// openQuestion asks for a session. Sent by Open.
type openQuestion struct {
	config machine.RunConfig
	reply  chan *Session // nil: the coordinator is closing
}

// regretQuestion takes an openQuestion back whose caller has left: nobody would ever end that
// run. It comes after the question, by the same way, so the answer is in the channel when the
// loop hears it. Sent by Open.
type regretQuestion struct{ reply chan *Session }

// mute says that nobody reads the news of a run. Sent by Mute.
type mute struct{ session *Session }

// statusQuestion asks for a picture. Sent by Status.
type statusQuestion struct {
	lanes int
	run   machine.RunID // who asks; 0: nobody's session, as runs count from 1
	reply chan machine.Status
}

// closeQuestion asks for the end; the answer is that the loop returns. Sent by
// Close.
type closeQuestion struct{}
