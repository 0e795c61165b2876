package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/settings"
)

// Bounds of a server.
const (
	headerWait = 5 * time.Second // for a request's header: a scrape sends it at once
	scrapes    = 4               // that are answered at once, each with a snapshot; more are refused
	closeWait  = time.Second     // for answers under way at the end, so that a slow reader cannot hold the process
)

// A Server shows a run at an address, read only.
type Server struct {
	http   *http.Server
	ln     net.Listener
	served chan struct{}
}

// Listen opens the address, HOST:PORT, and begins to serve /metrics and /status. Without a host
// it is that of loopback: only this machine. run has the metrics. stands returns how the run stands, nil before it has
// begun; any goroutine may call it.
func Listen(addr string, stands func() *event.Progress, run ...prometheus.Collector) (*Server, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port)) //nolint:noctx // it blocks on nothing
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(run), promhttp.HandlerOpts{MaxRequestsInFlight: scrapes}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answerStatus(w, r, stands) })
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "headrace: /metrics is for Prometheus, /status is one event of --progress json")
	})
	s := &Server{ln: ln, served: make(chan struct{}), http: &http.Server{Handler: mux, ReadHeaderTimeout: headerWait}}
	if s.Local() {
		s.http.Handler = localNames(mux)
	}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(ln) // its error is that it was closed
	}()
	return s, nil
}

// registry returns the metrics of a run and of its process.
func registry(run []prometheus.Collector) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(run...)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// localNames refuses requests for another host than this machine. A page elsewhere may give
// its own name this machine's address, and would then read the answers.
func localNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if !settings.IsLoopback(host) {
			http.Error(w, fmt.Sprintf("headrace: the host %q is not this machine: want localhost", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// answerStatus sends one progress event. Examples of failures quote prompts and answers, so
// they are for this machine only.
func answerStatus(w http.ResponseWriter, r *http.Request, stands func() *event.Progress) {
	e := stands()
	if e == nil {
		http.Error(w, "headrace: the run has not begun", http.StatusServiceUnavailable)
		return
	}
	if host, _, _ := net.SplitHostPort(r.RemoteAddr); !settings.IsLoopback(host) {
		e.Failures = nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(e) // a reader that has gone is nobody's fault
}

// Addr returns the address that is open.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Local reports whether only this machine can reach the address.
func (s *Server) Local() bool {
	addr, ok := s.ln.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// Close ends the server within a second.
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
