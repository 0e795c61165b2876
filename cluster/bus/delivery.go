package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// Words of JetStream about a delivery. The client's own methods send heartbeats and returns as messages, so the sender
// does not learn whether the server received them: a claim must know.
const (
	ack      = "+ACK"
	nak      = "-NAK"
	progress = "+WPI"
)

// A Delivery is work that the bus gave to this worker. The bus gives it to another worker after AckWait without a
// heartbeat, so a Delivery does not prove that the work is still ours.
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

// Working sends a heartbeat. It succeeds when the server has confirmed it. The server then gives the work to nobody else
// until AckWait after the heartbeat was sent, unless it was given out anew before. An error of kind [ErrGone] says that
// the queue has forgotten the delivery, or has no leader at present.
func (d *Delivery) Working(ctx context.Context) error {
	return d.say(ctx, progress, "heartbeat of")
}

// Done takes the work out of the queue. An error of kind [ErrGone] says that the queue has forgotten the delivery. It may
// have the work anew.
func (d *Delivery) Done(ctx context.Context) error { return d.say(ctx, ack, "done with") }

// Return puts the work back, to be given out again after a delay, or at once.
func (d *Delivery) Return(ctx context.Context, delay time.Duration) error {
	word := nak
	if delay > 0 {
		word = fmt.Sprintf(`%s {"delay":%d}`, nak, delay.Nanoseconds())
	}
	return d.say(ctx, word, "return")
}

// say sends a request, though the server would accept a message, because the server answers a request when it has taken it in.
func (d *Delivery) say(ctx context.Context, word, what string) error {
	ctx, cancel := d.bus.limited(ctx, RequestWait)
	defer cancel()
	if _, err := d.bus.nc.RequestWithContext(ctx, d.reply, []byte(word)); err != nil {
		return fmt.Errorf("bus: %s %v: %w", what, d.Work, kind(err))
	}
	return nil
}
