package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store/s3test"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
	"go.uber.org/goleak"
)

// testTerm and testAckWait make a cluster whose keeper changes within two seconds; a busy machine has seconds
// for what takes milliseconds.
const (
	testTerm    = time.Second
	testAckWait = 2 * time.Second
)

// cluster is a hub and a home in folders of the test's.
type cluster struct {
	t    *testing.T
	line string
	dir  string
	hub  *bus.Hub
	wait time.Duration // AckWait
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), wait: testAckWait}
	c.startHub()
	c.line = JoinLine(c.hub.JoinURL(), filepath.Join(c.dir, "home"))
	return c
}

// startHub starts the hub, on the port of the last time.
func (c *cluster) startHub() {
	c.t.Helper()
	hub := must.Get(bus.StartHub(bus.HubConfig{Dir: filepath.Join(c.dir, "hub"), Listen: "127.0.0.1:0", Say: func(err error) { c.t.Log(err) }}))(c.t)
	c.t.Cleanup(hub.Shutdown)
	c.hub = hub
}

var seeds atomic.Uint64

func (c *cluster) join(say func(string)) *Node {
	c.t.Helper()
	n := must.Get(Join(c.t.Context(), Config{Line: c.line, Times: Times{AckWait: c.wait, Term: testTerm}, Seed: seeds.Add(1), Founds: true, Say: say}))(c.t)
	return n
}

// joinAs joins by the line of a role.
func (c *cluster) joinAs(r bus.Role) *Node {
	c.t.Helper()
	n := must.Get(Join(c.t.Context(), Config{Line: JoinLine(c.hub.RoleURL(r), filepath.Join(c.dir, "home")), Seed: seeds.Add(1)}))(c.t)
	return n
}

// workers starts some, and gives what ends them and waits for them.
func (c *cluster) workers(count int, call func(context.Context, *promptfile.Item) (provider.Reply, error)) (end func() []error) {
	var each []*Node
	for range count {
		each = append(each, c.join(func(text string) { c.t.Log(text) }))
	}
	return works(each, opening(call))
}

// works has nodes work.
func works(each []*Node, open func(*job.Record) (*Caller, error)) (end func() []error) {
	count := len(each)
	drain, errs := make(chan struct{}), make(chan error, count)
	for _, n := range each {
		go func() {
			errs <- errors.Join(n.Work(context.Background(), Worker{Open: open, Concurrency: 8, Drain: drain}), n.Close())
		}()
	}
	return func() (all []error) {
		close(drain)
		for range count {
			if err := <-errs; err != nil {
				all = append(all, err)
			}
		}
		return all
	}
}

// opening makes calls of one function for every job.
func opening(call func(context.Context, *promptfile.Item) (provider.Reply, error)) func(*job.Record) (*Caller, error) {
	return func(*job.Record) (*Caller, error) {
		lines := promptfile.Config{
			Lane: func(model string) string { return "test/" + model }, Cost: func(*prompts.Request) batch.Cost { return batch.Cost{Requests: 1} }, Concurrency: 8,
			Price:  func(string, provider.Usage) (float64, bool) { return 0, false },
			Redact: func(s string) string { return s }, Checked: true,
		}
		limit := machine.LaneConfig{Limits: batch.Limits{RPM: 60_000}}
		return &Caller{Call: call, Lines: lines, Reader: prompts.Config{DefaultModel: "m"}, Limit: limit, Close: func() {}}, nil
	}
}

// blockedWorker is one whose calls begin, and are answered once gate is closed.
func (c *cluster) blockedWorker() (gate, begun chan struct{}, end func() []error) {
	gate, begun = make(chan struct{}), make(chan struct{}, 1000)
	end = c.workers(1, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		begun <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
		}
		return answer(ctx, it)
	})
	return gate, begun, end
}

// submitted is a job of so many lines, and the node that has submitted it.
func (c *cluster) submitted(lines int) (*Node, job.Record) {
	n := c.join(nil)
	c.t.Cleanup(func() { _ = n.Close() })
	return n, c.submit(n, c.input(lines), 1)
}

