package node

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider"
)

// long is an AckWait with which a chunk that a worker holds in vain is nobody's while a test lasts.
const long = 10 * time.Minute

// refusedBy waits until a worker says that it refuses a job, and gives the reason.
func (c *cluster) refusedBy(n, worker *Node, name string) bus.Refusal {
	c.t.Helper()
	for {
		o := must.Get(n.Office(c.t.Context(), time.Second))(c.t)
		for _, w := range o.Workers {
			if r, refuses := w.Refuses[name]; refuses && w.Name == worker.Name() {
				return r
			}
		}
	}
}

// stands has a worker live that has not tried any job: it might do what others refuse.
func (c *cluster) stands(n *Node) {
	var speaks sync.WaitGroup
	ctx, stop := context.WithCancel(c.t.Context())
	c.t.Cleanup(func() { stop(); speaks.Wait() })
	speaks.Go(func() {
		for ctx.Err() == nil {
			_ = n.bus.Say(bus.Status, "stands", bus.WorkerStatus{}) // once a second, as workers do
			n.pause(ctx)
		}
	})
}

// A worker that has no key for a job, or cannot see its input, refuses that job and says why. It holds none of its chunks,
// nor of the tasks to read its input through: another worker does them at once.
func TestAWorkerThatCannotRefusesTheJob(t *testing.T) {
	for name, blind := range map[string]func(*Node) func(*job.Record) (*Caller, error){
		"no key": func(*Node) func(*job.Record) (*Caller, error) {
			return func(*job.Record) (*Caller, error) { return nil, errors.New("no key is set") }
		},
		"no permission": func(n *Node) func(*job.Record) (*Caller, error) {
			n.openInputStore = func(context.Context, string) (store.Store, error) { return nil, os.ErrPermission }
			return opening(answer)
		},
		"no object": func(n *Node) func(*job.Record) (*Caller, error) {
			n.openInputStore = func(ctx context.Context, _ string) (store.Store, error) { return store.Open(ctx, t.TempDir()) }
			return opening(answer)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.wait = long
			n, r := c.submitted(900)
			c.stands(n)
			refuses := func() (end func() []error) {
				worker := c.join(func(text string) { t.Log(text) })
				end = works([]*Node{worker}, blind(worker))
				c.refusedBy(n, worker, r.Job)
				return end
			}
			endTask := refuses()
			gate, begun, end := c.blockedWorker()
			<-begun
			endChunk := refuses()
			close(gate)
			c.waitFor(n, r.Job, job.Done)
			for _, err := range slices.Concat(end(), endTask(), endChunk()) {
				t.Error(err)
			}
		})
	}
}

// An input that is deleted during a job stops the job, and says why; when it is there again, the job goes on.
func TestADeletedInputStopsTheJob(t *testing.T) {
	c := newCluster(t)
	gate, begun, end := c.blockedWorker()
	n := c.join(nil)
	defer n.Close()
	path := c.input(400)
	r := c.submit(n, path, 1)
	<-begun
	must.Do(t, os.Rename(path, path+".away"))
	close(gate)
	s := c.waitFor(n, r.Job, job.Stopped)
	if !strings.Contains(s.Record.Why, store.ErrMissing.Error()) || !strings.Contains(s.Record.Why, "in.jsonl") {
		t.Error(s.Record.Why)
	}
	must.Do(t, errors.Join(os.Rename(path+".away", path), n.Resume(t.Context(), r.Job)))
	c.waitFor(n, r.Job, job.Done)
	for _, err := range end() {
		t.Error(err)
	}
}

// A quota that is used up stops the account whose it is. The job goes on with the other account, and its items have
// one result each.
func TestAQuotaStopsItsAccount(t *testing.T) {
	c := newCluster(t)
	c.wait = long
	of := func(account string, call func(context.Context, *promptfile.Item) (provider.Reply, error)) func(*job.Record) (*Caller, error) {
		return func(r *job.Record) (*Caller, error) {
			caller, err := opening(call)(r)
			caller.LimitOf = func(model string) string { return model + "#" + account }
			return caller, err
		}
	}
	poor, rich := c.join(func(text string) { t.Log(text) }), c.join(nil)
	gate := make(chan struct{})
	ends := [...]func() []error{
		works([]*Node{poor}, of("poor", func(context.Context, *promptfile.Item) (provider.Reply, error) {
			return provider.Reply{}, &provider.Error{Kind: provider.QuotaExhausted, Status: http.StatusTooManyRequests, Message: "your balance is used up"}
		})),
		works([]*Node{rich}, of("rich", func(ctx context.Context, it *promptfile.Item) (provider.Reply, error) {
			<-gate
			return answer(ctx, it)
		})),
	}
	n, r := c.submitted(400)
	if why := c.refusedBy(n, poor, r.Job); !why.Final || !strings.Contains(why.Why, "your balance is used up") {
		t.Errorf("%+v", why)
	}
	close(gate)
	c.waitFor(n, r.Job, job.Done)
	out := filepath.Join(c.dir, "out.jsonl")
	got, err := n.Fetch(t.Context(), r.Job, out, out+".errors", false)
	if err != nil || got.Done != 400 || got.Failed != 0 {
		t.Errorf("%+v %v", got, err)
	}
	for _, end := range ends {
		for _, err := range end() {
			t.Error(err)
		}
	}
}

