package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/store"
)

var errFault = errors.New("a fault of the store")

// faulty is a store in which things go wrong: before is asked before each operation, and after when
// it was done.
type faulty struct {
	store.Store
	before, after func(op, name string) error
	pieces        bool // nothing can be appended to
}

func (f faulty) do(op, name string, do func() error) error {
	if f.before != nil {
		if err := f.before(op, name); err != nil {
			return err
		}
	}
	err := do()
	if f.after != nil {
		err = errors.Join(err, f.after(op, name))
	}
	return err
}

func (f faulty) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	return f.do("create", name, func() error { return f.Store.Create(ctx, name, body, size) })
}

func (f faulty) Open(ctx context.Context, name string, offset, length int64) (in io.ReadCloser, err error) {
	err = f.do("open", name, func() error {
		in, err = f.Store.Open(ctx, name, offset, length)
		return err
	})
	return in, err
}

func (f faulty) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		if err := f.do("list", prefix, func() error { return nil }); err != nil {
			yield(store.Object{}, err)
			return
		}
		f.Store.List(ctx, prefix, after)(yield)
	}
}

func (f faulty) Delete(ctx context.Context, name string) error {
	return f.do("delete", name, func() error { return f.Store.Delete(ctx, name) })
}

func (f faulty) Append(ctx context.Context, name string) (tail store.Tail, err error) {
	if f.pieces {
		return nil, errors.ErrUnsupported
	}
	err = f.do("append", name, func() error {
		tail, err = store.Append(ctx, f.Store, name)
		return err
	})
	return faultyTail{tail, f, name}, err
}

type faultyTail struct {
	store.Tail
	f    faulty
	name string
}

func (t faultyTail) Sync() error { return t.f.do("sync", t.name, t.Tail.Sync) }

// in puts a faulty store before a worker's own.
func (f faulty) in(c *Config) {
	f.Store = c.Store
	c.Store = f
}

// Whatever fails at the store, before it was done or after, for a while: nothing is lost, and nothing twice.
func TestStoreFails(t *testing.T) {
	failed := map[string]int{}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, rng, uses, faults := newWorld(t, 8, 50), randomOf(seed), map[string]int{}, map[string]int{}
				fault := func(op, _ string) (err error) {
					w.note(func() {
						// One of each world fails for sure: there are few creates.
						if uses[op]++; uses[op] == 1+int(seed) || rng.IntN(40) == 0 {
							faults[op]++
							err = errFault
						}
					})
					return err
				}
				var workers []*worker
				for n := range 2 {
					workers = append(workers, w.start(fmt.Sprintf("w%d", n), faulty{before: fault, after: fault}.in))
				}
				w.finish(time.Hour)
				for _, k := range workers {
					k.drain()
				}
				w.check(0)
				for op, times := range faults {
					failed[op] += times
				}
			})
		})
	}
	for _, op := range []string{"open", "list", "sync", "append", "create"} {
		if failed[op] == 0 {
			t.Errorf("no %s has failed: %v", op, failed)
		}
	}
}

// A journal that cannot be synced for a while, as on a full disk, keeps what waits: nothing is asked again. One
// that cannot be for longer than its end may take gives its chunk up, and what it did not take is asked again.
func TestJournalBreaks(t *testing.T) {
	for _, c := range []struct {
		broken time.Duration
		lost   bool
	}{{closeTime / 2, false}, {2 * closeTime, true}} {
		synctest.Test(t, func(t *testing.T) {
			w, syncs, from := newWorld(t, 1, 100), 0, time.Time{}
			k := w.start("w1", faulty{before: func(op, _ string) (err error) {
				w.note(func() {
					if op != "sync" {
						return
					}
					if syncs++; syncs == 5 {
						from = time.Now()
					}
					if syncs >= 5 && time.Since(from) < c.broken {
						err = errFault
					}
				})
				return err
			}}.in)
			w.finish(time.Hour)
			k.drain()
			w.check(2 * 16 * int(2*c.broken/closeTime)) // of each claim what flew, and what waited to be saved
			if lost := w.repeats() > 0; lost != c.lost {
				t.Errorf("broken for %v: %d calls were repeated", c.broken, w.repeats())
			}
		})
	}
}

// Where a journal is in pieces, a death costs the results not yet in a piece, besides the calls in flight.
func TestPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 12, 60)
		change := func(c *Config) {
			c.Journal = store.JournalConfig{Every: time.Second, Lines: 20}
			faulty{pieces: true}.in(c)
		}
		allowed := 0
		for n := range 5 {
			k := w.start(fmt.Sprintf("w%d", n), change)
			time.Sleep(1300 * time.Millisecond)
			allowed += k.die() + 2*2*20 // of two claims, two pieces each
		}
		k := w.start("last", change)
		k.doAll()
		w.check(allowed)
		if left := w.journals(); len(left) > 0 {
			t.Errorf("journals are left: %q", left)
		}
	})
}

// A piece that cannot be written at the end is waited for.
func TestLastPieceIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, broken := newWorld(t, 1, 50), true
		time.AfterFunc(2*time.Minute, func() { w.note(func() { broken = false }) })
		k := w.start("w1", func(c *Config) {
			c.Journal = store.JournalConfig{Every: time.Hour, Lines: 1000}
			faulty{pieces: true, before: func(op, name string) (err error) {
				w.note(func() {
					if broken && op == "create" && strings.HasSuffix(name, ".000001") {
						err = errFault
					}
				})
				return err
			}}.in(c)
		})
		k.doAll()
		w.check(0)
	})
}

// A worker that drains does not wait for ever for a store that is away: what it could not save is lost.
func TestLastPieceIsLostInADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, 50)
		k := w.start("w1", func(c *Config) {
			c.Journal = store.JournalConfig{Every: time.Hour, Lines: 1000}
			faulty{pieces: true, before: func(op, name string) error {
				if op == "create" && strings.HasSuffix(name, ".000001") {
					return errFault
				}
				return nil
			}}.in(c)
		})
		time.Sleep(10 * time.Second)
		began := time.Now()
		k.drain()
		if d := time.Since(began); d < drainTime || d > 2*drainTime {
			t.Errorf("it drains for %v", d)
		}
		w.start("w2", nil).doAll()
		w.check(len(w.calls))
		if w.repeats() == 0 {
			t.Error("nothing was lost")
		}
	})
}

// While the store does not take results, no more of them are taken than may wait.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, stuck := newWorld(t, 1, 120), make(chan struct{})
		w.said = strings.Repeat("x", 1<<10)
		k := w.start("w1", func(c *Config) {
			c.bounds.waitingMost = 64 << 10
			faulty{before: func(op, _ string) error {
				if op == "sync" {
					<-stuck
				}
				return nil
			}}.in(c)
		}, batch.WithReadAhead(1))
		time.Sleep(time.Minute)
		// What may wait, what flies, what the stream has room for.
		if n := w.called(); n < 16 || n > 64+1+2*16 {
			t.Errorf("%d calls while nothing is saved", n)
		}
		close(stuck)
		k.doAll()
		w.check(0)
	})
}
