package storetest

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"

	"github.com/headrace/headrace/cluster/store"
)

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