// A job that is refused is tried again after a second, and each time that fails after twice as long, up to half a
// minute. What lifts the reason, or a person, has it tried at once.
func TestRefusals(t *testing.T) {
	clock, said := clockwork.NewFakeClock(), 0
	r := (&Node{clock: clock, cfg: Config{Say: func(string) { said++ }}}).newRefusals()
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		r.noteRead(t.Context(), "j", store.ErrMissing)
		r.noteRead(t.Context(), "j", store.ErrMissing) // a chunk that was taken before
		clock.Advance(pause*time.Second - 1)
		if !r.refuses("j") || r.refuses("other") {
			t.Fatalf("after %d s", pause)
		}
		clock.Advance(1)
		if r.refuses("j") {
			t.Fatalf("still after %d s", pause)
		}
	}
	if s := r.report()["j"]; said != 1 || !s.Final || s.ForS != 91 || s.Tries != 7 {
		t.Errorf("%d times, %+v", said, s)
	}
	r.noteRead(t.Context(), "j", nil)
	if len(r.report()) != 0 {
		t.Error("what is read is refused")
	}
	r.noteRead(t.Context(), "j", store.ErrChanged)
	r.noteRead(t.Context(), "k", os.ErrPermission)
	if s := r.report(); len(s) != 1 || s["k"].Final {
		t.Errorf("%+v", s)
	}
	for what, lift := range map[string]func(){
		"permits": func() { r.lift("j", "l") }, "a person": func() { r.liftLimit("l") }, "the job's end": func() { r.forget("j") },
	} {
		r.refuse("j", "l", "it has stopped", true)
		r.lift("j", "")
		r.lift("j", "other")
		r.liftLimit("other")
		if !r.refuses("j") {
			t.Errorf("%s: what has nothing to do with it lifts it", what)
		}
		if lift(); r.refuses("j") {
			t.Errorf("%s do not lift it", what)
		}
	}
}

// A scheduler stops a job only once every living worker refuses it, one of them for good, and for some seconds.
func TestWhenTheSchedulerStopsAJob(t *testing.T) {
	missing, key := bus.Refusal{Why: "it is missing", Final: true, ForS: 10, Tries: 3}, bus.Refusal{Why: "no key", ForS: 10, Tries: 3}
	fresh := missing
	fresh.Tries = 2
	for name, c := range map[string]struct {
		said    []*bus.Refusal
		heard   time.Duration // for which the scheduler has listened
		resumed time.Duration // ago; 0: it was not
		stops   bool
	}{
		"all":                       {[]*bus.Refusal{&missing, &missing}, time.Minute, 0, true},
		"one lacks its key":         {[]*bus.Refusal{&missing, &key}, time.Minute, 0, true},
		"one has not said so":       {[]*bus.Refusal{&missing, nil}, time.Minute, 0, false},
		"all lack their keys":       {[]*bus.Refusal{&key, &key}, time.Minute, 0, false},
		"one may be wrong":          {[]*bus.Refusal{&missing, &fresh}, time.Minute, 0, false},
		"no worker":                 {nil, time.Minute, 0, false},
		"a scheduler that is new":   {[]*bus.Refusal{&missing}, time.Second, 0, false},
		"from before it is resumed": {[]*bus.Refusal{&missing}, time.Minute, 9 * time.Second, false},
		"resumed long ago":          {[]*bus.Refusal{&missing}, time.Minute, 11 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			n, r := cl.submitted(10)
			f, clock := cl.schedulerAlone(n)
			clock.Advance(time.Until(clock.Now()) * -1) // the connection's age is by the real time
			f.began = clock.Now()
			clock.Advance(c.heard)
			f.beginOverseeing(t.Context(), r.Job)
			for i, s := range c.said {
				refuses := map[string]bus.Refusal{}
				if s != nil {
					refuses[r.Job] = *s
				}
				f.heard[[]string{"a", "b"}[i]] = statusHeard{clock.Now(), refuses}
			}
			o := f.jobs[r.Job]
			if c.resumed > 0 {
				o.resumed = clock.Now().Add(-c.resumed)
			}
			if got := f.stopRefused(t.Context(), o); got != c.stops || (o.record.State == job.Stopped) != c.stops {
				t.Errorf("stops: %v, and the scheduler takes it for %s", got, o.record.State)
			}
			if got, err := job.Load(t.Context(), n.home, r.Job); err != nil || (got.State == job.Stopped) != c.stops || c.stops && got.Why != missing.Why {
				t.Errorf("%v: %+v", err, got)
			}
		})
	}
}

// A worker says of no job that has ended that it refuses it: it says so of a few jobs only, and those that run would be
// left out for it.
func TestAJobThatHasEndedIsRefusedNoMore(t *testing.T) {
	for _, s := range []job.State{job.Done, job.Canceled, job.Stopped, job.Refused} {
		t.Run(string(s), func(t *testing.T) {
			c := newCluster(t)
			n, r := c.submitted(10)
			w := &worker{Node: n, how: Worker{Concurrency: 8}, refusals: n.newRefusals()}
			w.jobs = n.newJobs(w.refusals, opening(answer))
			must.Do(t, w.newExecutor())
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { w.jobs.run(ctx) })
			running.Go(func() { _ = w.exec.Run(ctx) })
			defer func() { stop(); running.Wait() }()
			w.refusals.refuse(r.Job, "", "no key is set", false)
			silently(t, n, r.Job, s)
			w.watch.hear(ctx, bus.Message[bus.Change]{About: r.Job})
			if w.refusals.isRefused(r.Job) {
				t.Errorf("a job that is %s is refused", s)
			}
		})
	}
}
