package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
)

const (
	// DefaultPieceEvery is how long a line may wait before the piece that it is in is written. It
	// is what a kill may lose: at 2.5 calls a second of a worker, 25 answers, which are asked
	// for again. 200 workers write 20 pieces a second, for some 10 dollars a day.
	DefaultPieceEvery = 10 * time.Second
	// DefaultPieceLines is how many lines a piece has at most, so that fast calls lose no more.
	DefaultPieceLines = 256
	// MaxLine is the most bytes of a line: that of prompt files.
	MaxLine = 64 << 20
	// MaxPieces is how many pieces a journal has at most.
	MaxPieces = 1_000_000
)

// What follows the name of a journal in those of its objects.
const (
	appended = "append" // the one object of a journal that is appended to
	digits   = 6        // of the number of a piece; so lists have them in order
)

// JournalConfig says how a journal is kept where nothing can be appended to. The zero value is usable.
type JournalConfig struct {
	Every time.Duration   // 0 means DefaultPieceEvery
	Lines int             // 0 means DefaultPieceLines
	Clock clockwork.Clock // nil is the real one
}

// Journal keeps lines of one writer as they come. In a store that can be appended to it is one
// object; elsewhere it is in pieces, each created whole, and a goroutine writes them behind. Its
// methods belong to one goroutine.
//
// What could not be saved stays with the journal, and is saved when Sync or Flush are asked for again,
// unless the error is ErrEnded.
type Journal interface {
	// Write adds a line, which has no line feed in it and is not kept. It waits only while two
	// pieces are full and cannot be written. An error says that the line was not taken.
	Write(ctx context.Context, line []byte) error
	// Sync makes what was written as safe as the journal makes it without being asked twice:
	// appended lines survive the loss of power; pieces are left to Every and Lines.
	Sync(ctx context.Context) error
	// Flush returns when all that was written survives the loss of power, or with what kept it.
	Flush(ctx context.Context) error
	// Close flushes, and ends the journal; once. Lines that ctx has no time for are lost.
	Close(ctx context.Context) error
}

// CreateJournal begins a journal, unless there is one of that name: ErrExists. That it is there lasts
// when this returns, before any line does. The last segment of its name has no dot in it.
func CreateJournal(ctx context.Context, s Store, name string, cfg JournalConfig) (Journal, error) {
	if err := checkJournal(name); err != nil {
		return nil, fmt.Errorf("store: journal %s: %w", name, err)
	}
	tail, err := Append(ctx, s, name+"."+appended)
	switch {
	case err == nil:
		return &appendedJournal{name: name, tail: tail}, nil
	case !errors.Is(err, errors.ErrUnsupported):
		return nil, err
	}
	if err := CreateBytes(ctx, s, pieceName(name, 0), nil); err != nil {
		return nil, err
	}
	return newPieces(ctx, s, name, cfg), nil
}

// checkJournal refuses a dot, behind which the rest of an object's name is not the journal's.
func checkJournal(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ".") {
		return fmt.Errorf("%w: a journal has no dot in its last segment", ErrName)
	}
	return nil
}

// checkLine says why a line would not be read as it was written.
func checkLine(line []byte) error {
	switch {
	case len(line) > MaxLine:
		return fmt.Errorf("a line of %d bytes, %d are the most", len(line), MaxLine)
	case bytes.IndexByte(line, '\n') >= 0:
		return errors.New("a line has a line feed in it")
	}
	return nil
}

// journalOf is the name of the journal that an object belongs to.
func journalOf(object string) (name string, ok bool) {
	dot := strings.LastIndexByte(object, '.')
	if dot < 0 {
		return "", false
	}
	ending := object[dot+1:]
	number := len(ending) == digits && strings.Trim(ending, "0123456789") == ""
	return object[:dot], ending == appended || number
}

// begins reports whether an object is the first of a journal. Without it there is no journal: what else
// is there was written late, by somebody who did not know that the journal was deleted.
func begins(journal, object string) bool {
	return object == journal+"."+appended || object == pieceName(journal, 0)
}

// Journals lists the names of the journals that begin with prefix, in order.
func Journals(ctx context.Context, s Store, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for o, err := range s.List(ctx, prefix, "") {
			if err != nil {
				yield("", err)
				return
			}
			name, ok := journalOf(o.Name)
			if !ok || name == last {
				continue
			}
			last = name
			if begins(name, o.Name) && !yield(name, nil) {
				return
			}
		}
	}
}

