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

	known atomic.Pointer[fs.FileInfo] // the root, as last seen; nil: it was not there yet
}

func newFolder(root string, mode fs.FileMode) *folder {
	return &folder{root: root, mode: mode, disk: disk.Real(), link: os.Link}
}

func (f *folder) path(name string) string { return filepath.Join(f.root, filepath.FromSlash(name)) }

// ready checks the name and ctx before anything is done.
func ready(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return ctx.Err()
}

// absent reports whether an error means that nothing has that name.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Open implements Store.
func (f *folder) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	file, err := f.file(ctx, name, offset)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	return &section{Reader: stretch(ctx, file, offset, length), file: file}, nil
}

// OpenSame implements Store.
func (f *folder) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	file, err := f.file(ctx, name, offset)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	if err := checkIdentity(file, identity); err != nil {
		_ = file.Close() // a failure to close a file that was only read means nothing
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	return &section{Reader: stretch(ctx, file, offset, length), file: file, name: name, identity: identity}, nil
}

// file opens an object. Only a regular file is an object, and nothing else is opened: a pipe
// would wait for its writer.
func (f *folder) file(ctx context.Context, name string, offset int64) (*os.File, error) {
	if err := ready(ctx, name); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("from byte %d on", offset)
	}
	switch info, err := os.Stat(f.path(name)); {
	case err != nil && !absent(err):
		return nil, disk.Bare(err)
	case err != nil, !info.Mode().IsRegular():
		return nil, f.missing()
	}
	file, err := os.Open(f.path(name))
	if absent(err) {
		return nil, f.missing()
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
	if err := ready(ctx, name); err != nil {
		return nil, err
	}
	info, err := os.Stat(f.path(name))
	switch {
	case err != nil && !absent(err):
		return nil, disk.Bare(err)
	case err != nil, !info.Mode().IsRegular():
		return nil, f.missing()
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

// section reads a stretch of a file.
type section struct {
	io.Reader
	file     *os.File
	name     string
	identity string // "": whatever it is
}

// stretch reads length bytes from offset on, while ctx lasts; a negative length means to the end.
func stretch(ctx context.Context, file *os.File, offset, length int64) io.Reader {
	if length < 0 || length > math.MaxInt64-offset {
		length = math.MaxInt64 - offset
	}
	return &lasting{ctx, io.NewSectionReader(file, offset, length)}
}

func (s *section) Read(p []byte) (int, error) {
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

func (s *section) Close() error { return s.file.Close() }

// lasting reads while ctx lasts.
type lasting struct {
	ctx context.Context
	in  io.Reader
}

func (l *lasting) Read(p []byte) (int, error) {
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
	if err := ready(ctx, name); err != nil {
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
	case absent(err):
		return f.present() // in a lost folder the object may be there all the same
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

// present returns errLost if the folder was lost since it was first seen. Then a missing object proves nothing, and new
// files would land outside the store. A folder that is there again counts as the old one even with another number: a
// file server may give it a new one with each mount.
func (f *folder) present() error {
	root, err := os.Stat(f.root)
	if err != nil && !absent(err) {
		return disk.Bare(err)
	}
	known, there := f.known.Load(), err == nil
	switch {
	case known == nil && !there:
		return nil // the folder has not been made yet
	case known != nil && (!there || !os.SameFile(*known, root) && empty(f.root)):
		return errLost
	}
	f.known.Store(&root)
	return nil
}

// empty reports whether a folder is empty, as far as it can be read.
func empty(path string) bool {
	open, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = open.Close() }()
	names, _ := open.Readdirnames(1)
	return len(names) == 0
}

// missing returns the error for an object that is not there.
func (f *folder) missing() error {
	if err := f.present(); err != nil {
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
			err = w.under(prefix[:strings.LastIndexByte(prefix, '/')+1])
		}
		if err == nil {
			err = w.folder.present() // else missing names may be there all the same
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(Object{}, fmt.Errorf("store: list %s: %w", prefix, err))
		}
	}
}

// errEnough says that the caller wants no more.
var errEnough = errors.New("enough")

// walk is one list under way.
type walk struct {
	folder        *folder
	ctx           context.Context
	prefix, after string
	yield         func(Object, error) bool
}

// place is one entry of a folder; its name, from the root on, ends with a slash if it is a folder.
type place struct {
	name  string
	entry fs.DirEntry
}

// under lists a folder's content: base is "" or ends with a slash. It sorts folders with their
// slash, as the slash is a byte of the names in them: "a-b" comes before "a/b".
func (w *walk) under(base string) error {
	places, err := w.places(base)
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

// places returns the entries of a folder that belong to the list, sorted as under needs them.
func (w *walk) places(base string) ([]place, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := w.entries(base)
	if err != nil {
		return nil, err
	}
	places := make([]place, 0, len(entries))
	for _, e := range entries {
		p := place{base + e.Name(), e}
		if e.IsDir() {
			p.name += "/"
		}
		if !hidden(e.Name()) && w.wanted(p.name) {
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.name, b.name) })
	return places, nil
}

// entries returns the entries of a folder, in any order; none if it is gone by now, or is an object.
func (w *walk) entries(base string) ([]fs.DirEntry, error) {
	open, err := os.Open(w.folder.path(base))
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, disk.Bare(err)
	}
	defer func() { _ = open.Close() }()
	entries, err := open.ReadDir(-1)
	if absent(err) {
		return entries, nil
	}
	return entries, disk.Bare(err)
}

// wanted reports whether to list an object, or to look into a folder.
func (w *walk) wanted(name string) bool {
	if !strings.HasSuffix(name, "/") {
		return strings.HasPrefix(name, w.prefix) && name > w.after
	}
	return (strings.HasPrefix(name, w.prefix) || strings.HasPrefix(w.prefix, name)) &&
		(name > w.after || strings.HasPrefix(w.after, name))
}

// visit yields an object, or lists a folder. A name that no object can have is an error, because a
// list must not leave out anything without a word.
func (w *walk) visit(p place) error {
	if err := CheckName(strings.TrimSuffix(p.name, "/")); err != nil {
		return fmt.Errorf("%q: %w", p.name, err)
	}
	if p.entry.IsDir() {
		return w.under(p.name)
	}
	info, err := w.info(p)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", p.name, err)
	case info == nil:
		return nil
	case !w.yield(Object{Name: p.name, Size: info.Size()}, nil):
		return errEnough
	}
	return nil
}

// info returns nil for a file that is gone by now, and for an entry that is no object.
func (w *walk) info(p place) (fs.FileInfo, error) {
	info, err := p.entry.Info()
	if p.entry.Type()&fs.ModeSymlink != 0 {
		info, err = os.Stat(w.folder.path(p.name))
	}
	switch {
	case absent(err):
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
