package node

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
)

const (
	// overseeEvery is the time between two looks of the scheduler at the needs of each job, besides those that messages
	// cause.
	overseeEvery = time.Second
	// listEvery is the time between two looks into the store for jobs and parts that no message announced.
	listEvery = time.Minute
	// workerGone is the silence after which a worker does not count any more.
	workerGone = 10 * time.Second
	// newsKept bounds the messages that wait to be heard: a second of fast chunks. The scheduler sees in the store what
	// is lost.
	newsKept = 4096
)

// A scheduler does the next step of each job. It has its input indexed, cuts it, keeps the queue filled, counts parts,
// and marks the job as done. It lives with the keeper, and holds nothing that is not in the store.
type scheduler struct {
	*Node
	keep   limits
	jobs   map[string]*overseen
	seen   map[string]heardOf // workers, with the latest status of each
	began  time.Time
	listed time.Time
	// connected is the time at which the bus came back: the scheduler may have missed earlier messages.
	connected time.Time
}

// limits is the part of a keeper that its scheduler needs: [keeping.Keeper].
type limits interface {
	Job(ctx context.Context, name string, weight float64)
	Vouch(ctx context.Context, job string)
}

// overseen is a job as its scheduler sees it.
type overseen struct {
	record    job.Record
	plan      *index.Plan // nil: not loaded yet
	chunks    *index.Chunks
	ledger    *parts.Ledger
	listed    time.Time
	stale     bool               // its record has changed, or may have
	untold    bool               // and no message announced the change
	announced bool               // the keeper knows its weight
	purged    bool               // it has ended, and the queue has nothing of it
	counted   map[int]parts.Sums // sums of the parts of a job with a bound on failures; nil: it has none
	// resumed is the time at which the scheduler saw it go on after a stop.
	resumed time.Time
}

func newScheduler(n *Node, k limits) *scheduler {
	return &scheduler{Node: n, keep: k, jobs: map[string]*overseen{}, seen: map[string]heardOf{}, began: n.clock.Now(), connected: n.bus.ReconnectedAt()}
}

// run oversees all jobs until ctx or the connection ends. It listens before its first look, so
// that it misses no change in between.
func (f *scheduler) run(ctx context.Context) {
	w, err := f.listen()
	defer w.close()
	if err != nil {
		f.sayf("this worker does not manage jobs: %v", err) // the connection has ended, and with it this keeper
		return
	}
	ticker := f.clock.NewTicker(overseeEvery)
	defer ticker.Stop()
	f.check(ctx)
	for goesOn := true; goesOn; {
		goesOn = f.next(ctx, w, ticker)
	}
}

// schedulerFeeds holds the feeds that a scheduler hears.
type schedulerFeeds struct {
	done   *bus.Feed[bus.Message[bus.PartDone]]
	news   *bus.Feed[bus.Message[bus.Change]]
	status *bus.Feed[bus.Message[bus.WorkerStatus]]
}

func (f *scheduler) listen() (w schedulerFeeds, err error) {
	if w.done, err = bus.Listen[bus.PartDone](f.bus, bus.Done, "", newsKept); err == nil {
		w.news, err = bus.Listen[bus.Change](f.bus, bus.News, "", newsKept)
	}
	if err == nil {
		w.status, err = bus.Listen[bus.WorkerStatus](f.bus, bus.Status, "", newsKept)
	}
	return w, err
}

func (w *schedulerFeeds) close() {
	w.done.Close()
	w.news.Close()
	w.status.Close()
}

// next waits for an event and handles it; false: the feeds or ctx have ended.
func (f *scheduler) next(ctx context.Context, w schedulerFeeds, ticker clockwork.Ticker) bool {
	select {
	case <-ctx.Done():
		return false
	case said, open := <-w.done.C:
		if open {
			f.hearDone(said)
		}
		return open
	case said, open := <-w.news.C:
		if open {
			f.hearNews(ctx, said)
		}
		return open
	case said, open := <-w.status.C:
		if open && said.Body.Serves == nil { // a server takes no chunks
			f.seen[said.About] = heardOf{f.clock.Now(), said.Body.Refuses}
		}
		return open
	case <-ticker.Chan():
		f.check(ctx)
	}
	return true
}

// heardOf is a worker's latest status, and its time.
type heardOf struct {
	at      time.Time
	refuses map[string]bus.Refusal
}

const (
	// triesToStop is the number of vain tries of each worker before a job stops. A file server may be away for a
	// moment, and news of a limit's reset comes after news of its job.
	triesToStop = 3
	// heardToStop is the time for which a scheduler must have listened to the workers before that: each sends its status
	// once a second.
	heardToStop = 3 * time.Second
)

