package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// HoldsWait is how long the one who claimed before has for his answer: twice the worst way there and back that
// one would bear for permits.
const HoldsWait = 300 * time.Millisecond

// Holds asks a worker whether he holds some work. Not answered means that he did not answer us, now: he may be dead, cut
// off, or busy; or we are, see [Bus.ReconnectedAt]. An error means that he was not even asked.
func (b *Bus) Holds(ctx context.Context, who string, w Work) (holds, answered bool, err error) {
	if err := errors.Join(named(who), w.check()); err != nil {
		return false, false, fmt.Errorf("bus: ask who holds: %w", err)
	}
	question, err := json.Marshal(w)
	if err != nil {
		return false, false, fmt.Errorf("bus: ask who holds: %w", err)
	}
	limited, cancel := b.limited(ctx, HoldsWait)
	defer cancel()
	msg, err := b.nc.RequestWithContext(limited, subject(b.space, holdWord, who), question)
	switch err = kind(err); {
	case err == nil:
		return string(msg.Data) == "true", true, nil
	case ctx.Err() == nil && (errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrGone)):
		return false, false, nil
	}
	return false, false, fmt.Errorf("bus: ask %s whether he holds %v: %w", who, w, err)
}

// Answer answers what others ask the worker of this name. The function is called by one goroutine, one question after the other, and
// has [HoldsWait] in all.
func (b *Bus) Answer(who string, holds func(Work) bool) (stop func(), err error) {
	if err := named(who); err != nil {
		return nil, fmt.Errorf("bus: answer: %w", err)
	}
	ended := make(chan struct{})
	sub, err := b.nc.Subscribe(subject(b.space, holdWord, who), func(m *nats.Msg) {
		if w, err := readJSON[Work](m); err == nil {
			_ = m.Respond(fmt.Appendf(nil, "%t", holds(w))) // who asked will take it for silence
		}
	})
	if err != nil {
		return nil, fmt.Errorf("bus: answer: %w", kind(err))
	}
	sub.SetClosedHandler(func(string) { close(ended) })
	return func() {
		_ = sub.Unsubscribe() // it fails if it has ended
		<-ended
	}, nil
}

// A Taken is the word of one who takes over: this work is his, since he has the higher turn.
type Taken struct {
	Work Work   `json:"work"`
	Turn int    `json:"turn"`
	By   string `json:"by"` // the life that has it now
}

// Tell says to a worker that his work is somebody else's now.
func (b *Bus) Tell(who string, t Taken) error {
	if err := named(who); err != nil {
		return fmt.Errorf("bus: tell: %w", err)
	}
	return b.send(subject(b.space, tellWord, who), t)
}

// Told hears what is said to the worker of this name.
func (b *Bus) Told(who string, capacity int) (*Feed[Taken], error) {
	if err := named(who); err != nil {
		return nil, fmt.Errorf("bus: told: %w", err)
	}
	return subscribe(b, subject(b.space, tellWord, who), capacity, readJSON[Taken])
}