func (c *cluster) input(lines int) string {
	c.t.Helper()
	var text bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&text, "{\"prompt\":\"q %d\"}\n", i)
	}
	path := filepath.Join(c.dir, "in.jsonl")
	must.Do(c.t, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

func (c *cluster) submit(n *Node, path string, weight float64) job.Record {
	c.t.Helper()
	o := must.Get(ObjectOf(c.t.Context(), path))(c.t)
	return c.submitRecord(n, job.Record{Inputs: []job.Input{{Name: path, Format: job.JSONL, Objects: []job.Object{o}}}, Weight: weight})
}

// submitRecord submits a job of small chunks.
func (c *cluster) submitRecord(n *Node, r job.Record) job.Record {
	c.t.Helper()
	r.Reading, r.Cut = job.Reading{Model: "m"}, job.Cut{ChunkLines: 50}
	caller, _ := opening(nil)(nil)
	r = must.Get(n.Submit(c.t.Context(), r, caller, 0))(c.t)
	return r
}

// answer answers with the prompt's own text.
func answer(_ context.Context, it *promptfile.Item) (provider.Reply, error) {
	return provider.Reply{Status: http.StatusOK, Body: json.RawMessage(`{"echo":` + string(it.Body) + `}`)}, nil
}

func (c *cluster) waitFor(n *Node, name string, want job.State) JobStatus {
	c.t.Helper()
	ctx, stop := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer stop()
	s, err := n.Wait(ctx, name, 200*time.Millisecond, func(JobStatus) {})
	if err != nil || s.Record.State != want {
		c.t.Fatalf("%v, %s (%s), %d of %d parts", err, s.Record.State, s.Record.Why, s.Parts, s.Chunks)
	}
	return s
}

// ids are the custom ids of a result file, in order.
func ids(t *testing.T, path string) (all []string) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	for line := range bytes.Lines(text) {
		var l struct {
			ID string `json:"custom_id"`
		}
		must.Do(t, json.Unmarshal(line, &l))
		all = append(all, l.ID)
	}
	return all
}

