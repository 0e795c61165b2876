package bus

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
)

// A dialer makes the client's connections. It records when data last came in and why a certificate was
// rejected, and it can cancel an attempt that is under way.
type dialer struct {
	clock  clockwork.Clock
	ctx    context.Context //nolint:containedctx // it is the life of the dialer
	cancel context.CancelFunc
	heard  atomic.Pointer[time.Time]
	failed atomic.Pointer[error] // why the last attempt failed; of nil: it succeeded
	denied atomic.Pointer[error] // why the last rejected certificate was rejected
}

func newDialer(clock clockwork.Clock) *dialer {
	d := &dialer{clock: clock}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	now := clock.Now()
	d.heard.Store(&now)
	return d
}

// Dial makes one connection.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	plain := net.Dialer{Timeout: DialWait}
	conn, err := plain.DialContext(d.ctx, network, address)
	if d.noted(err) != nil {
		return nil, err
	}
	return &listening{Conn: conn, dialer: d}, nil
}

func (d *dialer) heardAt() time.Time { return *d.heard.Load() }

// refusal returns why the last certificate was rejected, or nil. The client says only that it could not
// reach any server.
func (d *dialer) refusal() error {
	if err := d.denied.Load(); err != nil {
		return *err
	}
	return nil
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

// A listening connection records when data comes in.
type listening struct {
	net.Conn
	dialer *dialer
}

// Read reads from the connection.
func (l *listening) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		now := l.dialer.clock.Now()
		l.dialer.heard.Store(&now)
	}
	return n, err
}
