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
	// DefaultPieceEvery bounds the wait of a line until its piece is written. A kill may lose that much. At 2.5 calls
	// a second of a worker that is 25 answers, which are asked for again. For 200 workers it means 20 pieces a
	// second, for some 10 dollars a day.
	DefaultPieceEvery = 10 * time.Second
	// DefaultPieceLines bounds the lines of a piece, so that fast calls lose no more.
	DefaultPieceLines = 256
	// MaxLine bounds the bytes of a line: as in prompt files.
	MaxLine = 64 << 20
	// MaxPieces bounds the pieces of a journal.
	MaxPieces = 1_000_000
)

// Endings that follow a journal's name in the names of its objects.
const (
	appendEnding = "append" // the only object of an appended journal
	numberDigits = 6        // of a piece's number, so that lists have them in order
)

// JournalConfig sets how a journal is kept in a store that cannot append. The zero value is usable.
type JournalConfig struct {
	Every time.Duration   // 0 means DefaultPieceEvery
	Lines int             // 0 means DefaultPieceLines
	Clock clockwork.Clock // nil is the real one
}

// Journal keeps lines of one writer as they come. In a store that can append it is one object. Elsewhere it is
// in pieces, each created whole, and a goroutine writes them behind. Its methods belong to one goroutine.
//
// Lines that could not be saved stay with the journal. The next Sync or Flush saves them, unless the error is
// ErrEnded.
type Journal interface {
	// Write adds a line, which must not contain a line feed; the journal keeps no reference to it. It waits
	// only while two pieces are full and cannot be written. An error says that the journal did not take the
	// line.
	Write(ctx context.Context, line []byte) error
	// Sync makes the lines as safe as the journal does in its normal course. Appended lines survive the loss
	// of power; pieces are left to Every and Lines.
	Sync(ctx context.Context) error
	// Flush returns when all lines written survive the loss of power, or with the error that prevents it.
	Flush(ctx context.Context) error
	// Close flushes and ends the journal, once. Lines that ctx leaves no time for are lost.
	Close(ctx context.Context) error
}

// CreateJournal begins a journal, unless there is one of that name: ErrExists. When it returns, before any
// line, the journal's presence survives the loss of power. The last segment of its name has no dot in it: the
// endings of its objects' names follow one. In a store that cannot append, the journal begins with an empty piece, which
// takes the name.
func CreateJournal(ctx context.Context, s Store, name string, cfg JournalConfig) (Journal, error) {
	if err := checkJournal(name); err != nil {
		return nil, fmt.Errorf("store: journal %s: %w", name, err)
	}
	tail, err := Append(ctx, s, name+"."+appendEnding)
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

// checkJournal refuses a dot: in an object's name, the part after the last dot does not belong to the journal's name.
func checkJournal(name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ".") {
		return fmt.Errorf("%w: a journal has no dot in its last segment", ErrName)
	}
	return nil
}

// checkLine returns an error for a line that could not be read back as it was written.
func checkLine(line []byte) error {
	switch {
	case len(line) > MaxLine:
		return fmt.Errorf("a line of %d bytes, %d are the most", len(line), MaxLine)
	case bytes.IndexByte(line, '\n') >= 0:
		return errors.New("a line has a line feed in it")
	}
	return nil
}

// splitObjectName returns the name of the journal to which an object belongs. ok is false for an object of no journal.
func splitObjectName(object string) (name string, ok bool) {
	dot := strings.LastIndexByte(object, '.')
	if dot < 0 {
		return "", false
	}
	ending := object[dot+1:]
	number := len(ending) == numberDigits && strings.Trim(ending, "0123456789") == ""
	return object[:dot], ending == appendEnding || number
}

// isFirstObject reports whether an object is the first of a journal. Without it there is no journal. Other objects were then
// written late, by a process that did not know of the journal's deletion.
func isFirstObject(journal, object string) bool {
	return object == journal+"."+appendEnding || object == pieceName(journal, 0)
}

