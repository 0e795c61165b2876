package sim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/provider/sim/face"
	"github.com/headrace/headrace/provider/sim/openai"
)

// MaxBody bounds a request's body: the longest line that a prompt file may
// have, and room for what is wrapped around it. Beyond it the answer is 413.
const MaxBody = face.MaxBody

// Server is the model behind a face. It is an http.Handler for
// sockets; [Transport] asks it without one. It is safe for concurrent use, and
// nothing of it runs except the calls being served.
type Server struct {
	cfg   Config
	clock clockwork.Clock

	mu     sync.Mutex // guards what is below: decisions are made one at a time
	model  *Model
	served uint64
}

// New starts the model's time at the clock's present. Like NewModel it panics
// when the configuration is invalid.
func New(cfg Config, clock clockwork.Clock) *Server {
	if cfg.Face == nil {
		cfg.Face = openai.Face{}
	}
	return &Server{cfg: cfg, clock: clock, model: NewModel(cfg, clock.Now())}
}

// Books returns a copy of the provider's counts. Calls that still wait for their
// answer are in them already.
func (s *Server) Books() Books {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.Books()
}

// errReset is a broken connection for a caller in process: the same chain of errors as a
// socket's.
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
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if a.flow != nil {
		a.flow.writeTo(w)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	w.WriteHeader(a.Status)
	if a.Cut {
		// net/http closes a connection whose promised length was not written.
		_, _ = w.Write(a.Body[:len(a.Body)/2])
		return
	}
	_, _ = w.Write(a.Body)
}

// breakOff closes the connection without an answer: with a reset where that is possible,
// else in the way that net/http offers.
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

// answer is a reply that is due: whole, or a stream of which the first piece is due.
type answer struct {
	face.Reply
	flow *flow // nil: the reply is whole
}

// respond handles the whole life of a call except the wire. An error means that
// there is no answer: the connection is reset, or the caller has left.
func (s *Server) respond(r *http.Request) (answer, error) {
	e := s.cfg.Face.Find(r)
	switch {
	case r.URL.Path == "/sim/books", r.URL.Path == "/healthz":
		return whole(s.inspect(r))
	case e.Aim == face.Ask:
		return s.call(r, e)
	case e.Aim == face.List:
		return whole(s.listModels(r, e), nil)
	case e.Aim == face.Misuse:
		return whole(s.wrongMethod(r, e.Allow))
	}
	return whole(s.fault(http.StatusNotFound, r), nil)
}

func whole(a face.Reply, err error) (answer, error) { return answer{Reply: a}, err }

// stamp returns the stamp of an answer that is about to be given. Each answer has one.
func (s *Server) stamp() face.Stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served++
	return face.Stamp{Now: s.clock.Now(), Serial: s.served}
}

// withMarks puts on an answer the headers that every answer has.
func (s *Server) withMarks(r *http.Request, a face.Reply, stamp face.Stamp) face.Reply {
	s.cfg.Face.Mark(a.Header, r, stamp)
	return a
}

func (s *Server) fault(status int, r *http.Request) face.Reply {
	stamp := s.stamp()
	return s.withMarks(r, s.cfg.Face.Fault(status, r, stamp), stamp)
}

func (s *Server) wrongMethod(r *http.Request, allow string) (face.Reply, error) {
	a := s.fault(http.StatusMethodNotAllowed, r)
	a.Header.Set("Allow", allow)
	return a, nil
}

// inspect answers requests that no real provider has: they are neither charged nor counted.
func (s *Server) inspect(r *http.Request) (face.Reply, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return s.wrongMethod(r, http.MethodGet)
	}
	body := []byte(`{"status":"ok"}`)
	if r.URL.Path == "/sim/books" {
		var err error
		if body, err = s.showBooks(r.URL.Query()); err != nil {
			return face.Reply{}, err
		}
	}
	return s.withMarks(r, face.JSON(http.StatusOK, body), s.stamp()), nil
}

