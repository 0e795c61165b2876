package bus

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/nats-io/nats.go/jetstream"
)

// Queued work is fetched once, and is gone when it is done.
func TestQueueFetchDone(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1", patiently)
	ctx := testContext(t)
	mustQueue(t, b, chunk(7), "body")
	d := mustFetch(t, b, Chunks)
	if d.Work != chunk(7) || string(d.Body) != "body" {
		t.Fatalf("got %v %q", d.Work, d.Body)
	}
	eventually(t, "the queue has nothing to give", func() bool { // a machine that stalls hears no answer
		_, ok, err := b.Fetch(ctx, Chunks, "j", 50*time.Millisecond)
		if ok {
			t.Fatal("it was given out twice")
		}
		return err == nil
	})
	must.Do(t, d.Done(ctx))
	if n, err := b.Queued(ctx, Chunks, "j"); n != 0 || err != nil {
		t.Fatalf("%d are queued, %v", n, err)
	}
	mustQueue(t, b, chunk(7), "again")
}

// Queueing twice is refused, before the work is given out and while it is.
func TestQueueTwice(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	ctx := testContext(t)
	mustQueue(t, b, chunk(7), "first")
	for range 2 {
		if fresh, err := b.Queue(ctx, chunk(7), []byte("second")); fresh || err != nil {
			t.Fatalf("fresh %v, %v", fresh, err)
		}
		if d := mustFetch(t, b, Chunks); string(d.Body) != "first" {
			t.Fatalf("the second took the place of the first: %q", d.Body)
		}
	}
}

// Works that are queued together come out in their order. One that is there already, given out or not, stays as it is.
func TestQueueAll(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1", patiently)
	ctx := testContext(t)
	mustQueue(t, b, chunk(0), "first")
	delivery := mustFetch(t, b, Chunks)
	var works []Work
	var bodies [][]byte
	for n := range QueuedAtOnce {
		works, bodies = append(works, chunk(n)), append(bodies, []byte("second"))
	}
	for range 2 {
		eventually(t, "all are queued", func() bool { // a busy machine syncs 512 writes in more than a request may take
			err := b.QueueAll(ctx, works, bodies)
			if err != nil && !errors.Is(err, ErrNoAnswer) {
				t.Fatal(err)
			}
			return err == nil
		})
		if n, err := b.Queued(ctx, Chunks, "j"); n != QueuedAtOnce || err != nil {
			t.Fatalf("%d are queued, want %d: %v", n, QueuedAtOnce, err)
		}
	}
	for n := 1; n < 5; n++ {
		if d := mustFetch(t, b, Chunks); d.Work != chunk(n) || string(d.Body) != "second" {
			t.Errorf("got %v with %q, want %v", d.Work, d.Body, chunk(n))
		}
	}
	if string(delivery.Body) != "first" {
		t.Error("the second took the place of the first")
	}
	if err := b.QueueAll(ctx, append(works, chunk(9999)), append(bodies, nil)); err == nil {
		t.Error("more than QueuedAtOnce were taken")
	}
}

// A queue that is gone, and a name that none may have, are errors of all works that are queued together.
func TestQueueAllErrors(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	ctx := testContext(t)
	if err := b.QueueAll(ctx, []Work{{Chunks, "", "1"}}, [][]byte{nil}); !errors.Is(err, ErrName) {
		t.Errorf("a job without a name: %v", err)
	}
	if err := b.QueueAll(ctx, []Work{chunk(1)}, [][]byte{nil}); !errors.Is(err, ErrGone) {
		t.Errorf("no queue was made yet: %v", err)
	}
	must.Do(t, b.Ensure(ctx))
	if err := b.QueueAll(ctx, []Work{chunk(1)}, [][]byte{nil}); err != nil {
		t.Error(err)
	}
}

