package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/serve/door"
	"github.com/headrace/headrace/batch/serve/internal/line"
	"github.com/headrace/headrace/batch/serve/internal/queue"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/anthropic"
	"github.com/headrace/headrace/provider/converse"
	"github.com/headrace/headrace/provider/gemini"
	"github.com/headrace/headrace/provider/openai"
)

// Server is an http.Handler. Make one with [New].
type Server struct {
	cfg    Config
	books  chan *books     // has room for the one
	models chan *modelList // likewise
	queue  *queue.Queue

	waitingStopped, allStopped context.Context // of requests that wait, and of all
	stopWaiting, stopAll       context.CancelCauseFunc
}

// faces are the dialects that are served; the first words errors of no dialect.
var faces = []provider.Face{openai.Dialect{}, anthropic.Dialect{}, gemini.Dialect{}, converse.Dialect{}}

// Paths of the server's own.
const (
	pathHealth = "/healthz"
	pathReady  = "/readyz"
	pathStatus = "/headrace/status"
	pathHello  = "/headrace/hello"
	pathModels = "/v1/models"
	ownPaths   = "/headrace/"
)

// New checks the configuration and makes a server. It starts one goroutine, which owns the order of the requests
// that wait. Close ends it.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("%w: serve: %w", batch.ErrConfig, err)
	}
	s := &Server{cfg: cfg.withDefaults(), books: make(chan *books, 1), models: make(chan *modelList, 1)}
	at, err := s.newDoor(cfg.Clients)
	if err != nil {
		return nil, err
	}
	s.waitingStopped, s.stopWaiting = context.WithCancelCause(context.Background())
	s.allStopped, s.stopAll = context.WithCancelCause(context.Background())
	s.books <- &books{door: at, clients: map[string]*counts{}, purses: map[string]*purse{}, withoutUsage: map[string]bool{}, moneyBack: make(chan struct{}), idle: make(chan struct{})}
	s.models <- new(modelList)
	bound := line.Config{MaxWaiting: s.cfg.MaxWaiting, PerClient: max(1, s.cfg.MaxWaiting/2)}
	s.queue = queue.New(queue.Config{Clock: s.cfg.Clock, Bound: bound, Ahead: s.cfg.Ahead, Pace: func(pool string) queue.Pace { return s.paceOf(s.cfg.Lanes(pool)...) }})
	return s, nil
}

// newDoor makes the door for the given clients, with the server's other settings.
func (s *Server) newDoor(clients []door.Client) (*door.Door, error) {
	d, err := door.New(door.Config{Clients: clients, Open: s.cfg.Open, Hosts: s.cfg.Hosts, Origins: s.cfg.AllowOrigin})
	if err != nil {
		return nil, fmt.Errorf("%w: serve: %w", batch.ErrConfig, err)
	}
	return d, nil
}

// SetClients replaces the clients that may come in. Requests that have come in go on.
func (s *Server) SetClients(clients []door.Client) error {
	d, err := s.newDoor(clients)
	if err != nil {
		return err
	}
	s.withBooks(func(b *books) { b.door = d })
	return nil
}

// localKey finds in a request's context that it came over a socket of the same user's.
type localKey struct{}

// Local marks the context of connections over a socket that only this user can reach, for
// http.Server.ConnContext. They may have any Host, and need no token for the status.
func Local(ctx context.Context) context.Context { return context.WithValue(ctx, localKey{}, true) }

func isLocal(ctx context.Context) bool { is, _ := ctx.Value(localKey{}).(bool); return is }

