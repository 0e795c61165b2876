package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/socket"
)

// entrance is the door for clients: the listener, its socket and its certificate.
type entrance struct {
	net.Listener
	socket string      // its path; "": TCP
	cert   *atomicCert // nil: no TLS
}

// open begins to listen at --addr or --socket. It refuses an address that would let strangers in.
func (f *flags) open() (*entrance, error) {
	if f.socket != "" {
		return openSocket(f.socket)
	}
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		return nil, exit.Refuse("--addr %s: it is not HOST:PORT: write one such as 127.0.0.1:8470", f.addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if !settings.IsLoopback(host) {
		if err := f.checkPublic(); err != nil {
			return nil, err
		}
	}
	d := &entrance{}
	if f.tlsCert != "" {
		if d.cert, err = newCert(f.tlsCert, f.tlsKey); err != nil {
			return nil, err
		}
	}
	if d.Listener, err = net.Listen("tcp", net.JoinHostPort(host, port)); err != nil { //nolint:noctx // it blocks on nothing
		var op *net.OpError
		if errors.As(err, &op) { // it repeats the address
			err = op.Err
		}
		return nil, exit.Refuse("--addr %s: %v: choose another, or end the program that has it", f.addr, err)
	}
	if d.cert != nil {
		d.Listener = tls.NewListener(d.Listener, d.cert.config())
	}
	return d, nil
}

// checkPublic refuses an address that other machines can reach, unless clients are named and their tokens
// are not sent in the clear.
func (f *flags) checkPublic() error {
	switch {
	case f.isOpen:
		return exit.Refuse("--open: only on loopback or a --socket, and %s is for other machines: remove --open, and name --clients", f.addr)
	case f.clients == "":
		return exit.Refuse("--addr %s: other machines can reach it: name its --clients, or use 127.0.0.1", f.addr)
	case f.tlsCert == "" && !f.insecure:
		return exit.Refuse("--addr %s: tokens and prompts would be sent unencrypted: add --tls-cert and --tls-key, or --insecure-http to allow that", f.addr)
	}
	return nil
}

// openSocket listens at a path.
func openSocket(path string) (*entrance, error) {
	const advice = "name another path"
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, exit.Refuse("--socket: %v: %s", err, advice)
	}
	ln, err := socket.Listen(path)
	switch {
	case errors.Is(err, socket.ErrNoPeers):
		return nil, exit.Refuse("--socket: %v: use --addr", err)
	case errors.Is(err, socket.ErrInUse):
		return nil, exit.Refuse("--socket %s: %v: %s, or end it", path, err, advice)
	case err != nil:
		return nil, exit.Refuse("--socket %s: %v: %s", path, err, advice)
	}
	return &entrance{Listener: ln, socket: path}, nil
}

// url returns the address for clients.
func (d *entrance) url() string {
	switch {
	case d.socket != "":
		return "unix:" + d.socket
	case d.cert != nil:
		return "https://" + d.Addr().String()
	}
	return "http://" + d.Addr().String()
}

// address returns HOST:PORT, or the whole path of the socket.
func (d *entrance) address() string {
	if d.socket != "" {
		return d.socket
	}
	return d.Addr().String()
}

// isLocal reports whether only this machine can reach it.
func (d *entrance) isLocal() bool {
	addr, is := d.Addr().(*net.TCPAddr)
	return !is || addr.IP.IsLoopback()
}

// leadsTo reports whether an address is this entrance. An upstream there would send calls round for ever.
func (d *entrance) leadsTo(base string) bool {
	own, is := d.Addr().(*net.TCPAddr)
	u, err := url.Parse(base)
	if !is || err != nil {
		return false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port != fmt.Sprint(own.Port) {
		return false
	}
	host := u.Hostname()
	return settings.IsLoopback(host) || net.ParseIP(host).Equal(own.IP) || own.IP.IsUnspecified() && isOwn(host)
}

// isOwn reports whether a name or an address is this machine's.
func isOwn(host string) bool {
	if name, err := os.Hostname(); err == nil && strings.EqualFold(host, name) {
		return true
	}
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, is := a.(*net.IPNet); is && n.IP.Equal(net.ParseIP(host)) {
			return true
		}
	}
	return false
}

// isOwnPeer reports whether a connection came through the socket: its Listener has looked at its user.
func isOwnPeer(conn net.Conn) bool { _, is := conn.(*net.UnixConn); return is }

// atomicCert is a certificate that is read again on SIGHUP.
type atomicCert struct {
	cert, key string // files
	now       atomic.Pointer[tls.Certificate]
}

func newCert(cert, key string) (*atomicCert, error) {
	c := &atomicCert{cert: cert, key: key}
	return c, c.read()
}

func (c *atomicCert) read() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return exit.Refuse("--tls-cert %s, --tls-key %s: %v: give a certificate and its key in PEM", c.cert, c.key, exit.OneLine(err.Error()))
	}
	c.now.Store(&pair)
	return nil
}

func (c *atomicCert) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}
