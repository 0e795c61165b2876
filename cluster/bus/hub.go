package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"
	"github.com/jonboulle/clockwork"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/headrace/headrace/internal/disk"
)

// HubName begins the name of every server that is a [Hub]. It tells clients that the server syncs its writes.
const HubName = "headrace-hub"

// Bounds of a hub.
const (
	// DefaultListen is the default address to listen on, for this machine alone.
	DefaultListen = "127.0.0.1:4222"
	// StartWait bounds the time in which a server reads its store, and again the time until it listens. The
	// 10,000 chunks that are queued ahead take under a second, and a slow disk is a hundred times slower.
	StartWait = 60 * time.Second
	// readyEvery is the interval between two looks of [Hub.Ready].
	readyEvery = 50 * time.Millisecond
)

// A HubConfig says where a hub listens and where it keeps its data.
type HubConfig struct {
	// Dir holds everything the hub keeps: the streams, its token, its certificates. The hub makes it if it
	// is missing. One hub at a time may use it.
	Dir string
	// Listen is host:port; "" is [DefaultListen]. Port 0 means the port of the last start if it is
	// free, and otherwise any. A host other than a loopback one always uses TLS.
	Listen string
	// Advertise is the host, or host:port, by which others reach the hub, for [Hub.JoinURL];
	// "" is that of Listen, or this machine's name where Listen is every address.
	Advertise string
	// Token is the admin's, at least [MinToken] bytes; "" is the one in TLSDir, or else the one in Dir, which a
	// single hub makes at its first start. The tokens of other roles follow from it.
	Token string
	// TLS turns TLS on for a loopback address, too.
	TLS bool
	// TLSDir holds ca.pem and ca.key; "" is tls in Dir. The first start makes them if they are missing. Hubs
	// of one cluster need the same two files, and the same token: see [MakeShared].
	TLSDir string
	// Route is the host:port on which this hub hears the others of its cluster; "" for a single hub.
	Route string
	// Peers are the addresses at which the hubs of the cluster hear each other, including this one: none, or three.
	Peers []string
	// Name distinguishes the hubs of a cluster and must stay the same over restarts; "" makes one from
	// this machine's name and the port of Route.
	Name string
	// Clock times the hub's waits; nil is the real clock.
	Clock clockwork.Clock
	made  bool // the token was made at this start
	// Say receives the server's complaints, and notices of a store that was put aside. Several goroutines
	// call it, so it must not block. nil: nobody hears them.
	Say func(error)
}

// A Hub is a NATS server with JetStream inside this process.
type Hub struct {
	config HubConfig
	server *server.Server
	lock   *flock.Flock
	ca     *authority // nil without TLS
	log    *hubLog
	ending sync.Once
	quit   chan struct{} // closed by Shutdown
	done   chan struct{} // closed when the goroutine that watches the start has ended
}

// ErrInUse is the kind of error of a second hub on one Dir.
var ErrInUse = errors.New("another hub uses it")

// StartHub starts a hub and returns when it listens. [Hub.Ready] waits until the hub has found the others of its
// cluster.
//
// StartHub puts a store aside, as jetstream.broken-<k>, if the server cannot start on it, or has died three times soon
// after a start. The hub then begins with an empty store, and the processes that need its contents make them again.
func StartHub(config HubConfig) (*Hub, error) {
	config, err := config.completed()
	if err != nil {
		return nil, fmt.Errorf("bus: hub: %w", err)
	}
	lock, err := lockDir(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("bus: hub: %s: %w", config.Dir, err)
	}
	hub, err := startLocked(config, lock)
	if err != nil {
		_ = lock.Unlock() // the error to tell is the other
		return nil, fmt.Errorf("bus: hub: %w", err)
	}
	return hub, nil
}