// Who says nothing for AckWait loses the work to somebody else; who says that he is at it does not.
func TestRedelivery(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	one, two := connect(t, hub.JoinURL(), "w1"), connect(t, hub.JoinURL(), "w2")
	ctx := testContext(t)
	mustQueue(t, one, chunk(1), "")
	mustQueue(t, one, chunk(2), "")
	silent, working := mustFetch(t, one, Chunks), mustFetch(t, one, Chunks)
	beat, cancel := context.WithCancel(ctx)
	beaten := make(chan error)
	go func() {
		for beat.Err() == nil {
			if err := working.Working(ctx); err != nil {
				beaten <- err
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		beaten <- nil
	}()
	again := mustFetch(t, two, Chunks)
	if again.Work != silent.Work {
		t.Errorf("got %v, want %v", again.Work, silent.Work)
	}
	cancel()
	if err := <-beaten; err != nil {
		t.Fatal(err)
	}
	// A late word of the first one still counts: the queue does not know whose turn it is.
	must.Do(t, silent.Done(ctx))
	if n, err := two.Queued(ctx, Chunks, "j"); n != 1 || err != nil {
		t.Fatalf("%d are queued, %v", n, err)
	}
}

// What is put back comes again, at once or later.
func TestReturn(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1", patiently)
	ctx := testContext(t)
	mustQueue(t, b, chunk(1), "")
	must.Do(t, mustFetch(t, b, Chunks).Return(ctx, 0))
	d := mustFetch(t, b, Chunks)
	before := time.Now()
	must.Do(t, d.Return(ctx, 300*time.Millisecond))
	if mustFetch(t, b, Chunks); time.Since(before) < 300*time.Millisecond {
		t.Errorf("came back after %v", time.Since(before))
	}
}

// Jobs, kinds and rounds do not get in each other's way, whatever they are called.
func TestQueueNames(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1", patiently)
	ctx := testContext(t)
	works := []Work{
		{Chunks, "j", "7"},
		{Chunks, "j", "7.r1"},
		{Tasks, "j", "7"},
		{Chunks, "j.7", "r1"},
		{Chunks, ">", "*"},
		{Chunks, "*", ">"},
		{Chunks, "größer als", "=0a\r\n"},
		{Chunks, "j=2e7", "r1"},
	}
	for _, w := range works {
		mustQueue(t, b, w, w.String())
	}
	for _, w := range works {
		d := mustFetchOf(t, b, w.Kind, w.Job)
		if d.Work != w || string(d.Body) != w.String() {
			t.Errorf("got %v with %q, want %v", d.Work, d.Body, w)
		}
	}
	for job, want := range map[string]int{"j": 2, ">": 1, "*": 1, "j.7": 1} {
		if n, err := b.Queued(ctx, Chunks, job); n != want || err != nil {
			t.Errorf("%d chunks of %q are queued, want %d; %v", n, job, want, err)
		}
	}
	must.Do(t, b.Purge(ctx, Chunks, ">"))
	if n, err := b.Queued(ctx, Chunks, "j"); n != 2 || err != nil {
		t.Errorf("%d chunks are queued after another job was purged; %v", n, err)
	}
	want := []string{"*", "größer als", "j", "j.7", "j=2e7"}
	if jobs, err := b.Offered(ctx); !slices.Equal(jobs, want) || err != nil {
		t.Errorf("offered are %q, want %q; %v", jobs, want, err)
	}
}

// Names that cannot be and bodies that are too long are refused, and nothing is sent.
func TestQueueRefuses(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1")
	ctx := testContext(t)
	must.Do(t, b.Offer(ctx, "j"))
	long := string(make([]byte, MaxName+1))
	for _, w := range []Work{{Chunks, "", "1"}, {Chunks, "j", ""}, {Chunks, long, "1"}} {
		if _, err := b.Queue(ctx, w, nil); !errors.Is(err, ErrName) {
			t.Errorf("%v: %v", w, err)
		}
	}
	if _, err := b.Queue(ctx, chunk(1), make([]byte, MaxBody+1)); err == nil {
		t.Error("a body that is too long was taken")
	}
	if n, err := b.Queued(ctx, Chunks, "j"); n != 0 || err != nil {
		t.Errorf("%d are queued, %v", n, err)
	}
}

// A fetch that is given up leaves its work to others, soon.
func TestFetchGivenUp(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1", patiently)
	must.Do(t, b.Offer(testContext(t), "j"))
	for n := range 20 {
		ctx, cancel := context.WithCancel(testContext(t))
		given := make(chan error)
		go func() {
			_, ok, err := b.Fetch(ctx, Chunks, "j", patience)
			if ok {
				err = errors.New("got it")
			}
			given <- err
		}()
		time.Sleep(time.Duration(n) * time.Millisecond)
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	mustQueue(t, b, chunk(1), "")
	mustFetch(t, b, Chunks)
}

// A process that does not work does not know how long AckWait is: the workers' value stays, whatever it does.
func TestAckWaitIsTheWorkers(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	ctx := testContext(t)
	visitor := connect(t, hub.JoinURL(), "visitor", func(c *Config) { c.AckWait = 0 })
	must.Do(t, visitor.EnsureStreams(ctx))
	worker := connect(t, hub.JoinURL(), "w1", func(c *Config) { c.AckWait = 7 * time.Second })
	must.Do(t, worker.Offer(ctx, "j"))
	_, err := visitor.Check(ctx)
	must.Do(t, errors.Join(err, visitor.EnsureStreams(ctx)))
	for _, k := range []Kind{Chunks, Tasks} {
		c := must.Get(worker.js.Consumer(ctx, worker.workStream(), worker.streams.Load().consumerName(k, "j")))(t)
		if got := c.CachedInfo().Config.AckWait; got != 7*time.Second {
			t.Errorf("a %s comes again after %v", k, got)
		}
	}
}

// One job's chunks wait behind no other's, however many are before them.
func TestJobsApart(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1", patiently)
	for n := range 50 {
		mustQueue(t, b, chunk(n), "")
	}
	mustQueue(t, b, Work{Chunks, "late", "0"}, "")
	if d := mustFetchOf(t, b, Chunks, "late"); d.Work.Job != "late" {
		t.Errorf("got %v", d.Work)
	}
	if d := mustFetch(t, b, Chunks); d.Work != chunk(0) {
		t.Errorf("got %v", d.Work)
	}
}

// Consumers that an earlier version has made give way: one for the chunks of all jobs, and one of tasks on disk.
func TestEarlierConsumers(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL(), "w1", patiently)
	ctx := testContext(t)
	info := must.Get(b.ensureQueue(ctx))(t)
	for _, k := range []Kind{Chunks, Tasks} {
		must.Get(b.js.CreateConsumer(ctx, b.workStream(), jetstream.ConsumerConfig{
			Durable: k.String() + "-" + streamsOf(info).life, FilterSubject: patternUnder(b.space, k.String()), AckPolicy: jetstream.AckExplicitPolicy,
		}))(t)
	}
	for _, w := range []Work{chunk(1), {Tasks, "j", "1"}} {
		mustQueue(t, b, w, "")
		if d := mustFetch(t, b, w.Kind); d.Work != w {
			t.Errorf("got %v, want %v", d.Work, w)
		}
	}
}

// The lease is written only by who knows its revision, and an empty bucket has one that is its own.
func TestLease(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	one, two := connect(t, hub.JoinURL(), "w1"), connect(t, hub.JoinURL(), "w2")
	ctx := testContext(t)
	if _, err := one.ReadLease(ctx, patience); !errors.Is(err, ErrGone) {
		t.Fatalf("reading where there is no bucket: %v", err)
	}
	if _, err := one.UpdateLease(ctx, nil, 0, patience); !errors.Is(err, ErrGone) {
		t.Fatalf("writing where there is no bucket: %v", err)
	}
	for range 2 {
		must.Do(t, one.EnsureLease(ctx))
	}
	empty, err := one.ReadLease(ctx, patience)
	if err != nil || empty.Value != nil || empty.Revision == 0 {
		t.Fatalf("an empty bucket: %+v, %v", empty, err)
	}
	if _, err := two.UpdateLease(ctx, []byte("two"), 0, patience); !errors.Is(err, ErrTaken) {
		t.Errorf("writing at revision 0: %v", err)
	}
	first := must.Get(one.UpdateLease(ctx, []byte("one"), empty.Revision, patience))(t)
	if _, err := two.UpdateLease(ctx, []byte("two"), empty.Revision, patience); !errors.Is(err, ErrTaken) {
		t.Errorf("writing what somebody else has written: %v", err)
	}
	second := must.Get(one.UpdateLease(ctx, []byte("one again"), first, patience))(t)
	if content, err := two.ReadLease(ctx, patience); err != nil || string(content.Value) != "one again" || content.Revision != second {
		t.Errorf("read %+v, %v; revision %d was written", content, err, second)
	}
	if _, err := one.UpdateLease(ctx, make([]byte, MaxLease+1), second, time.Second); err == nil {
		t.Error("a lease that is too long was written")
	}
	if _, err := one.UpdateLease(ctx, make([]byte, MaxLease*9/10), second, patience); err != nil {
		t.Errorf("a long lease: %v", err)
	}
}

// A bucket that was lost and made again has other revisions, whether it was empty or not: nothing is written over what
// was seen of the old one. That holds in a space whose name is escaped, too.
func TestALeaseThatWasLost(t *testing.T) {
	t.Parallel()
	hub := startHub(t, nil)
	b := connect(t, hub.JoinURL()+"?space=other.team", "w1")
	ctx := testContext(t)
	var revisions []uint64
	for range 2 {
		eventually(t, "there is a bucket", func() bool { return b.EnsureLease(ctx) == nil }) // the server may still be deleting the old one
		for _, old := range revisions {
			if _, err := b.UpdateLease(ctx, []byte("late"), old, patience); !errors.Is(err, ErrTaken) {
				t.Errorf("writing over revision %d of a lost bucket: %v", old, err)
			}
		}
		empty, err := b.ReadLease(ctx, patience)
		if err != nil || empty.Value != nil {
			t.Fatalf("a new bucket: %+v, %v", empty, err)
		}
		written := must.Get(b.UpdateLease(ctx, []byte("one"), empty.Revision, patience))(t)
		revisions = append(revisions, empty.Revision, written)
		must.Do(t, b.js.DeleteStream(ctx, b.leaseStream()))
	}
}
