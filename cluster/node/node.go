package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/store"
)

// Config is what every process of a cluster is told.
type Config struct {
	// Line is the line to join by. It is a secret.
	Line string
	// Home is where the cluster's store is found from here; "" is as the line says.
	Home string
	// Patient waits for a bucket that is away, as for a bus: whoever is started by a machine, and
	// would be started again. Else it is an error.
	Patient bool
	// Times are what this process was told of those of the cluster: others than the cluster has are ErrTimes. Settles
	// says that it works: the first that does settles them.
	Times   Times
	Settles bool
	// Seed is for all chance; it need not be the same twice.
	Seed  uint64
	Clock clockwork.Clock // nil is the real one
	// Say is told what a person should know, in whole sentences, by several goroutines.
	// It must not wait; nil: nobody is told.
	Say func(string)
}

// ErrHome says that nobody has said where the store is.
var ErrHome = errors.New("the join line does not say where the cluster's store is: name it with --store")

// A Node is this process in a cluster.
type Node struct {
	cfg   Config
	clock clockwork.Clock
	bus   *bus.Bus
	home  store.Store
	line  string // with the home in it

	objects atomic.Uint64 // names of objects that were made
}

// Join connects to the bus and opens the store. It waits for a bus that is away until ctx ends, and if the
// config says so for a store.
// Whoever gets a node closes it.
func Join(ctx context.Context, cfg Config) (*Node, error) {
	if cfg.Clock == nil {
		cfg.Clock = clockwork.NewRealClock()
	}
	if cfg.Say == nil {
		cfg.Say = func(string) {}
	}
	line, home, err := SplitHome(cfg.Line)
	if err != nil {
		return nil, err
	}
	if _, err := bus.ParseAddress(line); err != nil {
		return nil, &unreached{bus.Unreached(line, err), err}
	}
	home = cmp.Or(cfg.Home, home)
	s, err := openHome(ctx, home, &cfg)
	if err != nil {
		return nil, err
	}
	who := nameOf(cfg.Seed)
	if cfg.Times, err = timesOf(ctx, s, cfg.Times, cfg.Settles, who, cfg.Clock.Now()); err != nil {
		return nil, errors.Join(err, store.Close(s))
	}
	b, err := bus.Connect(ctx, bus.Config{
		URL: line, Name: who, AckWait: cfg.Times.AckWait, Clock: cfg.Clock, Say: func(err error) { cfg.Say(err.Error()) },
	})
	if err != nil {
		return nil, errors.Join(&unreached{bus.Unreached(line, err), err}, store.Close(s))
	}
	return &Node{cfg: cfg, clock: cfg.Clock, bus: b, home: s, line: JoinLine(line, home)}, nil
}

// unreached is why a bus was not reached, in words for people.
type unreached struct {
	found bus.Finding
	err   error
}

func (u *unreached) Error() string { return u.found.What + ": " + u.found.Why }

// Unwrap gives what the bus has said.
func (u *unreached) Unwrap() error { return u.err }

// openHome opens the store. For who is patient, one that is away is said once, and opened again until ctx ends; each
// try takes seconds.
func openHome(ctx context.Context, home string, cfg *Config) (store.Store, error) {
	if home == "" {
		return nil, fmt.Errorf("node: %w", ErrHome)
	}
	for tried := false; ; tried = true {
		s, err := store.Open(ctx, home, store.WithClock(cfg.Clock))
		if err == nil || !cfg.Patient || !errors.Is(err, store.ErrAway) || ctx.Err() != nil {
			return s, err
		}
		if !tried {
			cfg.Say(fmt.Sprintf("it is waited for: %v", err))
		}
	}
}

// ensure has what is missing on the bus made. Three hubs that have just begun, and one that is busy, do not
// answer at once: it is tried until ctx ends.
func (n *Node) ensure(ctx context.Context, missing func(context.Context) error) error {
	for tried := false; ; tried = true {
		err := missing(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !tried {
			n.sayf("the bus is not ready, and is asked again: %v", err)
		}
		n.pause(ctx)
	}
}

// Close leaves the cluster.
func (n *Node) Close() error {
	n.bus.Close()
	return store.Close(n.home)
}

// Name is this life of this process.
func (n *Node) Name() string { return n.bus.Name() }

// Times are those of the cluster.
func (n *Node) Times() Times { return n.cfg.Times }

// Line is the line with which others join.
func (n *Node) Line() string { return n.line }

func (n *Node) sayf(format string, args ...any) { n.cfg.Say(fmt.Sprintf(format, args...)) }

// nameBits begins the chance in names.
const nameBits = 0x6e616d65 // any second word will do; this one spells what it is for

// nameOf names a life of this process: where it runs, for people, and chance, which makes it
// another one each time. It has neither slash nor dot in it.
func nameOf(seed uint64) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	host = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(host))
	chance := rand.New(rand.NewPCG(seed, nameBits))
	return fmt.Sprintf("%.40s-%d-%013x", host, os.Getpid(), chance.Uint64()>>12)
}
