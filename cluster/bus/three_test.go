package bus

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// freePorts are free just now. Somebody may take one before we do; then the hub says so and the test is begun anew.
func freePorts(t testing.TB, n int) []string {
	t.Helper()
	addresses := make([]string, n)
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // all at the end, so that they are different
		addresses[i] = l.Addr().String()
	}
	return addresses
}

// spawnThree starts a cluster of three processes.
func spawnThree(t testing.TB) (hubs []*process, url string) {
	t.Helper()
	routes, dir := freePorts(t, 3), t.TempDir()
	tls := filepath.Join(dir, "tls")
	if _, err := MakeAuthority(tls, time.Now()); err != nil {
		t.Fatal(err)
	}
	for i, route := range routes {
		hubs = append(hubs, spawn(t, HubConfig{
			Dir: filepath.Join(dir, strconv.Itoa(i)), Listen: "127.0.0.1:0", Token: tokenForTests,
			Route: route, Peers: routes, TLS: true, TLSDir: tls,
		}))
	}
	a, err := ParseAddress(hubs[0].url)
	if err != nil {
		t.Fatal(err)
	}
	for _, hub := range hubs[1:] {
		other, err := ParseAddress(hub.url)
		if err != nil {
			t.Fatal(err)
		}
		a.Hosts = append(a.Hosts, other.Hosts...)
	}
	return hubs, a.String()
}

// Three hubs go on with any one of them killed. Acknowledged work is there, and a returning hub catches up.
func TestThreeHubs(t *testing.T) {
	t.Parallel()
	hubs, url := spawnThree(t)
	b := connect(t, url, "w1")
	ctx := t.Context() // each step has its own patience
	eventually(t, "the three have found each other", func() bool { return b.Ensure(ctx) == nil })
	if _, err := b.Queued(ctx, Chunks, "j"); !errors.Is(err, ErrGone) {
		t.Errorf("counted before it is offered: %v", err)
	}
	eventually(t, "chunks are offered", func() bool { return b.Offer(ctx, "j") == nil })
	info, err := b.settingsOf(ctx, b.workStream())
	if err != nil || info.Config.Replicas != 3 {
		t.Fatalf("%d replicas, %v", info.Config.Replicas, err)
	}
	var revision uint64
	for n, victim := range hubs {
		eventually(t, "chunks are queued", func() bool {
			_, err := b.Queue(ctx, chunk(n), nil)
			return err == nil
		})
		eventually(t, "the lease is written", func() bool {
			held, err := b.ReadLease(ctx, time.Second)
			if err != nil {
				return false
			}
			if held.Revision < revision {
				t.Fatalf("revision %d, and it was %d before", held.Revision, revision)
			}
			revision, err = b.UpdateLease(ctx, fmt.Appendf(nil, "%d", n), held.Revision, time.Second)
			return err == nil
		})
		victim.kill()
		eventually(t, "two of three have all chunks", func() bool { // one that has just begun to lead counts from nothing
			queued, err := b.Queued(ctx, Chunks, "j")
			return err == nil && queued == n+1
		})
		eventually(t, "two of three write", func() bool {
			fresh, err := b.Queue(ctx, chunk(n), nil)
			if err == nil && fresh {
				t.Fatalf("chunk %d was forgotten", n)
			}
			return err == nil
		})
		victim.start()
	}
	for range hubs {
		eventually(t, "work is given out", func() bool {
			d, ok, err := b.Fetch(ctx, Chunks, "j", time.Second)
			return err == nil && ok && d.Done(ctx) == nil
		})
	}
}
