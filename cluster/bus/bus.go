package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of a connection; each is a choice.
const (
	// RequestWait is how long a request waits for its answer: one that is sent while a cluster has no
	// leader is never answered, and a sync of a slow disk takes some 0.1 s.
	RequestWait = 2 * time.Second
	// DialWait is how long one attempt to connect may take.
	DialWait = 2 * time.Second
	// A server that has not answered for alivePings+1 pings is left: the next one, or the same
	// one by a new connection, may answer. Together that is 3 s.
	aliveEvery = time.Second
	alivePings = 2
	// flushWait is how long a write to a server that does not read may hold up whoever wants to
	// send: after that the connection is given up.
	flushWait = time.Second
	// Between two attempts to reconnect pass retryWait and up to retryJitter more, so that 1,000 workers
	// do not come in the same instant.
	retryWait   = 100 * time.Millisecond
	retryJitter = 400 * time.Millisecond
)

// Kinds of errors.
var (
	// ErrAway: there is no connection at present. Nothing was sent, and nothing is kept to be sent later.
	ErrAway = errors.New("not connected to the bus")
	// ErrRefused: the server does not let us in. It will not do so later, either.
	ErrRefused = errors.New("the bus does not let us in")
	// ErrNoAnswer: the request may have been heard, or not, or not yet. It proves nothing.
	ErrNoAnswer = errors.New("no answer from the bus")
	// ErrGone: the stream, the consumer or whatever was asked is not there at present. That it never
	// was, or will not be, does not follow. [Bus.Ensure] makes it again.
	ErrGone = errors.New("the bus does not know it")
)

// A Config says whom to connect to, and as whom.
type Config struct {
	// URL is a join line; see [Address].
	URL string
	// Name is that of this life of this process, for it must be new with each: what was sent to
	// an earlier life is not for this one.
	Name string
	// AckWait is after how long without a heartbeat a delivery is given to somebody else; 0 is [DefaultAckWait].
	AckWait time.Duration
	// Replicas of each stream: 1 or 3; 0 is 3 where the server is one of a cluster, or else 1.
	Replicas int
	// Clock is what deadlines are counted by; nil is the real one.
	Clock clockwork.Clock
	// Say is told of connections lost and found, and must not wait; it is called by a goroutine
	// of the connection. nil: nobody is told.
	Say func(error)
}

// A Bus is one connection to the bus. Its methods may be called by several goroutines.
type Bus struct {
	config  Config
	address Address
	space   string
	nc      *nats.Conn
	js      jetstream.JetStream
	dialer  *dialer
	closed  chan struct{} // closed by the client when its connection is over for good
	founder string        // see Settle
	shown   []nats.Option // of the files that the address names
	tls     *tls.Config   // nil: without

	// Written by whoever learns it, and read by anybody.
	reconnected atomic.Pointer[time.Time]
	streams     atomic.Pointer[streams]          // what is known of the work stream; nil: nothing
	lease       atomic.Pointer[jetstream.Stream] // the lease's bucket; nil: it was not asked for yet
}

// Connect connects, trying until ctx ends or the bus refuses. From then on the connection is
// renewed for ever by itself.
func Connect(ctx context.Context, config Config) (*Bus, error) {
	b, err := newBus(config)
	if err != nil {
		return nil, err
	}
	for tried := false; ; tried = true {
		err = b.dial()
		if err == nil || errors.Is(err, ErrRefused) {
			break
		}
		if what, _ := unreached(err); !tried {
			b.say(fmt.Errorf("%s; it is tried until it is there", what))
		}
		select {
		case <-ctx.Done():
			return nil, b.failed(fmt.Errorf("%w: %w", err, ctx.Err()))
		case <-b.config.Clock.After(retryWait):
		}
	}
	if err != nil {
		return nil, b.failed(err)
	}
	return b, nil
}

// failed ends an attempt; a connection that is still coming to be is waited for.
func (b *Bus) failed(err error) error {
	b.dialer.cancel()
	return fmt.Errorf("bus: connect to %s: %w", b.address.Redacted(), err)
}

// Settle says what can be known only after it was looked whose queue is there: the founder that whoever makes the queue tells
// others, "" is none, and AckWait as in the config. It is called before anything else is done with the bus, or not at all.
func (b *Bus) Settle(founder string, ackWait time.Duration) {
	b.founder, b.config.AckWait = founder, ackWait
}

