package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/disk"
)

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
