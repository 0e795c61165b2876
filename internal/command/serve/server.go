package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch"
	handler "github.com/headrace/headrace/batch/serve"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/logs"
	"github.com/headrace/headrace/internal/command/panel"
	"github.com/headrace/headrace/internal/command/progress"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/state"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/disk"
	"github.com/headrace/headrace/limiter"
)

// server is one process of headrace serve.
type server struct {
	*world.World
	own         *flags
	givenFlags  [][2]string       // the flags on the command line
	fixedValues map[string]string // values that SIGHUP does not change
	console     *progress.Console
	log         *slog.Logger
	began       time.Time

	entrance *entrance
	upstream *upstream
	handler  *handler.Server
	http     *http.Server
	meter    *meter
	past     *past  // nil: nothing shows it
	token    string // that a process of this user may show; "": none is known

	ctlDrain chan struct{}  // one place: headrace ctl ends the server
	reloads  chan os.Signal // SIGHUPs of a process that was started without them

	cluster    Cluster    // nil: the limits are this process's own
	member     Member     // likewise
	stopMember func()     // ends what holds the member's permits
	memberDone chan error // has room for the error of that

	style    panel.Style
	lastLine string // the latest line; the loop's, as what follows
	draining bool   // it has been ended
}

// leanGC collects garbage at half the growth that is usual: what waits in line is most of the memory, and lives long.
const leanGC = 50

// serve runs until a signal ends it.
func (s *server) serve(ctx context.Context, f *settings.Flags) (err error) {
	s.began, s.ctlDrain = s.Clock.Now(), make(chan struct{}, 1)
	s.reloads = make(chan os.Signal, 1)
	if signal.Ignored(syscall.SIGHUP) { // nohup ignores it, so that a terminal ends nothing; it is still the way to reload
		signal.Notify(s.reloads, syscall.SIGHUP)
		defer signal.Stop(s.reloads)
	}
	if _, set := s.Env("GOGC"); !set {
		debug.SetGCPercent(leanGC)
	}
	manner, every, err := s.manner(f)
	if err != nil {
		return err
	}
	s.console = progress.Open(manner, s.Clock.Now)
	defer s.console.Close(nil)
	var closeLog func()
	if s.log, closeLog, err = logs.Open(f, s.console, "process", os.Getpid()); err != nil {
		return err
	}
	defer closeLog()
	if s.entrance, err = s.own.open(); err != nil {
		return err
	}
	defer func() { _ = s.entrance.Close() }()
	if err = checkNotItself(s.entrance, f); err != nil {
		return err
	}
	a, err := connect(ctx, s.World, f)
	if err != nil {
		return err
	}
	temporaryToken := s.own.tokenFile == "" && s.own.socket == "" && strings.HasSuffix(s.own.addr, ":0")
	clients, made, err := s.clients()
	if err != nil {
		return err
	}
	if made && temporaryToken { // the next server has another port, and would leave a file for each start
		defer func() { _ = os.Remove(s.own.tokenFile) }()
	}
	if err = s.build(f, a, clients); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.leave()) }()
	defer s.closeShared()
	if s.cluster != nil {
		if ended, err := s.join(ctx, f); ended || err != nil {
			return errors.Join(err, s.handler.Close(ctx)) // nobody has come in
		}
	}
	if err = s.openPast(f.MetricsAddr, a.Books != nil); err != nil {
		return err
	}
	defer s.past.close()
	if f.Ctl == settings.CtlOn {
		listens := s.listenToCtl(f)
		defer func() { _ = listens.Close() }() // it changes nothing any more
	}
	s.introduce(f, a, made)
	a.ServesAt = s.entrance.url()
	defer a.MeetNeighbours(s.console.Notice)()
	return s.run(ctx, every)
}

// clients returns the clients of --clients, or the holder of the one token; none with --open. made says that the
// token is new.
func (s *server) clients() (all []door.Client, made bool, err error) {
	switch {
	case s.own.isOpen:
		return nil, false, nil
	case s.own.clients != "":
		all, err = readClients(s.own.clients)
		return all, false, err
	}
	path := s.own.tokenFile
	if path == "" {
		if path, err = tokenPath(s.Runtime, s.entrance.address()); err != nil {
			return nil, false, err
		}
	}
	if s.own.tokenFile = path; path == "" {
		s.token, made = newToken(), true
	} else if s.token, made, err = tokenOf(path); err != nil {
		return nil, false, err
	}
	return []door.Client{{Name: defaultClient, SHA256: tokenHash(s.token), MayName: true, Admin: true}}, made, nil
}

