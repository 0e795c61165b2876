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

// whole reads a body that must have exactly the announced size. It gives the last byte only once
// it knows that nothing follows. A server takes an object for whole as soon as it has as many
// bytes as announced.
type whole struct {
	ctx    context.Context
	body   io.Reader
	size   int64
	left   int64
	ended  bool  // nothing follows
	failed error // why no more is given
}

func newWhole(ctx context.Context, body io.Reader, size int64) *whole {
	w := &whole{ctx: ctx, body: body, size: size, left: size}
	if size < 0 {
		w.failed = fmt.Errorf("%w has no size of %d bytes", errBody, size)
	}
	return w
}

// Read implements [io.Reader]. After an error it returns that error for good.
func (w *whole) Read(p []byte) (int, error) {
	switch {
	case w.failed != nil:
		return 0, w.failed
	case w.ended:
		return 0, io.EOF
	}
	n, err := w.next(p)
	w.left -= int64(n)
	w.failed = err
	return n, err
}

// next reads on. It looks for the end before it returns the last bytes, so that no server gets all
// bytes of a body that goes on.
func (w *whole) next(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) < w.left {
		n, err := w.body.Read(p)
		return n, w.flaw(err)
	}
	n, err := io.ReadFull(w.body, p[:w.left])
	if err != nil {
		return 0, w.flaw(err)
	}
	if err := w.end(); err != nil {
		return 0, err
	}
	return n, nil
}

// end checks that nothing follows.
func (w *whole) end() error {
	switch n, err := io.ReadFull(w.body, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("%w has more than the %d bytes that were announced", errBody, w.size)
	case !errors.Is(err, io.EOF):
		return w.flaw(err)
	}
	w.ended = true
	return nil
}

func (w *whole) flaw(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w has fewer than the %d bytes that were announced", errBody, w.size)
	}
	return fmt.Errorf("%w: %w", errBody, err)
}

// content gives a body for each sending.
type content struct {
	body  io.Reader
	seek  io.Seeker // nil: it can be sent once
	start int64
	size  int64
}

// newContent finds out whether a body can be sent again, and copies it where that makes it so.
func newContent(ctx context.Context, body io.Reader, size int64) (*content, error) {
	c := &content{body: body, size: size}
	if seeker, ok := body.(io.Seeker); ok {
		if at, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			c.seek, c.start = seeker, at
			return c, nil
		}
	}
	if size > BufferedBody {
		return c, nil
	}
	buffered, err := io.ReadAll(newWhole(ctx, body, size))
	if err != nil {
		return nil, err
	}
	copied := bytes.NewReader(buffered)
	c.body, c.seek = copied, copied
	return c, nil
}

// open begins the body anew.
func (c *content) open(ctx context.Context) (*whole, error) {
	if c.seek != nil {
		if _, err := c.seek.Seek(c.start, io.SeekStart); err != nil {
			return nil, fmt.Errorf("%w: %w", errBody, err)
		}
	}
	return newWhole(ctx, c.body, c.size), nil
}