// stopRefused stops a job that all workers refuse, if one of the reasons is final. It waits for a worker that has not
// tried the job, as that one may be able to go on. A refusal from before the job was resumed does not count.
func (f *scheduler) stopRefused(ctx context.Context, o *overseen) bool {
	now, why, bound := f.clock.Now(), "", false
	f.workers()
	for _, w := range f.seen {
		r, refuses := w.refuses[o.record.Job]
		since := w.at.Add(-time.Duration(r.ForS * float64(time.Second)))
		switch {
		case !refuses || since.Before(o.resumed):
			return false
		case !r.Final:
		case r.Tries < triesToStop:
			return false
		default:
			why, bound = max(why, r.Why), bound || r.Bound
		}
	}
	if heard := min(now.Sub(f.began), now.Sub(f.bus.ReconnectedAt())); why == "" || heard < heardToStop {
		return false
	}
	if r, changed := f.stopJob(ctx, o.record.Job, why, bound); changed {
		o.record = r // else a job resumed at once would not be seen to have stopped
	}
	o.stale = true
	return true
}

// stopJob notes in a job's record why the job cannot go on; bound: its user has bounded it so. If that fails, the next process to meet the cause tries
// again.
func (n *Node) stopJob(ctx context.Context, name, why string, bound bool) (r job.Record, changed bool) {
	r, err := job.Change(ctx, n.home, name, func(r *job.Record) error {
		if r.State != job.Running && r.State != job.Indexing {
			return errChanged
		}
		r.State, r.Why, r.Bound = job.Stopped, why, bound
		return nil
	})
	if err == nil {
		n.tellChanged(name)
	}
	return r, err == nil
}

// hearDone notes that a part is there.
func (f *scheduler) hearDone(m bus.Message[bus.PartDone]) {
	d := &m.Body
	if o := f.jobs[m.About]; o != nil && o.ledger != nil && d.Round == o.record.Round {
		o.ledger.Note(d.Chunk)
		o.hearSums(d)
	}
}

// hearNews looks at a job that a message says has changed. The keeper handles messages about limits.
func (f *scheduler) hearNews(ctx context.Context, m bus.Message[bus.Change]) {
	if m.Body != (bus.Change{}) {
		return
	}
	if o := f.jobs[m.About]; o != nil {
		o.stale, o.untold = true, false
	}
	f.meet(ctx, m.About)
	f.see(ctx, m.About)
}

// meet begins to oversee a job.
func (f *scheduler) meet(ctx context.Context, name string) {
	if f.jobs[name] != nil || job.CheckName(name) != nil {
		return
	}
	r, err := job.Load(ctx, f.home, name)
	if err != nil {
		if errors.Is(err, job.ErrNewer) {
			f.sayf("job %s is left to others: %v", name, err)
		}
		return
	}
	f.jobs[name] = &overseen{record: r}
}

// check does what each job needs.
func (f *scheduler) check(ctx context.Context) {
	f.checkOthers(ctx)
	for name := range f.jobs {
		f.see(ctx, name)
	}
}

// see does what one job needs: a message about a job is no reason to ask the bus about all the others.
func (f *scheduler) see(ctx context.Context, name string) {
	o := f.jobs[name]
	if o == nil {
		return
	}
	if o.stale {
		f.reload(ctx, name, o)
	}
	if err := f.serve(ctx, o); err != nil && ctx.Err() == nil {
		f.sayf("job %s: %v", name, err)
	}
}

// checkOthers looks for changes that no message announced: new jobs, and changes of the jobs under way. After the bus was
// away, it looks for changes of all jobs.
func (f *scheduler) checkOthers(ctx context.Context) {
	now, connected := f.clock.Now(), f.bus.ReconnectedAt()
	again := !connected.Equal(f.connected)
	if !again && now.Sub(f.listed) < listEvery {
		return
	}
	// A job submitted after the look reaches this scheduler by a message, as the hub knows by now that it listens.
	// Without this question, a job submitted in between would announce itself to nobody, and wait for the next look.
	if err := f.bus.Reached(ctx); err != nil {
		return // the hub is away: the next look tries again
	}
	for _, o := range f.jobs {
		if !o.stale && (again || o.record.State == job.Running || o.record.State == job.Indexing) {
			o.stale, o.untold = true, true
		}
	}
	for name, err := range job.List(ctx, f.home) {
		if err != nil {
			return // the store is away: the next look tries again
		}
		f.meet(ctx, name)
	}
	f.listed, f.connected = now, connected
}