func newBus(config Config) (*Bus, error) {
	address, err := ParseAddress(config.URL)
	if err != nil {
		return nil, err
	}
	if err := named(config.Name); err != nil {
		return nil, fmt.Errorf("bus: the name of who connects: %w", err)
	}
	if config.Clock == nil {
		config.Clock = clockwork.NewRealClock()
	}
	if config.AckWait <= 0 {
		config.AckWait = DefaultAckWait
	}
	space := address.Space
	if space == "" {
		space = DefaultSpace
	}
	b := &Bus{config: config, address: address, space: escape(space), closed: make(chan struct{})}
	b.dialer = newDialer(config.Clock)
	if b.shown, err = address.Files.options(); err == nil {
		b.tls, err = address.tlsConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("bus: join line: %w", err)
	}
	return b, nil
}

func (b *Bus) dial() error {
	nc, err := b.options().Connect()
	if err != nil {
		return b.why(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(RequestWait))
	if err != nil {
		nc.Close()
		return err
	}
	b.nc, b.js = nc, js
	now := b.config.Clock.Now()
	b.reconnected.Store(&now)
	return nil
}

// why is what stood in the way of a connection, in our words: for good, or for now.
func (b *Bus) why(err error) error {
	if seen := b.dialer.refusal(); seen != nil {
		err = seen
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("%w: %w (a hub's own join line names its authority: ?ca=…)", ErrRefused, err)
	}
	for _, kind := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrSecureConnWanted, ErrNotTheHub} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
	}
	return b.reached(err)
}

func (b *Bus) options() nats.Options {
	o := nats.GetDefaultOptions()
	o.Servers, o.Name, o.InboxPrefix = b.address.Hosts, b.config.Name, b.Role().inbox()
	o.Token, o.User, o.Password = b.address.Token, b.address.User, b.address.Password
	if b.address.TLS {
		o.Secure, o.TLSConfig = true, b.dialer.watched(b.tls.Clone())
	}
	for _, option := range b.shown {
		_ = option(&o) // it only sets what it has read
	}
	o.CustomDialer, o.Timeout = b.dialer, DialWait
	o.AllowReconnect, o.MaxReconnect, o.IgnoreAuthErrorAbort = true, -1, true
	o.ReconnectWait, o.ReconnectJitter, o.ReconnectJitterTLS = retryWait, retryJitter, retryJitter
	o.ReconnectBufSize = -1 // what is said while nobody hears it is not said later
	o.PingInterval, o.MaxPingsOut = aliveEvery, alivePings
	o.FlusherTimeout, o.ReconnectOnFlusherError = flushWait, true
	o.SubChanLen = fetchedMost
	o.DisconnectedErrCB, o.ReconnectedCB = b.lost, b.found
	o.AsyncErrorCB = func(_ *nats.Conn, _ *nats.Subscription, err error) { b.say(err) }
	o.ClosedCB = func(*nats.Conn) { close(b.closed) }
	return o
}

func (b *Bus) lost(_ *nats.Conn, err error) {
	if err != nil {
		b.say(fmt.Errorf("%w: %w", ErrAway, err))
	}
}

func (b *Bus) found(*nats.Conn) {
	now := b.config.Clock.Now()
	b.reconnected.Store(&now)
}

func (b *Bus) say(err error) {
	if b.config.Say != nil && err != nil {
		b.config.Say(fmt.Errorf("bus: %s: %w", b.address.Redacted(), err))
	}
}

// Close ends the connection and waits for what belongs to it.
func (b *Bus) Close() {
	b.dialer.cancel()
	b.nc.Close()
	<-b.closed
}

// Name is that of this life of this process.
func (b *Bus) Name() string { return b.config.Name }

// Connected tells whether there is a connection, as far as is known.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// ReconnectedAt is when the connection was made, or made anew last, by our clock. Before it, and for a moment
// after it, others' silence may have been our deafness.
func (b *Bus) ReconnectedAt() time.Time { return *b.reconnected.Load() }

// Reached waits until the hub has all that was sent to it before. Feeds that were opened before hear what others say from then on.
func (b *Bus) Reached(ctx context.Context) error {
	ctx, stop := b.limited(ctx, RequestWait)
	defer stop()
	if err := b.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("bus: reach: %w", err)
	}
	return nil
}

// HeardAt is when anything came from the server last, by our clock. While all is well it is not
// more than a second ago, as the server is asked that often.
func (b *Bus) HeardAt() time.Time { return b.dialer.heardAt() }

// limited bounds a request in time.
func (b *Bus) limited(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	return clockwork.WithTimeout(ctx, b.config.Clock, wait)
}

// kind puts an error of the client into one of our kinds.
func kind(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrDisconnected):
		return fmt.Errorf("%w: %w", ErrAway, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound):
		return fmt.Errorf("%w: %w", ErrGone, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return err
}
