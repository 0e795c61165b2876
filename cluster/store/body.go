package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// BufferedBody bounds the copy of a body that cannot seek, in bytes. The copy is held in memory, so
// that the body can be sent again. Parts have some megabytes; larger bodies come from a file.
const BufferedBody = 16 << 20

// errBody marks a fault of a body: sending it again would not help.
var errBody = errors.New("its body")

// exactBody reads a body that must have exactly the announced size. It gives the last byte only once
// it knows that nothing follows. A server takes an object for whole as soon as it has as many
// bytes as announced.
type exactBody struct {
	ctx    context.Context
	body   io.Reader
	size   int64
	unread int64
	ended  bool  // nothing follows
	err    error // why no more is given
}

func newExactBody(ctx context.Context, body io.Reader, size int64) *exactBody {
	w := &exactBody{ctx: ctx, body: body, size: size, unread: size}
	if size < 0 {
		w.err = fmt.Errorf("%w has no size of %d bytes", errBody, size)
	}
	return w
}

// Read implements [io.Reader]. After an error it returns that same error from then on.
func (w *exactBody) Read(p []byte) (int, error) {
	switch {
	case w.err != nil:
		return 0, w.err
	case w.ended:
		return 0, io.EOF
	}
	n, err := w.next(p)
	w.unread -= int64(n)
	w.err = err
	return n, err
}

// next reads the next bytes. Before it returns the last announced bytes it checks that the body ends there. So no server
// gets all announced bytes of a body that is too long.
func (w *exactBody) next(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) < w.unread {
		n, err := w.body.Read(p)
		return n, w.explain(err)
	}
	n, err := io.ReadFull(w.body, p[:w.unread])
	if err != nil {
		return 0, w.explain(err)
	}
	if err := w.checkEnd(); err != nil {
		return 0, err
	}
	return n, nil
}

// checkEnd checks that nothing follows the announced bytes.
func (w *exactBody) checkEnd() error {
	switch n, err := io.ReadFull(w.body, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w has more than the %d bytes that were announced", errBody, w.size)
	case !errors.Is(err, io.EOF):
		return w.explain(err)
	}
	w.ended = true
	return nil
}

// explain turns an error of the body into one of kind errBody. An early end becomes an error that names the size.
func (w *exactBody) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w has fewer than the %d bytes that were announced", errBody, w.size)
	}
	return fmt.Errorf("%w: %w", errBody, err)
}

// resendable gives the same body anew for each sending, if it can.
type resendable struct {
	body  io.Reader
	seek  io.Seeker // nil: it can be sent once
	start int64
	size  int64
}

// newResendable finds out whether a body can be sent again, and copies it where that makes it so.
func newResendable(ctx context.Context, body io.Reader, size int64) (*resendable, error) {
	c := &resendable{body: body, size: size}
	if seeker, ok := body.(io.Seeker); ok {
		if at, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			c.seek, c.start = seeker, at
			return c, nil
		}
	}
	if size > BufferedBody {
		return c, nil
	}
	buffered, err := io.ReadAll(newExactBody(ctx, body, size))
	if err != nil {
		return nil, err
	}
	copied := bytes.NewReader(buffered)
	c.body, c.seek = copied, copied
	return c, nil
}

// open returns the body from its beginning.
func (c *resendable) open(ctx context.Context) (*exactBody, error) {
	if c.seek != nil {
		if _, err := c.seek.Seek(c.start, io.SeekStart); err != nil {
			return nil, fmt.Errorf("%w: %w", errBody, err)
		}
	}
	return newExactBody(ctx, c.body, c.size), nil
}
