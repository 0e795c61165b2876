package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// damageSeeds counts the stores that a plain test run damages.
const damageSeeds = 12

// Whatever bits of its store are flipped, whatever is cut off or removed while a hub is down: it comes up by itself,
// and then work can be queued, given out and done, and the lease be written. SEEDS=n damages n stores, SEED_BASE=n those from that seed on.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "hub")
	prepareStore(t, base)
	first, n := number("SEED_BASE", 0), number("SEEDS", damageSeeds)
	t.Logf("SEED_BASE=%d SEEDS=%d", first, n)
	for seed := first; seed < first+n; seed++ {
		dir := filepath.Join(t.TempDir(), "hub")
		if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		what := damage(t, dir, rand.New(rand.NewPCG(uint64(seed), 0)))
		if err := useDamaged(t, dir); err != nil {
			t.Errorf("seed %d: %s: %v", seed, what, err)
		}
	}
}

func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// prepareStore makes one with work that waits, is out, and is done, and with a lease; then the hub is killed.
func prepareStore(t *testing.T, dir string) {
	p := spawn(t, HubConfig{Dir: dir, Listen: "127.0.0.1:0", Token: tokenForTests})
	b := connect(t, p.url, "before")
	ctx := testContext(t)
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		mustQueue(t, b, chunk(n), strings.Repeat("x", 200))
	}
	for n := range 20 {
		d := mustFetch(t, b, Chunks)
		if n%2 == 0 {
			continue
		}
		if err := d.Done(ctx); err != nil {
			t.Fatal(err)
		}
	}
	held, err := b.ReadLease(ctx, patience)
	if err == nil {
		_, err = b.UpdateLease(ctx, []byte("before"), held.Revision, patience)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.kill()
	_ = os.Remove(filepath.Join(dir, "starts")) // this kill says nothing of the store
}

// damage changes up to three files of a store.
func damage(t *testing.T, dir string, r *rand.Rand) (what string) {
	var files []string
	err := filepath.WalkDir(storeDir(dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 1 + r.IntN(3) {
		file := files[r.IntN(len(files))]
		how, err := damageFile(file, r)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		what += fmt.Sprintf(" %s %s;", how, strings.TrimPrefix(file, dir))
	}
	return what
}

func damageFile(file string, r *rand.Rand) (how string, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	switch k := r.IntN(4); {
	case k == 0 || len(data) == 0:
		return "remove", os.Remove(file)
	case k == 1:
		return "cut", os.Truncate(file, int64(r.IntN(len(data))))
	}
	for range 1 + r.IntN(8) {
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
	}
	return "flip", os.WriteFile(file, data, 0o600)
}

// useDamaged does all that a cluster does with a hub on this store.
func useDamaged(t *testing.T, dir string) error {
	p := &process{t: t, config: HubConfig{Dir: dir, Listen: "127.0.0.1:0", Token: tokenForTests}}
	p.start()
	defer p.kill()
	ctx := testContext(t)
	b, err := Connect(ctx, Config{URL: p.url, Name: "after", AckWait: time.Second})
	if err != nil {
		return err
	}
	defer b.Close()
	ensure, offer := func() error { return b.Ensure(ctx) }, func() error { return b.Offer(ctx, "j") }
	if err := errors.Join(answered(ctx, ensure), answered(ctx, offer)); err != nil {
		return err
	}
	for n := range 40 {
		queue := func() error { _, err := b.Queue(ctx, chunk(n), nil); return err }
		if err := answered(ctx, queue); err != nil {
			return err
		}
	}
	held, err := b.ReadLease(ctx, patience)
	if err != nil {
		return err
	}
	if _, err := b.UpdateLease(ctx, nil, held.Revision, patience); err != nil {
		return err
	}
	return doAll(t, b)
}

func doAll(t *testing.T, b *Bus) error {
	ctx := testContext(t)
	for {
		var d *Delivery
		var ok bool
		fetch := func() (err error) { d, ok, err = b.Fetch(ctx, Chunks, "j", 100*time.Millisecond); return err }
		if err := answered(ctx, fetch); err != nil {
			return err
		}
		if ok {
			if err := d.Done(ctx); err != nil {
				return err
			}
			continue
		}
		if n, err := b.Queued(ctx, Chunks, "j"); n == 0 || err != nil {
			return err
		}
	}
}

// A consumer that somebody deleted is missed by those who fetch and by those who count, and is made again by an offer.
func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	ctx := testContext(t)
	mustQueue(t, b, chunk(1), "")
	mustFetch(t, b, Chunks)
	if err := b.js.DeleteConsumer(ctx, b.workStream(), b.streams.Load().consumer(Chunks, "j")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Queued(ctx, Chunks, "j"); !errors.Is(err, ErrGone) {
		t.Errorf("counted: %v", err)
	}
	if _, _, err := b.Fetch(ctx, Chunks, "j", 100*time.Millisecond); !errors.Is(err, ErrGone) {
		t.Errorf("fetched: %v", err)
	}
	if err := b.Offer(ctx, "j"); err != nil {
		t.Fatal(err)
	}
	mustFetch(t, b, Chunks)
}
