package executor

import (
	"context"
	"io"
	"iter"

	"github.com/headrace/headrace/cluster/store"
)

// mortal is a store to which a dead worker writes nothing.
type mortal struct {
	whole store.Store
	dead  *grave
}

func (m mortal) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	if err := m.dead.dead(); err != nil {
		return err
	}
	return m.whole.Create(ctx, name, body, size)
}

func (m mortal) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := m.dead.dead(); err != nil {
		return nil, err
	}
	return m.whole.Open(ctx, name, offset, length)
}

func (m mortal) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		if err := m.dead.dead(); err != nil {
			yield(store.Object{}, err)
			return
		}
		m.whole.List(ctx, prefix, after)(yield)
	}
}

func (m mortal) Delete(ctx context.Context, name string) error {
	if err := m.dead.dead(); err != nil {
		return err
	}
	return m.whole.Delete(ctx, name)
}

func (m mortal) Append(ctx context.Context, name string) (store.Tail, error) {
	if err := m.dead.dead(); err != nil {
		return nil, err
	}
	t, err := store.Append(ctx, m.whole, name)
	if err != nil {
		return nil, err
	}
	return mortalTail{t, m.dead}, nil
}

type mortalTail struct {
	store.Tail
	dead *grave
}

func (t mortalTail) Write(p []byte) (int, error) {
	if err := t.dead.dead(); err != nil {
		return 0, err
	}
	return t.Tail.Write(p)
}
