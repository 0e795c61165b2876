package index

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

const (
	// pieceBytes is the length of the pieces of an unpacked input, up to one line more: a store holds as
	// much to send it again.
	pieceBytes = store.HeldBody
	// longestHeld bounds the bytes of an unpacked line: twice the longest line that is read. A report of the
	// defect of a longer one would need all of it in memory.
	longestHeld = 2 * prompts.DefaultMaxLine
)

// ErrLongLine says that a packed input cannot be cut, because one of its lines is too long to be held.
// errors.Is finds it.
var ErrLongLine = fmt.Errorf("it is packed, and one of its lines has more than %d bytes: unpack it, or split that line", longestHeld)

// unpack puts the contents of a packed input into the job's own store, in pieces. Each piece ends with a
// line, or in a CSV with a row.
func (s *Source) unpack(ctx context.Context, in *job.Input, limit int, who string) error {
	cfg, err := s.opening(in, limit)
	if err != nil {
		return err
	}
	packed := in.Objects[0]
	open, err := s.open(ctx, &packed, 0, packed.Bytes)
	if err != nil {
		return err
	}
	u := &unpacking{Source: s, ctx: ctx, in: in, name: fmt.Sprintf("%s%06d-%s", job.InputFolder(s.Record.Job), len(s.Record.Inputs), who)}
	in.Objects = nil
	u.reader = prompts.NewReader(io.TeeReader(prompts.Unpack(open), u), cfg)
	return errors.Join(u.all(), open.Close())
}

// unpacking cuts the text that a reader reads.
type unpacking struct {
	*Source
	ctx    context.Context
	in     *job.Input
	name   string // the prefix of the pieces' names
	reader *prompts.Reader
	held   bytes.Buffer // read, and in no piece yet
	at     int64        // where in the input held begins
}

// Write takes the text that the reader has read.
func (u *unpacking) Write(p []byte) (int, error) {
	if u.held.Len()+len(p) > pieceBytes+longestHeld {
		return 0, ErrLongLine
	}
	return u.held.Write(p)
}

func (u *unpacking) all() error {
	for u.ctx.Err() == nil {
		_, err := u.reader.Next()
		end := err == io.EOF //nolint:errorlint // what Next promises
		if err != nil && !end && lineError(err) == nil {
			return err
		}
		if full := u.reader.Offset() - u.at; end || full >= cmp.Or(u.pieceBytes, pieceBytes) {
			if err := u.piece(full); err != nil {
				return err
			}
		}
		if end {
			u.in.Columns = u.reader.Columns()
			return nil
		}
	}
	return u.ctx.Err()
}

// piece writes a piece that ends with the line at hand.
func (u *unpacking) piece(n int64) error {
	if n == 0 {
		return nil
	}
	o := job.Object{Name: fmt.Sprintf("%s-%06d", u.name, len(u.in.Objects))}
	if err := store.CreateBytes(u.ctx, u.Store, o.Name, u.held.Next(int(n))); err != nil {
		return err
	}
	var err error
	if o.Identity, o.Bytes, err = store.Identity(u.ctx, u.Store, o.Name); err != nil {
		return err
	}
	u.in.Objects = append(u.in.Objects, o)
	u.at += n
	return nil
}
