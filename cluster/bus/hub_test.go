package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
)

// What was queued and acknowledged survives a kill of the hub, and so does the port.
func TestHubKilled(t *testing.T) {
	t.Parallel()
	p := spawn(t, HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: tokenForTests})
	b := connect(t, p.url, "w1")
	ctx := testContext(t)
	for n := range 50 {
		mustQueue(t, b, chunk(n), strconv.Itoa(n))
	}
	d := mustFetch(t, b, Chunks)
	must.Do(t, d.Done(ctx))
	first, before := p.url, b.ReconnectedAt()
	p.kill()
	p.start()
	if p.url != first {
		t.Fatalf("it listens at %s now, and did at %s", p.url, first)
	}
	eventually(t, "the client reconnects", func() bool { return b.Connected() && b.ReconnectedAt().After(before) })
	must.Do(t, b.Offer(ctx, "j"))
	if n, err := b.Queued(ctx, Chunks, "j"); n != 49 || err != nil {
		t.Fatalf("%d are queued, %v", n, err)
	}
	if fresh, err := b.Queue(ctx, chunk(49), nil); fresh || err != nil {
		t.Errorf("queueing twice over a restart: fresh %v, %v", fresh, err)
	}
}

// A killed hub has forgotten its deliveries, and gives all of them out again once the job is offered. It still answers
// the heartbeat of the earlier holder, who can still mark the work done.
func TestDeliveriesOverRestart(t *testing.T) {
	t.Parallel()
	p := spawn(t, HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: tokenForTests})
	b := connect(t, p.url, "w1", func(c *Config) { c.AckWait = time.Hour })
	ctx := testContext(t)
	mustQueue(t, b, chunk(1), "")
	d := mustFetch(t, b, Chunks)
	p.kill()
	p.start()
	eventually(t, "the client reconnects", b.Connected)
	if err := d.Working(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("a heartbeat of work that is not offered: %v", err)
	}
	must.Do(t, b.Offer(ctx, "j"))
	if err := d.Working(ctx); err != nil {
		t.Errorf("the heartbeat of one who has lost his work: %v", err)
	}
	if again := mustFetch(t, b, Chunks); again.Work != d.Work {
		t.Errorf("%v comes back", again.Work)
	}
	if err := d.Done(ctx); err != nil {
		t.Error(err)
	}
	if n, err := b.Queued(ctx, Chunks, "j"); n != 0 || err != nil {
		t.Errorf("%d are queued after it was done: %v", n, err)
	}
}

// The store may be deleted while the hub is down. A client that finds it gone makes everything again, and
// takes nothing left over from before for something that is there now.
func TestStoreDeleted(t *testing.T) {
	t.Parallel()
	config := HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: tokenForTests}
	p := spawn(t, config)
	b := connect(t, p.url, "w1", func(c *Config) { c.AckWait = time.Hour })
	ctx := testContext(t)
	must.Do(t, b.Ensure(ctx))
	empty := must.Get(b.ReadLease(ctx, patience))(t)
	revision := must.Get(b.UpdateLease(ctx, []byte("mine"), empty.Revision, patience))(t)
	mustQueue(t, b, chunk(1), "")
	old := mustFetch(t, b, Chunks)
	p.kill()
	must.Do(t, os.RemoveAll(storeDir(config.Dir)))
	p.start()
	eventually(t, "the client reconnects", b.Connected)
	if _, err := b.ReadLease(ctx, time.Second); !errors.Is(err, ErrGone) {
		t.Errorf("reading a lease whose bucket is gone: %v", err)
	}
	eventually(t, "a fetch makes the stream again", func() bool {
		_, _, err := b.Fetch(ctx, Tasks, "", 50*time.Millisecond)
		return err == nil
	})
	mustQueue(t, b, chunk(2), "")
	now := mustFetch(t, b, Chunks)
	if err := old.Working(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("a heartbeat for a stream that is gone: %v", err)
	}
	if err := old.Done(ctx); !errors.Is(err, ErrGone) {
		t.Errorf("an acknowledgement for a stream that is gone: %v", err)
	}
	if n, err := b.Queued(ctx, Chunks, "j"); n != 1 || err != nil {
		t.Errorf("%d are queued after what was there before was acknowledged, %v", n, err)
	}
	if err := now.Done(ctx); err != nil {
		t.Error(err)
	}
	must.Do(t, b.EnsureLease(ctx))
	for _, old := range []uint64{empty.Revision, revision} {
		if _, err := b.UpdateLease(ctx, []byte("still mine"), old, patience); !errors.Is(err, ErrTaken) {
			t.Errorf("a revision from before: %v", err)
		}
	}
}

