package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/store"
)

// Config holds the settings of a process of a cluster.
type Config struct {
	// Line is the line to join by. It is a secret.
	Line string
	// Home is the address of the cluster's store as seen from here; "": the one in the line.
	Home string
	// Patient waits for a bucket that is away, as for a bus. It suits a process that a machine starts, and would
	// start again. Without it, such a bucket is an error.
	Patient bool
	// Times are the times that this process was given for the cluster; if the cluster has others, the error is
	// ErrTimes. Settles marks a process that works: the first such process settles the times.
	Times   Times
	Settles bool
	// Founds marks a process that works, or gives work: it becomes the creator of a cluster that has none.
	Founds bool
	// TakesOver admits a process whose hub is not the one that the store names; see [Node.TakeOver].
	TakesOver bool
	// Seed feeds all chance; it need not be the same twice.
	Seed  uint64
	Clock clockwork.Clock // nil is the real one
	// Say receives messages for a person, in whole sentences, from several goroutines. It must not wait; nil drops
	// them.
	Say func(string)
}

// ErrHome says that neither the config nor the join line names the store.
var ErrHome = errors.New("the join line does not say where the cluster's store is: name it with --store")

// A Node is this process in a cluster.
type Node struct {
	cfg         Config
	clock       clockwork.Clock
	bus         *bus.Bus
	home        store.Store
	joinLine    string // the join line, with the home in it
	homeAddress string // the home's address

	epochs         *keeping.Epochs
	objects        atomic.Uint64 // the number of object names made
	inputStores    storeCache
	openInputStore func(ctx context.Context, address string) (store.Store, error) // opens the store in which an input lies
}

// Join connects to the bus and opens the store. It waits for a bus that is away until ctx ends, and for a store if
// cfg.Patient is set. The caller closes the node.
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
		return nil, &joinError{bus.Unreached(line, err), err}
	}
	home = cmp.Or(cfg.Home, home)
	s, err := openHome(ctx, home, &cfg)
	if err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, clock: cfg.Clock, home: s, homeAddress: home, joinLine: JoinLine(line, home), epochs: keeping.NewEpochs(s, cfg.Clock)}
	n.openInputStore = n.inputStores.open
	if err := n.join(ctx, line); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// join connects to the bus. It writes nothing as long as the store may be the wrong one.
func (n *Node) join(ctx context.Context, line string) error {
	name, configured := processName(n.cfg.Seed), n.cfg.Times
	times, err := timesOf(ctx, n.home, configured, false, name, n.clock.Now())
	if err != nil {
		return err
	}
	n.bus, err = bus.Connect(ctx, bus.Config{
		URL: line, Name: name, AckWait: times.AckWait, Clock: n.clock, Say: func(err error) { n.cfg.Say(err.Error()) },
	})
	if err != nil {
		return &joinError{bus.Unreached(line, err), err}
	}
	if n.cfg.Founds && n.bus.Role() == bus.WatchRole {
		return watchOnly()
	}
	if err := n.checkSameStore(ctx); errors.Is(err, ErrOtherStore) { // Work asks again if the bus does not answer yet
		return err
	}
	return n.settle(ctx, configured)
}

// settle learns what the whole cluster shares, and settles what is still open.
func (n *Node) settle(ctx context.Context, configured Times) (err error) {
	if n.cfg.Times, err = timesOf(ctx, n.home, configured, n.cfg.Settles, n.Name(), n.clock.Now()); err != nil {
		return err
	}
	creator, err := creatorOf(ctx, n.home, n.cfg.Founds, n.Name())
	if err != nil {
		return err
	}
	n.bus.Settle(creator, n.cfg.Times.AckWait)
	if n.cfg.Founds {
		return errors.Join(nameHub(ctx, n.home, n.bus.Identity()), n.checkSameHub(ctx))
	}
	return nil
}

// watchOnly returns the error of a process that would work or give work with a line for watching only.
func watchOnly() error {
	return &joinError{bus.Finding{
		Unsafe: true, What: "the line to join by permits only watching", Why: "take the line of a worker or of an admin: the hub keeps them in its --dir",
	}, bus.ErrRole}
}