// showBooks returns the books as JSON. They contain IDs and bodies only if the query asks for them.
func (s *Server) showBooks(asked url.Values) ([]byte, error) {
	books := s.Books()
	if !asked.Has("ids") {
		books.Answered = nil
	}
	if !asked.Has("bodies") {
		books.Bodies = nil
	}
	body, err := json.Marshal(books)
	return append(body, '\n'), err
}

// listModels answers a request for the list of models. Only a caller with a key gets the list. The
// books do not count such requests.
func (s *Server) listModels(r *http.Request, errand face.Errand) face.Reply {
	stamp, req := s.stamp(), s.cfg.Face.Read(r, errand, "")
	names := s.cfg.Models
	if len(names) == 0 {
		names = []string{"sim"}
	}
	reply := face.JSON(http.StatusOK, s.cfg.Face.Models(names, stamp))
	if s.model.hasNoKey(req.Call()) {
		reply = req.Refuse(Verdict{Kind: Unauthorized, Status: Unauthorized.Status()}, stamp)
	}
	return s.withMarks(r, reply, stamp)
}

// call handles a call of the model. A body that is too long or breaks off is not judged, and is not
// in the books. An accepted call whose caller leaves before the answer is due is booked as
// abandoned. A stream is returned when its first piece is due.
func (s *Server) call(r *http.Request, errand face.Errand) (answer, error) {
	body, err := readBody(r)
	if errors.Is(err, errTooLong) {
		return whole(s.fault(http.StatusRequestEntityTooLarge, r), nil)
	}
	if err != nil {
		return answer{}, err
	}
	req := s.cfg.Face.Read(r, errand, body)
	call := req.Call()
	call.ID = identify(r, body)
	if s.cfg.TrackBodies {
		call.Body = sha256.Sum256([]byte(body))
	}
	verdict, judged := s.decide(call)
	if call.Stream && flows(verdict.Kind) {
		return s.stream(r, req, call, verdict, judged)
	}
	if err := s.wait(r.Context(), verdict); err != nil {
		s.abandon(call, verdict)
		return answer{}, err
	}
	if verdict.Reset {
		return answer{}, errReset
	}
	stamp := s.stamp()
	stamp.Judged, stamp.Took, stamp.ID = judged, stamp.Now.Sub(judged), call.ID
	return whole(s.withMarks(r, compose(req, verdict, stamp), stamp), nil)
}

// compose returns the reply of a face for a verdict, with its headers. There is none for a reset or a
// call that hangs.
func compose(req face.Request, v Verdict, stamp face.Stamp) face.Reply {
	var reply face.Reply
	switch v.Kind {
	case Accepted, Truncated, StreamError, StreamSilent:
		reply = req.Answer(stamp)
		reply.Cut = v.Kind == Truncated
	case Malformed:
		reply = face.Garbled(stamp.ID, req.Refuse(v, stamp))
	default:
		reply = req.Refuse(v, stamp)
	}
	req.Tell(reply.Header, v, stamp)
	return reply
}

// decide reads the clock under the lock, so that the model's time never goes
// back from one call to the next.
func (s *Server) decide(c Call) (Verdict, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	return s.model.Decide(now, c), now
}

// abandon books an accepted call as abandoned.
func (s *Server) abandon(call Call, verdict Verdict) {
	if verdict.Kind != Accepted {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.Abandon(call)
}

// wait waits for the call's latency, or until the caller leaves.
func (s *Server) wait(ctx context.Context, verdict Verdict) error {
	if verdict.Hang {
		closing, _ := ctx.Value(closingKey{}).(<-chan struct{})
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-closing:
			return errClosing
		}
	}
	if verdict.Latency <= 0 {
		return context.Cause(ctx)
	}
	timer := s.clock.NewTimer(verdict.Latency)
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

var errTooLong = errors.New("sim: body: too long")

// foreseen bounds the memory that is allocated for a body because of its announced length alone.
const foreseen = 1 << 20

// readBody reads a body of at most MaxBody bytes, whatever length was announced.
func readBody(r *http.Request) (string, error) {
	if r.Body == nil {
		return "", nil
	}
	if r.ContentLength > MaxBody {
		return "", errTooLong
	}
	var read bytes.Buffer
	read.Grow(int(min(max(r.ContentLength, 0), foreseen)) + bytes.MinRead)
	n, err := read.ReadFrom(io.LimitReader(r.Body, MaxBody+1))
	if n > MaxBody {
		return "", errTooLong
	}
	return read.String(), err
}

// identify returns the identity of an item, which stays the same when the item comes again: its
// Idempotency-Key, else every byte of what it asks.
func identify(r *http.Request, body string) string {
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		return face.Checksum(key)
	}
	return face.Checksum(r.URL.Path, body)
}