// Two hubs do not share a directory, and a port that is taken is no fault of the store.
func TestHubRefuses(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	if _, err := StartHub(hub.config); !errors.Is(err, ErrInUse) {
		t.Errorf("a second hub on one directory: %v", err)
	}
	config := HubConfig{Dir: t.TempDir(), Listen: net.JoinHostPort("127.0.0.1", strconv.Itoa(hub.Port()))}
	if _, err := StartHub(config); err == nil {
		t.Error("a second hub on one port started")
	}
	if found, _ := filepath.Glob(filepath.Join(config.Dir, "*.broken-*")); found != nil {
		t.Errorf("the store was put aside: %v", found)
	}
	for _, bad := range []HubConfig{
		{},
		{Dir: t.TempDir(), Listen: "nonsense"},
		{Dir: t.TempDir(), Peers: []string{"a:1", "b:2"}, Route: "a:1"},
		{Dir: t.TempDir(), Route: "a:1"},
		{Dir: t.TempDir(), Peers: []string{"a:1", "b:2", "c:3"}},
	} {
		if hub, err := StartHub(bad); err == nil {
			hub.Shutdown()
			t.Errorf("%+v was taken", bad)
		}
	}
}

// Several calls of Shutdown at once all wait for the end.
func TestShutdownByMany(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			hub.Shutdown()
			if hub.lock.Locked() { // its last step is to let go of the directory
				t.Error("Shutdown returned before the end")
			}
		})
	}
	all.Wait()
}

// A store on which the server has died three times soon after a start is put aside, and so is
// one on which it does not start at all; each time the hub says so.
func TestStorePutAside(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "hub")
	said := make(chan error, 100)
	config := HubConfig{Dir: dir, Listen: "127.0.0.1:0", Token: tokenForTests, Say: func(err error) { said <- err }}
	aside := func() int {
		found := must.Get(filepath.Glob(storeDir(dir) + ".broken-*"))(t)
		return len(found)
	}
	restart := func() {
		hub := must.Get(StartHub(config))(t)
		if err := tryConnect(t, hub.JoinURL()); err != nil {
			t.Error(err)
		}
		hub.Shutdown()
	}
	restart()
	for failed, want := range []int{0, 0, 0, 1} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "starts"), []byte(strconv.Itoa(failed)), 0o600))
		restart()
		if got := aside(); got != want {
			t.Errorf("%d starts have failed: %d stores are put aside, want %d", failed, got, want)
		}
	}
	must.Do(t, os.RemoveAll(storeDir(dir)))
	must.Do(t, os.WriteFile(storeDir(dir), []byte("no folder"), 0o600))
	restart()
	if got := aside(); got != 2 {
		t.Errorf("%d stores are put aside, want 2", got)
	}
	var reported int
	for range len(said) {
		if strings.Contains((<-said).Error(), "put aside as") {
			reported++
		}
	}
	if reported != 2 {
		t.Errorf("said it %d times", reported)
	}
}

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
		must.Do(t, os.CopyFS(dir, os.DirFS(base)))
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
	must.Do(t, b.Ensure(ctx))
	for n := range 40 {
		mustQueue(t, b, chunk(n), strings.Repeat("x", 200))
	}
	for n := range 20 {
		d := mustFetch(t, b, Chunks)
		if n%2 == 0 {
			continue
		}
		must.Do(t, d.Done(ctx))
	}
	content, err := b.ReadLease(ctx, patience)
	if err == nil {
		_, err = b.UpdateLease(ctx, []byte("before"), content.Revision, patience)
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
	must.Do(t, filepath.WalkDir(storeDir(dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
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
	content, err := b.ReadLease(ctx, patience)
	if err != nil {
		return err
	}
	if _, err := b.UpdateLease(ctx, nil, content.Revision, patience); err != nil {
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
	must.Do(t, b.js.DeleteConsumer(ctx, b.workStream(), b.streams.Load().consumerName(Chunks, "j")))
	if _, err := b.Queued(ctx, Chunks, "j"); !errors.Is(err, ErrGone) {
		t.Errorf("counted: %v", err)
	}
	if _, _, err := b.Fetch(ctx, Chunks, "j", 100*time.Millisecond); !errors.Is(err, ErrGone) {
		t.Errorf("fetched: %v", err)
	}
	must.Do(t, b.Offer(ctx, "j"))
	mustFetch(t, b, Chunks)
}