// ServeHTTP serves one request. It panics with http.ErrAbortHandler, as net/http wants it, to cut an
// answer off whose end did not come.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(s.cfg.Clock.Now().Add(bodyTimeout)) // a server that has none reads without
	}
	var (
		at      *door.Door
		closing bool
	)
	s.withBooks(func(b *books) { at, closing = b.door, b.closing })
	switch r.URL.Path {
	case pathHealth:
		s.writePage(w, r, http.StatusOK, `{"status":"ok"}`)
		return
	case pathReady:
		if closing {
			s.writePage(w, r, http.StatusServiceUnavailable, `{"status":"stopping"}`)
			return
		}
		s.writePage(w, r, http.StatusOK, `{"status":"ready"}`)
		return
	}
	face := faceOf(r.URL.Path, r.Header)
	if refusal := at.Foreign(r, isLocal(r.Context())); refusal != nil {
		writeRefusal(w, face, beforeLine(refusal))
		return
	}
	switch {
	case r.URL.Path == pathStatus:
		s.serveStatus(w, r, face)
	case strings.HasPrefix(r.URL.Path, ownPaths) && r.URL.Path != pathHello:
		writeRefusal(w, face, notFound())
	default:
		s.enter(w, r, at, face)
	}
}

// enter serves a request that needs the token of a client.
func (s *Server) enter(w http.ResponseWriter, r *http.Request, at *door.Door, face provider.Face) {
	client, refusal := at.Client(r.Header)
	if refusal != nil {
		writeRefusal(w, face, beforeLine(refusal))
		return
	}
	switch r.URL.Path {
	case pathHello:
		s.writePage(w, r, http.StatusOK, `{"headrace":1,"batch":true}`)
		return
	case pathModels, "/v1beta/models":
		if s.cfg.Models != "" {
			s.serveModels(w, r, face)
			return
		}
	}
	v := &visit{server: s, w: w, r: r, client: client, began: s.cfg.Clock.Now()}
	if !v.route() {
		writeRefusal(w, face, notFound())
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeRefusal(w, face, refused{Refusal: provider.Refusal{Status: http.StatusMethodNotAllowed, Code: "headrace_method", Message: "this path takes POST"}})
		return
	}
	v.serve()
}

// faceOf returns the dialect in which to refuse a request, by its path and headers alone.
func faceOf(path string, h http.Header) provider.Face {
	switch {
	case strings.HasPrefix(path, "/v1beta"):
		return gemini.Dialect{}
	case strings.HasPrefix(path, "/model/"):
		return converse.Dialect{}
	case strings.HasPrefix(path, provider.Messages), h.Get(anthropic.VersionHeader) != "":
		return anthropic.Dialect{}
	}
	return faces[0]
}

// notFound returns the refusal for a path that is not served. It lists those that are.
func notFound() refused {
	var all []string
	for _, f := range faces {
		all = append(all, f.Paths()...)
	}
	return refused{Refusal: provider.Refusal{Status: http.StatusNotFound, Code: "headrace_path", Message: "this path is not served; these are: " + strings.Join(all, ", ")}}
}

// writePage answers a request for one of the server's own pages.
func (s *Server) writePage(w http.ResponseWriter, r *http.Request, status int, body string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		writeRefusal(w, faces[0], refused{Refusal: provider.Refusal{Status: http.StatusMethodNotAllowed, Code: "headrace_method", Message: "this path takes GET"}})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write([]byte(body + "\n")) // the client may have gone
	}
}

// Drain lets nobody come in any more. Requests that wait are refused at once; with waiting they go on.
// Calls in flight go on. It waits for nothing.
func (s *Server) Drain(waiting bool) {
	s.withBooks(func(b *books) {
		if !b.closing && b.open == 0 {
			close(b.idle)
		}
		b.closing = true
	})
	if !waiting {
		s.stopWaiting(errStopping)
		s.queue.Drain()
	}
}

// Close drains the server and waits for all requests to end. When ctx ends, it cuts off those that are
// left, waits for them, and returns ctx's cause.
func (s *Server) Close(ctx context.Context) error {
	s.Drain(false)
	defer s.queue.Close()
	var idle chan struct{}
	s.withBooks(func(b *books) { idle = b.idle })
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	s.stopAll(errStopping)
	<-idle
	return errors.Join(context.Cause(ctx))
}
