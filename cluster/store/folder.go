package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/headrace/headrace/internal/disk"
)

// fileMode lets nobody else read prompts and answers. The address of a folder can set another.
const fileMode fs.FileMode = 0o600

// folder is a Store in a folder. An object is a file, first written and synced under another
// name. A hard link to the object's name makes it present, and exactly one writer gets that
// link.
type folder struct {
	root string
	mode fs.FileMode
	disk disk.Disk
	link func(from, to string) error

	lastSeen atomic.Pointer[fs.FileInfo] // the root, as last seen; nil: it was not there yet
}

func newFolder(root string, mode fs.FileMode) *folder {
	return &folder{root: root, mode: mode, disk: disk.Real(), link: os.Link}
}

func (f *folder) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

// checkRequest checks the name and ctx before anything is done.
func checkRequest(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return ctx.Err()
}

// isAbsent reports whether an error means that nothing has that name.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Open implements Store.
func (f *folder) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	file, err := f.openObject(ctx, name, offset)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	return &rangeReader{Reader: readRange(ctx, file, offset, length), file: file}, nil
}

// OpenSame implements Store.
func (f *folder) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	file, err := f.openObject(ctx, name, offset)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	if err := checkIdentity(file, identity); err != nil {
		_ = file.Close() // a failure to close a file that was only read means nothing
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	return &rangeReader{Reader: readRange(ctx, file, offset, length), file: file, name: name, identity: identity}, nil
}

// openObject opens an object. Only a regular file is an object, and nothing else is opened: a pipe
// would wait for its writer.
func (f *folder) openObject(ctx context.Context, name string, offset int64) (*os.File, error) {
	if err := checkRequest(ctx, name); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("from byte %d on", offset)
	}
	switch info, err := os.Stat(f.path(name)); {
	case err != nil && !isAbsent(err):
		return nil, disk.Bare(err)
	case err != nil, !info.Mode().IsRegular():
		return nil, f.missingError()
	}
	file, err := os.Open(f.path(name))
	if isAbsent(err) {
		return nil, f.missingError()
	}
	return file, disk.Bare(err)
}

// Identity implements Store.
func (f *folder) Identity(ctx context.Context, name string) (string, int64, error) {
	info, err := f.stat(ctx, name)
	if err != nil {
		return "", 0, fmt.Errorf("store: identity of %s: %w", name, err)
	}
	return identityOf(info), info.Size(), nil
}

// stat returns the facts about an object's file. As in file, anything but a regular file is
// missing.
func (f *folder) stat(ctx context.Context, name string) (fs.FileInfo, error) {
	if err := checkRequest(ctx, name); err != nil {
		return nil, err
	}
	info, err := os.Stat(f.path(name))
	switch {
	case err != nil && !isAbsent(err):
		return nil, disk.Bare(err)
	case err != nil, !info.Mode().IsRegular():
		return nil, f.missingError()
	}
	return info, nil
}

func identityOf(info fs.FileInfo) string {
	return fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano())
}

// checkIdentity returns ErrChanged if an open file has another identity by now.
func checkIdentity(file *os.File, identity string) error {
	info, err := file.Stat()
	if err != nil {
		return disk.Bare(err)
	}
	if identityOf(info) != identity {
		return ErrChanged
	}
	return nil
}

// rangeReader reads a stretch of a file.
type rangeReader struct {
	io.Reader
	file     *os.File
	name     string
	identity string // "": whatever it is
}

// readRange returns a reader of length bytes from offset on, which ends with ctx. A negative length means to the end.
func readRange(ctx context.Context, file *os.File, offset, length int64) io.Reader {
	if length < 0 || length > math.MaxInt64-offset {
		length = math.MaxInt64 - offset
	}
	return &contextReader{ctx, io.NewSectionReader(file, offset, length)}
}

func (s *rangeReader) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if !errors.Is(err, io.EOF) || s.identity == "" {
		return n, err
	}
	// A file written during the reading yields neither its old content nor its new.
	if changed := checkIdentity(s.file, s.identity); changed != nil {
		return n, fmt.Errorf("store: read %s: %w", s.name, changed)
	}
	return n, err
}

func (s *rangeReader) Close() error { return s.file.Close() }

// contextReader reads from in until ctx ends.
type contextReader struct {
	ctx context.Context
	in  io.Reader
}

func (l *contextReader) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	return l.in.Read(p)
}

// Delete implements Store. It also removes folders that become empty, as each chunk has one for its journals.
func (f *folder) Delete(ctx context.Context, name string) error {
	if err := f.remove(ctx, name); err != nil {
		return fmt.Errorf("store: delete %s: %w", name, err)
	}
	return nil
}

// remove deletes an object, and the folders that it leaves empty. A missing object is no error, and a folder of that
// name is no object: it stays.
func (f *folder) remove(ctx context.Context, name string) error {
	if err := checkRequest(ctx, name); err != nil {
		return err
	}
	path := f.path(name)
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return nil // os.Remove would remove an empty folder, too
	}
	err := os.Remove(path)
	switch {
	case err == nil:
		f.prune(filepath.Dir(path))
	case isAbsent(err):
		return f.checkPresent() // in a lost folder the object may be there all the same
	}
	return disk.Bare(err)
}

