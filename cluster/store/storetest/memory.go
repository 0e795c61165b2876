package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/headrace/headrace/cluster/store"
)

// Memory is a store in memory, for tests that need no other. It cannot append.
type Memory struct {
	shelf chan *shelf // capacity 1: the goroutine that takes it out owns it
}

// shelf is the content of a Memory.
type shelf struct {
	objects map[string]thing
	written int // objects ever written
}

// thing is one object; no two have the same number.
type thing struct {
	content string
	number  int
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	m := &Memory{shelf: make(chan *shelf, 1)}
	m.shelf <- &shelf{objects: map[string]thing{}}
	return m
}

// with calls do with the shelf, for one goroutine at a time.
func (m *Memory) with(do func(*shelf)) {
	s := <-m.shelf
	defer func() { m.shelf <- s }()
	do(s)
}

// put writes an object, over any other.
func (m *Memory) put(name, content string) {
	m.with(func(s *shelf) {
		s.written++
		s.objects[name] = thing{content, s.written}
	})
}

func (m *Memory) take(name string) (thing, error) {
	var found thing
	var ok bool
	m.with(func(s *shelf) { found, ok = s.objects[name] })
	if !ok {
		return thing{}, store.ErrMissing
	}
	return found, nil
}

// check checks the name and ctx before anything is done.
func check(ctx context.Context, name string) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	return ctx.Err()
}

// body reads a body that must have a size.
func body(ctx context.Context, name string, in io.Reader, size int64) (string, error) {
	if err := check(ctx, name); err != nil {
		return "", err
	}
	content, err := io.ReadAll(in)
	switch {
	case err != nil:
		return "", fmt.Errorf("its body: %w", err)
	case int64(len(content)) != size:
		return "", fmt.Errorf("its body has %d, not more or fewer than the %d bytes that were announced", len(content), size)
	}
	return string(content), nil
}

// Create implements store.Store.
func (m *Memory) Create(ctx context.Context, name string, in io.Reader, size int64) error {
	content, err := body(ctx, name, in, size)
	if err == nil {
		m.with(func(s *shelf) {
			if _, ok := s.objects[name]; ok {
				err = store.ErrExists
				return
			}
			s.written++
			s.objects[name] = thing{content, s.written}
		})
	}
	return said("create", name, err)
}

// Open implements store.Store.
func (m *Memory) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	return m.OpenSame(ctx, name, "", offset, length)
}

// OpenSame implements store.Store.
func (m *Memory) OpenSame(ctx context.Context, name, identity string, offset, length int64) (io.ReadCloser, error) {
	err := check(ctx, name)
	var found thing
	if err == nil {
		found, err = m.take(name)
	}
	switch {
	case err != nil:
	case offset < 0:
		err = fmt.Errorf("from byte %d on", offset)
	case identity != "" && identity != fmt.Sprint(found.number):
		err = store.ErrChanged
	}
	if err != nil {
		return nil, said("open", name, err)
	}
	content := found.content[min(offset, int64(len(found.content))):]
	if length >= 0 && length < int64(len(content)) {
		content = content[:length]
	}
	return io.NopCloser(&while{ctx, strings.NewReader(content)}), nil
}

// while reads while ctx lasts.
type while struct {
	ctx context.Context
	in  io.Reader
}

func (w *while) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.in.Read(p)
}

// Identity implements store.Store.
func (m *Memory) Identity(ctx context.Context, name string) (string, int64, error) {
	err := check(ctx, name)
	var found thing
	if err == nil {
		found, err = m.take(name)
	}
	if err != nil {
		return "", 0, said("identity of", name, err)
	}
	return fmt.Sprint(found.number), int64(len(found.content)), nil
}

// List implements store.Store.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		err := store.CheckName(prefix + "x")
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			yield(store.Object{}, said("list", prefix, err))
			return
		}
		for _, o := range m.list(prefix, after) {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (m *Memory) list(prefix, after string) []store.Object {
	var found []store.Object
	m.with(func(s *shelf) {
		for _, name := range slices.Sorted(maps.Keys(s.objects)) {
			if strings.HasPrefix(name, prefix) && name > after {
				found = append(found, store.Object{Name: name, Size: int64(len(s.objects[name].content))})
			}
		}
	})
	return found
}

// Delete implements store.Store.
func (m *Memory) Delete(ctx context.Context, name string) error {
	err := check(ctx, name)
	if err == nil {
		m.with(func(s *shelf) { delete(s.objects, name) })
	}
	return said("delete", name, err)
}

// said returns an error in the form that stores use.
func said(verb, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: %s %s: %w", verb, name, err)
}

// text returns the content of a reader.
func text(in io.Reader) string {
	var b bytes.Buffer
	_, _ = b.ReadFrom(in) // it is in memory
	return b.String()
}

// ErrFlaky is the error that a Flaky store returns in place of an answer.
var ErrFlaky = errors.New("flaky on purpose")

// Fault is the fate of one call of a Flaky store.
type Fault int

// The faults; the zero value is none.
const (
	None      Fault = iota
	Refuse          // nothing is done, and the call returns ErrFlaky
	LoseReply       // the call is done, and returns ErrFlaky; a read or a list does so after its first half
)

// Flaky is a store that treats its calls as Rule says. It cannot append.
type Flaky struct {
	store.Store
	// Rule decides the fate of the n-th call, from 0, of a verb: "create", "open", "list" or
	// "delete". It may wait, to hold a call. Many goroutines call it.
	Rule  func(n int, verb, name string) Fault
	calls atomic.Int64
}

func (f *Flaky) fault(verb, name string) Fault { return f.Rule(int(f.calls.Add(1))-1, verb, name) }

// Create implements store.Store.
func (f *Flaky) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	fault := f.fault("create", name)
	if fault == Refuse {
		return said("create", name, ErrFlaky)
	}
	err := f.Store.Create(ctx, name, body, size)
	if fault == LoseReply {
		return said("create", name, ErrFlaky)
	}
	return err
}

// Open implements store.Store.
func (f *Flaky) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	fault := f.fault("open", name)
	if fault == Refuse {
		return nil, said("open", name, ErrFlaky)
	}
	in, err := f.Store.Open(ctx, name, offset, length)
	if err != nil || fault == None {
		return in, err
	}
	defer func() { _ = in.Close() }()
	content, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(&halved{content[:len(content)/2]}), nil
}

// halved reads the first half of an object, and then fails.
type halved struct{ content []byte }

func (h *halved) Read(p []byte) (int, error) {
	if len(h.content) == 0 {
		return 0, ErrFlaky
	}
	n := copy(p, h.content)
	h.content = h.content[n:]
	return n, nil
}

// List implements store.Store.
func (f *Flaky) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		fault := f.fault("list", prefix)
		var all []store.Object
		for o, err := range f.Store.List(ctx, prefix, after) {
			if err != nil {
				yield(o, err)
				return
			}
			all = append(all, o)
		}
		switch fault {
		case Refuse:
			all = nil
		case LoseReply:
			all = all[:len(all)/2]
		}
		for _, o := range all {
			if !yield(o, nil) {
				return
			}
		}
		if fault != None {
			yield(store.Object{}, said("list", prefix, ErrFlaky))
		}
	}
}

// Delete implements store.Store.
func (f *Flaky) Delete(ctx context.Context, name string) error {
	fault := f.fault("delete", name)
	if fault == Refuse {
		return said("delete", name, ErrFlaky)
	}
	err := f.Store.Delete(ctx, name)
	if fault == LoseReply {
		return said("delete", name, ErrFlaky)
	}
	return err
}
