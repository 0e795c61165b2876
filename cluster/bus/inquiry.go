package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// HoldsWait bounds the time in which an earlier claimant may answer: twice the worst round trip that permits
// would bear.
const HoldsWait = 300 * time.Millisecond

// Holds asks a worker whether it holds some work. answered is false if no answer arrived in time: the worker may be dead,
// cut off or busy, or we may be cut off, see [Bus.ReconnectedAt]. An error means that the question was not sent, or
// that ctx ended.
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

// Answer answers the questions of others to the worker of this name. One goroutine calls holds, for one question after
// the other. Each asker waits for [HoldsWait] in all.
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

// A Taken announces a takeover: the work belongs to the new worker, who has the higher turn.
type Taken struct {
	Work Work   `json:"work"`
	Turn int    `json:"turn"`
	By   string `json:"by"` // the life that holds the work now
}

// Tell informs a worker that its work now belongs to another.
func (b *Bus) Tell(who string, t Taken) error {
	if err := named(who); err != nil {
		return fmt.Errorf("bus: tell: %w", err)
	}
	return b.send(subject(b.space, tellWord, who), t)
}

// Told returns the takeovers announced to the worker of this name.
func (b *Bus) Told(who string, capacity int) (*Feed[Taken], error) {
	if err := named(who); err != nil {
		return nil, fmt.Errorf("bus: told: %w", err)
	}
	return subscribe(b, subject(b.space, tellWord, who), capacity, readJSON[Taken])
}
