package index

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
)

// Read yields the requests of a chunk as one reader of the whole input would: a bad line is a
// *prompts.LineError, after which it goes on. Any other error is the last thing: store.ErrChanged
// if the input is not what was indexed. All bytes of the chunk are read before the first request
// is given, and held until the last, unless they are more than three lines may be long: those of
// a line that is longer than is read, or of very many blank ones.
func (s *Source) Read(ctx context.Context, c *job.Chunk) iter.Seq2[prompts.Request, error] {
	return func(yield func(prompts.Request, error) bool) {
		marks, err := s.marks(ctx, c)
		if err != nil {
			yield(prompts.Request{}, fmt.Errorf("index: chunk %s: %w", c, err))
			return
		}
		for req, err := range s.read(ctx, c, marks) {
			if err != nil && lineError(err) == nil {
				err = fmt.Errorf("index: chunk %s: %w", c, err)
			}
			if !yield(req, err) {
				return
			}
		}
	}
}

// lineError is err if it is about a line, else nil.
func lineError(err error) *prompts.LineError {
	var bad *prompts.LineError
	errors.As(err, &bad)
	return bad
}

func (s *Source) read(ctx context.Context, c *job.Chunk, marks func(int) prompts.Mark) iter.Seq2[prompts.Request, error] {
	return func(yield func(prompts.Request, error) bool) {
		r, done, err := s.reader(ctx, c, marks)
		if err != nil {
			yield(prompts.Request{}, err)
			return
		}
		defer func() { _ = done() }() // it was only read
		for req, err := range r.All() {
			if !yield(req, err) || err != nil && lineError(err) == nil {
				return
			}
		}
		if end := c.FirstLine - c.Above + c.Lines - 1; r.Line() != end {
			yield(prompts.Request{}, fmt.Errorf("it ends with line %d, not %d: %w", r.Line(), end, store.ErrChanged))
		}
	}
}

func (s *Source) reader(ctx context.Context, c *job.Chunk, marks func(int) prompts.Mark) (*prompts.Reader, func() error, error) {
	if err := s.names(c.Input, c.Piece); err != nil {
		return nil, nil, err
	}
	in := &s.Record.Inputs[c.Input]
	cfg, err := s.config(in)
	if err != nil {
		return nil, nil, err
	}
	text, err := s.text(ctx, &in.Objects[c.Piece], c)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	cfg.Section = &prompts.Section{FirstLine: c.FirstLine - c.Above, Above: c.Above, Marks: marks}
	if c.Piece > 0 || c.Offset > 0 {
		cfg.Section.Columns = in.Columns // the header of a CSV stands at the beginning of its first object, and only there
	}
	if !c.Refused {
		cfg.Takes = nil
	}
	return prompts.NewReader(text, cfg), text.Close, nil
}

// mostHeld is how many bytes of a chunk are held in memory. Its requests are taken as calls are made,
// for minutes, and no connection is to wait for that.
const mostHeld = 3 * prompts.DefaultMaxLine

// text is what a chunk has of its object.
func (s *Source) text(ctx context.Context, o *job.Object, c *job.Chunk) (io.ReadCloser, error) {
	in, err := s.open(ctx, o, c.Offset, c.Bytes)
	if err != nil || c.Bytes > cmp.Or(s.heldBytes, mostHeld) {
		return in, err
	}
	text := make([]byte, c.Bytes)
	n, err := io.ReadFull(in, text)
	if err == nil {
		_, err = io.Copy(io.Discard, in) // to its end, where it may be found that it has changed
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it has %d bytes from %d on, not %d: %w", n, c.Offset, c.Bytes, store.ErrChanged)
	}
	return io.NopCloser(bytes.NewReader(text)), errors.Join(err, in.Close())
}

// marks reads what lines before a chunk decide about its lines.
func (s *Source) marks(ctx context.Context, c *job.Chunk) (func(int) prompts.Mark, error) {
	if c.Marks == "" {
		return nil, nil
	}
	in, err := s.Store.Open(ctx, c.Marks, c.MarksOffset, c.MarksBytes)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }() // it was only read
	block := make([]byte, c.MarksBytes)
	if _, err := io.ReadFull(in, block); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.Marks, err)
	}
	all, err := parseMarks(block, c.FirstLine, s.name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.Marks, err)
	}
	return all.of, nil
}

// name is what an input is called.
func (s *Source) name(input int) (string, error) {
	if input < 0 || input >= len(s.Record.Inputs) {
		return "", errMarks
	}
	return s.Record.Inputs[input].Name, nil
}
