package tests

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A link is the only way between two processes, and it can be spoiled.
type link struct {
	t     *testing.T
	proxy *toxiproxy.Proxy
}

// The directions of a link, from him who connects: to the other, and from the other.
const (
	up   = "upstream"
	down = "downstream"
)

// newLink is a way to an address. Whoever is to use it is given its own.
func newLink(t *testing.T, to string) *link {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{t: t, proxy: toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", to)}
	if err := l.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.heal(); l.proxy.Stop() })
	return l
}

func (l *link) address() string { return l.proxy.Listen }

// swallow drops whatever goes in these directions, and keeps the connections: nothing comes
// and nobody is told. When it heals they break, for what was lost is missed.
func (l *link) swallow(directions ...string) {
	l.spoil("timeout", `{"timeout":0}`, directions)
}

// hold keeps what goes in these directions, and hands it on when it heals: late, and in order.
func (l *link) hold(directions ...string) { l.slow(time.Hour, directions...) }

// slow makes the way so long.
func (l *link) slow(by time.Duration, directions ...string) {
	l.spoil("latency", fmt.Sprintf(`{"latency":%d}`, by.Milliseconds()), directions)
}

func (l *link) spoil(kind, how string, directions []string) {
	l.t.Helper()
	for _, d := range directions {
		_, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":%s}`, kind, d, how)))
		if err != nil {
			l.t.Errorf("%s %s: %v", kind, d, err)
		}
	}
}

func (l *link) heal() { l.proxy.Toxics.ResetToxics(context.Background()) }
