package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Words of JetStream about a delivery. The client's own methods send heartbeats and returns as messages, and who has
// sent one does not learn whether it was heard: a claim must know.
const (
	ack      = "+ACK"
	nak      = "-NAK"
	progress = "+WPI"
)

// A Delivery is work that was given to us. It comes to somebody else once nothing was heard of it for AckWait: that
// it was given to us does not say that it is ours.
type Delivery struct {
	Work Work
	Body []byte

	bus   *Bus
	reply string
}

func newDelivery(b *Bus, msg *nats.Msg) (*Delivery, error) {
	work, err := parseWork(b.space, msg.Subject)
	if err != nil {
		return nil, fmt.Errorf("%s is on subject %q: %w", b.workStream(), msg.Subject, err)
	}
	return &Delivery{Work: work, Body: msg.Data, bus: b, reply: msg.Reply}, nil
}

// Working says that we are at it: a heartbeat. It has succeeded when the server says that it has heard it,
// and then nobody else is given the work until AckWait from when it was sent, unless it was given out anew before. An
// error of kind [ErrGone] says that the queue has forgotten it, or that nobody leads it just now.
func (d *Delivery) Working(ctx context.Context) error {
	return d.say(ctx, progress, "heartbeat of")
}

// Done takes the work out of the queue. An error of kind [ErrGone] says that the queue has forgotten it: it may have it
// anew.
func (d *Delivery) Done(ctx context.Context) error { return d.say(ctx, ack, "done with") }

// Return puts the work back, to be given out again after a delay, or at once.
func (d *Delivery) Return(ctx context.Context, delay time.Duration) error {
	word := nak
	if delay > 0 {
		word = fmt.Sprintf(`%s {"delay":%d}`, nak, delay.Nanoseconds())
	}
	return d.say(ctx, word, "return")
}

// say is a request, though the server would take a message: it answers when it has taken it in.
func (d *Delivery) say(ctx context.Context, word, what string) error {
	ctx, cancel := d.bus.limited(ctx, RequestWait)
	defer cancel()
	if _, err := d.bus.nc.RequestWithContext(ctx, d.reply, []byte(word)); err != nil {
		return fmt.Errorf("bus: %s %v: %w", what, d.Work, kind(err))
	}
	return nil
}
