package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
)

func chance() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// A store that breaks a promise is refused, and the error says which.
func TestProbeRefusesBadStores(t *testing.T) {
	for _, bad := range storetest.Bad() {
		t.Run(bad.Breaks, func(t *testing.T) {
			err := store.Probe(t.Context(), bad.Store, chance(), store.ProbeConfig{Rounds: -1, Writers: -1}) // as the zero value
			if !errors.Is(err, store.ErrUnsafe) || !strings.Contains(err.Error(), bad.Says) {
				t.Errorf("%v does not say %q", err, bad.Says)
			}
			if _, ok := errors.AsType[*store.Unsafe](err); !ok {
				t.Errorf("%v has no details", err)
			}
		})
	}
}

// The error tells the round, who raced, and who won.
func TestProbeTellsWinners(t *testing.T) {
	bad := storetest.Bad()[1].Store
	err := store.Probe(t.Context(), bad, chance(), store.ProbeConfig{Rounds: 3, Writers: 5})
	unsafe, ok := errors.AsType[*store.Unsafe](err)
	if !ok || unsafe.Round != 1 || unsafe.Writers != 5 || unsafe.Winners != 5 || !strings.HasPrefix(unsafe.Name, "probe/") {
		t.Errorf("%v: %+v", err, unsafe)
	}
	want := fmt.Sprintf("store: probe: the store is not safe: %s: in round 1 of the probe 5 of 5 writers of one name "+
		"believed that they wrote it: exactly one may be", unsafe.Name)
	if err.Error() != want {
		t.Errorf("%v", err)
	}
}

// renaming looks for a file, and then renames another over it, as many file stores do. All who race
// have looked before the first renames.
type renaming struct {
	store.Store
	folder string
	looked *sync.WaitGroup
}

func (r *renaming) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	path := filepath.Join(r.folder, filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		return store.ErrExists
	}
	r.looked.Done()
	r.looked.Wait()
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(r.folder, "")
	if err != nil {
		return err
	}
	_, err = temp.Write(content)
	return errors.Join(err, temp.Close(), os.MkdirAll(filepath.Dir(path), 0o700), os.Rename(temp.Name(), path))
}

// A folder into which others rename is refused, though it is the same folder.
func TestProbeRefusesCheckThenRename(t *testing.T) {
	folder := t.TempDir()
	r := &renaming{Store: open(t, folder), folder: folder, looked: new(sync.WaitGroup)}
	r.looked.Add(store.DefaultProbeWriters)
	err := store.Probe(t.Context(), r, chance(), store.ProbeConfig{})
	unsafe, ok := errors.AsType[*store.Unsafe](err)
	if !ok || unsafe.Winners != store.DefaultProbeWriters {
		t.Errorf("%v", err)
	}
}

// A store that cannot be asked is not called unsafe.
func TestProbeSaysWhatKeptIt(t *testing.T) {
	down := errors.New("down")
	broken := storetest.Broken{Err: down}
	for i, err := range []error{
		store.Probe(t.Context(), broken, chance(), store.ProbeConfig{}),
		store.Probe(t.Context(), &fails{Memory: storetest.NewMemory(), open: down}, chance(), store.ProbeConfig{}),
		store.Probe(t.Context(), &fails{Memory: storetest.NewMemory(), list: down}, chance(), store.ProbeConfig{}),
		store.Probe(t.Context(), &fails{Memory: storetest.NewMemory(), remove: down}, chance(), store.ProbeConfig{}),
	} {
		if !errors.Is(err, down) || errors.Is(err, store.ErrUnsafe) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// fails is a store of which some verbs fail.
type fails struct {
	*storetest.Memory
	open, list, remove error
}

func (f *fails) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if f.open != nil {
		return nil, f.open
	}
	return f.Memory.Open(ctx, name, offset, length)
}

func (f *fails) Delete(ctx context.Context, name string) error {
	if f.remove != nil {
		return f.remove
	}
	return f.Memory.Delete(ctx, name)
}

func (f *fails) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	if f.list != nil {
		return storetest.Broken{Err: f.list}.List(ctx, prefix, after)
	}
	return f.Memory.List(ctx, prefix, after)
}

// A probe takes away what it wrote, also when it is broken off.
func TestProbeCleans(t *testing.T) {
	s := storetest.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	left := 5
	err := store.Probe(ctx, &counting{Memory: s, opened: func() {
		if left--; left == 0 {
			cancel()
		}
	}}, chance(), store.ProbeConfig{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for o := range s.List(t.Context(), "", "") {
		t.Errorf("%s is left", o.Name)
	}
}

// counting tells of each read.
type counting struct {
	*storetest.Memory
	opened func()
}

func (c *counting) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	c.opened()
	return c.Memory.Open(ctx, name, offset, length)
}
