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
	keeper limits
	jobs   map[string]*overseen
	heard  map[string]statusHeard // workers, with the latest status of each
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
	record      job.Record
	plan        *index.Plan // nil: not loaded yet
	chunks      *index.Chunks
	ledger      *parts.Ledger
	listed      time.Time
	stale       bool               // its record has changed, or may have
	unannounced bool               // and no message announced the change
	announced   bool               // the keeper knows its weight
	purged      bool               // it has ended, and the queue has nothing of it
	counted     map[int]parts.Sums // sums of the parts of a job with a bound on failures; nil: it has none
	// resumed is the time at which the scheduler saw it go on after a stop.
	resumed time.Time
}

func newScheduler(n *Node, k limits) *scheduler {
	return &scheduler{Node: n, keeper: k, jobs: map[string]*overseen{}, heard: map[string]statusHeard{}, began: n.clock.Now(), connected: n.bus.ReconnectedAt()}
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
	f.overseeAll(ctx)
	for goesOn := true; goesOn; {
		goesOn = f.hearNext(ctx, w, ticker)
	}
}

// schedulerFeeds holds the feeds that a scheduler hears.
type schedulerFeeds struct {
	done   *bus.Feed[bus.Message[bus.PartDone]]
	news   *bus.Feed[bus.Message[bus.Change]]
	status *bus.Feed[bus.Message[bus.WorkerStatus]]
}

// listen opens the feeds of all parts, changes and workers. The caller closes them, also after an error.
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

// hearNext waits for an event and handles it; false: the feeds or ctx have ended.
func (f *scheduler) hearNext(ctx context.Context, w schedulerFeeds, ticker clockwork.Ticker) bool {
	select {
	case <-ctx.Done():
		return false
	case message, open := <-w.done.C:
		if open {
			f.hearDone(message)
		}
		return open
	case message, open := <-w.news.C:
		if open {
			f.hearNews(ctx, message)
		}
		return open
	case message, open := <-w.status.C:
		if open && message.Body.Serves == nil { // a server takes no chunks
			f.heard[message.About] = statusHeard{f.clock.Now(), message.Body.Refuses}
		}
		return open
	case <-ticker.Chan():
		f.overseeAll(ctx)
	}
	return true
}

// statusHeard is a worker's latest status, and its time.
type statusHeard struct {
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
	now, reason, bound := f.clock.Now(), "", false
	f.countWorkers()
	for _, w := range f.heard {
		r, refuses := w.refuses[o.record.Job]
		since := w.at.Add(-time.Duration(r.ForS * float64(time.Second)))
		switch {
		case !refuses || since.Before(o.resumed):
			return false
		case !r.Final:
		case r.Tries < triesToStop:
			return false
		default:
			reason, bound = max(reason, r.Why), bound || r.Bound
		}
	}
	if heard := min(now.Sub(f.began), now.Sub(f.bus.ReconnectedAt())); reason == "" || heard < heardToStop {
		return false
	}
	if r, changed := f.stopJob(ctx, o.record.Job, reason, bound); changed {
		o.record = r // else a job resumed at once would not be seen to have stopped
	}
	o.stale = true
	return true
}

// stopJob stops a job, and notes the reason in its record. bound says that its user set the bound that it reached. If
// stopJob fails, the next process that meets the cause tries again.
func (n *Node) stopJob(ctx context.Context, name, why string, bound bool) (r job.Record, changed bool) {
	r, err := job.Change(ctx, n.home, name, func(r *job.Record) error {
		if r.State != job.Running && r.State != job.Indexing {
			return errChanged
		}
		r.State, r.Why, r.Bound = job.Stopped, why, bound
		return nil
	})
	if err == nil {
		n.announceChange(name)
	}
	return r, err == nil
}

// hearDone counts an announced part of a job's present round.
func (f *scheduler) hearDone(m bus.Message[bus.PartDone]) {
	d := &m.Body
	if o := f.jobs[m.About]; o != nil && o.ledger != nil && d.Round == o.record.Round {
		o.ledger.Note(d.Chunk)
		o.addSums(d)
	}
}

// hearNews looks at a job that a message says has changed. The keeper handles messages about limits.
func (f *scheduler) hearNews(ctx context.Context, m bus.Message[bus.Change]) {
	if m.Body != (bus.Change{}) {
		return
	}
	if o := f.jobs[m.About]; o != nil {
		o.stale, o.unannounced = true, false
	}
	f.beginOverseeing(ctx, m.About)
	f.oversee(ctx, m.About)
}