// adminOnly returns the error of a person who would set a limit with a line that does not permit it.
func adminOnly() error {
	return &joinError{bus.Finding{
		Unsafe: true, What: "the line to join by does not permit setting limits", Why: "take the line of an admin: the hub keeps it in join-admin of its --dir",
	}, bus.ErrRole}
}

// checkSameStore returns ErrOtherStore if this node's store and bus do not belong to one cluster.
func (n *Node) checkSameStore(ctx context.Context) error {
	if err := n.checkSameHub(ctx); err != nil {
		return err
	}
	return checkSameStore(ctx, n.bus, n.home, n.homeAddress, n.clock)
}

// checkSameHub returns ErrOtherStore if the store names another hub. A process that takes over skips the check.
func (n *Node) checkSameHub(ctx context.Context) error {
	if n.cfg.TakesOver {
		return nil
	}
	return checkSameHub(ctx, n.home, n.homeAddress, n.bus.Identity())
}

// A joinError explains to people why a process may not join its cluster.
type joinError struct {
	found bus.Finding
	err   error
}

func (f *joinError) Error() string { return f.found.What + ": " + f.found.Why }

// Unwrap returns the kind of error.
func (f *joinError) Unwrap() error { return f.err }

// openHome opens the store. With cfg.Patient it reports a store that is away once, and tries again until ctx ends;
// each try takes seconds.
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
			cfg.Say(fmt.Sprintf("this process waits for its store: %v", err))
		}
	}
}

// ensure calls makeParts until the parts of the bus that this process needs exist. Three hubs that have just begun, or
// a busy one, do not answer at once. So it tries until ctx ends, or until it finds another store's bus.
func (n *Node) ensure(ctx context.Context, makeParts func(context.Context) error) error {
	for tried := false; ; tried = true {
		err := makeParts(ctx)
		if err == nil {
			err = n.checkSameStore(ctx)
		}
		if err == nil || errors.Is(err, ErrOtherStore) || ctx.Err() != nil {
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
	if n.bus != nil {
		n.bus.Close()
	}
	return errors.Join(n.inputStores.close(), store.Close(n.home))
}

// Name names this life of this process.
func (n *Node) Name() string { return n.bus.Name() }

// Times returns the cluster's times.
func (n *Node) Times() Times { return n.cfg.Times }

// Line returns the line by which others join.
func (n *Node) Line() string { return n.joinLine }

func (n *Node) sayf(format string, args ...any) { n.cfg.Say(fmt.Sprintf(format, args...)) }

// nameBits seeds the chance in names.
const nameBits = 0x6e616d65 // any second word will do; this one spells its purpose

// processName returns a new name for one life of this process. The host and the process number are for people, and
// chance makes each name unique. The name has neither a slash nor a dot in it.
func processName(seed uint64) string {
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

// homeParameter names the cluster's home, the address of its store, in a join line. The home is in the line and
// not on the bus, so that nothing can forget it.
const homeParameter = "home"

// SplitHome splits the home from a join line, and returns the rest as the bus's own line.
func SplitHome(line string) (bus, home string, err error) {
	bus, query, found := strings.Cut(line, "?")
	if !found {
		return line, "", nil
	}
	var kept []string
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name != homeParameter {
			kept = append(kept, pair)
			continue
		}
		if home, err = url.QueryUnescape(value); err != nil {
			return "", "", fmt.Errorf("node: join line: %s: it is not escaped as in URLs", homeParameter)
		}
	}
	if len(kept) > 0 {
		bus += "?" + strings.Join(kept, "&")
	}
	return bus, home, nil
}

// HomeOf returns a home in the form that other processes can use. A folder gets its absolute path, because others run in
// other folders.
func HomeOf(address string) (string, error) {
	if address == "" || isStoreAddress(address) {
		return address, nil
	}
	return filepath.Abs(address)
}

// JoinLine returns the line by which others join: the bus's own, with the home.
func JoinLine(bus, home string) string {
	if home == "" {
		return bus
	}
	separator := "?"
	if strings.Contains(bus, "?") {
		separator = "&"
	}
	return bus + separator + homeParameter + "=" + url.QueryEscape(home)
}
