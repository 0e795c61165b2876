package store

import (
	"context"
	"io"
	"iter"
	"strings"
)

// Sub returns the part of a store under prefix, a name or "". Its objects are those whose names
// begin with prefix and a slash, and their names in it are the rest. Close leaves s as it is.
func Sub(s Store, prefix string) Store {
	if prefix == "" {
		return s
	}
	return &sub{whole: s, prefix: prefix + "/"}
}

type sub struct {
	whole  Store
	prefix string
}

// name keeps "" as it is: a prefix would turn it into a valid name.
func (s *sub) name(name string) string {
	if name == "" {
		return ""
	}
	return s.prefix + name
}

func (s *sub) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	return s.whole.Create(ctx, s.name(name), body, size)
}

func (s *sub) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return s.whole.Open(ctx, s.name(name), offset, length)
}

func (s *sub) List(ctx context.Context, prefix, after string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range s.whole.List(ctx, s.prefix+prefix, s.name(after)) {
			o.Name = strings.TrimPrefix(o.Name, s.prefix)
			if !yield(o, err) {
				return
			}
		}
	}
}

func (s *sub) Delete(ctx context.Context, name string) error {
	return s.whole.Delete(ctx, s.name(name))
}

func (s *sub) Identity(ctx context.Context, name string) (string, int64, error) {
	return Identity(ctx, s.whole, s.name(name))
}

func (s *sub) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	return OpenSame(ctx, s.whole, s.name(name), identity, offset, length)
}

func (s *sub) Append(ctx context.Context, name string) (Tail, error) {
	return Append(ctx, s.whole, s.name(name))
}