// defaultClient names the client that has the one token.
const defaultClient = "default"

// build makes the line of calls, the handler of requests, and the HTTP server.
func (s *server) build(f *settings.Flags, a *account.Account, clients []door.Client) error {
	opts := sharedOptions(s.World, f, a)
	known, err := s.memoryOptions(f, a)
	if err != nil {
		return err
	}
	shared, err := batch.NewShared(append(opts, known...)...)
	if err != nil {
		return exit.Refuse("%s", exit.PlainText(err))
	}
	s.upstream = &upstream{shared: shared, clock: s.Clock, requested: map[requestedPool]bool{}}
	if err := s.upstream.use(context.Background(), f, a); err != nil {
		return exit.Refuse("%s", exit.PlainText(err))
	}
	s.meter = newMeter()
	_, idle := f.Streams()
	timeout := f.Timeout
	if timeout == 0 {
		timeout = -1 // for ever, as 0 is the default there
	}
	cfg := handler.Config{
		Shared: shared, Upstream: s.upstream.passer, Pool: s.upstream.pool, Home: s.upstream.home, Lanes: s.upstream.lanes, Models: s.upstream.listingLane(),
		Clients: clients, Open: s.own.isOpen, Hosts: s.hosts(), AllowOrigin: s.own.origins,
		MaxBody: int64(s.own.maxBody) * settings.Mebibyte, MaxBodies: int64(s.own.maxBodies) * settings.Mebibyte,
		MaxWaiting: s.own.maxWaiting, MaxWait: s.own.maxWait, CommitAfter: s.own.commitAfter,
		StreamIdle: idle, Timeout: timeout, FinishGone: s.own.onDisconnect == finishGone, InjectUsage: s.own.injectUsage,
		MaxCost: limiter.USD(f.MaxCost), Price: s.upstream.price, Cost: s.upstream.cost,
		Log: s.noteAccess, Clock: s.Clock,
	}
	if s.cluster != nil {
		cfg.Ahead = permitDelay
	}
	if s.handler, err = handler.New(cfg); err != nil {
		return exit.Refuse("%s", exit.PlainText(err))
	}
	s.meter.status = s.handler.Status
	s.http = &http.Server{
		Handler: s.paths(), ReadHeaderTimeout: headerWait, IdleTimeout: idleWait, MaxHeaderBytes: mostHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			if isOwnPeer(conn) {
				return handler.Local(ctx)
			}
			return ctx
		},
	}
	return nil
}

// permitDelay is the time whose calls ask a cluster for permits together: a permit takes some 50 ms to come, and an ask
// that has been answered a tenth of a second.
const permitDelay = 250 * time.Millisecond

// Bounds of connections.
const (
	headerWait = 10 * time.Second // for the head of a request
	idleWait   = 2 * time.Minute  // between two requests: longer than clients keep a connection
	mostHeader = 64 << 10         // bytes of a head
)

// hosts lists the names by which clients may call.
func (s *server) hosts() []string {
	all := s.own.hosts
	if host, _, err := net.SplitHostPort(s.own.addr); err == nil && host != "" && s.own.socket == "" {
		all = append(all[:len(all):len(all)], strings.ToLower(host))
	}
	return all
}

// memoryOptions returns the options that load what the last process learned from --state, and save it there.
func (s *server) memoryOptions(f *settings.Flags, a *account.Account) ([]batch.Option, error) {
	if s.own.state == "" {
		return nil, nil
	}
	if text := settings.NoFolder(s.own.state); text != "" {
		return nil, exit.Refuse("--state: %s", text)
	}
	file := &state.File{Path: s.own.state, Law: f.Law, Now: s.Clock.Now, Disk: disk.Real(), Synced: true}
	file.Server, file.Print = a.ServerOf()
	known, err := file.Load()
	switch {
	case errors.Is(err, state.ErrNotOurs), errors.Is(err, state.ErrUnread):
		return nil, exit.Refuse("--state: %s: %v: name another file", file.Path, err)
	case err != nil:
		s.console.Notice(event.State, fmt.Sprintf("%s is ignored: %v; the limits are learned again", file.Path, err))
		known = batch.Memory{}
	}
	return []batch.Option{batch.WithMemory(known), batch.WithMemorySaver(file.Save)}, nil
}

