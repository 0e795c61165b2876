package node

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/claim"
	"github.com/headrace/headrace/cluster/claim/executor"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/keeper"
	"github.com/headrace/headrace/cluster/keeping"
	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/cluster/store"
)

// Worker says how a process works.
type Worker struct {
	// Open returns the caller for a job. All jobs with the same [job.Asking] share it while one of them is under way.
	Open   func(*job.Record) (*Caller, error)
	Keeper keeping.Candidacy // "" is keeping.PrefersKeep
	// Concurrency bounds the calls in flight; 0 means batch.DefaultConcurrency.
	Concurrency int
	// Options set how calls are retried, and apply to every job.
	Options []batch.Option
	// SaveEvery bounds the time until an answer is saved, where the store cannot append; 0 means
	// store.DefaultPieceEvery.
	SaveEvery time.Duration
	// Watch hears what this process reports, if it is set.
	Watch Watch
	// Drain, once closed, ends the work softly: the worker begins nothing more, and saves the calls in flight.
	Drain <-chan struct{}
}

// Work works until it is drained, or ctx ends. Everything it started has ended when it returns. While the keeper
// speaks another version than this process, it only stands for keeper.
func (n *Node) Work(ctx context.Context, how Worker) error {
	if how.Concurrency == 0 {
		how.Concurrency = batch.DefaultConcurrency
	}
	if err := n.ensure(ctx, n.bus.Ensure); err != nil {
		return err
	}
	pictures, err := bus.Listen[bus.Picture](n.bus, bus.Keeper, "", picturesKept)
	if err != nil {
		return err
	}
	defer pictures.Close()
	version := &keeperVersion{Node: n, pictures: pictures}
	var standing sync.WaitGroup
	defer standing.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	expelled := make(chan struct{})
	var mismatch error // set once expelled is closed
	keepOrWatch := n.watchHub
	if how.Keeper != keeping.NeverKeeps {
		keepOrWatch = keeping.New(n.keepingConfig(&how)).Run
	}
	standing.Go(func() {
		if mismatch = keepOrWatch(ctx); mismatch != nil {
			close(expelled)
		}
	})
	drained, drain := how.Drain, make(chan struct{})
	how.Drain = drain
	standing.Go(func() {
		defer close(drain)
		select {
		case <-drained:
		case <-expelled:
		case <-ctx.Done():
		}
	})
	for {
		err := n.workInVersion(ctx, how, version)
		select {
		case <-expelled:
			return errors.Join(mismatch, err)
		default:
		}
		if err != nil || !version.differs() {
			return err
		}
		if drained := version.waitForSame(ctx, how.Drain); drained || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// A Watch hears the reports of one process, each once a second. It must not wait. Each field may be nil.
type Watch struct {
	Worked func(bus.WorkerStatus) // what it does; the maps are not to be kept
	Kept   func(bus.Picture)      // how the limits stand, while it is their keeper; another goroutine calls it
}

// keepingConfig returns the settings with which this process stands for keeper.
func (n *Node) keepingConfig(how *Worker) keeping.Config {
	return keeping.Config{
		Bus: n.bus, Home: n.home, Clock: n.clock, Epochs: n.epochs, Candidacy: how.Keeper, Term: n.cfg.Times.Term, Seed: n.cfg.Seed,
		SameHub: func(ctx context.Context) (mismatch bool, err error) {
			err = n.checkSameHub(ctx)
			return errors.Is(err, ErrOtherStore), err
		},
		Scheduler: func(ctx context.Context, k *keeping.Keeper) { newScheduler(n, k).run(ctx) },
		Status:    func(s keeper.Status) { n.sayKeeper(s, how.Watch.Kept) }, Say: n.cfg.Say,
	}
}

// worker is a process at work, for as long as it and the keeper speak one version.
type worker struct {
	*Node
	how      Worker
	keeper   *keeperVersion
	jobs     *jobs
	refusals *refusals
	exec     *executor.Executor
	control  *batch.Control
	link     *link
	watch    *recordWatch
	lanes    jobLanes
	limits   chan bus.LimitSet // limits that it works under
}

// limitsKept bounds the limits that wait to be reported: a job has one for each of its models.
const limitsKept = 1024

// workInVersion works until the keeper speaks another version, or the work here has ended.
func (n *Node) workInVersion(ctx context.Context, how Worker, version *keeperVersion) (err error) {
	r := n.newRefusals()
	w := &worker{
		Node: n, how: how, keeper: version, jobs: n.newJobs(r, how.Open), refusals: r, control: batch.NewControl(),
		limits: make(chan bus.LimitSet, limitsKept),
	}
	if w.link, err = newLink(n, w.control, r); err != nil {
		return err
	}
	defer w.link.close()
	if err = w.newExecutor(); err != nil {
		return err
	}
	return w.run(ctx)
}

// newExecutor makes the executor, and the watch of records that cancels and resumes jobs in it.
func (w *worker) newExecutor() (err error) {
	w.watch = w.newRecordWatch(w.cancel, w.resume)
	w.watch.end = w.end
	w.watch.resetLimit = w.refusals.liftLimit
	w.exec, err = executor.New(executor.Config{
		Claim:     claim.Config{Who: w.Name(), Concurrency: w.how.Concurrency, Ahead: w.ahead(), AckWait: w.cfg.Times.AckWait},
		Connected: w.bus.ReconnectedAt(), Store: w.home, Queue: queue{w.bus, w.watch, w.refusals}, Peers: peers{w.Node}, Open: w.openJob, Clock: w.clock, Say: w.cfg.Say,
		Journal: store.JournalConfig{Every: w.how.SaveEvery},
	})
	return err
}

// cancel gives up the chunks of a job.
func (w *worker) cancel(job string) { w.exec.Cancel(job) }

// end releases what the worker holds of a job that has ended, in whatever way.
func (w *worker) end(ctx context.Context, job string) {
	w.refusals.forget(job)
	w.lanes.end(job, true, w.clock.Now())
	w.jobs.reportEnd(ctx, job)
}

// resume lets a job run that may have been canceled here, and tries again what was refused.
func (w *worker) resume(job string) {
	w.exec.Resume(job)
	w.refusals.forget(job)
	w.lanes.end(job, false, w.clock.Now())
}

// run runs all parts of a worker, and waits for them. The stream ends when the executor drains; all other parts
// end with the stream.
func (w *worker) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stopAnswering, err := w.bus.Answer(w.Name(), w.holds)
	if err != nil {
		return err
	}
	taken, err := w.bus.ListenTaken(w.Name(), takenKept)
	if err != nil {
		stopAnswering()
		return err
	}
	parts := w.start(ctx, taken)
	var claims sync.WaitGroup
	var claimErr error
	claims.Go(func() { claimErr = w.exec.Run(ctx) })
	streamErr := w.stream(ctx)
	claims.Wait()
	stop()
	stopAnswering()
	taken.Close()
	parts.Wait()
	return errors.Join(streamErr, claimErr)
}

// start starts all parts that run next to the stream, until ctx ends.
func (w *worker) start(ctx context.Context, taken *bus.Feed[bus.Taken]) *sync.WaitGroup {
	parts := &sync.WaitGroup{}
	for _, part := range []func(context.Context){
		w.jobs.run, w.link.run, (&indexer{w.Node, w.jobs, w.refusals}).run, w.drain, w.drainIfKeeperDiffers, w.watchBus, w.watchOffers, w.watch.run, w.sayStatus,
		func(ctx context.Context) { w.hearTaken(ctx, taken) },
	} {
		parts.Go(func() { part(ctx) })
	}
	return parts
}

// drain ends the work softly once how.Drain is closed.
func (w *worker) drain(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.how.Drain:
		w.drainNow()
	}
}