// prune removes a folder and those above it, below the root, as long as they are empty. Another writer may be about to
// put an object into one. Then either the folder is not empty any more, or that writer makes it again.
func (f *folder) prune(path string) {
	for strings.HasPrefix(path, f.root+string(filepath.Separator)) && syscall.Rmdir(path) == nil {
		path = filepath.Dir(path)
	}
}

// errLost says that a folder that was there before is gone, or that another, empty one is in its place. Its file system
// was unmounted, and only the mount point is left.
var errLost = fmt.Errorf("%w: its folder was there, and is gone or empty: is it mounted?", ErrAway)

// checkPresent returns errLost if the folder was lost since it was first seen. Then a missing object proves nothing, and new
// files would land outside the store. A folder that is there again counts as the old one even with another number: a
// file server may give it a new one with each mount.
func (f *folder) checkPresent() error {
	root, err := os.Stat(f.root)
	if err != nil && !isAbsent(err) {
		return disk.Bare(err)
	}
	known, there := f.lastSeen.Load(), err == nil
	switch {
	case known == nil && !there:
		return nil // the folder has not been made yet
	case known != nil && (!there || !os.SameFile(*known, root) && isEmpty(f.root)):
		return errLost
	}
	f.lastSeen.Store(&root)
	return nil
}

// isEmpty reports whether a folder is empty, as far as it can be read.
func isEmpty(path string) bool {
	open, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = open.Close() }()
	names, _ := open.Readdirnames(1)
	return len(names) == 0
}

// missingError returns the error for an object that is not there.
func (f *folder) missingError() error {
	if err := f.checkPresent(); err != nil {
		return err
	}
	return ErrMissing
}

// errLink says that there is more than a list shows.
var errLink = errors.New("it is a link to a folder, and those are not followed: name the folder itself")

// List implements Store. It lists a link to a file, and leaves out a dangling one.
func (f *folder) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		w := &walk{folder: f, ctx: ctx, prefix: prefix, after: after, yield: yield}
		err := checkPrefix(prefix)
		if err == nil {
			err = w.listFolder(prefix[:strings.LastIndexByte(prefix, '/')+1])
		}
		if err == nil {
			err = w.folder.checkPresent() // else missing names may be there all the same
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(Object{}, fmt.Errorf("store: list %s: %w", prefix, err))
		}
	}
}

// errStopped says that the caller wants no more.
var errStopped = errors.New("enough")

// walk is one list under way.
type walk struct {
	folder        *folder
	ctx           context.Context
	prefix, after string
	yield         func(Object, error) bool
}

// listEntry is one entry of a folder; its name, from the root on, ends with a slash if it is a folder.
type listEntry struct {
	name  string
	entry fs.DirEntry
}

// listFolder lists a folder's content: base is "" or ends with a slash. It sorts folders with their
// slash, as the slash is a byte of the names in them: "a-b" comes before "a/b".
func (w *walk) listFolder(base string) error {
	places, err := w.sortedEntries(base)
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := w.visit(p); err != nil {
			return err
		}
	}
	return nil
}

// sortedEntries returns the entries of a folder that belong to the list, in the order of their names in the store.
func (w *walk) sortedEntries(base string) ([]listEntry, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := w.entries(base)
	if err != nil {
		return nil, err
	}
	places := make([]listEntry, 0, len(entries))
	for _, e := range entries {
		p := listEntry{base + e.Name(), e}
		if e.IsDir() {
			p.name += "/"
		}
		if !hidden(e.Name()) && w.isWanted(p.name) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b listEntry) int { return cmp.Compare(a.name, b.name) })
	return places, nil
}

// entries returns the entries of a folder, in any order; none if it is gone by now, or is an object.
func (w *walk) entries(base string) ([]fs.DirEntry, error) {
	open, err := os.Open(w.folder.path(base))
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, disk.Bare(err)
	}
	defer func() { _ = open.Close() }()
	entries, err := open.ReadDir(-1)
	if isAbsent(err) {
		return entries, nil
	}
	return entries, disk.Bare(err)
}

// isWanted reports whether the list shows an object of this name. For a folder it reports whether the list needs to look
// into it.
func (w *walk) isWanted(name string) bool {
	if !strings.HasSuffix(name, "/") {
		return strings.HasPrefix(name, w.prefix) && name > w.after
	}
	return (strings.HasPrefix(name, w.prefix) || strings.HasPrefix(w.prefix, name)) &&
		(name > w.after || strings.HasPrefix(w.after, name))
}

// visit yields an object, or lists a folder. A name that no object can have is an error, because a
// list must not leave out anything without a word.
func (w *walk) visit(p listEntry) error {
	if err := CheckName(strings.TrimSuffix(p.name, "/")); err != nil {
		return fmt.Errorf("%q: %w", p.name, err)
	}
	if p.entry.IsDir() {
		return w.listFolder(p.name)
	}
	info, err := w.info(p)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", p.name, err)
	case info == nil:
		return nil
	case !w.yield(Object{Name: p.name, Size: info.Size()}, nil):
		return errStopped
	}
	return nil
}

// info returns nil for a file that is gone by now, and for an entry that is no object.
func (w *walk) info(p listEntry) (fs.FileInfo, error) {
	info, err := p.entry.Info()
	if p.entry.Type()&fs.ModeSymlink != 0 {
		info, err = os.Stat(w.folder.path(p.name))
	}
	switch {
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, disk.Bare(err)
	case info.IsDir():
		return nil, errLink
	case !info.Mode().IsRegular():
		return nil, nil
	}
	return info, nil
}
