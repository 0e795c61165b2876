package executor

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/provider"
)

const (
	testJob     = "job-1"
	testAckWait = 4 * time.Second
)

// world holds what workers of a test share: an input, a queue, a store, and a provider that counts.
type world struct {
	t      testing.TB
	store  store.Store
	queue  *queue
	peers  *peers
	input  []byte
	chunks []job.Chunk
	bad    int // lines

	workers []*worker
	mu      sync.Mutex
	chance  *rand.Rand
	calls   map[string]int                  // of each key, those that were answered
	flying  map[string]map[string]time.Time // of each worker, what is in flight, or was until then
	// fate decides how the n-th call of an item ends, from 1; nil: well, after some latency.
	fate   func(it *promptfile.Item, n int) (time.Duration, error)
	broken map[string]int // calls of each key that failed
	said   string         // in each answer, besides its id
	opened int
	closed int
}

// newWorld has chunks of so many lines; every 37th line is bad.
func newWorld(t testing.TB, chunks, lines int) *world {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, store: s, chance: randomOf(1), broken: map[string]int{}, queue: &queue{given: map[string]time.Time{}}, calls: map[string]int{},
		peers: &peers{alive: map[string]*Executor{}}, flying: map[string]map[string]time.Time{},
	}
	line := 0
	for n := range chunks {
		c := job.Chunk{Job: testJob, Number: n, Offset: int64(len(w.input)), FirstLine: line + 1, Lines: lines}
		for range lines {
			line++
			if line%37 == 0 {
				w.bad++
				w.input = fmt.Appendf(w.input, "{line %d\n", line)
				continue
			}
			w.input = fmt.Appendf(w.input, `{"id":"i%d","prompt":"p%d","model":"m"}`+"\n", line, line)
		}
		c.Bytes = int64(len(w.input)) - c.Offset
		w.chunks = append(w.chunks, c)
	}
	w.queue.put(w.chunks...)
	return w
}

const latency = 200 * time.Millisecond

// job is the world's job as one worker has it.
func (w *world) job(who string) *Job {
	maker := promptfile.NewMaker(promptfile.Config{Checked: true})
	var sums promptfile.Sums
	return &Job{
		Read: w.read, Again: w.again, Item: maker.Item, BadLine: maker.BadLine,
		Call:  func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) { return w.answer(ctx, who, it) },
		Line:  func(r *promptfile.Result) (journal.Line, bool) { return maker.Line(r, &sums) },
		Close: func() { w.note(func() { w.closed++ }) },
	}
}

func (w *world) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) read(_ context.Context, c job.Chunk) iter.Seq2[prompts.Request, error] {
	text := w.input[c.Offset : c.Offset+c.Bytes]
	return prompts.NewReader(bytes.NewReader(text), prompts.Config{Section: &prompts.Section{FirstLine: c.FirstLine}}).All()
}

// answer is the provider. A call counts once it is there, as one that is paid for.
func (w *world) answer(ctx context.Context, who string, it *promptfile.Item) (provider.Reply, error) {
	var (
		d   time.Duration
		err error
	)
	w.note(func() {
		if w.flying[who] == nil {
			w.flying[who] = map[string]time.Time{}
		}
		w.flying[who][it.Key] = time.Time{}
		w.calls[it.Key]++
		if d, err = latency/2+time.Duration(w.chance.Int64N(int64(latency))), nil; w.fate != nil {
			d, err = w.fate(it, w.calls[it.Key])
		}
	})
	defer w.note(func() {
		w.flying[who][it.Key] = time.Now()
		if err != nil {
			w.broken[it.Key]++
		}
	})
	select {
	case <-time.After(d):
		return w.reply(it), err
	case <-ctx.Done():
		return provider.Reply{}, context.Cause(ctx)
	}
}

func (w *world) again(ctx context.Context, c job.Chunk) (func(string) bool, error) {
	failed, err := parts.Again(ctx, w.store, &c)
	return func(key string) bool { return failed[key] }, err
}

func (w *world) reply(it *promptfile.Item) provider.Reply {
	return provider.Reply{Status: 200, Body: fmt.Appendf(nil, `{"said":%q,"more":%q}`, it.ID, w.said)}
}

// worker is one life of a worker.
type worker struct {
	w    *world
	name string
	x    *Executor
	kill context.CancelFunc
	ran  chan struct{} // closed when Run has returned,
	gone chan struct{} // and when the stream has ended as well
	dead *grave

	// After gone.
	err, streamErr error
	sum            batch.Summary
}

func (w *world) start(name string, change func(*Config), opts ...batch.Option) *worker {
	w.t.Helper()
	dead := &grave{ended: make(chan struct{})}
	cfg := Config{
		Claim: claim.Config{Who: name, Concurrency: 16, AckWait: testAckWait}, Connected: time.Now().Add(-time.Hour),
		Store: mortal{w.store, dead}, Queue: mortalQueue{w.queue, dead}, Peers: w.peers,
		Open: func(context.Context, string) (*Job, error) {
			w.note(func() { w.opened++ })
			return w.job(name), nil
		},
		Say: func(s string) {
			if _, is := w.t.(*testing.T); is {
				w.t.Log(name, s)
			}
		},
	}
	if change != nil {
		change(&cfg)
	}
	x, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, kill := context.WithCancel(context.Background())
	k := &worker{w: w, name: name, x: x, kill: kill, ran: make(chan struct{}), gone: make(chan struct{}), dead: dead}
	w.peers.join(name, x)
	w.workers = append(w.workers, k)
	var both sync.WaitGroup
	both.Go(func() {
		k.err = x.Run(ctx)
		close(k.ran)
	})
	both.Go(func() { x.Offer([]string{testJob}) })
	opts = append([]batch.Option{batch.WithPlainLaw(), batch.WithConcurrency(cfg.Claim.Concurrency), batch.WithSummary(&k.sum)}, opts...)
	both.Go(func() {
		for res, err := range batch.Stream(ctx, x.Items(), x.Call, opts...) {
			if err == nil {
				x.Took(&res)
			} else {
				k.streamErr = err
			}
		}
	})
	go func() {
		both.Wait()
		close(k.gone)
	}()
	return k
}

// die ends the worker as SIGKILL does: whatever it does after that reaches nobody.
func (k *worker) die() (flying int) {
	k.w.peers.leave(k.name)
	k.dead.once.Do(func() { close(k.dead.ended) })
	k.w.note(func() {
		for _, until := range k.w.flying[k.name] {
			if until.IsZero() || time.Since(until) <= 2*commitEvery { // it may not be in the journal yet
				flying++
			}
		}
	})
	k.kill()
	<-k.gone
	return flying
}

// drain ends it as it should.
func (k *worker) drain() {
	k.x.Drain()
	<-k.gone
	k.kill()
	k.w.peers.leave(k.name)
	if k.err != nil {
		k.w.t.Errorf("%s: %v", k.name, k.err)
	}
}
