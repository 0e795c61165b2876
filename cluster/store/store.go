package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of a store's errors, for errors.Is. Any other error leaves open whether anything was done.
var (
	// ErrExists: an object of that name is there, and stays as it is.
	ErrExists = errors.New("an object of that name is there")
	// ErrMissing: no object of that name is there.
	ErrMissing = errors.New("no object of that name is there")
	// ErrChanged: the object has changed since its identity was read.
	ErrChanged = errors.New("the object has changed")
	// ErrName: no object can have that name; CheckName says which can.
	ErrName = errors.New("no object can have that name")
	// ErrAway: the store is away. A bucket was too busy, or out of reach, in every try for some seconds; or a folder is
	// not mounted any more. It may come back, unless a bucket's address is wrong.
	ErrAway = errors.New("the store is away")
	// ErrEnded: the journal takes no more lines. It is closed, or as long as it may be; or another process writes it,
	// which is ErrExists too.
	ErrEnded = errors.New("the journal has ended")
	// ErrUnsafe: the store may let two writers of one name both win, or shows late what it took. Entrust nothing to it.
	ErrUnsafe = errors.New("the store is not safe")
)

// A Store keeps objects that are written once, whole, or not at all. Many goroutines may call its methods, and many
// machines may write its objects. Each method refuses a name that CheckName refuses (ErrName).
type Store interface {
	// Create writes an object of exactly size bytes, unless one of that name is there: ErrExists, and body may not have
	// been read. When it returns nil the object is there whole and survives the loss of power. An error that is not
	// ErrExists leaves open whether the object was written: ask again, and ErrExists may then mean the caller's own
	// object. Within one call it never does: if the object was written and the answer was lost, Create returns nil.
	//
	// Create sends a body again where that helps, if the body can seek or has BufferedBody bytes at most.
	Create(ctx context.Context, name string, body io.Reader, size int64) error
	// Open reads length bytes of an object from offset on, or fewer where it ends before; a negative length reads to
	// its end. ErrMissing if it is not there. The caller closes the reader, which ends when ctx does.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// List yields the objects whose names begin with prefix and are greater than after ("" is before all), in the byte
	// order of their names. It yields all objects that were there before the call, and perhaps some that come
	// during it. It ends with the first error, which it yields with no object.
	List(ctx context.Context, prefix, after string) iter.Seq2[Object, error]
	// Delete removes an object; a missing one is no error. The object may come back if a folder's machine loses power.
	Delete(ctx context.Context, name string) error
	// Identity returns a text that differs for each state of an object, which others may change, as users may change their
	// inputs: the etag, or size and time (nanoseconds) of a
	// file. size is in bytes.
	Identity(ctx context.Context, name string) (identity string, size int64, err error)
	// OpenSame is Open for an object that has not changed. ErrChanged if it has: at once, or, if a file is written
	// during the reading, at the end.
	OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error)
}

// Object is an object as a list shows it.
type Object struct {
	Name string
	Size int64 // in bytes
}

// An Appender is a store whose objects can also be written bit by bit. In this package only a folder can; elsewhere the
// error is errors.ErrUnsupported.
type Appender interface {
	// Append makes an object for its Tail to write to, unless one of that name is there: ErrExists. The presence of the
	// object survives the loss of power.
	Append(ctx context.Context, name string) (Tail, error)
}

// Tail is the end of an object that is being written. It belongs to one goroutine.
type Tail interface {
	io.WriteCloser
	// Sync returns when everything written survives the loss of power.
	Sync() error
}

// Append calls s.Append; errors.ErrUnsupported if s is no Appender.
func Append(ctx context.Context, s Store, name string) (Tail, error) {
	if a, ok := s.(Appender); ok {
		return a.Append(ctx, name)
	}
	return nil, fmt.Errorf("store: append to %s: %w", name, errors.ErrUnsupported)
}

// Close releases what a store holds, such as idle connections. Nothing may be under way in it. A store that holds
// nothing is no error.
func Close(s Store) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

const (
	// MaxName bounds the bytes of a name. S3 takes 1,024 with the prefix of the store.
	MaxName = 900
	// MaxSegment bounds the bytes between two slashes. File systems take 255, and a journal adds
	// an ending.
	MaxSegment = 240
)

// No segment of a name begins with these, as a folder uses them for files that a list does not show.
const (
	// tempFolder holds a folder's unfinished files.
	tempFolder = ".headrace-tmp"
	// nfsPrefix begins the names that NFS gives to files removed while open.
	nfsPrefix = ".nfs"
)

// CheckName returns an error (ErrName) for a name that no object can have. Names follow the same
// rules in every store. They are slash-separated segments of UTF-8 without control characters. No
// segment is empty, "." or "..", so no name begins or ends with a slash. Two words are reserved: no
// segment begins with ".headrace-tmp" or ".nfs". A name must not also be the beginning of another up
// to a slash. Where that would make one name a file and a folder, writing the second fails.
func CheckName(name string) error {
	why := nameFault(name)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrName, why)
}

// nameFault says what is wrong with a name; "": nothing.
func nameFault(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case len(name) > MaxName:
		return fmt.Sprintf("it has %d bytes, %d are the most", len(name), MaxName)
	case !utf8.ValidString(name):
		return "it is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "it has a control character in it"
	}
	for segment := range strings.SplitSeq(name, "/") {
		if why := segmentFault(segment); why != "" {
			return why
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "this system takes it for something else"
	}
	return ""
}

// segmentFault says what is wrong with a segment of a name; "": nothing.
func segmentFault(segment string) string {
	switch {
	case segment == "":
		return "it begins or ends with a slash, or has two in a row"
	case segment == ".", segment == "..":
		return segment + " is no segment of a name"
	case len(segment) > MaxSegment:
		return fmt.Sprintf("a segment has %d bytes, %d are the most", len(segment), MaxSegment)
	case hidden(segment):
		return segment + " is reserved"
	}
	return ""
}

// hidden reports whether lists leave out names with this segment.
func hidden(segment string) bool {
	return strings.HasPrefix(segment, tempFolder) || strings.HasPrefix(segment, nfsPrefix)
}

// checkPrefix returns an error if no name can begin with prefix.
func checkPrefix(prefix string) error {
	if CheckName(prefix) == nil {
		return nil
	}
	return CheckName(prefix + "x") // "", "a/" and ".." are no names, but begin some
}

// CreateBytes creates an object from memory.
func CreateBytes(ctx context.Context, s Store, name string, content []byte) error {
	return s.Create(ctx, name, bytes.NewReader(content), int64(len(content)))
}

// ReadAll reads a whole object; an object of more than most bytes is an error.
func ReadAll(ctx context.Context, s Store, name string, most int64) ([]byte, error) {
	in, err := s.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(io.LimitReader(in, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("store: read %s: %w", name, err)
	case int64(len(content)) > most:
		return nil, fmt.Errorf("store: read %s: it has more than %d bytes", name, most)
	}
	return content, nil
}
