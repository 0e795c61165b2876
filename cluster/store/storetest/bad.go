package storetest

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/headrace/headrace/cluster/store"
)

// Bad returns empty stores that each break one promise in every race or look, with the words that
// a probe must find for it.
func Bad() []BadStore {
	m := NewMemory
	return []BadStore{
		{"looks, then writes", newLooks(m()), "believed that they wrote it: exactly one may be"},
		{"the last writer wins", &lastWins{m()}, "believed that they wrote it: exactly one may be"},
		{"the loser's words stay", &loserStays{m()}, "what is there is not what he wrote"},
		{"who comes late writes", &late{Memory: m(), reads: make(chan string, 1)}, "so was one who came late"},
		{"who comes late is refused, and writes", &refuses{Memory: m(), reads: make(chan string, 1)}, "but wrote all the same"},
		{"is read from the second time on", &readsLate{m(), newSeen()}, "it cannot be read"},
		{"is listed from the second time on", &listsLate{m(), newSeen()}, "of 1 objects the list shows 0"},
		{"lists backwards", &backwards{m()}, "or not in order"},
		{"lists from the beginning always", &rewinds{m()}, "a list from it on does not begin with it"},
		{"deletes nothing", &keeps{m()}, "it was deleted, and can still be read"},
	}
}

// BadStore is one of them.
type BadStore struct {
	Breaks string
	Store  store.Store
	Says   string // text in the probe's error
}

// looks does not see the last written object until an object is read. It acts as if all racing
// writers looked first, and then renamed.
type looks struct {
	*Memory
	unseen chan string // capacity 1, and never empty for long: the name of that object
}

func newLooks(m *Memory) *looks {
	l := &looks{m, make(chan string, 1)}
	l.unseen <- ""
	return l
}

func (l *looks) Create(ctx context.Context, name string, in io.Reader, size int64) error {
	unseen := <-l.unseen
	defer func() { l.unseen <- name }()
	if unseen == name {
		l.put(name, text(in))
		return nil
	}
	return l.Memory.Create(ctx, name, in, size)
}

func (l *looks) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	<-l.unseen
	l.unseen <- ""
	return l.Memory.Open(ctx, name, offset, length)
}

type lastWins struct{ *Memory }

func (l *lastWins) Create(_ context.Context, name string, in io.Reader, _ int64) error {
	l.put(name, text(in))
	return nil
}

type loserStays struct{ *Memory }

func (l *loserStays) Create(ctx context.Context, name string, in io.Reader, size int64) error {
	content := text(in)
	err := store.CreateBytes(ctx, l.Memory, name, []byte(content))
	if err != nil {
		l.put(name, content)
	}
	return err
}

// late accepts a write that comes after a read.
type late struct {
	*Memory
	reads chan string // capacity 1: the name that was read
}

func (l *late) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	select {
	case l.reads <- name:
	default:
	}
	return l.Memory.Open(ctx, name, offset, length)
}

func (l *late) Create(ctx context.Context, name string, in io.Reader, size int64) error {
	select {
	case read := <-l.reads:
		if read == name {
			l.put(name, text(in))
			return nil
		}
	default:
	}
	return l.Memory.Create(ctx, name, in, size)
}

// refuses is late, but returns an error.
type refuses late

func (r *refuses) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return (*late)(r).Open(ctx, name, offset, length)
}

func (r *refuses) Create(ctx context.Context, name string, in io.Reader, size int64) error {
	before := len(r.reads)
	err := (*late)(r).Create(ctx, name, in, size)
	if before > 0 && err == nil {
		return said("create", name, store.ErrExists)
	}
	return err
}

// seen counts how often each name was asked for.
type seen chan map[string]int

func newSeen() seen {
	s := make(seen, 1)
	s <- map[string]int{}
	return s
}

func (s seen) before(name string) bool {
	m := <-s
	defer func() { s <- m }()
	m[name]++
	return m[name] > 1
}

type readsLate struct {
	*Memory
	seen
}

func (r *readsLate) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if !r.before(name) {
		return nil, said("open", name, store.ErrMissing)
	}
	return r.Memory.Open(ctx, name, offset, length)
}

type listsLate struct {
	*Memory
	seen
}

func (l *listsLate) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for o, err := range l.Memory.List(ctx, prefix, after) {
			if (err != nil || l.before(o.Name)) && !yield(o, err) {
				return
			}
		}
	}
}

type backwards struct{ *Memory }

func (b *backwards) List(_ context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for _, o := range slices.Backward(b.list(prefix, after)) {
			if !yield(o, nil) {
				return
			}
		}
	}
}

type rewinds struct{ *Memory }

func (r *rewinds) List(ctx context.Context, prefix, _ string) iter.Seq2[store.Object, error] {
	return r.Memory.List(ctx, prefix, "")
}

type keeps struct{ *Memory }

func (k *keeps) Delete(context.Context, string) error { return nil }

// Broken is a store that answers everything with an error.
type Broken struct{ Err error }

func (b Broken) err(verb, name string) error {
	return fmt.Errorf("store: %s %s: %w", verb, name, b.Err)
}

// Create implements store.Store.
func (b Broken) Create(_ context.Context, name string, _ io.Reader, _ int64) error {
	return b.err("create", name)
}

// Open implements store.Store.
func (b Broken) Open(_ context.Context, name string, _, _ int64) (io.ReadCloser, error) {
	return nil, b.err("open", name)
}

// List implements store.Store.
func (b Broken) List(_ context.Context, prefix, _ string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) { yield(store.Object{}, b.err("list", prefix)) }
}

// Delete implements store.Store.
func (b Broken) Delete(_ context.Context, name string) error { return b.err("delete", name) }

// Identity implements store.Store.
func (b Broken) Identity(_ context.Context, name string) (string, int64, error) {
	return "", 0, b.err("identity of", name)
}

// OpenSame implements store.Store.
func (b Broken) OpenSame(ctx context.Context, name, _ string, offset, length int64) (io.ReadCloser, error) {
	return b.Open(ctx, name, offset, length)
}