// beginOverseeing loads a job that this scheduler does not know yet. It leaves a record of a newer program to others.
func (f *scheduler) beginOverseeing(ctx context.Context, name string) {
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

// overseeAll finds changes that no message announced, and then does what each job needs.
func (f *scheduler) overseeAll(ctx context.Context) {
	f.findChanges(ctx)
	for name := range f.jobs {
		f.oversee(ctx, name)
	}
}

// oversee does what one job needs: it reads a stale record again, and does the job's next step.
func (f *scheduler) oversee(ctx context.Context, name string) {
	o := f.jobs[name]
	if o == nil {
		return
	}
	if o.stale {
		f.reload(ctx, name, o)
	}
	if err := f.nextStep(ctx, o); err != nil && ctx.Err() == nil {
		f.sayf("job %s: %v", name, err)
	}
}

// findChanges looks for changes that no message announced: new jobs, and changes of the jobs under way. After the bus was
// away, it looks for changes of all jobs.
func (f *scheduler) findChanges(ctx context.Context) {
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
			o.stale, o.unannounced = true, true
		}
	}
	for name, err := range job.List(ctx, f.home) {
		if err != nil {
			return // the store is away: the next look tries again
		}
		f.beginOverseeing(ctx, name)
	}
	f.listed, f.connected = now, connected
}

// reload reads a job's record again. If the record has changed, the scheduler forgets the plan and
// the count of parts. Resuming a stopped job vouches for its limits.
func (f *scheduler) reload(ctx context.Context, name string, o *overseen) {
	r, err := job.Load(ctx, f.home, name)
	if errors.Is(err, job.ErrMissing) {
		f.endRemoved(name, o)
		return
	}
	if err != nil {
		return // it stays stale
	}
	untold := o.unannounced
	o.stale, o.unannounced = false, false
	if r.Version == o.record.Version {
		return
	}
	resumed := o.resumed
	switch {
	case o.record.State == job.Stopped && r.GoesOn(): // resuming it vouches for its limits
		f.keeper.Vouch(ctx, name)
		resumed = f.clock.Now()
	case o.record.Paused && !r.Paused: // what workers said of it before the pause is over
		resumed = f.clock.Now()
	}
	if *o = (overseen{record: r, announced: o.announced, resumed: resumed}); untold {
		f.announceChange(name) // the workers have missed it too
	}
}

// removedVersion is the version of a deleted job: a new job of its name begins with 0.
const removedVersion = -1

// endRemoved treats a job whose record was deleted as canceled. Otherwise its calls would be made again, because all parts
// are missing.
func (f *scheduler) endRemoved(name string, o *overseen) {
	if o.record.Version == removedVersion && !o.unannounced { // this is the scheduler's own message
		o.stale = false
		return
	}
	if o.record.State == job.Running || o.record.State == job.Indexing {
		f.sayf("job %s is no longer in the store, and ends", name)
	}
	*o = overseen{record: o.record, announced: o.announced}
	o.record.State, o.record.Version = job.Canceled, removedVersion
	f.announceChange(name)
}

// nextStep does the next step of a job.
func (f *scheduler) nextStep(ctx context.Context, o *overseen) error {
	if r := &o.record; r.GoesOn() && (f.stopBounded(ctx, o) || !r.Paused && f.stopRefused(ctx, o)) {
		return nil
	}
	switch o.record.State {
	case job.Indexing:
		return f.queueTask(ctx, o)
	case job.Running:
		if o.record.Paused {
			return f.pauseJob(ctx, o)
		}
		f.tellWeight(ctx, o, o.record.Weight)
		return f.fill(ctx, o)
	case job.Done, job.Refused, job.Canceled, job.Stopped: // a worker with a chunk of a done job finds its part
		f.tellWeight(ctx, o, 0)
		return f.purge(ctx, o)
	}
	return nil
}

// tellWeight tells the keeper the weight of a job that begins, once. Weight 0 says that the job needs no more permits.
func (f *scheduler) tellWeight(ctx context.Context, o *overseen, weight float64) {
	if goesOn := weight > 0; goesOn != o.announced {
		o.announced = goesOn
		f.keeper.Job(ctx, o.record.Job, weight)
	}
}

// countWorkers returns the number of workers heard within workerGone, at least 1 for this process.
func (f *scheduler) countWorkers() int {
	now := f.clock.Now()
	maps.DeleteFunc(f.heard, func(_ string, w statusHeard) bool { return now.Sub(w.at) > workerGone })
	return max(1, len(f.heard))
}

// stopBounded stops a job that has reached a bound set by its user, and reports whether it has reached one.
func (f *scheduler) stopBounded(ctx context.Context, o *overseen) bool {
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
		f.announceChange(o.record.Job)
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

// addSums counts the sums of an announced part.
func (o *overseen) addSums(d *bus.PartDone) {
	var sums parts.Sums
	if o.counted != nil && json.Unmarshal(d.Footer, &sums) == nil {
		o.counted[d.Chunk] = sums
	}
}
