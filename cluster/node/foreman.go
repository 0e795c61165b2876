package node

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/index"
	"github.com/headrace/headrace/cluster/job/parts"
)

const (
	// QueuedAhead is how many chunks of a job are in the queue at most: a job that is canceled leaves no
	// more, and a queue that is lost is soon made again. It is a thousand workers' for minutes.
	QueuedAhead = 10_000
	// lookEvery is how often the foreman looks at what each job needs, beside when he is told.
	lookEvery = time.Second
	// listEvery is how often he looks at the store for jobs and parts that nobody has told him of.
	listEvery = time.Minute
	// mendEvery is how often he looks whether the queue holds work back that nobody has: a hub that came up on a damaged
	// store may. It is three requests of a millisecond each.
	mendEvery = 10 * time.Second
	// workerGone is after how long a worker that has said nothing does not count any more.
	workerGone = 10 * time.Second
	// newsKept is how many words may wait to be heard: a second of fast chunks. What is lost is seen
	// in the store.
	newsKept = 4096
)

// A foreman does for each job what it needs next: he has its input indexed, cuts it, keeps the queue
// filled, counts parts, and says when it is done. He lives with the keeper, and holds nothing
// that is not in the store.
type foreman struct {
	*Node
	keep   *keeping
	jobs   map[string]*overseen
	seen   map[string]time.Time // workers, and when each was heard of last
	listed time.Time
	mended time.Time // when the queue was last looked at
}

// overseen is a job as its foreman sees it.
type overseen struct {
	record job.Record
	plan   *index.Plan // nil: not loaded yet
	chunks *index.Chunks
	ledger *parts.Ledger
	listed time.Time
	stale  bool // its record has changed
	told   bool // the keeper knows its weight
}

// forePerson runs a foreman beside a keeper, until ctx ends.
func (n *Node) forePerson(ctx context.Context, k *keeping) {
	f := &foreman{Node: n, keep: k, jobs: map[string]*overseen{}, seen: map[string]time.Time{}}
	f.run(ctx)
}

func (f *foreman) run(ctx context.Context) {
	done, err := f.bus.Listen(bus.Done, "", newsKept)
	if err != nil {
		return
	}
	defer done.Close()
	news, err := f.bus.Listen(bus.News, "", newsKept)
	if err != nil {
		return
	}
	defer news.Close()
	status, err := f.bus.Listen(bus.Status, "", newsKept)
	if err != nil {
		return
	}
	defer status.Close()
	ticker := f.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	f.look(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case w, open := <-done.C:
			if !open {
				return
			}
			f.hearDone(w)
		case w, open := <-news.C:
			if !open {
				return
			}
			f.hearNews(ctx, w)
		case w, open := <-status.C:
			if !open {
				return
			}
			f.hearStatus(ctx, w)
		case s := <-f.keep.stops:
			f.stop(ctx, s)
		case <-ticker.Chan():
			f.look(ctx)
		}
	}
}

// stop notes why a job cannot go on. Who resumes it vouches for its limit.
func (f *foreman) stop(ctx context.Context, s stopped) {
	o := f.jobs[s.job]
	if o == nil || o.record.State != job.Running || o.stale {
		return
	}
	_, err := job.Change(ctx, f.home, s.job, func(r *job.Record) error {
		if r.State != job.Running {
			return errChanged
		}
		r.State, r.Why = job.Stopped, s.why
		return nil
	})
	o.stale = true
	if err == nil {
		f.tellChanged(s.job)
	}
}

// hearDone notes that a part is there.
func (f *foreman) hearDone(w bus.Word) {
	var d doneWord
	o := f.jobs[w.About]
	if o == nil || o.ledger == nil || json.Unmarshal(w.Body, &d) != nil || d.Round != o.record.Round {
		return
	}
	o.ledger.Note(d.Chunk)
}

// hearNews looks at a job of which somebody says that it has changed, or passes a person's word on to the keeper.
func (f *foreman) hearNews(ctx context.Context, w bus.Word) {
	var n newsWord
	if json.Unmarshal(w.Body, &n) != nil {
		return
	}
	switch {
	case n.Reset != "":
		f.keep.tell(ctx, resetOrder(n.Reset))
	case n.Set != nil:
		f.keep.tell(ctx, setOrder(n.Set.Name, n.Set.Lane))
	default:
		if o := f.jobs[w.About]; o != nil {
			o.stale = true
		}
		f.meet(ctx, w.About)
		f.look(ctx)
	}
}

// hearStatus takes what limits are like of who works under them.
func (f *foreman) hearStatus(ctx context.Context, w bus.Word) {
	var s WorkerStatus
	if json.Unmarshal(w.Body, &s) != nil {
		return
	}
	f.seen[w.About] = f.clock.Now()
	for name, lane := range s.Limits {
		f.keep.tell(ctx, limitOrder(name, lane))
	}
}

