package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of a connection. Each is a choice.
const (
	// RequestWait bounds the wait for the answer to a request. A request sent while a cluster has no leader
	// is never answered, and a slow disk takes some 0.1 s to sync.
	RequestWait = 2 * time.Second
	// DialWait bounds one attempt to connect.
	DialWait = 2 * time.Second
	// The client leaves a server that has not answered alivePings+1 pings: the next server, or the same
	// one over a new connection, may answer. Together that takes 3 s.
	aliveEvery = time.Second
	alivePings = 2
	// flushWait bounds how long a write to a server that does not read can delay a sender. After that
	// the client gives up the connection.
	flushWait = time.Second
	// retryWait and up to retryJitter more pass between two attempts to reconnect, so that 1,000 workers
	// do not reconnect in the same instant.
	retryWait   = 100 * time.Millisecond
	retryJitter = 400 * time.Millisecond
)

// Kinds of errors.
var (
	// ErrAway: there is no connection at present. Nothing was sent, and nothing is kept for sending later.
	ErrAway = errors.New("not connected to the bus")
	// ErrRefused: the server rejects this client, and will do so later, too.
	ErrRefused = errors.New("the bus does not let us in")
	// ErrNoAnswer: the server may have received the request, or not, or may receive it later. It proves nothing.
	ErrNoAnswer = errors.New("no answer from the bus")
	// ErrGone: the stream, consumer or other object asked for does not exist at present. It may have existed
	// before, and may exist again. [Bus.Ensure] makes it again.
	ErrGone = errors.New("the bus does not know it")
)

// A Config says which bus to connect to, and under which name.
type Config struct {
	// URL is a join line; see [Address].
	URL string
	// Name names this life of this process. Each life needs a new name, so that it does not receive messages
	// sent to an earlier one.
	Name string
	// AckWait is the time without a heartbeat after which the bus gives a delivery to another worker; 0 is [DefaultAckWait].
	AckWait time.Duration
	// Replicas of each stream: 1 or 3. 0 means 3 where the server belongs to a cluster, and otherwise 1.
	Replicas int
	// Clock counts deadlines; nil is the real clock.
	Clock clockwork.Clock
	// Say receives lost connections, a failed first attempt and errors of the client. Goroutines of the
	// connection call it, so it must not block. nil: nobody hears them.
	Say func(error)
}

// A Bus is one connection to the bus. Its methods may be called by several goroutines.
type Bus struct {
	config            Config
	address           Address
	space             string
	nc                *nats.Conn
	js                jetstream.JetStream
	dialer            *dialer
	closed            chan struct{} // closed by the client when its connection is over for good
	creator           string        // see Settle
	credentialOptions []nats.Option // of the files that the address names
	tls               *tls.Config   // nil: without

	// Any goroutine may write these once it learns them, and any may read them.
	reconnected atomic.Pointer[time.Time]
	streams     atomic.Pointer[streams]          // what is known of the work stream; nil: nothing
	lease       atomic.Pointer[jetstream.Stream] // the lease's bucket; nil: nobody has asked for it yet
}

// Connect connects. It tries until ctx ends or the bus refuses. From then on the client renews the
// connection by itself, for ever.
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
			return nil, b.connectFailed(fmt.Errorf("%w: %w", err, ctx.Err()))
		case <-b.config.Clock.After(retryWait):
		}
	}
	if err != nil {
		return nil, b.connectFailed(err)
	}
	return b, nil
}

// connectFailed ends an attempt to connect, and cancels a dial that is under way.
func (b *Bus) connectFailed(err error) error {
	b.dialer.cancel()
	return fmt.Errorf("bus: connect to %s: %w", b.address.Redacted(), err)
}

// Settle sets the creator and AckWait, which are known only after a look at whose queue it is. The bus tells others the
// creator when it makes the queue; "" is none. Call Settle before anything else is done with the bus, or not at all.
func (b *Bus) Settle(creator string, ackWait time.Duration) {
	b.creator, b.config.AckWait = creator, ackWait
}

