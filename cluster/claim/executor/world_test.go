package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
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
	"github.com/headrace/headrace/internal/must"
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
	s := must.Get(store.Open(t.Context(), t.TempDir()))(t)
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
	x := must.Get(New(cfg))(w.t)
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

// grave is the place where the actions of a dead worker end.
type grave struct {
	once  sync.Once
	ended chan struct{}
}

var errDead = errors.New("it is dead")

func (g *grave) dead() error {
	select {
	case <-g.ended:
		return errDead
	default:
		return nil
	}
}

// queue is the queue, by its word.
type queue struct {
	mu     sync.Mutex
	chunks []job.Chunk
	given  map[string]time.Time // when it comes back; missing: at once
	done   int
}

func (q *queue) put(chunks ...job.Chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.chunks = append(q.chunks, chunks...)
}

func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.chunks)
}

func (q *queue) take() *job.Chunk {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.chunks {
		c := q.chunks[i]
		if time.Now().Before(q.given[c.String()]) {
			continue
		}
		q.given[c.String()] = time.Now().Add(testAckWait)
		return &c
	}
	return nil
}

func (q *queue) later(c job.Chunk, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.given[c.String()] = time.Now().Add(d)
}

func (q *queue) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.given)
}

func (q *queue) end(c job.Chunk) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.chunks {
		if q.chunks[i] == c {
			q.chunks = append(q.chunks[:i:i], q.chunks[i+1:]...)
			q.done++
			return
		}
	}
}

type mortalQueue struct {
	q    *queue
	dead *grave
}

func (m mortalQueue) Fetch(ctx context.Context, _ string) (Delivery, bool, error) {
	for range 20 {
		if err := m.dead.dead(); err != nil {
			return nil, false, err
		}
		if c := m.q.take(); c != nil {
			return delivery{m, *c}, true, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	return nil, false, nil
}

type delivery struct {
	m mortalQueue
	c job.Chunk
}

func (d delivery) Body() []byte {
	text, err := json.Marshal(d.c)
	if err != nil {
		panic(err)
	}
	return text
}

func (d delivery) reply(f func()) error {
	if err := d.m.dead.dead(); err != nil {
		return err
	}
	time.Sleep(2 * time.Millisecond)
	f()
	return nil
}

func (d delivery) Working(context.Context) error {
	return d.reply(func() { d.m.q.later(d.c, testAckWait) })
}
func (d delivery) Done(context.Context) error { return d.reply(func() { d.m.q.end(d.c) }) }
func (d delivery) Return(_ context.Context, after time.Duration) error {
	return d.reply(func() { d.m.q.later(d.c, after) })
}

// peers is the bus between workers.
type peers struct {
	mu    sync.Mutex
	alive map[string]*Executor
	done  []job.Chunk
	feet  []string
}

func (p *peers) join(who string, x *Executor) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive[who] = x
}

func (p *peers) leave(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, who)
}

func (p *peers) who(who string) *Executor {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.alive[who]
}

func (p *peers) Holds(_ context.Context, who string, c claim.Chunk) (holds, answered bool, err error) {
	x := p.who(who)
	if x == nil {
		return false, false, nil
	}
	return x.Answer(c), true, nil
}

func (p *peers) Tell(_ context.Context, who string, c claim.Chunk, n claim.Name) error {
	if x := p.who(who); x != nil {
		x.ClaimedByOther(c, n)
	}
	return nil
}

func (p *peers) SayDone(c job.Chunk, footer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = append(p.done, c)
	p.feet = append(p.feet, string(footer))
}

// finish waits until the queue is empty, and looks at what is there.
func (w *world) finish(within time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(within); w.queue.left() > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			for _, k := range w.workers {
				k.die() // or the test would not end
			}
			w.t.Fatalf("%d chunks are left after %v", w.queue.left(), within)
		}
	}
}

// results are the lines of all parts, without what differs from run to run.
func (w *world) results() string {
	w.t.Helper()
	var all strings.Builder
	for _, c := range w.chunks {
		text := must.Get(store.ReadAll(w.t.Context(), w.store, partName(&c), 1<<30))(w.t)
		lines := strings.SplitAfter(string(text), "\n")
		for _, l := range lines[:len(lines)-2] { // the footer is no line
			all.WriteString(essence(w.t, []byte(l)))
		}
	}
	return all.String()
}

