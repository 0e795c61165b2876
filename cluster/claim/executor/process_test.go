package executor

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// childVariable is set where this binary is a worker of its own, to be killed.
const childVariable = "HEADRACE_TEST_WORKER"

// child holds the parameters of such a worker.
type child struct {
	Who, Line, Home, Input, Log string
	Seed                        uint64
}

const (
	processAckWait = 3 * time.Second
	inProcess      = 16 // calls at once
	patience       = 2 * time.Minute
)

// Workers that are killed in earnest, whenever it is: what is called again is what was in flight, or
// answered and not in the journal, and the parts are those of one process.
func TestProcessesAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds or more")
	}
	w := newWorld(t, 16, 100)
	c := child{Home: t.TempDir(), Input: filepath.Join(t.TempDir(), "input"), Log: t.TempDir()}
	var err error
	if w.store, err = store.Open(t.Context(), c.Home); err != nil {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(c.Input, w.input, 0o600))
	b := startBus(t, &c)
	for _, chunk := range w.chunks {
		must.Get(b.Queue(t.Context(), workOf(NameOf(&chunk)), mustJSON(t, chunk)))(t)
	}
	rng, lives, killed := randomOf(1), 0, []string{}
	born := func() *exec.Cmd {
		lives++
		c.Who, c.Seed = fmt.Sprintf("w%d", lives), rng.Uint64()
		return c.start(t)
	}
	workers := []*exec.Cmd{born(), born(), born()}
	names := []string{"w1", "w2", "w3"}
	for range 6 {
		c.waitForCalls(t, 100+rng.IntN(200))
		i := rng.IntN(len(workers))
		_ = workers[i].Process.Kill()
		_ = workers[i].Wait()
		killed = append(killed, names[i])
		workers[i] = born()
		names[i] = c.Who
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if n, err := b.Queued(t.Context(), bus.Chunks, testJob); err == nil && n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the queue is not empty")
		}
	}
	for i, k := range workers {
		_ = k.Process.Signal(syscall.SIGTERM)
		if err := k.Wait(); err != nil {
			t.Errorf("%s drains: %v", names[i], err)
		}
	}
	repeated, open := c.count(t, killed)
	t.Logf("%d repeated, %d in flight or not saved at %d kills", repeated, open, len(killed))
	if repeated > open || open == 0 {
		t.Errorf("%d calls are repeated, %d may be", repeated, open)
	}
	if got, want := w.results(), w.alone(); got != want {
		t.Errorf("the parts are not what one process makes:\n%s", firstDifference(got, want))
	}
	if left := leftByTheLiving(w.journals(), killed); len(left) > 0 {
		t.Errorf("journals are left: %q", left)
	}
}

// leftByTheLiving are the journals of chunks in which none of the killed had a claim: one that is killed between
// its acknowledgement and the deleting leaves them all, and they are in nobody's way.
func leftByTheLiving(journals, killed []string) (left []string) {
	theirs := map[string]bool{}
	for _, j := range journals {
		theirs[path.Dir(j)] = theirs[path.Dir(j)] || slices.ContainsFunc(killed, func(who string) bool { return strings.Contains(path.Base(j), "-"+who+dotInJournals) })
	}
	for _, j := range journals {
		if !theirs[path.Dir(j)] {
			left = append(left, j)
		}
	}
	return left
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text := must.Get(json.Marshal(v))(t)
	return text
}

