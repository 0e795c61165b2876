package sim

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/headrace/headrace/provider/sim/face"
)

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

// stream words an answer at once and returns when its first piece is due.
func (s *Server) stream(r *http.Request, req face.Request, c Call, v Verdict, judged time.Time) (answer, error) {
	stamp := s.stamp()
	stamp.Judged, stamp.Took, stamp.ID = judged, v.Latency, c.ID
	a := s.marked(r, word(req, v, stamp), stamp)
	f := &flow{server: s, ctx: r.Context(), call: c, kind: v.Kind, begun: judged, pieces: a.Pieces}
	f.gap = v.Latency / time.Duration(max(1, len(f.pieces)))
	if half := len(f.pieces) / 2; v.Kind != Accepted {
		f.pieces = f.pieces[:half]
	}
	if v.Kind == StreamError {
		f.pieces = append(f.pieces, a.Failure)
	}
	if err := f.wait(); err != nil {
		f.leave()
		return answer{}, err
	}
	return answer{a, f}, nil
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
			f.leave()
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

// leave notes that the caller left before the end of an answer.
func (f *flow) leave() {
	if len(f.pieces) > 0 {
		f.server.abandon(f.call, Verdict{Kind: f.kind})
	}
	f.pieces = nil
}

// pour sends the pieces over a socket, each as soon as it is due.
func (f *flow) pour(w http.ResponseWriter) {
	defer f.leave()
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

// Read is for a caller in process.
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
	f.leave()
	return nil
}
