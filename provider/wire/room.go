package wire

import (
	"context"
	"errors"
	"io"
	"sync"
)

// piece is the number of bytes of a long answer that are read for one place. An answer a little
// over firstRead takes little, and one of 64 MiB asks 512 times.
const piece = 128 << 10

// room bounds the bytes of all answers that are read at once, and of those that were read and
// are still held. A long one is read piece by piece, and each piece needs a place. The first
// half of the room is places, first come, first served. The second half is leaves: an answer
// with one goes on to its end without places. There are as many leaves as whole answers fit
// into that half, and at least one. So, even if all answers hold places and wait for more, one
// can finish and give back its places. That holds as long as its end needs no other call's.
type room struct {
	places chan struct{} // the taken ones
	leaves chan struct{} // likewise
	spare  sync.Pool     // of *[piece]byte: the memory of endless answers is used again
}

// newRoom makes room for that many bytes of answers of at most longest bytes each.
func newRoom(bytes, longest int64) *room {
	half := bytes / 2
	return &room{
		places: make(chan struct{}, max(1, half/piece)),
		leaves: make(chan struct{}, max(1, half/longest)),
	}
}

// long is an answer on its way that does not fit into firstRead.
type long struct {
	room   *room
	pieces []*[piece]byte
	size   int64 // in bytes
	placed int   // how many places it has
	leave  bool  // it needs no more of them
}

// readLong reads on after head. Waiting for room is part of the call: it ends with the call's
// context. The receiver of the answer gives back its room.
func (c *Client) readLong(ctx context.Context, body io.Reader, head []byte) (answer []byte, l *long, err error) {
	l = &long{room: c.room}
	defer func() {
		l.clear()
		if answer == nil {
			l.giveBack()
		}
	}()
	if err = l.readAll(ctx, body, c.cfg.MaxBody-int64(len(head))); err != nil {
		return nil, l, err
	}
	return l.join(head), l, nil
}

// readAll reads to the end, or to more than most bytes.
func (l *long) readAll(ctx context.Context, body io.Reader, most int64) error {
	for {
		if err := l.enter(ctx); err != nil {
			return err
		}
		err := l.read(body)
		switch {
		case l.size > most:
			return errTooLong
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// has reports whether so many bytes have room already.
func (l *long) has(bytes int) bool { return l.leave || bytes <= l.placed*piece }

// reach waits until so many bytes have room.
func (l *long) reach(ctx context.Context, bytes int) error {
	for !l.has(bytes) {
		if err := l.enter(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enter waits until one more piece may be read.
func (l *long) enter(ctx context.Context) error {
	if l.leave {
		return nil
	}
	select { // a place that is free is better than a leave
	case l.room.places <- struct{}{}:
		l.placed++
		return nil
	default:
	}
	select {
	case l.room.places <- struct{}{}:
		l.placed++
	case l.room.leaves <- struct{}{}:
		l.leave = true
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// read reads one piece, a whole one unless there is an error. The end is io.EOF itself: a
// body that breaks off has another error.
func (l *long) read(body io.Reader) (err error) {
	p, ok := l.room.spare.Get().(*[piece]byte)
	if !ok {
		p = new([piece]byte)
	}
	l.pieces = append(l.pieces, p)
	for n, m := 0, 0; n < piece && err == nil; n += m {
		m, err = body.Read(p[n:])
		l.size += int64(m)
	}
	return err
}

// join puts the answer together.
func (l *long) join(head []byte) []byte {
	body := make([]byte, 0, int64(len(head))+l.size)
	body = append(body, head...)
	for _, p := range l.pieces {
		body = append(body, p[:min(piece, cap(body)-len(body))]...)
	}
	return body
}

// clear lets go of what was read: it is put together, or of no use.
func (l *long) clear() {
	for _, p := range l.pieces {
		l.room.spare.Put(p)
	}
	l.pieces = nil
}

// giveBack makes the room free for others. An answer that is not long, nil, has none.
func (l *long) giveBack() {
	if l == nil {
		return
	}
	for ; l.placed > 0; l.placed-- {
		<-l.room.places
	}
	if l.leave {
		<-l.room.leaves
		l.leave = false
	}
}
