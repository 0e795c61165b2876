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
// half of the room is places, first come, first served. The second half is exemptions: an answer
// with one goes on to its end without places. There are as many exemptions as whole answers fit
// into that half, and at least one. So, even if all answers hold places and wait for more, one
// can finish and give back its places. That holds as long as its end needs no other call's.
type room struct {
	places     chan struct{} // the taken ones
	exemptions chan struct{} // likewise
	spare      sync.Pool     // of *[piece]byte: the memory of endless answers is used again
}

// newRoom makes room for that many bytes of answers of at most longest bytes each.
func newRoom(bytes, longest int64) *room {
	half := bytes / 2
	return &room{
		places:     make(chan struct{}, max(1, half/piece)),
		exemptions: make(chan struct{}, max(1, half/longest)),
	}
}

// longAnswer is an answer on its way that does not fit into firstRead.
type longAnswer struct {
	room   *room
	pieces []*[piece]byte
	size   int64 // in bytes
	places int   // how many places it has
	exempt bool  // it needs no more of them
}

// readLong reads the rest of an answer that begins with head. Waiting for room is part of the call: it
// ends with the call's context. The receiver of the answer gives back its room.
func (c *Client) readLong(ctx context.Context, body io.Reader, head []byte) (answer []byte, l *longAnswer, err error) {
	l = &longAnswer{room: c.room}
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

// readAll reads the body to its end. It returns errTooLong once it has more than
// maxBytes.
func (l *longAnswer) readAll(ctx context.Context, body io.Reader, maxBytes int64) error {
	for {
		if err := l.takeRoom(ctx); err != nil {
			return err
		}
		err := l.read(body)
		switch {
		case l.size > maxBytes:
			return errTooLong
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// hasRoom reports whether the answer already has room for that many bytes.
func (l *longAnswer) hasRoom(bytes int) bool { return l.exempt || bytes <= l.places*piece }

// waitForRoom waits until the answer has room for that many bytes.
func (l *longAnswer) waitForRoom(ctx context.Context, bytes int) error {
	for !l.hasRoom(bytes) {
		if err := l.takeRoom(ctx); err != nil {
			return err
		}
	}
	return nil
}

// takeRoom waits until one more piece may be read. It takes an exemption only if no place is free, as
// that lasts for the whole answer.
func (l *longAnswer) takeRoom(ctx context.Context) error {
	if l.exempt {
		return nil
	}
	select { // a place that is free is better than an exemption
	case l.room.places <- struct{}{}:
		l.places++
		return nil
	default:
	}
	select {
	case l.room.places <- struct{}{}:
		l.places++
	case l.room.exemptions <- struct{}{}:
		l.exempt = true
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// read reads one piece, a whole one unless there is an error. The end is io.EOF itself: a
// body that breaks off has another error.
func (l *longAnswer) read(body io.Reader) (err error) {
	data, ok := l.room.spare.Get().(*[piece]byte)
	if !ok {
		data = new([piece]byte)
	}
	l.pieces = append(l.pieces, data)
	for n, read := 0, 0; n < piece && err == nil; n += read {
		read, err = body.Read(data[n:])
		l.size += int64(read)
	}
	return err
}

// join returns the whole answer: head and all pieces.
func (l *longAnswer) join(head []byte) []byte {
	body := make([]byte, 0, int64(len(head))+l.size)
	body = append(body, head...)
	for _, p := range l.pieces {
		body = append(body, p[:min(piece, cap(body)-len(body))]...)
	}
	return body
}

// clear lets go of what was read: it is put together, or of no use.
func (l *longAnswer) clear() {
	for _, p := range l.pieces {
		l.room.spare.Put(p)
	}
	l.pieces = nil
}

// giveBack makes the room free for others. An answer that is not long, nil, has none.
func (l *longAnswer) giveBack() {
	if l == nil {
		return
	}
	for ; l.places > 0; l.places-- {
		<-l.room.places
	}
	if l.exempt {
		<-l.room.exemptions
		l.exempt = false
	}
}
