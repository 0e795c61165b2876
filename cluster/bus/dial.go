package bus

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"time"

	"github.com/jonboulle/clockwork"
)

// A dialer makes the client's connections, so that we know when anything came in, why a
// certificate was not let in, and can end an attempt that is under way.
type dialer struct {
	clock  clockwork.Clock
	ctx    context.Context //nolint:containedctx // it is the life of the dialer
	cancel context.CancelFunc
	heard  atomic.Pointer[time.Time]
	failed atomic.Pointer[error] // why the last attempt has failed; of nil: it has not
	denied atomic.Pointer[error] // what the last certificate that was not let in lacked
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

// refusal is what the last certificate that was not let in lacked, or nil. The client tells
// only that no server could be reached.
func (d *dialer) refusal() error {
	if err := d.denied.Load(); err != nil {
		return *err
	}
	return nil
}

// watched notes what a certificate lacks.
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

// A listening connection notes when something came in.
type listening struct {
	net.Conn
	dialer *dialer
}

// Read is that of the connection.
func (l *listening) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		now := l.dialer.clock.Now()
		l.dialer.heard.Store(&now)
	}
	return n, err
}
