package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
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

// OpenSame implements Identifier.
func (f *folder) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	file, err := f.file(ctx, name, offset)
	if err != nil {
		return nil, fmt.Errorf("store: open %s: %w", name, err)
	}
	if err := unchanged(file, identity); err != nil {
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

// Identity implements Identifier.
func (f *folder) Identity(ctx context.Context, name string) (string, int64, error) {
	info, err := f.stat(ctx, name)
	if err != nil {
		return "", 0, fmt.Errorf("store: identity of %s: %w", name, err)
	}
	return identityOf(info), info.Size(), nil
}

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

func unchanged(file *os.File, identity string) error {
	info, err := file.Stat()
	switch {
	case err != nil:
		return disk.Bare(err)
	case identityOf(info) != identity:
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

// stretch reads length bytes from offset on, while ctx lasts.
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
	if changed := unchanged(s.file, s.identity); changed != nil {
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

// Delete implements Store. It also removes folders that become empty: a claim of each chunk has one.
func (f *folder) Delete(ctx context.Context, name string) error {
	err := f.remove(ctx, name)
	if err != nil {
		return fmt.Errorf("store: delete %s: %w", name, err)
	}
	return nil
}

func (f *folder) remove(ctx context.Context, name string) error {
	if err := ready(ctx, name); err != nil {
		return err
	}
	path := f.path(name)
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return nil // a folder of other objects is no object
	}
	err := os.Remove(path)
	if err == nil {
		f.prune(filepath.Dir(path))
	}
	if absent(err) {
		return nil
	}
	return disk.Bare(err)
}

// prune removes empty folders, from one on upwards. Another writer may be about to put an object
// into one. Then either the folder is not empty any more, or that writer makes it again.
func (f *folder) prune(path string) {
	for strings.HasPrefix(path, f.root+string(filepath.Separator)) && syscall.Rmdir(path) == nil {
		path = filepath.Dir(path)
	}
}