// startLocked starts a hub in a folder that its caller has locked. It counts the start on disk
// before the server reads its store, which may end the process. Later, settle takes the count
// back.
func startLocked(config HubConfig, lock *flock.Flock) (*Hub, error) {
	config, ca, err := config.secured()
	if err != nil {
		return nil, err
	}
	hub := &Hub{config: config, lock: lock, ca: ca, quit: make(chan struct{}), done: make(chan struct{})}
	hub.log = &hubLog{say: config.Say, secret: config.Token}
	starts := startCount{dir: config.Dir}
	failed, err := starts.begin()
	if err != nil {
		return nil, err
	}
	if failed >= maxFailedStarts {
		hub.putAside(fmt.Errorf("%d starts in a row ended early", failed))
	}
	err = hub.startOrEmpty()
	switch {
	case errors.Is(err, errHangs):
		starts.giveUp()
		return nil, err
	case err != nil:
		starts.end() // it ended in an orderly way, and so says nothing of the store
		return nil, err
	}
	go hub.settle(starts)
	return hub, nil
}

// startOrEmpty starts the server, on an empty store if need be. A port in use does not count against
// the store.
func (h *Hub) startOrEmpty() error {
	err := h.start()
	if err == nil || !errors.Is(err, errStore) {
		return err
	}
	h.putAside(err)
	return h.start()
}

// start starts a server on the present store, and returns when it listens. Its error is of kind
// errStore if another try on an empty store may succeed. It writes down the port for the next
// start.
func (h *Hub) start() error {
	if err := h.config.portFree(); err != nil {
		return err
	}
	options, err := h.config.options(h.ca)
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return h.log.redacted(err)
	}
	h.log.fatal.Store(nil)
	s.SetLoggerV2(h.log, false, false, false)
	if err := h.begin(s); err != nil {
		return err
	}
	if err := h.listening(s); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return err
	}
	h.server = s
	if err := disk.Real().Write(filepath.Join(h.config.Dir, "port"), []byte(strconv.Itoa(h.Port())+"\n"), 0o644); err != nil {
		s.Shutdown() // it would serve without an owner
		s.WaitForShutdown()
		return err
	}
	return nil
}

// begin starts the server, which reads its store. If reading never ends, this process cannot stop
// it, and the next start puts the store aside.
func (h *Hub) begin(s *server.Server) error {
	begun := make(chan struct{})
	go func() {
		s.Start()
		close(begun)
	}()
	select {
	case <-begun:
		return nil
	case <-h.config.Clock.After(StartWait):
		return errHangs
	}
}

var errHangs = fmt.Errorf("the server has not read its store within %v: it will be put aside at the next start", StartWait)

// errStore is the kind of error of a server that got as far as its store.
var errStore = errors.New("the store cannot be used")

// listening waits until a begun server listens. Its error is of kind errStore if the server has
// given up, has turned JetStream off, or has not recovered everything.
func (h *Hub) listening(s *server.Server) error {
	if fatal := h.log.fatal.Load(); fatal != nil {
		return fmt.Errorf("%w: %s", errStore, *fatal)
	}
	if !s.JetStreamEnabled() {
		return fmt.Errorf("%w: JetStream is off", errStore)
	}
	if !s.ReadyForConnections(StartWait) {
		return fmt.Errorf("does not listen after %v", StartWait)
	}
	return h.checkStore(s)
}

// settle removes the mark of a start once it is clear that the store did not break the server.
func (h *Hub) settle(starts startCount) {
	defer close(h.done)
	timer := h.config.Clock.NewTimer(settleAfter)
	defer timer.Stop()
	select {
	case <-timer.Chan():
	case <-h.quit:
	}
	starts.end()
}

// Ready waits until the hub serves: a single one at once, one of three when a majority of them agrees on a leader.
func (h *Hub) Ready(ctx context.Context) error {
	ticker := h.config.Clock.NewTicker(readyEvery)
	defer ticker.Stop()
	alone := h.config.Route == "" // of three, a majority must agree on who leads
	for {
		health := h.server.Healthz(&server.HealthzOptions{JSServerOnly: alone, JSMetaOnly: !alone})
		if health.StatusCode == 200 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bus: hub: not ready: %s: %w", health.Error, ctx.Err())
		case <-ticker.Chan():
		}
	}
}

// Shutdown ends the hub and waits until nothing of it runs. The first call ends it, and all calls wait.
func (h *Hub) Shutdown() {
	h.ending.Do(func() {
		close(h.quit)
		<-h.done
		h.server.Shutdown()
		h.server.WaitForShutdown()
		_ = h.lock.Unlock() // it ends with the process anyway
	})
}