// startBus starts a hub, and joins it.
func startBus(t *testing.T, c *child) *bus.Bus {
	t.Helper()
	hub := must.Get(bus.StartHub(bus.HubConfig{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0", Token: "a-token-for-tests-only"}))(t)
	t.Cleanup(hub.Shutdown)
	c.Line = hub.JoinURL()
	b := must.Get(bus.Connect(t.Context(), bus.Config{URL: c.Line, Name: "parent", AckWait: processAckWait}))(t)
	t.Cleanup(b.Close)
	must.Do(t, b.Offer(t.Context(), testJob))
	return b
}

// start starts a worker, which ends with the test.
func (c *child) start(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(mustJSON(t, c)))
	cmd.Stderr = os.Stderr
	must.Get(cmd.StdinPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// waitForCalls waits until so many more were made by all workers.
func (c *child) waitForCalls(t *testing.T, more int) {
	t.Helper()
	all := func() (n int) {
		for _, called := range c.logs(t) {
			n += len(called)
		}
		return n
	}
	for from, end := all(), time.Now().Add(patience); all() < from+more; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return // all may be done
		}
	}
}

// logs tell of each life which items it has called, and whether the results are saved.
func (c *child) logs(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files := must.Get(os.ReadDir(c.Log))(t)
	all := map[string]map[string]bool{}
	for _, f := range files {
		text := must.Get(os.ReadFile(filepath.Join(c.Log, f.Name())))(t)
		called := map[string]bool{}
		for _, line := range strings.Split(string(text), "\n") {
			if word, key, ok := strings.Cut(line, " "); ok {
				called[key] = word == "saved"
			}
		}
		all[f.Name()] = called
	}
	return all
}

// count tells how many calls were repeated, and how many were open at the kills.
func (c *child) count(t *testing.T, killed []string) (repeated, open int) {
	t.Helper()
	times := map[string]int{}
	logs := c.logs(t)
	for _, called := range logs {
		for key := range called {
			times[key]++
		}
	}
	for _, n := range times {
		repeated += n - 1
	}
	for _, who := range killed {
		for _, saved := range logs[who] {
			if !saved {
				open++
			}
		}
	}
	return repeated, open
}

// childMain is this binary as a worker.
func childMain(role string) {
	var c child
	err := json.Unmarshal([]byte(role), &c)
	if err == nil {
		err = c.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, c.Who, err)
		os.Exit(1)
	}
}

func (c *child) work() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // it ends with the test, however that ends
		cancel()
	}()
	b, err := bus.Connect(ctx, bus.Config{URL: c.Line, Name: c.Who, AckWait: processAckWait})
	if err != nil {
		return err
	}
	defer b.Close()
	x, err := c.executor(ctx, b)
	if err != nil {
		return err
	}
	stop, err := b.Answer(c.Who, func(w bus.Work) bool {
		chunk, ok := chunkNamed(w)
		return ok && x.Answer(chunk)
	})
	if err != nil {
		return err
	}
	defer stop()
	told, err := b.ListenTaken(c.Who, 64)
	if err != nil {
		return err
	}
	defer told.Close()
	go func() {
		for t := range told.C {
			if chunk, ok := chunkNamed(t.Work); ok {
				x.ClaimedByOther(chunk, claim.Name{Turn: t.Turn, Who: t.By})
			}
		}
	}()
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		<-term
		x.Drain()
	}()
	ran := make(chan error, 1)
	go func() { ran <- x.Run(ctx) }()
	x.Offer([]string{testJob})
	for res, err := range batch.Stream(ctx, x.Items(), x.Call, batch.WithPlainLaw(), batch.WithConcurrency(inProcess)) {
		if err != nil {
			return err
		}
		x.Took(&res)
	}
	return <-ran
}

func (c *child) executor(ctx context.Context, b *bus.Bus) (*Executor, error) {
	s, err := store.Open(ctx, c.Home)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.Log, c.Who), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	j, err := c.job(log)
	if err != nil {
		return nil, err
	}
	return New(Config{
		Claim:     claim.Config{Who: c.Who, Concurrency: inProcess, AckWait: processAckWait, AskTime: 2 * time.Second, Grace: time.Second},
		Connected: b.ReconnectedAt(), Store: loud{s, log}, Queue: busQueue{b}, Peers: busPeers{b},
		Open: func(context.Context, string) (*Job, error) { return j, nil },
	})
}

func (c *child) job(log *os.File) (*Job, error) {
	text, err := os.ReadFile(c.Input)
	if err != nil {
		return nil, err
	}
	w := &world{input: text}
	maker, chance := promptfile.NewMaker(promptfile.Config{Checked: true}), make(chan *rand.Rand, 1)
	chance <- randomOf(c.Seed)
	var sums promptfile.Sums
	return &Job{
		Read: w.read, Item: maker.Item, BadLine: maker.BadLine,
		Line: func(r *promptfile.Result) (journal.Line, bool) { return maker.Line(r, &sums) },
		Call: func(_ context.Context, it *promptfile.Item) (provider.Reply, error) {
			if _, err := fmt.Fprintf(log, "called %s\n", it.Key); err != nil {
				return provider.Reply{}, err
			}
			rng := <-chance
			d := time.Duration(rng.IntN(200)) * time.Millisecond
			chance <- rng
			time.Sleep(d)
			return w.reply(it), nil
		},
	}, nil
}