// Three workers bring each item of a job one result, in the order of the input, and call none twice.
func TestWorkersFinishAJob(t *testing.T) {
	c := newCluster(t)
	var calls atomic.Int64
	end := c.workers(3, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		calls.Add(1)
		return answer(ctx, it)
	})
	n, r := c.submitted(400)
	c.waitFor(n, r.Job, job.Done)
	out := filepath.Join(c.dir, "out.jsonl")
	got, err := n.Fetch(t.Context(), r.Job, out, out+".errors", false)
	if err != nil || got.Done != 400 || got.Failed != 0 {
		t.Errorf("%+v %v", got, err)
	}
	for i, id := range ids(t, out) {
		if want := prompts.LineID(i + 1); id != want {
			t.Fatalf("line %d is %s, want %s", i, id, want)
		}
	}
	if calls.Load() != 400 {
		t.Errorf("%d calls for 400 items", calls.Load())
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// A job that is canceled ends, keeps what it has, and goes on when it is resumed.
func TestCancelAndResume(t *testing.T) {
	c := newCluster(t)
	gate, begun, end := c.blockedWorker()
	n, r := c.submitted(120)
	<-begun
	must.Do(t, n.Cancel(t.Context(), r.Job))
	close(gate)
	c.waitFor(n, r.Job, job.Canceled)
	must.Do(t, n.Resume(t.Context(), r.Job))
	s := c.waitFor(n, r.Job, job.Done)
	if s.Items != 120 || s.Parts != s.Chunks {
		t.Errorf("%+v", s)
	}
	if err := n.Resume(t.Context(), r.Job); !errors.Is(err, ErrState) {
		t.Errorf("a job that is done was resumed: %v", err)
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// What failed for good is tried again in another round, and nothing else.
func TestRetryFailed(t *testing.T) {
	c := newCluster(t)
	var round, calls atomic.Int64
	end := c.workers(2, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		calls.Add(1)
		if round.Load() == 0 && it.Line%10 == 0 {
			return provider.Reply{}, &provider.Error{Kind: provider.Invalid, Status: http.StatusBadRequest, Message: "no"}
		}
		return answer(ctx, it)
	})
	n, r := c.submitted(120)
	c.waitFor(n, r.Job, job.Done)
	out := filepath.Join(c.dir, "out.jsonl")
	got, err := n.Fetch(t.Context(), r.Job, out, out+".errors", false)
	if err != nil || got.Done != 108 || got.Failed != 12 {
		t.Errorf("%+v %v", got, err)
	}
	round.Store(1)
	must.Do(t, n.RetryFailed(t.Context(), r.Job))
	c.waitFor(n, r.Job, job.Done)
	got, err = n.Fetch(t.Context(), r.Job, out, out+".errors", false)
	if err != nil || got.Done != 120 || got.Failed != 0 || len(ids(t, out)) != 120 {
		t.Errorf("%+v %v", got, err)
	}
	if calls.Load() != 132 {
		t.Errorf("%d calls", calls.Load())
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// Lines that are no requests refuse a job before anything is called.
func TestBadLinesRefuseAJob(t *testing.T) {
	c := newCluster(t)
	end := c.workers(1, func(context.Context, *promptfile.Item) (provider.Reply, error) {
		t.Error("it was called")
		return provider.Reply{}, errors.New("no")
	})
	n := c.join(nil)
	defer n.Close()
	path := c.input(3)
	must.Do(t, os.WriteFile(path, []byte("{\"prompt\":\"a\"}\nnothing\n"), 0o600))
	r := c.submit(n, path, 1)
	s := c.waitFor(n, r.Job, job.Refused)
	if !bytes.Contains([]byte(s.Record.Why), []byte("in.jsonl:2: not JSON")) {
		t.Error(s.Record.Why)
	}
	for _, err := range end() {
		t.Error(err)
	}
}

// A refused key stops the job everywhere, with the provider's words, until a person resumes it.
func TestStoppedByTheProvider(t *testing.T) {
	c := newCluster(t)
	var paid atomic.Bool
	end := c.workers(2, func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
		if paid.Load() {
			return answer(ctx, it)
		}
		return provider.Reply{}, &provider.Error{Kind: provider.QuotaExhausted, Status: http.StatusTooManyRequests, Message: "your balance is used up"}
	})
	n, r := c.submitted(120)
	s := c.waitFor(n, r.Job, job.Stopped)
	if !bytes.Contains([]byte(s.Record.Why), []byte("your balance is used up")) {
		t.Error(s.Record.Why)
	}
	paid.Store(true)
	c.resumes(n, r.Job)
	for _, err := range end() {
		t.Error(err)
	}
}

// resumes has a job that has stopped go on to its end. A keeper that begins while it is resumed does not know that a person
// vouches for the limit: then it stops again, and is resumed again.
func (c *cluster) resumes(n *Node, name string) {
	c.t.Helper()
	for tries := 1; ; tries++ {
		must.Do(c.t, n.Resume(c.t.Context(), name))
		s, err := n.Wait(c.t.Context(), name, 200*time.Millisecond, func(JobStatus) {})
		if err == nil && s.Record.State == job.Done {
			return
		}
		epoch, err2 := n.epochs.Latest(c.t.Context())
		if err := errors.Join(err, err2); err != nil || s.Record.State != job.Stopped || epoch == 1 || tries == 10 {
			c.t.Fatalf("%v, %s (%s) under keeper %d", err, s.Record.State, s.Record.Why, epoch)
		}
	}
}

// A job says how often an item may fail, on every worker. The caller's own name for the limit is used.
func TestAJobsOwnBoundsAndLimit(t *testing.T) {
	c := newCluster(t)
	var calls atomic.Int64
	fails := func(context.Context, *promptfile.Item) (provider.Reply, error) {
		calls.Add(1)
		return provider.Reply{}, &provider.Error{Kind: provider.Server, Status: http.StatusInternalServerError}
	}
	n, drain, ended := c.join(nil), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- n.Work(context.Background(), Worker{Concurrency: 8, Drain: drain, Open: func(r *job.Record) (*Caller, error) {
			caller, err := opening(fails)(r)
			caller.Lane.MaxAttempts, caller.LimitOf = 2, func(model string) string { return "mine/" + model }
			return caller, err
		}})
	}()
	r := c.submit(n, c.input(2), 1)
	c.waitFor(n, r.Job, job.Done)
	done := func(o Office) bool { return len(o.Workers) == 1 && o.Workers[0].Jobs[r.Job].Done == 2 }
	o, err := n.Office(t.Context(), time.Second)
	for range 30 { // a machine that stalls hears no worker in a second
		if err == nil && !done(o) {
			o, err = n.Office(t.Context(), time.Second)
		}
	}
	if err != nil || len(o.Limits) != 1 || o.Limits[0].Name != "mine/m" || !done(o) {
		t.Errorf("%+v %v", o, err)
	}
	close(drain)
	if err := errors.Join(<-ended, n.Close()); err != nil {
		t.Error(err)
	}
	if calls.Load() != 4 {
		t.Errorf("%d calls for two items of two tries", calls.Load())
	}
}

func TestMain(m *testing.M) {
	s3test.Serve()
	goleak.VerifyTestMain(m)
}
