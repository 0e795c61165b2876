package bus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of a delivery.
const (
	// DoneWait is how long one acknowledgement waits to be acknowledged itself.
	DoneWait = time.Second
	// DoneTries is how often it is said.
	DoneTries = 10
)

// Words of JetStream about a delivery.
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
	// Redelivered is how often it was given out before. It is a hint: the bus may forget it.
	Redelivered int
	// Asked is when we asked for it, by our clock: AckWait began later than that.
	Asked time.Time

	bus   *Bus
	reply string
}

func newDelivery(b *Bus, msg *nats.Msg, asked time.Time) (*Delivery, error) {
	work, err := parseWork(b.space, msg.Subject)
	if err != nil {
		return nil, fmt.Errorf("%s is on subject %q: %w", b.workStream(), msg.Subject, err)
	}
	return &Delivery{
		Work: work, Body: msg.Data, Redelivered: deliveries(msg.Reply) - 1,
		Asked: asked, bus: b, reply: msg.Reply,
	}, nil
}

// deliveries reads how often a message was given out from where its acknowledgement goes:
// $JS.ACK.<stream>.<consumer>.<deliveries>.… or, with a domain and an account, two tokens later. At least 1.
func deliveries(reply string) int {
	tokens := strings.Split(reply, ".")
	at := 4
	if len(tokens) > 9 {
		at = 6
	}
	if len(tokens) <= at {
		return 1
	}
	n, err := strconv.Atoi(tokens[at])
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// Working says that we are at it: a heartbeat. It has succeeded when the server says that it has heard it,
// and then nobody else is given the work until AckWait from when it was sent. That nobody was
// given it before does not follow. An error of kind [ErrGone] says that the queue has forgotten it, or that
// nobody leads it just now.
func (d *Delivery) Working(ctx context.Context) error {
	if err := d.say(ctx, progress, RequestWait); err != nil {
		return fmt.Errorf("bus: heartbeat of %v: %w", d.Work, err)
	}
	return nil
}

// Done takes the work out of the queue. It is said up to [DoneTries] times, each with [DoneWait]. An error of kind
// [ErrGone] says that the queue has forgotten it: it may have it anew.
func (d *Delivery) Done(ctx context.Context) error {
	var err error
	for try := 0; try < DoneTries && ctx.Err() == nil; try++ {
		if try > 0 && !d.pause(ctx, DoneWait/4) {
			break // the last answer says more than that the time is up
		}
		if err = d.say(ctx, ack, DoneWait); err == nil {
			return nil
		}
	}
	return fmt.Errorf("bus: done with %v: %w", d.Work, err)
}

// pause waits; false: ctx has ended.
func (d *Delivery) pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-d.bus.config.Clock.After(wait):
		return true
	}
}

// Return puts the work back, to be given out again after a delay, or at once.
func (d *Delivery) Return(ctx context.Context, delay time.Duration) error {
	word := nak
	if delay > 0 {
		word = fmt.Sprintf(`%s {"delay":%d}`, nak, delay.Nanoseconds())
	}
	if err := d.say(ctx, word, RequestWait); err != nil {
		return fmt.Errorf("bus: return %v: %w", d.Work, err)
	}
	return nil
}

// say is a request, though the server would take a message: it answers when it has taken it in.
func (d *Delivery) say(ctx context.Context, word string, wait time.Duration) error {
	ctx, cancel := d.bus.limited(ctx, wait)
	defer cancel()
	_, err := d.bus.nc.RequestWithContext(ctx, d.reply, []byte(word))
	return kind(err)
}
