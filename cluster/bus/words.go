package bus

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/nats-io/nats.go"
)

// Kinds of messages that are not stored, as they appear in subjects.
const (
	askWord    = "ask"    // <limit>.<worker>
	giveWord   = "give"   // <worker>
	coolWord   = "cool"   // <limit>
	doneWord   = "done"   // <job>
	statusWord = "status" // <worker>
	newsWord   = "news"   // <job>
	tellWord   = "tell"   // <worker>
	holdWord   = "hold"   // <worker>, a request
	keeperWord = "keeper" // <worker>, the state of all limits
)

// SendAsk sends the ask of one lane of a worker to the keeper of its limit.
func (b *Bus) SendAsk(a permit.Ask) error {
	if err := named(a.Limit, a.Worker); err != nil {
		return fmt.Errorf("bus: ask: %w", err)
	}
	return b.send(subject(b.space, askWord, a.Limit, a.Worker), a)
}

// Asks returns the asks of all workers under all limits.
func (b *Bus) Asks(capacity int) (*Feed[permit.Ask], error) {
	return subscribe(b, under(b.space, askWord), capacity, readJSON[permit.Ask])
}

// SendGive sends the keeper's give to one worker.
func (b *Bus) SendGive(g permit.Give) error {
	if err := named(g.Worker); err != nil {
		return fmt.Errorf("bus: give: %w", err)
	}
	return b.send(subject(b.space, giveWord, g.Worker), g)
}

// Gives returns the gives for one worker: for this life of this process, if worker is its name.
func (b *Bus) Gives(worker string, capacity int) (*Feed[permit.Give], error) {
	if err := named(worker); err != nil {
		return nil, fmt.Errorf("bus: gives: %w", err)
	}
	return subscribe(b, subject(b.space, giveWord, worker), capacity, readJSON[permit.Give])
}

// SendCool sends the keeper's cool to all workers.
func (b *Bus) SendCool(c permit.Cool) error {
	if err := named(c.Limit); err != nil {
		return fmt.Errorf("bus: cool: %w", err)
	}
	return b.send(subject(b.space, coolWord, c.Limit), c)
}

// Cools returns the cools of all limits.
func (b *Bus) Cools(capacity int) (*Feed[permit.Cool], error) {
	return subscribe(b, under(b.space, coolWord), capacity, readJSON[permit.Cool])
}

// A Word is a message about a job or from a worker. Its body is JSON, whose meaning the sender defines.
type Word struct {
	About string // a job, or a worker
	Body  json.RawMessage
}

// A Topic says what a word is about.
type Topic string

// Topics.
const (
	Done   Topic = doneWord   // a chunk of a job has its part
	Status Topic = statusWord // what a worker is doing
	News   Topic = newsWord   // a job was changed, cancelled, submitted
	Keeper Topic = keeperWord // the state of all limits, once a second from the keeper
)

// Say sends a word to the current listeners.
func (b *Bus) Say(t Topic, about string, body any) error {
	if err := errors.Join(named(about), b.Role().may(string(t), about)); err != nil {
		return fmt.Errorf("bus: say: %w", err)
	}
	return b.send(subject(b.space, string(t), about), body)
}

// Listen returns the words about one job, or of one worker; about all if about is "".
func (b *Bus) Listen(t Topic, about string, capacity int) (*Feed[Word], error) {
	at := under(b.space, string(t))
	if about != "" {
		if err := named(about); err != nil {
			return nil, fmt.Errorf("bus: listen: %w", err)
		}
		at = subject(b.space, string(t), about)
	}
	prefix := len(subject(b.space, string(t))) + 1
	return subscribe(b, at, capacity, func(m *nats.Msg) (Word, error) {
		about, err := unescape(m.Subject[prefix:])
		return Word{About: about, Body: m.Data}, err
	})
}