// Journals lists the names of the journals that begin with prefix, in the order of their objects:
// a-b before a.
func Journals(ctx context.Context, s Store, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for o, err := range s.List(ctx, prefix, "") {
			if err != nil {
				yield("", err)
				return
			}
			name, ok := splitObjectName(o.Name)
			if !ok || name == last {
				continue
			}
			last = name
			if isFirstObject(name, o.Name) && !yield(name, nil) {
				return
			}
		}
	}
}

// ReadJournal reads the lines of a journal in order, without their line feeds, also while it is being written. It
// leaves out a line that was not written to its end. A line is valid until the next. ErrMissing if there is no such
// journal, or it is deleted meanwhile. The lines themselves must prove that they are as written: after a loss of
// power, the end of a file may hold anything.
func ReadJournal(ctx context.Context, s Store, name string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := readJournal(ctx, s, name, yield)
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, fmt.Errorf("store: journal %s: %w", name, err))
		}
	}
}

// readJournal yields the lines of all objects of a journal, in order. A piece that is missing
// between others is an error. It returns errStopped if the caller wants no more.
func readJournal(ctx context.Context, s Store, name string, yield func([]byte, error) bool) error {
	objects, err := journalObjects(ctx, s, name)
	if err != nil {
		return err
	}
	if len(objects) == 0 || !isFirstObject(name, objects[0]) {
		return ErrMissing
	}
	for i, object := range objects {
		if want := pieceName(name, i); object != want && object != name+"."+appendEnding {
			return fmt.Errorf("%s comes where %s should", object, want)
		}
		if err := readLines(ctx, s, object, yield); err != nil {
			return err
		}
	}
	return nil
}

// journalObjects lists the objects of a journal in the order of their names, which is that of the pieces.
func journalObjects(ctx context.Context, s Store, name string) ([]string, error) {
	if err := checkJournal(name); err != nil {
		return nil, err
	}
	var objects []string
	for o, err := range s.List(ctx, name+".", "") {
		if err != nil {
			return nil, err
		}
		if journal, ok := splitObjectName(o.Name); ok && journal == name {
			objects = append(objects, o.Name)
		}
	}
	return objects, nil
}

// readLines yields the lines of one object. It returns errStopped if the caller wants no more.
func readLines(ctx context.Context, s Store, object string, yield func([]byte, error) bool) error {
	in, err := s.Open(ctx, object, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	lines := bufio.NewReaderSize(in, 64<<10)
	var long []byte // the beginning of a line that is longer than the buffer
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long) <= MaxLine:
			long = append(long, line...)
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("%s has a line of more than %d bytes", object, MaxLine)
		case errors.Is(err, io.EOF):
			return nil // a line without a line feed was not written to its end
		case err != nil:
			return err
		}
		if len(long) > 0 {
			line = append(long, line...)
			long = line[:0]
		}
		if !yield(line[:len(line)-1], nil) {
			return errStopped
		}
	}
}

// DeleteJournal deletes a journal; a missing one is no error. It deletes the last piece first, so that readers of the
// rest find a journal that ends early.
func DeleteJournal(ctx context.Context, s Store, name string) error {
	objects, err := journalObjects(ctx, s, name)
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

// appendedJournal is a journal in one object.
type appendedJournal struct {
	name    string
	tail    Tail
	unsaved []byte // lines not synced yet
	torn    bool   // the end of the object is unknown: all unsaved lines are written again
	closed  bool
}

// Write implements [Journal]. It keeps the line until a Sync succeeds, so a failed write is no
// error: Sync writes all unsaved lines again.
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
		j.torn = err != nil // Sync returns the error of the second write
	}
	return nil
}

// Sync makes all lines safe, and then forgets them. If it fails, it keeps them, and the next Sync writes all of them
// again: the system may have forgotten data that a failed sync left unwritten.
func (j *appendedJournal) Sync(context.Context) error {
	err := j.rewriteUnsaved()
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

// rewriteUnsaved writes all unsaved lines again after a failure, as on a full disk. The last line in the object may be torn. A line
// feed ends it, so that it reads as a line by itself, which is invalid.
func (j *appendedJournal) rewriteUnsaved() error {
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