// ReadJournal reads the lines of a journal in order, without their line feeds, also while it is being
// written. A line that was not written to its end is left out. A line is valid until the next.
// ErrMissing if there is no such journal, or it is deleted meanwhile. That what is read is what was
// written is for the lines to prove: after a loss of power, the end of a file may hold anything.
func ReadJournal(ctx context.Context, s Store, name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := readJournal(ctx, s, name, yield)
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, fmt.Errorf("store: journal %s: %w", name, err))
		}
	}
}

func readJournal(ctx context.Context, s Store, name string, yield func([]byte, error) bool) error {
	objects, err := objectsOf(ctx, s, name)
	if err != nil {
		return err
	}
	if len(objects) == 0 || !begins(name, objects[0]) {
		return ErrMissing
	}
	for i, object := range objects {
		if object != name+"."+appended && object != pieceName(name, i) {
			return fmt.Errorf("%s comes where %s should", object, pieceName(name, i))
		}
		if err := readLines(ctx, s, object, yield); err != nil {
			return err
		}
	}
	return nil
}

// objectsOf lists what a journal consists of.
func objectsOf(ctx context.Context, s Store, name string) ([]string, error) {
	if err := checkJournal(name); err != nil {
		return nil, err
	}
	var objects []string
	for o, err := range s.List(ctx, name+".", "") {
		if err != nil {
			return nil, err
		}
		if journal, ok := journalOf(o.Name); ok && journal == name {
			objects = append(objects, o.Name)
		}
	}
	return objects, nil
}

func readLines(ctx context.Context, s Store, object string, yield func([]byte, error) bool) error {
	in, err := s.Open(ctx, object, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	lines := bufio.NewReaderSize(in, 64<<10)
	var long []byte
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long) <= MaxLine:
			long = append(long, line...)
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%s has a line of more than %d bytes", object, MaxLine)
		case errors.Is(err, io.EOF):
			return nil // what stands without a line feed was not written to its end
		case err != nil:
			return err
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = line[:0]
		}
		if !yield(line[:len(line)-1], nil) {
			return errEnough
		}
	}
}

// DeleteJournal deletes a journal; one that is missing is no error. Its last piece goes first, so that
// whoever sees what is left of it reads a journal that ends early.
func DeleteJournal(ctx context.Context, s Store, name string) error {
	objects, err := objectsOf(ctx, s, name)
	if err != nil {
		return fmt.Errorf("store: journal %s: %w", name, err)
	}
	for _, object := range slices.Backward(objects) {
		if err := s.Delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// appendedJournal is a journal that is one object.
type appendedJournal struct {
	name    string
	tail    Tail
	unsaved []byte // lines that no sync has had yet
	torn    bool   // what the object ends with is not known: they are all written again
	closed  bool
}

func (j *appendedJournal) Write(_ context.Context, line []byte) error {
	if err := checkLine(line); err != nil {
		return fmt.Errorf("store: journal %s: %w", j.name, err)
	}
	if j.closed {
		return fmt.Errorf("store: journal %s: %w: %w", j.name, ErrEnded, errClosed)
	}
	from := len(j.unsaved)
	j.unsaved = append(append(j.unsaved, line...), '\n')
	if !j.torn {
		_, err := j.tail.Write(j.unsaved[from:])
		j.torn = err != nil // Sync tells
	}
	return nil
}

// Sync writes again what may not be there whole: after a write that failed, as on a full disk, the last line
// may be torn; after a sync that failed, the system may have forgotten what it did not write. A line feed ends
// what was torn, so that it is read as a line by itself, which is none.
func (j *appendedJournal) Sync(context.Context) error {
	err := j.mend()
	if err == nil {
		err = j.tail.Sync()
		j.torn = err != nil
	}
	if err != nil {
		return fmt.Errorf("store: journal %s: %w", j.name, err)
	}
	j.unsaved = j.unsaved[:0]
	return nil
}

func (j *appendedJournal) mend() error {
	if !j.torn {
		return nil
	}
	_, err := j.tail.Write(append([]byte{'\n'}, j.unsaved...))
	j.torn = err != nil
	return err
}

func (j *appendedJournal) Flush(ctx context.Context) error { return j.Sync(ctx) }

func (j *appendedJournal) Close(ctx context.Context) error {
	err := j.Sync(ctx)
	j.closed = true
	if closed := j.tail.Close(); err == nil && closed != nil {
		return fmt.Errorf("store: journal %s: %w", j.name, closed)
	}
	return err
}