// loud is a store that writes down which results are saved.
type loud struct {
	store.Store
	log *os.File
}

func (l loud) Append(ctx context.Context, name string) (store.Tail, error) {
	t, err := store.Append(ctx, l.Store, name)
	return &loudTail{Tail: t, log: l.log}, err
}

type loudTail struct {
	store.Tail
	log   *os.File
	wrote []byte // words about what was written since the last sync
}

func (t *loudTail) Write(p []byte) (int, error) {
	var parser journal.Parser
	e, err := parser.Parse(p)
	if err != nil {
		return 0, err
	}
	t.wrote = fmt.Appendf(t.wrote, "saved %s\n", e.Key)
	return t.Tail.Write(p)
}

func (t *loudTail) Sync() error {
	if err := t.Tail.Sync(); err != nil {
		return err
	}
	_, err := t.log.Write(t.wrote)
	t.wrote = t.wrote[:0]
	return err
}

// busQueue and busPeers are the bus, as an executor wants it.
type (
	busQueue    struct{ *bus.Bus }
	busDelivery struct{ *bus.Delivery }
	busPeers    struct{ *bus.Bus }
)

func (q busQueue) Fetch(ctx context.Context, job string) (Delivery, bool, error) {
	d, came, err := q.Bus.Fetch(ctx, bus.Chunks, job, time.Second)
	return busDelivery{d}, came, err
}

func (d busDelivery) Body() []byte { return d.Delivery.Body }

// Holds asks until it gets an answer: the machine is busy, and a slow worker is not dead.
func (p busPeers) Holds(ctx context.Context, who string, c claim.Chunk) (holds, answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for !answered && ctx.Err() == nil {
		holds, answered, err = p.Bus.Holds(ctx, who, workOf(c))
		time.Sleep(10 * time.Millisecond)
	}
	return holds, answered, err
}

func (p busPeers) Tell(_ context.Context, who string, c claim.Chunk, name claim.Name) error {
	return p.Bus.Tell(who, bus.Taken{Work: workOf(c), Turn: name.Turn, By: name.Who})
}

func (p busPeers) SayDone(job.Chunk, []byte) {}

func workOf(c claim.Chunk) bus.Work {
	return bus.Work{Kind: bus.Chunks, Job: c.Job, Name: fmt.Sprintf("%d.%d", c.Number, c.Round)}
}

func chunkNamed(w bus.Work) (c claim.Chunk, ok bool) {
	c.Job = w.Job
	_, err := fmt.Sscanf(w.Name, "%d.%d", &c.Number, &c.Round)
	return c, err == nil
}

// mortal is a store to which a dead worker writes nothing.
type mortal struct {
	store.Store
	dead *grave
}

func (m mortal) Create(ctx context.Context, name string, body io.Reader, size int64) error {
	if err := m.dead.dead(); err != nil {
		return err
	}
	return m.Store.Create(ctx, name, body, size)
}

func (m mortal) Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if err := m.dead.dead(); err != nil {
		return nil, err
	}
	return m.Store.Open(ctx, name, offset, length)
}

func (m mortal) List(ctx context.Context, prefix, after string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		if err := m.dead.dead(); err != nil {
			yield(store.Object{}, err)
			return
		}
		m.Store.List(ctx, prefix, after)(yield)
	}
}

func (m mortal) Delete(ctx context.Context, name string) error {
	if err := m.dead.dead(); err != nil {
		return err
	}
	return m.Store.Delete(ctx, name)
}

func (m mortal) Append(ctx context.Context, name string) (store.Tail, error) {
	if err := m.dead.dead(); err != nil {
		return nil, err
	}
	t, err := store.Append(ctx, m.Store, name)
	if err != nil {
		return nil, err
	}
	return mortalTail{t, m.dead}, nil
}

type mortalTail struct {
	store.Tail
	dead *grave
}

func (t mortalTail) Write(p []byte) (int, error) {
	if err := t.dead.dead(); err != nil {
		return 0, err
	}
	return t.Tail.Write(p)
}