// essence returns the fields of a line that do not depend on its writer.
func essence(t testing.TB, text []byte) string {
	t.Helper()
	var p journal.Parser
	if _, err := p.Parse(text); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var l journal.Line
	must.Do(t, json.Unmarshal(text, &l))
	if l.Headrace.Calls > 0 != (len(l.Headrace.Failures) > 0) {
		t.Errorf("line %d has %d calls, and says of %d how they ended", l.Headrace.Line, l.Headrace.Calls, len(l.Headrace.Failures))
	}
	said := ""
	if l.Response != nil {
		said = string(l.Response.Body)
	}
	return fmt.Sprintf("%d %s %s %s %s %v\n", l.Headrace.Line, l.ID, l.CustomID, l.Headrace.Key, said, l.Error)
}

// alone returns the result of one process for the input.
func (w *world) alone() string {
	w.t.Helper()
	maker := promptfile.NewMaker(promptfile.Config{Checked: true})
	var all strings.Builder
	var sums promptfile.Sums
	for req, err := range prompts.NewReader(bytes.NewReader(w.input), prompts.Config{}).All() {
		var bad *prompts.LineError
		l := journal.Line{}
		if errors.As(err, &bad) {
			l = maker.BadLine(bad)
		} else {
			it := maker.Item(req)
			r := promptfile.Result{Item: it, Value: w.reply(it), Lane: "m", Attempts: 1}
			if w.fate != nil {
				if _, err := w.fate(it, 1_000_000); err != nil {
					r.Value, r.Err = provider.Reply{}, err
				}
			}
			l, _ = maker.Line(&r, &sums)
		}
		all.WriteString(essence(w.t, journal.AppendLine(nil, &l)))
	}
	return all.String()
}

// repeats are the calls that were made again of what had not failed.
func (w *world) repeats() (n int) {
	w.note(func() {
		for key, times := range w.calls {
			n += max(0, times-w.broken[key]-1)
		}
	})
	return n
}

// called counts all calls.
func (w *world) called() (n int) {
	w.note(func() {
		for _, times := range w.calls {
			n += times
		}
	})
	return n
}

// journals are those that are left.
func (w *world) journals() (names []string) {
	for o, err := range w.store.List(w.t.Context(), job.Folder(testJob)+"work/", "") {
		if err != nil {
			w.t.Fatal(err)
		}
		names = append(names, o.Name)
	}
	return names
}

func (w *world) check(most int) {
	w.t.Helper()
	if got, want := w.results(), w.alone(); got != want {
		w.t.Errorf("the parts are not what one process makes:\n%s", firstDifference(got, want))
	}
	if n := w.repeats(); n > most {
		w.t.Errorf("%d calls are repeated, %d may be", n, most)
	}
	if w.opened != w.closed {
		w.t.Errorf("%d jobs are opened, and %d closed", w.opened, w.closed)
	}
}

func firstDifference(got, want string) string {
	g, v := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(v)) {
		if g[i] != v[i] {
			return fmt.Sprintf("line %d\n got %s\nwant %s", i+1, g[i], v[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(v))
}

func randomOf(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) } //nolint:gosec // no secret

// whole is the input as one chunk.
func (w *world) whole() job.Chunk {
	return job.Chunk{Job: testJob, Bytes: int64(len(w.input)), FirstLine: 1}
}

// sums are those of all parts of a round.
func (w *world) sums(round int) (all parts.Sums) {
	w.t.Helper()
	for _, c := range w.chunks {
		var sums parts.Sums
		for l, err := range parts.Read(w.t.Context(), w.store, c.Job, c.Number, round) {
			if errors.Is(err, store.ErrMissing) {
				break
			}
			if err != nil {
				w.t.Fatal(err)
			}
			sums.Lines++
			switch {
			case l.Code == promptfile.CodeInvalidLine:
				sums.Skipped++
			case l.Failed:
				sums.Failed++
			}
		}
		all = all.Plus(sums)
	}
	return all
}