// drainNow begins to end the work softly. It may be called twice.
func (w *worker) drainNow() {
	w.exec.Drain()
	w.control.Drain()
}

// A keeperVersion is a worker's knowledge of the version that the keeper speaks. While a cluster is upgraded there are
// workers of two versions, and one keeper of either. Workers of the other version get no permits. They must not hold
// chunks meanwhile, as nobody else could work on those. They wait until the keeper is one of theirs. A keeperVersion belongs
// to one goroutine at a time.
type keeperVersion struct {
	*Node
	pictures *bus.Feed[bus.Message[bus.Picture]]
	epoch    uint64    // of the latest keeper with another version than the one before
	version  int       // that keeper's version; 0: as far as is known, this process's
	asked    time.Time // when the store was last asked for the keeper of an epoch
}

// picturesKept bounds the keepers' messages that wait to be heard: each keeper sends one a second.
const picturesKept = 16

// hear notes a keeper's version, unless the sender is not keeper any more. A change of the version ends or begins all
// work, so the store must name the sender as the keeper of that epoch. It asks the store at most once in
// keeping.BelieveEvery.
func (a *keeperVersion) hear(ctx context.Context, m bus.Message[bus.Picture]) {
	version := cmp.Or(m.Body.Version, 1) // the first version did not send it
	if m.Body.Epoch < a.epoch || version == cmp.Or(a.version, permit.Version) {
		return
	}
	if now := a.clock.Now(); now.Sub(a.asked) >= keeping.BelieveEvery {
		a.asked = now
		if a.epochs.IsKeeper(ctx, m.About, m.Body.Epoch) {
			a.epoch, a.version = m.Body.Epoch, version
		}
	}
}

// differs reports whether the keeper speaks another version than this process, as far as is known.
func (a *keeperVersion) differs() bool { return a.version != 0 && a.version != permit.Version }

// waitUntil listens to keepers until their version differs from this one, or, with differ false, until it agrees. It
// returns false if done was closed or ctx ended first.
func (a *keeperVersion) waitUntil(ctx context.Context, done <-chan struct{}, differ bool) bool {
	for a.differs() != differ {
		select {
		case <-ctx.Done():
			return false
		case <-done:
			return false
		case w, open := <-a.pictures.C:
			if !open {
				return false
			}
			a.hear(ctx, w)
		}
	}
	return true
}

// drainIfKeeperDiffers ends the work softly once the keeper speaks another version.
func (w *worker) drainIfKeeperDiffers(ctx context.Context) {
	if w.keeper.waitUntil(ctx, nil, true) {
		w.sayf("the keeper of the limits is another version of headrace (its messages are of version %d, this worker's of %d): "+
			"this worker gives its work to others, and waits", w.keeper.version, permit.Version)
		w.drainNow()
	}
}

// waitForSame waits for a keeper of this version. It returns true if the worker was drained before.
func (a *keeperVersion) waitForSame(ctx context.Context, drain <-chan struct{}) (drained bool) {
	if a.waitUntil(ctx, drain, false) {
		a.sayf("the keeper of the limits is this version of headrace again: this worker goes on")
		return false
	}
	return ctx.Err() == nil
}
