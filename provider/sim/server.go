package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/jonboulle/clockwork"
)

// MaxBody bounds a request's body: the longest line that a prompt file may
// have, and room for what is wrapped around it. Beyond it the answer is 413.
const MaxBody = 65 << 20

// Server is the model behind OpenAI's dialect. It is an http.Handler for
// sockets; [Transport] asks it without one. It is safe for concurrent use, and
// nothing of it runs but the calls being served.
type Server struct {
	clock  clockwork.Clock
	keys   []string
	models []string

	mu     sync.Mutex // guards what is below: decisions are made one at a time
	model  *Model
	served uint64
}

// New starts the model's time at the clock's present. Like NewModel it panics
// when the configuration is invalid.
func New(cfg Config, clock clockwork.Clock) *Server {
	return &Server{
		clock:  clock,
		keys:   cfg.Keys,
		models: cfg.Models,
		model:  NewModel(cfg, clock.Now()),
	}
}

// Books is a copy of the provider's counts. Calls that still wait for their
// answer are in them already.
func (s *Server) Books() Books {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Books()
}

// errReset is what a caller in process sees of a broken connection: the same
// chain of errors as a socket's.
var errReset error = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

// errClosing ends a call that would hang when the server shuts down.
var errClosing = errors.New("sim: serve: shutting down")

// ServeHTTP answers one request. It breaks the connection where the model says
// so, and when the client has left.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.respond(r)
	if err != nil {
		breakOff(w)
		return
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if a.cut {
		// net/http closes a connection whose promised length was not written.
		_, _ = w.Write(a.body[:len(a.body)/2])
		return
	}
	_, _ = w.Write(a.body)
}

// breakOff closes the connection without an answer: with a reset where it can
// be had, else in the way that net/http offers.
func breakOff(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // close sends RST
	}
	_ = conn.Close()
}

// respond is the whole life of a call but for the wire. An error means that
// there is no answer: the connection is reset, or the caller has left.
func (s *Server) respond(r *http.Request) (reply, error) {
	a, err := s.route(r)
	if err != nil {
		return reply{}, err
	}
	a.header["X-Request-Id"] = []string{s.requestID()}
	return a, nil
}

func (s *Server) requestID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served++
	return fmt.Sprintf("req_sim%016x", s.served)
}

func (s *Server) route(r *http.Request) (reply, error) {
	method := http.MethodGet
	switch e := endpoint(r.URL.Path); e {
	case chatCompletions, completions, embeddings, responses, messages:
		if r.Method == http.MethodPost {
			return s.call(r, e)
		}
		method = http.MethodPost
	case "/v1/models", "/sim/books", "/healthz":
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return s.look(r)
		}
	default:
		return jsonReply(http.StatusNotFound, errorBody(
			fmt.Sprintf("Unknown request URL: %s %s. Please check the URL for typos, or see the docs at https://platform.openai.com/docs/api-reference/.", r.Method, r.URL.Path),
			invalidRequest, "", "unknown_url")), nil
	}
	a := jsonReply(http.StatusMethodNotAllowed, errorBody(
		fmt.Sprintf("Not allowed to %s on %s.", r.Method, r.URL.Path), invalidRequest, "", "method_not_supported"))
	a.header.Set("Allow", method)
	return a, nil
}

// look answers what is not a call: it is neither charged nor counted.
func (s *Server) look(r *http.Request) (reply, error) {
	switch r.URL.Path {
	case "/v1/models":
		if len(s.keys) > 0 && !slices.Contains(s.keys, bearer(r.Header)) {
			v := Verdict{Kind: Unauthorized}
			return jsonReply(v.Kind.Status(), v.errorBody(request{})), nil
		}
		return jsonReply(http.StatusOK, modelList(s.models, s.clock.Now())), nil
	case "/sim/books":
		return s.showBooks(r.URL.Query().Has("ids"))
	}
	return jsonReply(http.StatusOK, []byte(`{"status":"ok"}`)), nil
}

func (s *Server) showBooks(ids bool) (reply, error) {
	b := s.Books()
	if !ids {
		b.Answered = nil
	}
	body, err := json.Marshal(b)
	return jsonReply(http.StatusOK, append(body, '\n')), err
}

func (s *Server) call(r *http.Request, e endpoint) (reply, error) {
	body, err := readBody(r)
	if errors.Is(err, errTooLong) {
		return jsonReply(http.StatusRequestEntityTooLarge, errorBody(
			fmt.Sprintf("Request body is larger than %d bytes.", MaxBody), invalidRequest, "", "request_too_large")), nil
	}
	if err != nil {
		return reply{}, err
	}
	req := peek(e, body)
	c := Call{
		Tokens:  req.charge(),
		Key:     bearer(r.Header),
		Model:   req.model,
		ID:      identify(r.Header, e, body),
		Invalid: req.complaint != "",
	}
	v := s.decide(c)
	if err := s.wait(r.Context(), v); err != nil {
		s.abandon(c, v)
		return reply{}, err
	}
	if v.Reset {
		return reply{}, errReset
	}
	return v.reply(req, c.ID, s.clock.Now()), nil
}

// decide reads the clock under the lock, so that the model's time never goes
// back from one call to the next.
func (s *Server) decide(c Call) Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Decide(s.clock.Now(), c)
}

func (s *Server) abandon(c Call, v Verdict) {
	if v.Kind != Accepted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Abandon(c)
}

// wait passes the call's latency, or as long as the caller stays.
func (s *Server) wait(ctx context.Context, v Verdict) error {
	if v.Hang {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closing(ctx):
			return errClosing
		}
	}
	if v.Latency <= 0 {
		return context.Cause(ctx)
	}
	timer := s.clock.NewTimer(v.Latency)
	defer timer.Stop()
	select {
	case <-timer.Chan():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// closingKey finds in a request's context the end of the listener that took it.
type closingKey struct{}

func closing(ctx context.Context) <-chan struct{} {
	done, _ := ctx.Value(closingKey{}).(<-chan struct{})
	return done
}

var errTooLong = errors.New("sim: body: too long")

// foreseen bounds what is allocated for a body on the word of its length alone.
const foreseen = 1 << 20

// readBody bounds what is read, whatever length was announced.
func readBody(r *http.Request) (string, error) {
	if r.Body == nil {
		return "", nil
	}
	if r.ContentLength > MaxBody {
		return "", errTooLong
	}
	var b bytes.Buffer
	b.Grow(int(min(max(r.ContentLength, 0), foreseen)) + bytes.MinRead)
	n, err := b.ReadFrom(io.LimitReader(r.Body, MaxBody+1))
	if n > MaxBody {
		return "", errTooLong
	}
	return b.String(), err
}

func bearer(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}

// identify tells one item from another, and knows an item that comes again: by
// its Idempotency-Key, else by every byte of what it asks.
func identify(h http.Header, e endpoint, body string) string {
	if key := h.Get("Idempotency-Key"); key != "" {
		return Checksum(key)
	}
	return Checksum(string(e) + body)
}
