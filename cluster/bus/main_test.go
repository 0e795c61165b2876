package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		childMain()
		return
	}
	goleak.VerifyTestMain(m)
}

const childVariable = "HEADRACE_TEST_HUB"

// patience bounds the wait of a test for what must come: the busiest machine is faster.
const patience = 60 * time.Second

// longFetch outlasts a stall of the machine: a chunk that comes after the end of its fetch comes again only after AckWait.
const longFetch = 10 * time.Second

// tokenForTests is the token of hubs and clients in tests.
const tokenForTests = "a-token-for-tests-only"

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// startHub starts a hub that ends with the test. What it complains of is in the test's log.
func startHub(t testing.TB, change func(*HubConfig)) *Hub {
	t.Helper()
	config := HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: tokenForTests}
	if change != nil {
		change(&config)
	}
	hub, err := StartHub(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Shutdown)
	return hub
}

// connect joins a bus until the test ends.
func connect(t testing.TB, url, name string, change ...func(*Config)) *Bus {
	t.Helper()
	config := Config{URL: url, Name: name, AckWait: time.Second}
	for _, c := range change {
		c(&config)
	}
	b, err := Connect(testContext(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// patiently has nothing given out twice, however busy the machine is.
func patiently(c *Config) { c.AckWait = time.Hour }

// eventually waits for something to become true.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx := testContext(t)
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, patience)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// take waits for the next message of a feed.
func take[T any](t testing.TB, f *Feed[T]) T {
	t.Helper()
	select {
	case v, ok := <-f.C:
		if !ok {
			t.Fatal("the feed has ended")
		}
		return v
	case <-time.After(patience):
		t.Fatal("no message came")
	}
	panic("not reached")
}

func mustQueue(t testing.TB, b *Bus, w Work, body string) {
	t.Helper()
	ctx, tries, fresh := testContext(t), 0, false
	offer := func() error { return b.Offer(ctx, w.Job) }
	queue := func() (err error) {
		tries++
		fresh, err = b.Queue(ctx, w, []byte(body))
		return err
	}
	if err := answered(ctx, offer); err != nil {
		t.Fatal(err)
	}
	if err := answered(ctx, queue); err != nil || !fresh && tries == 1 {
		t.Fatalf("queue %v: fresh %v, %v", w, fresh, err)
	}
}

// answered asks until there is an answer: a machine that stalls may miss it. The context ends a hub that never answers.
func answered(ctx context.Context, ask func() error) (err error) {
	for {
		if err = ask(); !errors.Is(err, ErrNoAnswer) || ctx.Err() != nil {
			return err
		}
	}
}

func mustFetch(t testing.TB, b *Bus, k Kind) *Delivery {
	t.Helper()
	return mustFetchOf(t, b, k, "j")
}

func mustFetchOf(t testing.TB, b *Bus, k Kind, job string) *Delivery {
	t.Helper()
	ctx := testContext(t)
	for {
		d, ok, err := b.Fetch(ctx, k, job, longFetch)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, ErrNoAnswer)) {
			t.Fatal(err)
		}
		if ok {
			return d
		}
	}
}

func chunk(n int) Work { return Work{Kind: Chunks, Job: "j", Name: fmt.Sprint(n)} }