// meet begins to oversee a job.
func (f *foreman) meet(ctx context.Context, name string) {
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

// look does what each job needs.
func (f *foreman) look(ctx context.Context) {
	now := f.clock.Now()
	if now.Sub(f.listed) >= listEvery {
		f.listed = now
		for name, err := range job.List(ctx, f.home) {
			if err != nil {
				break // the store is away: it is looked again
			}
			f.meet(ctx, name)
		}
	}
	for name, o := range f.jobs {
		if o.stale {
			f.reload(ctx, name, o)
		}
		if err := f.serve(ctx, o); err != nil && ctx.Err() == nil {
			f.sayf("job %s: %v", name, err)
		}
	}
	f.mend(ctx, now)
}

// mend has work given out that the queue holds back, every now and then. A bus that is away is asked again then.
func (f *foreman) mend(ctx context.Context, now time.Time) {
	if now.Sub(f.mended) < mendEvery {
		return
	}
	f.mended = now
	if mended, _ := f.bus.Mend(ctx); mended {
		f.sayf("the queue held work back that nobody had, and gives it out again")
	}
}

func (f *foreman) reload(ctx context.Context, name string, o *overseen) {
	r, err := job.Load(ctx, f.home, name)
	if err != nil {
		return // it stays stale
	}
	o.stale = false
	if r.Version == o.record.Version {
		return
	}
	if o.record.State == job.Stopped && r.State == job.Running { // who has it go on vouches for its limits
		f.keep.tell(ctx, vouchOrder(name))
	}
	*o = overseen{record: r, told: o.told}
}

// serve does what one job needs next.
func (f *foreman) serve(ctx context.Context, o *overseen) error {
	switch o.record.State {
	case job.Indexing:
		return f.index(ctx, o)
	case job.Running:
		f.weigh(ctx, o, o.record.Weight)
		return f.fill(ctx, o)
	case job.Refused, job.Canceled, job.Stopped, job.Done:
		if o.told {
			f.weigh(ctx, o, 0)
			return f.purge(ctx, o)
		}
	}
	return nil
}

// weigh tells the keeper what share a job has, once; 0 is that it is over.
func (f *foreman) weigh(ctx context.Context, o *overseen, weight float64) {
	if is := weight > 0; is != o.told {
		o.told = is
		f.keep.tell(ctx, jobOrder(o.record.Job, weight))
	}
}

func (f *foreman) purge(ctx context.Context, o *overseen) error {
	return errors.Join(f.bus.Purge(ctx, bus.Chunks, o.record.Job), f.bus.Purge(ctx, bus.Tasks, o.record.Job))
}

// index has the segments of a job's inputs read through; when all are, it is cut, or refused.
func (f *foreman) index(ctx context.Context, o *overseen) error {
	segments := index.Segments(&o.record)
	have, err := index.Indexed(ctx, f.home, o.record.Job)
	if err != nil {
		return err
	}
	there := map[int]bool{}
	for _, n := range have {
		there[n] = true
	}
	whole := true
	for _, s := range segments {
		if there[s.Number] {
			continue
		}
		whole = false
		body, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if _, err := f.bus.Queue(ctx, bus.Work{Kind: bus.Tasks, Job: o.record.Job, Name: strconv.Itoa(s.Number)}, body); err != nil {
			return f.unqueued(ctx, err)
		}
	}
	if !whole {
		return nil
	}
	return f.cut(ctx, o)
}

// unqueued makes the queue again if it is gone.
func (f *foreman) unqueued(ctx context.Context, err error) error {
	if errors.Is(err, bus.ErrGone) {
		return f.bus.Ensure(ctx)
	}
	return err
}

// cut makes the plan of a job, and has it run, or refuses it.
func (f *foreman) cut(ctx context.Context, o *overseen) error {
	source := &index.Source{Store: f.home, Record: o.record, Open: f.openOther}
	old, err := index.LoadPlan(ctx, f.home, &o.record)
	if err != nil {
		return err
	}
	plan, err := source.Merge(ctx, old, f.workers(), f.objectName())
	if err != nil {
		return err
	}
	name, err := plan.Save(ctx, f.home, f.objectName())
	if err != nil {
		return err
	}
	_, err = job.Change(ctx, f.home, o.record.Job, func(r *job.Record) error {
		if r.Version != o.record.Version {
			return errChanged
		}
		r.Plan, r.State = name, job.Running
		if bad := plan.Refused(); bad != nil {
			r.State, r.Why = job.Refused, bad.Error()
		}
		return nil
	})
	o.stale = true
	if errors.Is(err, errChanged) {
		return nil
	}
	return err
}

// errChanged says that somebody else has changed a job meanwhile.
var errChanged = errors.New("node: the job has changed")

// workers is how many were heard of of late, at least this one.
func (f *foreman) workers() int {
	now := f.clock.Now()
	maps.DeleteFunc(f.seen, func(_ string, at time.Time) bool { return now.Sub(at) > workerGone })
	return max(1, len(f.seen))
}

// fill keeps the queue filled with what has no part, and finds out that nothing is missing.
func (f *foreman) fill(ctx context.Context, o *overseen) error {
	if err := f.count(ctx, o); err != nil {
		return err
	}
	if o.ledger.Whole() {
		return f.finish(ctx, o)
	}
	missing := o.ledger.Len() - o.ledger.Done()
	queued, err := f.bus.Queued(ctx, bus.Chunks, o.record.Job)
	if err != nil {
		return f.unqueued(ctx, err)
	}
	if queued >= min(missing, QueuedAhead/2) {
		return nil
	}
	return f.queue(ctx, o)
}

// queue puts the first chunks that have no part into the queue. One that is there is refused by it.
func (f *foreman) queue(ctx context.Context, o *overseen) error {
	put := 0
	for n := range o.ledger.Missing(0) {
		if put++; put > QueuedAhead {
			break
		}
		c, err := o.chunks.At(ctx, n)
		if err != nil {
			return err
		}
		c.Round = o.record.Round
		body, err := json.Marshal(c)
		if err != nil {
			return err
		}
		if _, err := f.bus.Queue(ctx, workOf(claimOf(&c)), body); err != nil {
			return f.unqueued(ctx, err)
		}
	}
	return nil
}
