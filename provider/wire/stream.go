package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/rawjson"
	"github.com/headrace/headrace/provider/stream"
)

// DefaultStreamIdle bounds the silence of a stream: as long as the proxies in common use
// wait for a server.
const DefaultStreamIdle = time.Minute

// StreamWhen says which answers are taken as streams.
type StreamWhen uint8

// The choices.
const (
	StreamNever  StreamWhen = iota
	StreamAuto              // those that Config.StreamOver asks for
	StreamAlways            // all of operations that have streams
)

const (
	// readAhead is the number of bytes of a stream that are read at once.
	readAhead = 16 << 10
	// chatter bounds the bytes of a stream, as a multiple of MaxBody. A piece of three bytes of
	// an answer comes in an event of three hundred.
	chatter = 128
	// lastWait bounds the wait for the end of a body whose answer is whole. Once the body has
	// ended, its connection can be used again.
	lastWait = time.Second
)

// Content types of streams.
const (
	serverSent = "text/event-stream"
	amazonSent = "application/vnd.amazon.eventstream"
)

// pieces are buffers to read into.
var pieces = sync.Pool{New: func() any { return new([readAhead]byte) }}

// maxOutput returns a request's bound on the output, in tokens; 0 if it has none.
func maxOutput(body []byte) (most float64) {
	for w := rawjson.WalkIn(rawjson.Trim(body)); w.Next(); {
		switch value := w.Skip(); string(w.Name) {
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			most = max(most, rawjson.Number(value))
		}
	}
	return most
}

// newStreamed returns the state of a call whose answer is to come as a stream. It returns nil if the
// answer is to come in one piece.
func (c *Client) newStreamed(ctx context.Context, operation, model string, body []byte) *streamed {
	switch {
	case c.streams == nil:
		return nil
	case c.cfg.Stream == StreamAuto && (c.cfg.StreamOver <= 0 || maxOutput(body) <= float64(c.cfg.StreamOver)):
		return nil
	}
	if _, has := c.streams.StreamPath(operation, model); !has {
		return nil
	}
	s := &streamed{Context: ctx, client: c, recorder: provider.RecorderFrom(ctx), counts: !c.noUsageOption.Load()}
	s.splitter, s.assembler = c.streams.Stream(operation)
	return s
}

// newStreamRequest returns a request for a stream without its body. It is made for each call: a
// stream costs more than that. Compression is off: a server may hold back parts of a compressed
// answer until there is enough to compress.
func (c *Client) newStreamRequest(ctx context.Context, operation, model string) (*http.Request, error) {
	path, _ := c.streams.StreamPath(operation, model)
	req, err := c.requestTo(ctx, c.cfg.StreamPath, path, model)
	if err != nil {
		return nil, err
	}
	req.Header = req.Header.Clone()
	req.Header.Set("Accept", serverSent+", "+amazonSent+", application/json")
	req.Header.Set("Accept-Encoding", "identity")
	return req, nil
}

// refusedUsageOption reports whether a server has refused a request for the option that asks a
// stream for its usage. The client remembers it.
func (c *Client) refusedUsageOption(x *Exchange, e *provider.Error) bool {
	if !x.counts || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	if !bytes.Contains(x.Body, []byte("stream_options")) && !bytes.Contains(x.Body, []byte("include_usage")) {
		return false
	}
	c.noUsageOption.Store(true)
	return true
}

// Why streams break.
var (
	errSilent    = errors.New("the stream fell silent")
	errCut       = errors.New("the stream broke off")
	errEndless   = errors.New("it has far more bytes than an answer may have")
	errMalformed = errors.New("the stream cannot be read")
)

// broken returns the error of a stream that is no answer: another try may be one.
func broken(kind, why error) error {
	return &provider.Error{Kind: provider.TransportFault, Err: fmt.Errorf("%w: %w", kind, why)}
}