// introduce shows notices, and prints the lines by which clients find the server.
func (s *server) introduce(f *settings.Flags, a *account.Account, made bool) {
	for _, n := range a.Notice {
		s.console.Notice(n.Code, n.Text)
	}
	a.SayShared(s.console.Notice)
	if !s.entrance.isLocal() && s.entrance.cert == nil {
		s.console.Notice(event.Other, "tokens and prompts of clients on other machines cross the network unencrypted (--insecure-http)")
	}
	limits := ""
	if s.member != nil {
		limits = ", under the limits of its cluster"
	}
	s.console.Notice(event.Other, fmt.Sprintf("serving %s at %s%s", a.Name, s.entrance.url(), limits))
	s.console.Settle()
	token := s.token
	switch {
	case s.own.isOpen:
		token = "none-needed"
	case s.own.clients != "":
		token = "hr-…"
	case !made:
		token = "$(cat " + settings.ShellQuote(s.own.tokenFile) + ")"
	}
	out := exit.ForPeople(s.Stdout)
	if s.entrance.socket != "" {
		fmt.Fprintf(out, "curl --unix-socket %s http://localhost/healthz\n", settings.ShellQuote(s.entrance.socket))
	}
	for _, line := range shellExports(f, s.entrance, token) {
		fmt.Fprintln(out, line)
	}
}

// shellExports returns lines for a shell that lead the official clients of each dialect to this server.
func shellExports(f *settings.Flags, d *entrance, token string) (all []string) {
	seen := map[string]bool{}
	dialects := []string{f.Dialect.Name()}
	if f.Fleet != nil {
		dialects = nil
		for i := range f.Fleet.Lanes {
			dialects = append(dialects, f.Fleet.Lanes[i].Flags.Dialect.Name())
		}
	}
	for _, name := range dialects {
		v, known := clientVariables[name]
		if !known || seen[name] {
			continue
		}
		seen[name] = true
		if d.socket == "" {
			all = append(all, fmt.Sprintf("export %s=%s%s", v.base, d.url(), v.path))
		}
		all = append(all, fmt.Sprintf("export %s=%s", v.key, token))
	}
	return all
}

// clientVariables are those that the official clients of a dialect read.
var clientVariables = map[string]struct{ base, path, key string }{
	"openai":    {"OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"},
	"anthropic": {"ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"},
	"gemini":    {"GOOGLE_GEMINI_BASE_URL", "", "GEMINI_API_KEY"},
	"converse":  {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "", "AWS_BEARER_TOKEN_BEDROCK"},
}

// run serves until a signal, a command of ctl or a fault ends the server, and then ends it in order.
func (s *server) run(ctx context.Context, every time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.entrance) }()
	shown := s.Clock.NewTicker(every)
	defer shown.Stop()
	for {
		select {
		case err := <-served:
			return exit.End(exit.Output, "the address is gone: %v", err)
		case err := <-s.memberDone:
			if err != nil {
				return s.endExpelled(err, shown.Chan())
			}
		case <-ctx.Done():
			return s.drainAndClose(nameOf(syscall.SIGTERM), shown.Chan())
		case <-s.ctlDrain:
			return s.drainAndClose("headrace ctl", shown.Chan())
		case <-s.Asks:
			s.show(ctx)
		case <-shown.Chan():
			s.show(ctx)
		case <-s.reloads:
			s.reload(ctx)
		case sig := <-s.Signals:
			if sig == syscall.SIGHUP && (s.Terminal.Size == nil || hasTerminal()) {
				s.reload(ctx)
				continue
			}
			return s.drainAndClose(nameOf(sig), shown.Chan())
		}
	}
}

// hasTerminal reports whether this process still has its terminal. A SIGHUP without one comes from a terminal that
// was closed.
func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = tty.Close() // it was only looked for
	return true
}

