package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
)

// What an error of a store can be, for errors.Is. What is none of these left it open whether
// anything was done.
var (
	// ErrExists: an object of that name is there, and stays as it is.
	ErrExists = errors.New("an object of that name is there")
	// ErrMissing: no object of that name is there.
	ErrMissing = errors.New("no object of that name is there")
	// ErrChanged: the object is not the one that it was when its identity was asked for.
	ErrChanged = errors.New("the object has changed")
	// ErrName: no object can have that name; CheckName says which can.
	ErrName = errors.New("no object can have that name")
	// ErrAway: a bucket was asked as often as it is asked for one thing, for some seconds, and each time
	// was too busy, or was not reached; or a folder was there, and is not mounted any more. It may be there later, unless
	// a bucket's address is wrong.
	ErrAway = errors.New("the store is away")
	// ErrEnded: nothing more is written to a journal. It is closed, or as long as it may be; or
	// somebody else writes it, which is ErrExists too.
	ErrEnded = errors.New("the journal has ended")
	// ErrUnsafe: the store may let two writers of one name both win, or shows late what it
	// took. Nothing may be trusted to it.
	ErrUnsafe = errors.New("the store is not safe")
)

// A Store keeps objects that are written once, whole, or not at all. Its methods may be called
// by many goroutines, and its objects be written by many machines. A name for which CheckName
// knows a reason is refused by each method (ErrName).
type Store interface {
	// Create writes an object of exactly size bytes, unless one of that name is there: ErrExists,
	// and body may not have been read. When it returns nil the object is there whole and
	// survives the loss of power. An error that is not ErrExists leaves open whether it was
	// written: ask again; ErrExists may then be oneself. Within one call it never is: who
	// wrote the object, and did not hear so, is told nil.
	//
	// A body that can seek, or has HeldBody bytes at most, is sent again where that helps.
	Create(ctx context.Context, name string, body io.Reader, size int64) error
	// Open reads length bytes of an object from offset on, or fewer where it ends before; a
	// negative length reads to its end. ErrMissing if it is not there. Whoever gets the reader
	// closes it; it ends when ctx does.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// List yields the objects whose names begin with prefix and are greater than after ("" is
	// before all), in the order of the bytes of their names. What was there before the call
	// is yielded, what comes during it may be. It ends with the first error, which is
	// yielded with no object.
	List(ctx context.Context, prefix, after string) iter.Seq2[Object, error]
	// Delete removes an object; one that is missing is no error. It may come back if the
	// power of a folder's machine is lost.
	Delete(ctx context.Context, name string) error
}

// Object is what a list tells of one.
type Object struct {
	Name string
	Size int64 // in bytes
}

// An Identifier is a store whose objects others may change, as they may a user's input. Those of
// this package all are.
type Identifier interface {
	// Identity tells one state of an object from any other, in the store's own word: the etag,
	// or size and time (nanoseconds) of a file. size is in bytes.
	Identity(ctx context.Context, name string) (identity string, size int64, err error)
	// OpenSame is Open for an object that still is what it was: ErrChanged if not, at once
	// or, where a file is written to while it is read, at the end of what is read of it.
	OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error)
}

// An Appender is a store whose objects can also be written bit by bit. Of the stores of this
// package only a folder does it; elsewhere the error is errors.ErrUnsupported.
type Appender interface {
	// Append makes an object that its Tail is written to, unless one of that name is there:
	// ErrExists. That the object is there survives the loss of power.
	Append(ctx context.Context, name string) (Tail, error)
}

// Tail is the end of an object that is being written. It belongs to one goroutine.
type Tail interface {
	io.WriteCloser
	// Sync returns when what was written survives the loss of power.
	Sync() error
}

// Identity is Identifier's; errors.ErrUnsupported where s is none.
func Identity(ctx context.Context, s Store, name string) (identity string, size int64, err error) {
	if i, ok := s.(Identifier); ok {
		return i.Identity(ctx, name)
	}
	return "", 0, fmt.Errorf("store: identity of %s: %w", name, errors.ErrUnsupported)
}

// OpenSame is Identifier's; errors.ErrUnsupported where s is none.
func OpenSame(ctx context.Context, s Store, name, identity string, offset, length int64) (io.ReadCloser, error) {
	if i, ok := s.(Identifier); ok {
		return i.OpenSame(ctx, name, identity, offset, length)
	}
	return nil, fmt.Errorf("store: open %s: %w", name, errors.ErrUnsupported)
}

// Append is Appender's; errors.ErrUnsupported where s is none.
func Append(ctx context.Context, s Store, name string) (Tail, error) {
	if a, ok := s.(Appender); ok {
		return a.Append(ctx, name)
	}
	return nil, fmt.Errorf("store: append to %s: %w", name, errors.ErrUnsupported)
}

// Close gives back what a store holds, such as idle connections. Nothing may be under way in it.
// One that holds nothing is no error.
func Close(s Store) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
