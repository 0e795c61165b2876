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

// Source is a job and its inputs, as one machine reads them. Many goroutines may call its methods, if they may
// call Open and Takes.
type Source struct {
	Store  store.Store // the job's own
	Record job.Record
	// Open opens the store of an input by its address; nil: all inputs are in the job's own store.
	Open func(ctx context.Context, address string) (store.Store, error)
	// Serves and Takes are prompts.Config's.
	Serves []string
	Takes  func(*prompts.Request) error

	// For tests; 0 means pieceBytes and mostBuffered.
	pieceBytes, bufferedBytes int64
}

// names checks that the record has an object of an input: an older record lacks inputs that were added later.
func (s *Source) names(input, object int) error {
	if all := s.Record.Inputs; input < 0 || input >= len(all) || object < 0 || object >= len(all[input].Objects) {
		return fmt.Errorf("version %d of the job's record names no object %d of input %d", s.Record.Version, object, input)
	}
	return nil
}

// storeOf returns the store of an object.
func (s *Source) storeOf(ctx context.Context, o *job.Object) (store.Store, error) {
	switch {
	case o.Store == "":
		return s.Store, nil
	case s.Open == nil:
		return nil, errors.New("no other store than the job's own is known")
	}
	return s.Open(ctx, o.Store)
}

// open reads an object of an input, if the object has not changed.
func (s *Source) open(ctx context.Context, o *job.Object, offset, length int64) (io.ReadCloser, error) {
	in, err := s.storeOf(ctx, o)
	if err != nil {
		return nil, err
	}
	return in.OpenSame(ctx, o.Name, o.Identity, offset, length)
}

// config returns the settings for reading the lines of an input.
func (s *Source) config(in *job.Input) (prompts.Config, error) {
	cfg, err := s.Record.Reading.Config()
	if err != nil {
		return cfg, err
	}
	cfg.Serves, cfg.Takes = s.Serves, s.Takes
	return in.ReaderOf(cfg)
}

// Read yields the requests of a chunk as one reader of the whole input would. A bad line is a *prompts.LineError,
// after which it goes on. Any other error ends the requests: store.ErrChanged if the input has changed since it was
// indexed. Read reads all bytes of the chunk before it yields the first request, and holds them until the last. It
// does not if they exceed three times the longest line, as with an overlong line or very many blank lines.
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

// lineError returns err if it is about a line, and otherwise nil.
func lineError(err error) *prompts.LineError {
	var bad *prompts.LineError
	errors.As(err, &bad)
	return bad
}

// read yields the requests of a chunk. If its reader ends with another line than the chunk does,
// the input has changed since it was indexed.
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

// reader opens the text of a chunk, and returns a reader of it, and the function that closes it.
// The reader numbers lines as one of the whole file does. It asks Takes only in a chunk of a
// segment that has refused lines.
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

// mostBuffered bounds the bytes of a chunk that are held in memory. The chunk's requests are taken as calls are made,
// for minutes, and no connection should stay open for that.
const mostBuffered = 3 * prompts.DefaultMaxLine

// text returns the bytes of a chunk's object that belong to the chunk.
func (s *Source) text(ctx context.Context, o *job.Object, c *job.Chunk) (io.ReadCloser, error) {
	in, err := s.open(ctx, o, c.Offset, c.Bytes)
	if err != nil || c.Bytes > cmp.Or(s.bufferedBytes, mostBuffered) {
		return in, err
	}
	text := make([]byte, c.Bytes)
	n, err := io.ReadFull(in, text)
	if err == nil {
		_, err = io.Copy(io.Discard, in) // to its end, where a change of the object may show
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("it has %d bytes from %d on, not %d: %w", n, c.Offset, c.Bytes, store.ErrChanged)
	}
	return io.NopCloser(bytes.NewReader(text)), errors.Join(err, in.Close())
}

// marks reads the marks of a chunk's lines, which depend on lines before the chunk.
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

// name returns the name of an input.
func (s *Source) name(input int) (string, error) {
	if input < 0 || input >= len(s.Record.Inputs) {
		return "", errMarks
	}
	return s.Record.Inputs[input].Name, nil
}