// fetchStream sends a request for a stream, once, and puts the answer together. It reads an answer in
// one piece, and a refusal, as Fetch does.
func (c *Client) fetchStream(s *streamed, req *http.Request) Exchange {
	s.own, s.cancel = context.WithCancelCause(s)
	defer s.cancel(nil)
	req = req.WithContext(s.own)
	resp, err := c.send(req)
	if err != nil {
		return Exchange{Err: err, req: req}
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.Header.Get("Content-Encoding") == "gzip" && !c.custom {
		resp.Body = &gunzip{ReadCloser: resp.Body}
		resp.ContentLength = -1
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode/100 != 2 || kind != serverSent && kind != amazonSent {
		x := c.readWhole(req, resp)
		x.counts = s.counts
		return x
	}
	x := Exchange{Status: resp.StatusCode, Header: resp.Header, req: req}
	x.Body, x.Err = s.readAll(resp.Body)
	x.long = s.long
	if x.Err != nil {
		x.long.giveBack()
		x.long = nil
		x.Err = s.causeOf(x.Err, &x)
	}
	x.Body, x.usage = c.redact(x.Body), s.assembler.Usage()
	return x
}

// gunzip unpacks a body that was packed although nobody asked for that. net/http unpacks only
// bodies for which it has asked itself.
type gunzip struct {
	io.ReadCloser
	gzip *gzip.Reader
}

// Read unpacks the bytes as they come.
func (u *gunzip) Read(p []byte) (n int, err error) {
	if u.gzip == nil {
		u.gzip, err = gzip.NewReader(u.ReadCloser)
	}
	if err == nil {
		n, err = u.gzip.Read(p)
	}
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		err = broken(errMalformed, err)
	}
	return n, err
}

// streamed is one answer on its way as a stream. It is the context of its request, so that
// Fetch knows.
type streamed struct {
	context.Context // of the attempt

	client    *Client
	own       context.Context // of this answer: ended by silence
	cancel    context.CancelCauseFunc
	counts    bool // it is asked to tell its usage
	splitter  stream.Splitter
	assembler stream.Assembler
	recorder  *provider.Recorder
	long      *longAnswer // the room that it takes; nil: none yet

	silence *time.Timer // cancels the request; nil: nothing has come yet, or silence has no bound
	whole   bool        // the last event has come
	peak    int         // what was kept at any time, in bytes
	read    int64       // in all
}

// readAll reads a stream to its end.
func (s *streamed) readAll(body io.Reader) ([]byte, error) {
	piece := pieces.Get().(*[readAhead]byte)
	defer pieces.Put(piece)
	defer s.limitSilence(0)
	for !s.whole {
		n, err := body.Read(piece[:])
		if n > 0 {
			if s.read == 0 {
				s.recorder.AnswerBegins()
			}
			s.limitSilence(s.client.cfg.StreamIdle)
			if err := s.addBytes(piece[:n]); err != nil {
				return nil, err
			}
		}
		switch {
		case s.whole:
		case errors.Is(err, io.EOF):
			return s.end()
		case err != nil:
			return nil, err
		}
	}
	s.readRest(body, piece[:])
	return s.end()
}

// limitSilence lets the request end after that much silence, from now on; 0: silence does not end it.
func (s *streamed) limitSilence(limit time.Duration) {
	switch {
	case limit > 0 && s.silence == nil:
		s.silence = time.AfterFunc(limit, func() { s.cancel(errSilent) })
	case limit > 0:
		s.silence.Reset(limit)
	case s.silence != nil:
		s.silence.Stop()
	}
}

// addBytes adds the bytes that were read, and waits for room for the part that is kept. That wait does
// not count as the server's silence.
func (s *streamed) addBytes(p []byte) error {
	maxBody := s.client.cfg.MaxBody
	if s.read += int64(len(p)); s.read/chatter > maxBody {
		return broken(errMalformed, errEndless)
	}
	if err := s.splitter.Write(p, s.add); err != nil {
		return broken(errMalformed, err)
	}
	kept := s.splitter.Buffered() + s.assembler.Size()
	if int64(kept) > maxBody {
		return errTooLong
	}
	if s.peak = max(s.peak, kept); s.peak <= firstRead {
		return nil
	}
	if s.long == nil {
		s.long = &longAnswer{room: s.client.room}
	}
	if s.long.hasRoom(s.peak - firstRead) {
		return nil
	}
	s.limitSilence(0)
	err := s.long.waitForRoom(s, s.peak-firstRead)
	s.limitSilence(s.client.cfg.StreamIdle)
	return err
}

// add adds an event. It ignores events after the last one.
func (s *streamed) add(e stream.Event) (err error) {
	if s.whole {
		return nil
	}
	s.whole, err = s.assembler.Add(e)
	return err
}

// end returns the answer of a stream that has ended.
func (s *streamed) end() ([]byte, error) {
	if !s.whole {
		if err := s.splitter.Close(s.add); err != nil {
			return nil, broken(errCut, err)
		}
	}
	body, err := s.assembler.Body()
	switch {
	case err != nil:
		return nil, broken(errCut, err)
	case int64(len(body)) > s.client.cfg.MaxBody:
		return nil, errTooLong
	}
	return body, nil
}

// readRest reads the end of a body whose answer is whole, if the end comes at once. The connection can
// then be used again.
func (s *streamed) readRest(body io.Reader, piece []byte) {
	s.limitSilence(lastWait)
	for left := drain; left > 0; {
		n, err := body.Read(piece)
		if left -= n; err != nil {
			return
		}
	}
}

// causeOf returns the error for a broken stream. If the request was cancelled, the cause of that
// says more than the reader's err.
func (s *streamed) causeOf(err error, x *Exchange) error {
	if fault := new(stream.Fault); errors.As(err, &fault) {
		if _, e := s.client.dialect.Answer(x.Status, x.Header, s.client.redact(fault.Body), s.client.cfg.Wording); e != nil {
			return e
		}
		return broken(errMalformed, err)
	}
	if cause := context.Cause(s.own); errors.Is(cause, errSilent) && s.Err() == nil {
		return &provider.Error{Kind: provider.TransportFault, Err: fmt.Errorf("%w for %v", errSilent, s.client.cfg.StreamIdle)}
	}
	return err
}
