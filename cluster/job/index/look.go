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

// File names a file of prompts that becomes an input.
type File struct {
	Name   string // as its user names it
	Format string // job.JSONL, Text or CSV
	Store  string // the address of its store; "" is the job's own
	Object string
	// Limit is the number of wanted items, from the first; 0 means all.
	Limit int
}

// Inspect makes an input of a file. With a limit it reads the file through, as a run that stops there does. Of a CSV it
// reads the header; a defect of that is prompts.ErrHeader. A packed file is unpacked into the job's own store. The
// names of its pieces contain who, which is new with each try. The Source's record says how to read the
// file.
func (s *Source) Inspect(ctx context.Context, f File, who string) (job.Input, error) {
	in, err := s.inspect(ctx, f, who)
	if err != nil {
		return in, fmt.Errorf("index: look at %s: %w", f.Name, err)
	}
	return in, nil
}

// inspect makes an input with the present identity and size of its object. It reads text only for a
// limit, for the header of a CSV, and to see whether the file is packed.
func (s *Source) inspect(ctx context.Context, f File, who string) (in job.Input, err error) {
	in = job.Input{Name: f.Name, Format: f.Format, Objects: []job.Object{{Store: f.Store, Name: f.Object}}}
	o := &in.Objects[0]
	from, err := s.storeOf(ctx, o)
	if err != nil {
		return in, err
	}
	if o.Identity, o.Bytes, err = from.Identity(ctx, f.Object); err != nil {
		return in, err
	}
	packed, err := s.packed(ctx, o)
	if err != nil {
		return in, err
	}
	switch {
	case packed:
		err = s.unpack(ctx, &in, f.Limit, who)
	case f.Limit > 0 || f.Format == job.CSV:
		err = s.measure(ctx, &in, f.Limit)
	}
	return in, err
}

// packed reports whether an object must be unpacked.
func (s *Source) packed(ctx context.Context, o *job.Object) (bool, error) {
	in, err := s.open(ctx, o, 0, prompts.HeadBytes)
	if err != nil {
		return false, err
	}
	head, err := io.ReadAll(in)
	return prompts.Packed(head) != "", errors.Join(err, in.Close())
}

// opening returns the settings for reading an input before it is cut: as a whole, or with a limit, which also checks ids.
func (s *Source) opening(in *job.Input, limit int) (prompts.Config, error) {
	cfg, err := s.config(in)
	cfg.Limit, cfg.Passing, cfg.NoKeys, cfg.Plain, cfg.Checked = limit, true, true, true, limit == 0
	if limit == 0 {
		cfg.Takes = nil // it only matters for what counts as an item
	}
	return cfg, err
}

// measure finds out where the wanted items end, and the columns of a CSV.
func (s *Source) measure(ctx context.Context, in *job.Input, limit int) error {
	cfg, err := s.opening(in, limit)
	if err != nil {
		return err
	}
	o := &in.Objects[0]
	open, err := s.open(ctx, o, 0, o.Bytes)
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }() // it was only read
	r := prompts.NewReader(open, cfg)
	for {
		_, err := r.Next()
		in.Columns = r.Columns()
		if limit > 0 {
			o.Bytes = r.Offset()
		}
		switch {
		case err == io.EOF: //nolint:errorlint // what Next promises
			return nil
		case err != nil && lineError(err) == nil:
			return err
		case limit == 0:
			return nil // the header was read
		}
	}
}

const (
	// pieceBytes is the length of the pieces of an unpacked input, up to one line more: a store holds as
	// much to send it again.
	pieceBytes = store.BufferedBody
	// longestBuffered bounds the bytes of an unpacked line: twice the longest line that is read. A report of the
	// defect of a longer one would need all of it in memory.
	longestBuffered = 2 * prompts.DefaultMaxLine
)

// ErrLongLine says that a packed input cannot be cut, because one of its lines is too long to be held.
// errors.Is finds it.
var ErrLongLine = fmt.Errorf("it is packed, and one of its lines has more than %d bytes: unpack it, or split that line", longestBuffered)

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
	ctx      context.Context
	in       *job.Input
	name     string // the prefix of the pieces' names
	reader   *prompts.Reader
	buffered bytes.Buffer // read, and in no piece yet
	at       int64        // where in the input buffered begins
}

// Write takes the text that the reader has read.
func (u *unpacking) Write(p []byte) (int, error) {
	if u.buffered.Len()+len(p) > pieceBytes+longestBuffered {
		return 0, ErrLongLine
	}
	return u.buffered.Write(p)
}

// all reads the text to its end or its limit, and cuts it into pieces. A faulty line stays in its
// piece, where the job's pass finds it again.
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
	if err := store.CreateBytes(u.ctx, u.Store, o.Name, u.buffered.Next(int(n))); err != nil {
		return err
	}
	var err error
	if o.Identity, o.Bytes, err = u.Store.Identity(u.ctx, o.Name); err != nil {
		return err
	}
	u.in.Objects = append(u.in.Objects, o)
	u.at += n
	return nil
}