// reload reads a job's record again. If the record has changed, the scheduler forgets the plan and
// the count of parts. Resuming a stopped job vouches for its limits.
func (f *scheduler) reload(ctx context.Context, name string, o *overseen) {
	r, err := job.Load(ctx, f.home, name)
	if errors.Is(err, job.ErrMissing) {
		f.removed(name, o)
		return
	}
	if err != nil {
		return // it stays stale
	}
	untold := o.untold
	o.stale, o.untold = false, false
	if r.Version == o.record.Version {
		return
	}
	resumed := o.resumed
	switch {
	case o.record.State == job.Stopped && r.GoesOn(): // resuming it vouches for its limits
		f.keep.Vouch(ctx, name)
		resumed = f.clock.Now()
	case o.record.Paused && !r.Paused: // what workers said of it before the pause is over
		resumed = f.clock.Now()
	}
	if *o = (overseen{record: r, announced: o.announced, resumed: resumed}); untold {
		f.tellChanged(name) // the workers have missed it too
	}
}

// removedVersion is the version of a deleted job: a new job of its name begins with 0.
const removedVersion = -1

// removed ends a job whose record is not in the store any more. Else its calls would be made again, as all parts are
// missing.
func (f *scheduler) removed(name string, o *overseen) {
	if o.record.Version == removedVersion && !o.untold { // this is the scheduler's own message
		o.stale = false
		return
	}
	if o.record.State == job.Running || o.record.State == job.Indexing {
		f.sayf("job %s is no longer in the store, and ends", name)
	}
	*o = overseen{record: o.record, announced: o.announced}
	o.record.State, o.record.Version = job.Canceled, removedVersion
	f.tellChanged(name)
}

// serve does the next step of a job.
func (f *scheduler) serve(ctx context.Context, o *overseen) error {
	if r := &o.record; r.GoesOn() && (f.bounded(ctx, o) || !r.Paused && f.stopRefused(ctx, o)) {
		return nil
	}
	switch o.record.State {
	case job.Indexing:
		return f.index(ctx, o)
	case job.Running:
		if o.record.Paused {
			return f.pause(ctx, o)
		}
		f.weigh(ctx, o, o.record.Weight)
		return f.fill(ctx, o)
	case job.Done, job.Refused, job.Canceled, job.Stopped: // a worker with a chunk of a done job finds its part
		f.weigh(ctx, o, 0)
		return f.purge(ctx, o)
	}
	return nil
}

// weigh tells the keeper a job's share, once; 0: the job is over.
func (f *scheduler) weigh(ctx context.Context, o *overseen, weight float64) {
	if is := weight > 0; is != o.announced {
		o.announced = is
		f.keep.Job(ctx, o.record.Job, weight)
	}
}

// workers returns the number of workers heard within workerGone, at least 1 for this process.
func (f *scheduler) workers() int {
	now := f.clock.Now()
	maps.DeleteFunc(f.seen, func(_ string, w heardOf) bool { return now.Sub(w.at) > workerGone })
	return max(1, len(f.seen))
}

// bounded stops a job that has reached a bound set by its user, and reports whether it has reached one.
func (f *scheduler) bounded(ctx context.Context, o *overseen) bool {
	var all parts.Sums
	for _, sums := range o.counted {
		all = all.Plus(sums)
	}
	reached := func(r *job.Record) string { return r.Bounds.Reached(f.clock.Now(), all.Done+all.Failed, all.Failed) }
	if reached(&o.record) == "" {
		return false
	}
	_, err := job.Change(ctx, f.home, o.record.Job, func(r *job.Record) error {
		why := reached(r)
		if r.State != job.Running && r.State != job.Indexing || r.Round != o.record.Round || why == "" {
			return errChanged
		}
		r.State, r.Why, r.Bound = job.Stopped, why, true
		return nil
	})
	if o.stale = true; err == nil {
		f.tellChanged(o.record.Job)
	}
	return true
}

// tally counts the failures of a job with a bound on them, in parts that no message announced.
func (o *overseen) tally(ctx context.Context) error {
	if !o.record.Bounds.Counts() {
		return nil
	}
	if o.counted == nil {
		o.counted = map[int]parts.Sums{}
	}
	return o.ledger.Tally(ctx, o.counted)
}

// hearSums counts the sums of an announced part.
func (o *overseen) hearSums(d *bus.PartDone) {
	var sums parts.Sums
	if o.counted != nil && json.Unmarshal(d.Footer, &sums) == nil {
		o.counted[d.Chunk] = sums
	}
}