// newBus returns a Bus that has not connected yet. It reads the line, and the files that the line
// names. Another try with the same Config would end with the same error.
func newBus(config Config) (*Bus, error) {
	address, err := ParseAddress(config.URL)
	if err != nil {
		return nil, err
	}
	if err := checkToken(config.Name); err != nil {
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
	b.dialer = &dialer{}
	b.dialer.ctx, b.dialer.cancel = context.WithCancel(context.Background())
	if b.credentialOptions, err = address.Files.clientOptions(); err == nil {
		b.tls, err = address.tlsConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("bus: join line: %w", err)
	}
	return b, nil
}

// dial makes one attempt to connect. After an error of kind [ErrRefused] another attempt is in
// vain.
func (b *Bus) dial() error {
	nc, err := b.options().Connect()
	if err != nil {
		return b.connectError(err)
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

// connectError turns an error of a connection attempt into one of ours: final, or only for now.
func (b *Bus) connectError(err error) error {
	if denied := b.dialer.denied.Load(); denied != nil {
		err = *denied
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
	if failed := b.dialer.failed.Load(); failed != nil && *failed != nil && errors.Is(err, nats.ErrNoServers) {
		return fmt.Errorf("%w: %w", nats.ErrNoServers, *failed)
	}
	return err
}

// options returns the client's settings. Once connected, the client reconnects for ever, even
// after the server has rejected it. It keeps no message for later.
func (b *Bus) options() nats.Options {
	o := nats.GetDefaultOptions()
	o.Servers, o.Name, o.InboxPrefix = b.address.Hosts, b.config.Name, b.Role().inbox()
	o.Token, o.User, o.Password = b.address.Token, b.address.User, b.address.Password
	if b.address.TLS {
		o.Secure, o.TLSConfig = true, b.dialer.watched(b.tls.Clone())
	}
	for _, option := range b.credentialOptions {
		_ = option(&o) // it only sets what it has read
	}
	o.CustomDialer, o.Timeout = b.dialer, DialWait
	o.AllowReconnect, o.MaxReconnect, o.IgnoreAuthErrorAbort = true, -1, true
	o.ReconnectWait, o.ReconnectJitter, o.ReconnectJitterTLS = retryWait, retryJitter, retryJitter
	o.ReconnectBufSize = -1 // buffer nothing while disconnected: old messages are not sent later
	o.PingInterval, o.MaxPingsOut = aliveEvery, alivePings
	o.FlusherTimeout, o.ReconnectOnFlusherError = flushWait, true
	o.SubChanLen = fetchRoom
	o.DisconnectedErrCB = func(_ *nats.Conn, err error) {
		if err != nil {
			b.say(fmt.Errorf("%w: %w", ErrAway, err))
		}
	}
	o.ReconnectedCB = func(*nats.Conn) {
		now := b.config.Clock.Now()
		b.reconnected.Store(&now)
	}
	o.AsyncErrorCB = func(_ *nats.Conn, _ *nats.Subscription, err error) { b.say(err) }
	o.ClosedCB = func(*nats.Conn) { close(b.closed) }
	return o
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

// Name returns the name of this life of this process.
func (b *Bus) Name() string { return b.config.Name }

// Connected reports whether there is a connection, as far as the client knows.
func (b *Bus) Connected() bool { return b.nc.IsConnected() }

// ReconnectedAt returns when the connection was last made or renewed, by our clock. Before that time, and
// shortly after it, the silence of others may have been our deafness.
func (b *Bus) ReconnectedAt() time.Time { return *b.reconnected.Load() }

// Reached waits until the hub has received everything sent before. Feeds opened before then receive all that others send from then on.
func (b *Bus) Reached(ctx context.Context) error {
	ctx, stop := b.limited(ctx, RequestWait)
	defer stop()
	if err := b.nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("bus: reach: %w", err)
	}
	return nil
}

// limited bounds a request in time.
func (b *Bus) limited(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	return clockwork.WithTimeout(ctx, b.config.Clock, wait)
}

// errorKind puts an error of the client into one of our kinds.
func errorKind(err error) error {
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

// A dialer makes the client's connections. It records what the client does not report: why an attempt
// failed, and why a certificate was rejected. It can cancel an attempt that is under way.
type dialer struct {
	ctx    context.Context //nolint:containedctx // it is the life of the dialer
	cancel context.CancelFunc
	failed atomic.Pointer[error] // why the last attempt failed; of nil: it succeeded
	denied atomic.Pointer[error] // why the last rejected certificate was rejected
}

// Dial makes one connection.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	plain := net.Dialer{Timeout: DialWait}
	conn, err := plain.DialContext(d.ctx, network, address)
	d.failed.Store(&err)
	return conn, err
}

// watched makes config record why a certificate is rejected.
func (d *dialer) watched(config *tls.Config) *tls.Config {
	verify := config.VerifyConnection
	if verify == nil {
		return config
	}
	config.VerifyConnection = func(state tls.ConnectionState) error {
		err := verify(state)
		if err != nil {
			d.denied.Store(&err)
		} else {
			d.denied.Store(nil)
		}
		return err
	}
	return config
}

// Unreached describes why [Connect] failed, and what to do about it.
func Unreached(line string, err error) Finding {
	hosts := "the bus"
	if a, err := ParseAddress(line); err == nil {
		hosts = strings.Join(a.Hosts, ", ")
	}
	what, why := unreached(err)
	return Finding{Unsafe: true, What: hosts + ": " + what, Why: why}
}

// unreached turns an error of an attempt to connect into words for people: the fault, and advice.
// For an unknown error the fault is the error's own text.
func unreached(err error) (what, why string) {
	var certificate *tls.CertificateVerificationError
	var noHost *net.DNSError
	switch {
	case errors.Is(err, ErrAddress):
		return "this is not a line to join by", "give the whole line that headrace hub prints, in quotes: nats://TOKEN@host:4222…"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return "it does not let us in: the token (or user and password) is wrong", "take the line that the hub prints now: its token is new where its --dir is"
	case errors.Is(err, ErrNotTheHub):
		return ErrNotTheHub.Error(), "it is another hub, or one whose --dir (or --tls-dir) was lost: take the line that it prints now; or another server answers in its place"
	case errors.As(err, &certificate):
		return "its certificate is not trusted here: " + certificate.Err.Error(), "the line of a hub names its authority, as ?ca=sha256:…: take the whole line"
	case errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return "it speaks no TLS, or wants it and the line does not say so", "take the whole line that the hub prints, with its ca=…; for servers of others write tls://"
	case errors.As(err, &noHost):
		return "there is no such host", "check the name, or have the hub announce another with --advertise"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there", "start headrace hub, and check the port; it must listen on more than 127.0.0.1 for other machines (--listen 0.0.0.0:4222)"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, context.DeadlineExceeded):
		return "it does not answer", "is it that host and port, and does a firewall let them through?"
	}
	return err.Error(), "nothing of a cluster works without its bus"
}
