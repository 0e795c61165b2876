package disk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk holds the functions that make files durable. A test gives its own, to see the order
// of the calls, or to let one of them fail.
type Disk struct {
	// SyncData waits until the bytes of a file, and its length, are on the disk.
	SyncData func(*os.File) error
	// Rename gives a file its name, and replaces any file of that name.
	Rename func(from, to string) error
	// SyncFolder makes the name of a file, new or taken over, survive the loss of power. For
	// a link it also does so for the name of the file that it leads to. It returns no error:
	// not every system can sync a folder. Where it fails the file is still as safe as its
	// file system makes new names.
	SyncFolder func(name string)
}

// Real returns the disk of this machine.
func Real() Disk {
	return Disk{SyncData: syncData, Rename: os.Rename, SyncFolder: func(name string) { _ = syncFolder(name) }}
}

// syncFolder syncs the folder of a file. For a link it also syncs the folder of the file that it leads to.
func syncFolder(name string) error {
	folder := filepath.Dir(name)
	err := syncOne(folder)
	if at, broken := filepath.EvalSymlinks(name); broken == nil && filepath.Dir(at) != folder {
		err = errors.Join(err, syncOne(filepath.Dir(at)))
	}
	return err
}

func syncOne(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// NextSuffix ends the name of a file that will replace another. Each file has one such name,
// so a later call finds and removes what a crash left.
const NextSuffix = ".headrace.tmp"

// ErrInTheWay says that headrace neither removes nor replaces a file, as it has not written it.
var ErrInTheWay = errors.New("it is in the way, and headrace has not written it: move it away")

const (
	// newMode lets only the owner read prompts and answers.
	newMode = 0o600
	// headBytes is the number of bytes of a file that Inspect passes to ours: no mark of
	// headrace's files is as long.
	headBytes = 64
)

// Unsynced returns the disk without its waits: a loss of power may lose what it writes.
func (d Disk) Unsynced() Disk {
	d.SyncData = func(*os.File) error { return nil }
	d.SyncFolder = func(string) {}
	return d
}

// Replace replaces the file at path, or makes it for the first time. The new file is written
// next to the old one. It is on the disk before it takes the name, at once or not at all. A
// link at path is replaced and not followed. The new file has the rights of an old one. An
// error of write ends it.
//
// A file that a crash has left under the new file's name is removed if it is ours, by its
// beginning. Any other is ErrInTheWay, and stays.
func (d Disk) Replace(path string, ours func(head []byte) bool, write func(*bufio.Writer) error) error {
	file, err := createNext(path, ours)
	if err != nil {
		return err
	}
	return d.finishFile(file, path, write)
}

// Write replaces the file at path as Replace does, with these bytes and rights, whatever rights
// an old one has. The new file's other name is unlike any: writers that hold no lock do not meet,
// and the last one wins. A crash may leave it.
func (d Disk) Write(path string, data []byte, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err == nil {
		err = d.finishFile(file, path, func(out *bufio.Writer) error {
			_, err := out.Write(data)
			return errors.Join(err, file.Chmod(mode))
		})
	}
	if err != nil { // the other name means nothing to a reader
		return &fs.PathError{Op: "write", Path: path, Err: Bare(err)}
	}
	return nil
}

// finishFile fills a new file and gives it its name. After an error it removes that file.
func (d Disk) finishFile(file *os.File, path string, write func(*bufio.Writer) error) error {
	out := bufio.NewWriter(file)
	err := write(out)
	if err == nil {
		err = errors.Join(out.Flush(), d.SyncData(file))
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = d.Move(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// Move renames a file within its folder, so that the new name lasts.
func (d Disk) Move(from, to string) error {
	if err := d.Rename(from, to); err != nil {
		return err
	}
	d.SyncFolder(to)
	return nil
}

// createNext makes the file that will replace the one at path, in the same folder and with its rights.
func createNext(path string, ours func([]byte) bool) (*os.File, error) {
	name := path + NextSuffix
	if err := Inspect(name, ours); err != nil {
		return nil, err
	}
	_ = os.Remove(name) // if it stays, the file cannot be made, and the error says so
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, newMode)
	if err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		_ = file.Chmod(info.Mode().Perm()) // otherwise only its owner may read it
	}
	return file, nil
}

// Inspect returns nil if the file at path does not exist, is empty, or is ours by its
// beginning. Any other, also a file that another process owns, is ErrInTheWay. It does not
// follow links. A loss of power leaves zeros: a file of zeros only counts as empty.
func Inspect(path string, ours func(head []byte) bool) error {
	named, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !named.Mode().IsRegular() { // opening a pipe could take for ever
		return inTheWay(path)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|NoFollow, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	opened, err := file.Stat()
	if err != nil || !os.SameFile(named, opened) || errors.Is(Own(file), ErrOwned) {
		return inTheWay(path)
	}
	in := bufio.NewReader(file)
	head, err := in.Peek(headBytes)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if head = bytes.TrimRight(head, "\x00"); err == nil && len(head) == 0 {
		head, err = firstNonZero(in)
	}
	if err == nil && len(head) > 0 && !ours(head) {
		return inTheWay(path)
	}
	return err
}

// firstNonZero returns the first byte that is not zero; nil if all are.
func firstNonZero(in *bufio.Reader) ([]byte, error) {
	for {
		switch c, err := in.ReadByte(); {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil || c != 0:
			return []byte{c}, err
		}
	}
}

func inTheWay(path string) error { return fmt.Errorf("%s: %w", path, ErrInTheWay) }

// Marked returns a function that reports whether a file with that mark at its beginning may
// begin with head. A crash may have cut off either.
func Marked(mark string) func(head []byte) bool {
	return func(head []byte) bool {
		n := min(len(mark), len(head))
		return mark[:n] == string(head[:n])
	}
}

// Bare returns an error of the file system without the operation and the paths, which the
// caller's own text names.
func Bare(err error) error {
	var (
		path *fs.PathError
		link *os.LinkError
	)
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// ErrOwned says that somebody else owns an open file.
var ErrOwned = errors.New("another user owns the file")

// OwnFolder makes a folder that nobody else can look into, or takes the one that is there. It refuses one of another
// user, whose owner could put other files in the place of ours, and a link.
func OwnFolder(folder string) error {
	_ = os.Mkdir(folder, 0o700) // it may be there
	if err := CheckFolder(folder); err != nil {
		return err
	}
	return os.Chmod(folder, 0o700)
}

// CheckFolder refuses a path that is no folder of this user, and a link to one.
func CheckFolder(folder string) error {
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("it is not a folder")
	case !isOwn(info):
		return errors.New("it belongs to another user")
	}
	return nil
}
