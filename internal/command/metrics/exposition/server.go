package exposition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/headrace/headrace/internal/command/settings"
)

// Bounds of a server.
const (
	headerWait  = 5 * time.Second // for a request's header: a scrape sends it at once
	bodyWait    = 5 * time.Second // for a body, which nobody reads here; net/http does so before it answers
	idleWait    = 2 * time.Minute // between two requests: longer than the usual period of scrapes
	mostScrapes = 4               // that are answered at once, each with a snapshot; more are refused
	closeWait   = time.Second     // for answers under way at the end, so that a slow reader cannot hold the process
)

// ContentType names the format of a page.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Handler answers with the figures of the sources and of this process, as they are now.
func Handler(sources ...Source) http.Handler {
	slots := make(chan struct{}, mostScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, fmt.Sprintf("headrace: %d scrapes are under way: want fewer at once", mostScrapes), http.StatusServiceUnavailable)
			return
		}
		var page Page
		for _, s := range sources {
			s.Collect(&page)
		}
		Process{}.Collect(&page)
		w.Header().Set("Content-Type", ContentType)
		_, _ = w.Write(page.AppendText(nil)) // a reader that has gone is nobody's fault
	})
}

// A Server answers at an address, read only.
type Server struct {
	http   *http.Server
	ln     net.Listener
	served chan struct{}
}

// Listen opens the address, HOST:PORT, and begins to serve. Without a host it is that of loopback: only this
// machine. Close must be called.
func Listen(addr string, handler http.Handler) (*Server, error) {
	host, port, err := splitAddress(addr)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port)) //nolint:noctx // it blocks on nothing
	if err != nil {
		return nil, err
	}
	return serve(ln, handler), nil
}

// serve starts a server at a listener, and bounds what a client may make it wait for.
func serve(ln net.Listener, handler http.Handler) *Server {
	s := &Server{ln: ln, served: make(chan struct{})}
	if s.Local() {
		handler = onlyLocalNames(handler)
	}
	s.http = &http.Server{Handler: boundBody(handler), ReadHeaderTimeout: headerWait, IdleTimeout: idleWait}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(ln) // its error is that it was closed
	}()
	return s
}

// boundBody sets a deadline for reading a body, so that a client that never ends its body loses its connection.
func boundBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWait))
		}
		next.ServeHTTP(w, r)
	})
}

// splitAddress splits an address into host and port. An empty host becomes that of loopback.
func splitAddress(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	return cmp.Or(host, "127.0.0.1"), port, err
}

// IsLocal reports whether only this machine will reach an address, as it is written.
func IsLocal(addr string) bool {
	host, _, err := splitAddress(addr)
	return err == nil && settings.IsLoopback(host)
}

// onlyLocalNames refuses requests that name another host than this machine. A page elsewhere could point its own name
// at this machine, and read the answers.
func onlyLocalNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !namesThisMachine(r) {
			http.Error(w, fmt.Sprintf("headrace: the host %q is not this machine: want localhost", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// namesThisMachine reports whether a request is for this machine, by the name that the client knows it by.
func namesThisMachine(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return settings.IsLoopback(host)
}

// IsFromHere reports whether a program on this machine asks, for this machine. At an address that others reach, too, a
// page elsewhere may give its own name the address of loopback: then the browser of this machine asks for that name.
func IsFromHere(r *http.Request) bool {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return settings.IsLoopback(host) && namesThisMachine(r)
}

// Addr returns the address that is open.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Local reports whether only this machine can reach the address.
func (s *Server) Local() bool {
	addr, ok := s.ln.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// Notice says where the metrics are. of is whose figures they are, as "this run".
func (s *Server) Notice(of string) string {
	text := fmt.Sprintf("metrics are at http://%s/metrics", s.Addr())
	if !s.Local() {
		text += fmt.Sprintf(": every machine that reaches this address can read the figures of %s, and no prompt or answer", of)
	}
	return text
}

// Close ends the server. It waits at most closeWait for answers under way, and then cuts them off.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.served
	return err
}