// drainAndClose lets calls in flight finish within --drain. A second signal ends the server at once.
func (s *server) drainAndClose(by string, shown <-chan time.Time) error {
	s.draining = true
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	wait := s.Clock.NewTimer(s.own.drain)
	defer wait.Stop()
	waiting := "waiting requests are refused"
	if s.own.drainWaiting {
		waiting = "waiting requests go on"
	}
	s.console.Notice(event.Stopping, fmt.Sprintf("stopping by %s: %s, and calls in flight finish within %v; a second signal ends at once", by, waiting, s.own.drain))
	s.handler.Drain(s.own.drainWaiting)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = s.http.Shutdown(ctx) // the rest is cut below
	}()
	began := s.Clock.Now()
	for ended := false; !ended; {
		select {
		case <-over:
			ended = true
		case <-wait.Chan():
			ended = true
		case <-s.Asks:
			s.show(ctx)
		case <-shown:
			s.show(ctx)
		case again := <-s.Signals:
			ended = again != syscall.SIGHUP && !(again == syscall.SIGTERM && s.Clock.Since(began) < sameCall)
		}
	}
	stop(errOver)
	_ = s.handler.Close(ctx) // its error is that ctx has ended
	_ = s.http.Close()       // likewise
	<-over
	return nil
}

// sameCall is the time within which a second SIGTERM may be the first one, sent twice: timeout(1) sends
// it to the process and to its group.
const sameCall = time.Second

var errOver = errors.New("headrace serve has ended")

// nameOf names a signal as it is in a sentence.
func nameOf(sig os.Signal) string {
	if sig == syscall.SIGTERM {
		return "a SIGTERM"
	}
	return event.CtrlC
}

// closeShared ends the line, and saves what it knows.
func (s *server) closeShared() {
	defer s.upstream.close()
	if err := s.upstream.shared.SaveErr(); err != nil && s.own.state != "" {
		s.console.Notice(event.State, fmt.Sprintf("%s is not up to date: %s", s.own.state, exit.PlainText(err)))
	}
}

// reload reads the files again: --config, --clients, and the certificate. A fault leaves everything as it
// was.
func (s *server) reload(ctx context.Context) {
	later, err := s.reloadFiles(ctx)
	if err != nil {
		s.console.Notice(event.Other, "SIGHUP: nothing is changed: "+exit.PlainText(err))
		return
	}
	text := "SIGHUP: the files are read again"
	if len(later) > 0 {
		text += ", but " + strings.Join(later, ", ") + ": the new value holds after a restart"
	}
	s.console.Notice(event.Other, text)
}

// reloadFiles reads the files again and applies them. It returns the flags whose new values hold only after a
// restart.
func (s *server) reloadFiles(ctx context.Context) (later []string, err error) {
	own, f := &flags{}, &settings.Flags{ManyLanes: true}
	all := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	own.addTo(all, f)
	for _, one := range s.givenFlags {
		if flag := all.Lookup(one[0]); flag != nil {
			if err := all.Set(one[0], one[1]); err != nil {
				return nil, err
			}
		}
	}
	if err := f.Complete(all, s.Env); err != nil {
		return nil, err
	}
	if err := own.check(all); err != nil {
		return nil, err
	}
	if err := checkNotItself(s.entrance, f); err != nil {
		return nil, err
	}
	a, err := connect(ctx, s.World, f)
	if err != nil {
		return nil, err
	}
	clients, _, err := s.clients()
	if err != nil {
		return nil, err
	}
	if s.entrance.cert != nil {
		if err := s.entrance.cert.read(); err != nil {
			return nil, err
		}
	}
	if !s.own.isOpen {
		if err := s.handler.SetClients(clients); err != nil {
			return nil, err
		}
	}
	if err := s.upstream.use(ctx, f, a); err != nil {
		return nil, err
	}
	for name, value := range fixedFlags(all) {
		if value != s.fixedValues[name] {
			later = append(later, "--"+name)
		}
	}
	slices.Sort(later)
	return later, nil
}

// noteAccess counts and logs a request that has ended. It knows nothing of the request's body.
func (s *server) noteAccess(a handler.Access) {
	s.meter.note(&a)
	s.past.note(&a)
	if !s.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	attrs := []any{
		"client", a.Client, "class", a.Class.String(), "path", a.Path, "model", a.Model, "lane", a.Lane, "status", a.Status,
		"waited_ms", a.Waited.Milliseconds(), "took_ms", a.Took.Milliseconds(), "attempts", a.Attempts, "bytes", a.Bytes, "stream", a.Streamed,
	}
	if a.Code != "" {
		attrs = append(attrs, "code", a.Code)
	}
	if a.Gone {
		attrs = append(attrs, "gone", true)
	}
	s.log.Debug("request", attrs...)
}
