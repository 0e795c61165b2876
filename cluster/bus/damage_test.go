package bus

import (
	"encoding/binary"
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

// damageSeeds is how many stores a plain test run damages.
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
	time.Sleep(300 * time.Millisecond) // the server writes every 0.1 s what it knows of deliveries
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
	if err := b.Ensure(ctx); err != nil {
		return err
	}
	for n := range 40 {
		if _, err := b.Queue(ctx, chunk(n), nil); err != nil {
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
		d, ok, err := b.Fetch(ctx, Chunks, 100*time.Millisecond)
		if err != nil {
			return err
		}
		if ok {
			if err := d.Done(ctx); err != nil {
				return err
			}
			continue
		}
		if n, err := b.Queued(ctx, Chunks, ""); n == 0 || err != nil {
			return err
		}
		if _, err := b.Mend(ctx); err != nil {
			return err
		}
	}
}

// A server that believes of work that it was done, though it is in the queue, never gives it out; Mend sees to that, and leaves a queue
// alone in which nothing is wrong.
func TestMend(t *testing.T) {
	t.Parallel()
	config := HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: tokenForTests}
	hub, err := StartHub(config)
	if err != nil {
		t.Fatal(err)
	}
	b := connect(t, hub.JoinURL(), "w1", func(c *Config) { c.AckWait = time.Hour })
	ctx := testContext(t)
	for n := range 5 {
		mustQueue(t, b, chunk(n), "")
	}
	held := mustFetch(t, b, Chunks)
	if mended, err := b.Mend(ctx); mended || err != nil {
		t.Fatalf("mended %v, %v: nothing is wrong", mended, err)
	}
	known := b.streams.Load()
	hub.Shutdown()
	state := filepath.Join(storeDir(config.Dir), "jetstream", "$G", "streams", b.workStream(), "obs", known.consumer(Chunks), "o.dat")
	// All five were delivered and acknowledged, it says.
	if err := os.WriteFile(state, []byte{stateMagic, stateVersion, 5, 5, 5, 5, 0, 0}, 0o600); err != nil {
		t.Fatal(err)
	}
	startHub(t, func(c *HubConfig) { *c = config })
	eventually(t, "the client reconnects", b.Connected)
	if d, ok, err := b.Fetch(ctx, Chunks, 100*time.Millisecond); ok || err != nil {
		t.Fatalf("got %v, %v: then there is nothing to mend", d, err)
	}
	if mended, err := b.Mend(ctx); !mended || err != nil {
		t.Fatalf("mended %v, %v", mended, err)
	}
	for range 5 {
		d := mustFetch(t, b, Chunks)
		if d.Work == held.Work {
			d = held // who has had it since before can still say that it is done
		}
		if err := d.Done(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := b.Queued(ctx, Chunks, ""); n != 0 || err != nil {
		t.Errorf("%d are queued, %v", n, err)
	}
}

// A consumer that somebody deleted is made again by whoever misses it.
func TestConsumerDeleted(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	ctx := testContext(t)
	mustQueue(t, b, chunk(1), "")
	mustFetch(t, b, Chunks)
	if err := b.js.DeleteConsumer(ctx, b.workStream(), b.streams.Load().consumer(Chunks)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is given out again", func() bool {
		_, ok, err := b.Fetch(ctx, Chunks, 100*time.Millisecond)
		if err != nil && !errors.Is(err, ErrGone) {
			t.Fatal(err)
		}
		return ok
	})
}

// stateOf is what a server writes of a consumer that has three deliveries out, one of them for the second time.
func stateOf(now time.Time) []byte {
	data := []byte{stateMagic, stateVersion}
	for _, n := range []uint64{4, 6, 9, 12, 3} {
		data = binary.AppendUvarint(data, n)
	}
	data = binary.AppendVarint(data, now.Unix())
	for _, p := range [][3]uint64{{1, 1, 0}, {3, 2, 5}, {6, 5, 30}} {
		data = binary.AppendUvarint(binary.AppendUvarint(data, p[0]), p[1])
		data = binary.AppendVarint(data, int64(p[2]))
	}
	return append(data, 1, 1, 1)
}

// What a server writes of its deliveries is believed, and what cannot be true is not: no flipped
// bit gets numbers through by which a server would reserve memory, count, or wait without end.
func TestCheckDeliveries(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	good := stateOf(now)
	if err := checkDeliveries(good, now); err != nil {
		t.Fatal(err)
	}
	for cut := range good {
		if checkDeliveries(good[:cut], now) == nil {
			t.Errorf("cut off after %d of %d bytes, it is believed", cut, len(good))
		}
	}
	if checkDeliveries(append(good, 0), now) == nil {
		t.Error("with one byte more, it is believed")
	}
	believed := 0
	for bit := range 8 * len(good) {
		bad := append([]byte(nil), good...)
		bad[bit/8] ^= 1 << (bit % 8)
		if checkDeliveries(bad, now) == nil {
			believed++
		}
	}
	t.Logf("%d of %d flipped bits are believed: what they say may be", believed, 8*len(good))
	if believed > 8*len(good)/2 {
		t.Errorf("%d of %d flipped bits are believed", believed, 8*len(good))
	}
	for what, change := range map[string]func([]uint64, *time.Time){
		"acknowledged beyond what was delivered": func(n []uint64, _ *time.Time) { n[0] = 10 },
		"so many":                                func(n []uint64, _ *time.Time) { n[2], n[3] = 1<<50, 1<<50 },
		"more out than were delivered":           func(n []uint64, _ *time.Time) { n[4] = 1 << 40 },
		"in the future":                          func(_ []uint64, at *time.Time) { *at = at.Add(time.Hour) },
		"long ago":                               func(_ []uint64, at *time.Time) { *at = at.Add(-2 * maxAgo) },
	} {
		n, at := []uint64{4, 6, 9, 12, 1}, now
		change(n, &at)
		data := []byte{stateMagic, stateVersion}
		for _, n := range n {
			data = binary.AppendUvarint(data, n)
		}
		data = binary.AppendVarint(data, at.Unix())
		data = append(data, 1, 1, 0, 0)
		if checkDeliveries(data, now) == nil {
			t.Errorf("%s: it is believed", what)
		}
	}
}

// The server writes what we believe it writes: another format would be thrown away at every start.
func TestServerWritesDeliveries(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "hub")
	prepareStore(t, dir)
	found, err := filepath.Glob(filepath.Join(storeDir(dir), "jetstream", "*", "streams", "*", "obs", "*", "o.dat"))
	if err != nil || len(found) != 2 {
		t.Fatalf("found %v, %v: want one for chunks and one for tasks", found, err)
	}
	for _, file := range found {
		data, err := os.ReadFile(file)
		if err == nil {
			err = checkDeliveries(data, time.Now())
		}
		if err != nil {
			t.Errorf("%s: %x: %v", file, data, err)
		}
	}
}

// A consumer whose folder is gone cannot be changed by its server. It is made anew, and gives out what is queued.
func TestConsumerWithoutItsFolder(t *testing.T) {
	var dir string
	hub := startHub(t, func(c *HubConfig) { dir = c.Dir })
	b := connect(t, hub.JoinURL(), "w1")
	ctx := testContext(t)
	mustQueue(t, b, chunk(7), "body")
	known, err := b.ensureWork(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(storeDir(dir), "jetstream", "$G", "streams", b.workStream(), "obs", known.consumer(Chunks))); err != nil {
		t.Fatal(err)
	}
	if err := b.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	if d := mustFetch(t, b, Chunks); d.Work != chunk(7) {
		t.Errorf("got %v", d.Work)
	}
}