// Port returns the port on which the hub hears clients.
func (h *Hub) Port() int {
	addr, _ := h.server.Addr().(*net.TCPAddr)
	if addr == nil {
		return 0
	}
	return addr.Port
}

// MadeToken reports whether the hub made its token at this start, so that nobody knows it yet.
func (h *Hub) MadeToken() bool { return h.config.made }

// JoinURL returns an admin's join line: nats://TOKEN@host:port, and, with TLS, the fingerprint of the authority that
// signed the hub's certificate. It is a secret.
func (h *Hub) JoinURL() string { return h.RoleURL(AdminRole) }

// RoleURL returns the join line of a role. It is a secret.
func (h *Hub) RoleURL(r Role) string {
	host, port, err := net.SplitHostPort(h.config.Advertise)
	if err != nil {
		host, port = strings.Trim(h.config.Advertise, "[]"), strconv.Itoa(h.Port())
	}
	line := Address{Hosts: []string{net.JoinHostPort(host, port)}, Token: roleToken(h.config.Token, r)}
	if h.ca != nil {
		line.CA = h.ca.fingerprint()
	}
	return line.String()
}

func lockDir(dir string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, "lock"))
	ok, err := lock.TryLock()
	if err == nil && !ok {
		err = ErrInUse
	}
	return lock, err
}

// checkStore finds damage that a server does not report. A server that starts on a damaged store leaves out what it
// cannot read, and reports itself healthy. Streams left out like that cannot always be made again, because their
// remains are in the way. A hub of three is not checked: it gets lost data from the others.
func (h *Hub) checkStore(s *server.Server) error {
	if h.config.Route != "" {
		return nil
	}
	info, err := s.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	for _, account := range info.AccountDetails {
		if err := checkAccount(account, filepath.Join(storeDir(h.config.Dir), "jetstream", account.Name, "streams")); err != nil {
			return fmt.Errorf("%w: %w", errStore, err)
		}
	}
	return nil
}

// checkAccount compares the folders of streams with the streams of the server.
func checkAccount(account *server.AccountDetail, dir string) error {
	for _, name := range folders(dir) {
		if !slices.ContainsFunc(account.Streams, func(s server.StreamDetail) bool { return s.Name == name }) {
			return fmt.Errorf("stream %s was not recovered", name)
		}
	}
	return nil
}

// folders returns the names of the folders in dir; none if dir does not exist.
func folders(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // what cannot be read the server could not read, either
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// A hubLog passes on the server's complaints, without the token, and nothing else. The server's
// goroutines call it.
type hubLog struct {
	say    func(error)
	secret string
	fatal  atomic.Pointer[string] // the latest error that made the server give up
}

// Noticef says nothing: success is no news.
func (l *hubLog) Noticef(string, ...any) {}

// Warnf says nothing, either. A server warns of slow consumers and lost routes, which our clients
// and their users notice by themselves.
func (l *hubLog) Warnf(string, ...any) {}

// Debugf says nothing.
func (l *hubLog) Debugf(string, ...any) {}

// Tracef says nothing.
func (l *hubLog) Tracef(string, ...any) {}

// Errorf passes the complaint on.
func (l *hubLog) Errorf(format string, v ...any) {
	l.tell(fmt.Errorf("bus: hub: %s", fmt.Sprintf(format, v...)))
}

// Fatalf passes the complaint on and records it; the process lives on.
func (l *hubLog) Fatalf(format string, v ...any) {
	text := l.hide(fmt.Sprintf(format, v...))
	l.fatal.Store(&text)
	l.tell(fmt.Errorf("bus: hub: %s", text))
}

func (l *hubLog) tell(err error) {
	if l.say != nil {
		l.say(l.redacted(err))
	}
}

// redacted returns err itself unless it names the token.
func (l *hubLog) redacted(err error) error {
	if text := err.Error(); l.secret != "" && strings.Contains(text, l.secret) {
		return errors.New(l.hide(text))
	}
	return err
}

func (l *hubLog) hide(text string) string {
	if l.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, l.secret, "***")
}