// flows reports whether a stream begins, whatever becomes of it. Every other kind is answered
// whole, as without a stream.
func flows(k Kind) bool {
	return k == Accepted || k == Truncated || k == StreamError || k == StreamSilent
}

// flow is a stream under way. Its pieces are spread evenly over the latency of the call: the
// last one is due when a whole answer would be. One goroutine uses it.
type flow struct {
	server *Server
	ctx    context.Context // of the request
	call   Call
	kind   Kind

	begun  time.Time
	gap    time.Duration // between two pieces
	pieces [][]byte      // still to be sent
	sent   int
	rest   []byte // of the piece that is being read
}

// stream returns a streamed answer when its first piece is due. The whole answer is made at once.
func (s *Server) stream(r *http.Request, req face.Request, call Call, verdict Verdict, judged time.Time) (answer, error) {
	stamp := s.stamp()
	stamp.Judged, stamp.Took, stamp.ID = judged, verdict.Latency, call.ID
	a := s.withMarks(r, compose(req, verdict, stamp), stamp)
	answered := &flow{server: s, ctx: r.Context(), call: call, kind: verdict.Kind, begun: judged, pieces: a.Pieces}
	answered.gap = verdict.Latency / time.Duration(max(1, len(answered.pieces)))
	if half := len(answered.pieces) / 2; verdict.Kind != Accepted {
		answered.pieces = answered.pieces[:half]
	}
	if verdict.Kind == StreamError {
		answered.pieces = append(answered.pieces, a.Failure)
	}
	if err := answered.wait(); err != nil {
		answered.release()
		return answer{}, err
	}
	return answer{a, answered}, nil
}

// wait returns when the next piece is due, or with an error when the caller has left.
func (f *flow) wait() error {
	due := f.begun.Add(f.gap * time.Duration(f.sent+1))
	left := due.Sub(f.server.clock.Now())
	return f.server.wait(f.ctx, Verdict{Latency: left})
}

// next returns the next piece when it is due. After the last one the stream ends: with io.EOF,
// with a broken connection, or only when the caller leaves.
func (f *flow) next() ([]byte, error) {
	if len(f.pieces) > 0 {
		if err := f.wait(); err != nil {
			f.release()
			return nil, err
		}
		piece := f.pieces[0]
		f.pieces = f.pieces[1:]
		f.sent++
		return piece, nil
	}
	switch f.kind {
	case Truncated:
		return nil, io.ErrUnexpectedEOF
	case StreamSilent:
		return nil, f.server.wait(f.ctx, Verdict{Hang: true})
	default:
		return nil, io.EOF
	}
}

// release notes that the caller left before the end of an answer.
func (f *flow) release() {
	if len(f.pieces) > 0 {
		f.server.abandon(f.call, Verdict{Kind: f.kind})
	}
	f.pieces = nil
}

// writeTo sends the pieces over a socket, each as soon as it is due.
func (f *flow) writeTo(w http.ResponseWriter) {
	defer f.release()
	out := http.NewResponseController(w)
	for {
		piece, err := f.next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			// net/http closes the connection. A reset would take back pieces on their way.
			panic(http.ErrAbortHandler)
		}
		if _, err := w.Write(piece); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
	}
}

// Read reads the stream as a body, for a caller in the same process.
func (f *flow) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		var err error
		if f.rest, err = f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Close ends the stream for a caller in process.
func (f *flow) Close() error {
	f.release()
	return nil
}
