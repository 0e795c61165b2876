package index

import (
	"context"
	"fmt"
	"io"

	"github.com/headrace/headrace/cluster/store"
)

// window reads an object from one end to the other, a piece at a time: no connection waits for
// whoever reads slowly, as one of many that are merged.
type window struct {
	ctx   context.Context
	store store.Store
	name  string
	at    int64 // how far it was read
	end   int64
	size  int64 // of a piece
	room  []byte
	rest  []byte // of the piece in hand
}

// The bounds of a piece. Many objects share mergeRoom; beyond a megabyte nothing gets faster, and
// below 16 KB each request costs more than what it brings.
const (
	mergeRoom  = 4 << 20
	leastPiece = 16 << 10
	mostPiece  = 1 << 20
)

// pieceFor is how large pieces are of so many objects that are read side by side.
func pieceFor(objects int) int64 {
	return min(max(mergeRoom/int64(max(objects, 1)), leastPiece), mostPiece)
}

// next gives n bytes, valid until it is called again; nil at the end.
func (w *window) next(n int) ([]byte, error) {
	for len(w.rest) < n && w.at < w.end {
		if err := w.fill(); err != nil {
			return nil, fmt.Errorf("index: read %s: %w", w.name, err)
		}
	}
	switch {
	case len(w.rest) == 0:
		return nil, nil
	case len(w.rest) < n:
		return nil, fmt.Errorf("index: read %s: %w", w.name, io.ErrUnexpectedEOF)
	}
	given := w.rest[:n]
	w.rest = w.rest[n:]
	return given, nil
}

// fill puts the next piece behind what is left of the one before.
func (w *window) fill() error {
	size := min(w.size, w.end-w.at)
	kept := append(w.room[:0], w.rest...)
	w.room = append(kept, make([]byte, size)...)
	in, err := w.store.Open(w.ctx, w.name, w.at, size)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	if _, err := io.ReadFull(in, w.room[len(kept):]); err != nil {
		return err
	}
	w.at += size
	w.rest = w.room
	return nil
}
