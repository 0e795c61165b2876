package bus

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/nats-io/nats-server/v2/server"
)

// Settings of the embedded server that are choices.
const (
	// MaxStore bounds what a hub keeps on disk. A chunk is some 300 bytes, and 10,000 are queued
	// ahead, so a hub never reaches it unless another program stores data there.
	MaxStore = 4 << 30
	// maxMemory bounds streams in memory, of which there are none.
	maxMemory = 64 << 20
	// maxPending bounds the data that waits for one client before the server cuts it off: two seconds of the
	// thickest stream, the asks of 1,000 workers to their keeper.
	maxPending = 16 << 20
	// The server drops a client that is silent for pingEvery·(pingsOut+1): it must not send chunks to a
	// frozen worker.
	pingEvery = 4 * time.Second
	pingsOut  = 2
	// writeWait bounds one write to a client.
	writeWait = 5 * time.Second
	// handshakeWait bounds TLS and the token check, on a busy machine.
	handshakeWait = 10 * time.Second
)

// completed fills in defaults, and rejects impossible settings.
func (c HubConfig) completed() (HubConfig, error) {
	if c.Dir == "" {
		return c, errors.New("no directory is named")
	}
	if c.Clock == nil {
		c.Clock = clockwork.NewRealClock()
	}
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if _, _, err := splitAddress(c.Listen); err != nil {
		return c, err
	}
	if c.Advertise == "" {
		c.Advertise = advertised(c.Listen)
	}
	if err := c.completeRoute(); err != nil {
		return c, err
	}
	return c, os.MkdirAll(c.Dir, 0o700)
}

// completeRoute checks the settings of a hub of three. It names a hub without a name after its machine and
// port, as each of the three needs a name of its own. It leaves a single hub as it is.
func (c *HubConfig) completeRoute() error {
	switch n := len(c.Peers); {
	case n != 0 && n != 3:
		return fmt.Errorf("%d peers: name all three hubs, or none for a single one", n)
	case n == 0 && c.Route != "":
		return fmt.Errorf("route %s: the hub hears others there: name all three as its peers", c.Route)
	case n != 0 && c.Route == "":
		return fmt.Errorf("peers %s: the hub needs a route, the address on which it hears them", strings.Join(c.Peers, ","))
	case n == 0:
		return nil
	}
	_, port, err := splitAddress(c.Route)
	if err != nil {
		return err
	}
	if c.Name == "" {
		host, _ := os.Hostname()
		c.Name = fmt.Sprintf("%s-%d", host, port)
	}
	return nil
}

// secured finds or makes the token and, where others are let in, the certificates.
func (c HubConfig) secured() (HubConfig, *authority, error) {
	var err error
	if c.Token, c.made, err = c.tokenOf(); err != nil {
		return c, nil, err
	}
	if !c.TLS && isLoopback(c.Listen) && (c.Route == "" || isLoopback(c.Route)) {
		return c, nil, nil
	}
	if c.TLSDir == "" {
		c.TLSDir = filepath.Join(c.Dir, "tls")
	}
	ca, err := loadAuthority(c.TLSDir, c.Clock.Now())
	return c, ca, err
}

// port returns where to listen. Where any port will do it prefers the one of the last start.
func (c HubConfig) port() (host string, port int) {
	host, port, _ = splitAddress(c.Listen)
	if port == 0 {
		port = lastPort(c.Dir, host)
	}
	return host, port
}

// portFree reports a port in use beforehand. The server would report it only once it is under way.
func (c HubConfig) portFree() error {
	host, port := c.port()
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return l.Close()
}

// options returns the server's settings. The server syncs each write before it answers. A client
// that does not read makes no other client wait.
func (c HubConfig) options(ca *authority) (*server.Options, error) {
	host, port := c.port()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	o := &server.Options{
		ServerName: HubName, Host: host, Port: port, CustomClientAuthentication: doorkeeper{c.Token},
		NoSigs: true, DisableJetStreamBanner: true, ConnectErrorReports: 60, ReconnectErrorReports: 60,
		JetStream: true, StoreDir: storeDir(c.Dir), JetStreamMaxMemory: maxMemory, JetStreamMaxStore: MaxStore,
		SyncAlways: true,
		// A client that does not read in time loses messages, and makes no other client wait.
		MaxPending: maxPending, NoFastProducerStall: true, WriteDeadline: writeWait,
		PingInterval: pingEvery, MaxPingsOut: pingsOut,
		AuthTimeout: handshakeWait.Seconds(), TLSTimeout: handshakeWait.Seconds(),
	}
	if c.Name != "" {
		o.ServerName = HubName + "-" + escape(c.Name)
	} else {
		o.ServerName = HubName + "-" + escape(c.Advertise)
	}
	if err := c.secure(o, ca); err != nil {
		return nil, err
	}
	return o, c.route(o, ca)
}

func (c HubConfig) secure(o *server.Options, ca *authority) error {
	if ca == nil {
		return nil
	}
	config, err := ca.serverConfig(o.ServerName, c.Clock.Now())
	o.TLSConfig = config
	return err
}

// route joins the hub to its peers. A route is let in by the same token and by a certificate of the same authority.
func (c HubConfig) route(o *server.Options, ca *authority) (err error) {
	if c.Route == "" {
		return nil
	}
	host, port, err := splitAddress(c.Route)
	if err != nil {
		return err
	}
	o.Cluster = server.ClusterOpts{
		Name: HubName, Host: host, Port: port, Username: HubName, Password: c.Token,
		AuthTimeout: handshakeWait.Seconds(), TLSTimeout: handshakeWait.Seconds(),
	}
	if ca != nil {
		if o.Cluster.TLSConfig, err = ca.routeConfig(o.ServerName, c.Clock.Now()); err != nil {
			return err
		}
	}
	for _, peer := range c.Peers {
		o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: peer, User: url.UserPassword(HubName, c.Token)})
	}
	return nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not host:port", address)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q: %q is not a port", address, text)
	}
	return host, port, nil
}

// isLoopback returns false where it cannot know: a name may mean anything tomorrow.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// advertised returns the host by which others reach an address to listen on.
func advertised(listen string) string {
	host, _, _ := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host
	}
	name, err := os.Hostname()
	if err != nil {
		return "127.0.0.1"
	}
	return name
}
