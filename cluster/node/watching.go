package node

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
	"github.com/headrace/headrace/cluster/job/parts"
)

// A Standing is a job's state, by all that can be known of it from outside. The store shows which work is done for
// good. The workers show what they are doing, and the keeper what holds them back.
type Standing struct {
	JobStatus
	At    time.Time `json:"at"`
	Began time.Time `json:"began"` // when watching began

	Done      int        `json:"done"`       // items that have ended, of Items; those in no part yet count as workers report them
	Before    int        `json:"before"`     // of these, those that ended before watching began
	Since     parts.Sums `json:"since"`      // of the parts done since watching began
	PerSecond float64    `json:"per_second"` // items that ended, over the last SpeedSpan

	InFlight    int            `json:"in_flight"`
	Concurrency int            `json:"concurrency"` // calls that its workers may have in flight, for all jobs
	Calls       uint64         `json:"calls"`       // since its workers began, as the next three
	Refused     uint64         `json:"refused"`
	Cooldowns   uint64         `json:"cooldowns"`
	Waiting     int            `json:"waiting"`
	MeanMS      int64          `json:"latency_ms"`
	P95MS       int64          `json:"p95_ms"`
	Workers     []WorkerReport `json:"workers"` // workers heard within workerGone, by name

	Keeper string             `json:"keeper"` // "": none was heard
	Epoch  uint64             `json:"epoch"`
	Limits []bus.LimitPicture `json:"limits"` // limits that the job uses
	// PermitsPerSecond holds the rate of permits given to the job under each limit, over the last SpeedSpan.
	PermitsPerSecond map[string]float64 `json:"permits_per_second"`
}

// A WorkerReport is a worker's own report of its state.
type WorkerReport struct {
	Name string `json:"name"`
	bus.WorkerStatus
}

// workerReport leaves out the part for the keeper alone.
func workerReport(name string, s bus.WorkerStatus) WorkerReport {
	s.Limits = nil
	return WorkerReport{name, s}
}

// SpeedSpan is the time over which a standing measures speeds, as in a run of one process.
const SpeedSpan = 10 * time.Second

// watchKept bounds the workers' messages that wait to be heard: a second of a thousand workers.
const watchKept = 4096

// A watching adds up the messages about a job.
type watching struct {
	s           Standing
	job         string
	heard       map[string]workerHeard
	began       bool                    // the first look into the store is done
	counted     map[int]bool            // chunks whose sums are in Since
	samples     []sample                // samples of the last SpeedSpan
	keeperHeard time.Time               // when the keeper was last heard
	believes    func(epoch uint64) bool // reports whether there is a keeper of that epoch
	doneBefore  map[string]int          // items of the job that a worker had ended before it was first heard
}

type workerHeard struct {
	status bus.WorkerStatus
	at     time.Time
}

type sample struct {
	at    time.Time
	done  int
	epoch uint64
	given map[string]uint64 // permits, by limit
}

// Watch shows the state of a job after each period and after each change, until the job has ended in whatever way.
func (n *Node) Watch(ctx context.Context, name string, every time.Duration, report func(*Standing)) (JobStatus, error) {
	feeds, err := n.listenTo(name)
	if err != nil {
		return JobStatus{}, err
	}
	defer feeds.close()
	w := &watching{job: name, believes: func(epoch uint64) bool { return n.epochs.Believes(ctx, epoch) }, heard: map[string]workerHeard{}, doneBefore: map[string]int{}, counted: map[int]bool{}}
	w.s.Began = n.clock.Now()
	ticker := n.clock.NewTicker(every)
	defer ticker.Stop()
	var looked time.Time
	for check := true; ; {
		now := n.clock.Now()
		if check || now.Sub(looked) >= w.checkEvery() {
			looked = now
			s, err := n.Job(ctx, name)
			if err == nil {
				w.absorb(s)
			}
			if errors.Is(err, job.ErrMissing) {
				return s, err
			}
		}
		report(w.snapshot(now))
		if s := w.s.Record.State; w.began && s != job.Indexing && s != job.Running {
			return w.s.JobStatus, nil
		}
		check, err = feeds.next(ctx, ticker.Chan(), w, n.clock.Now)
		if err != nil {
			return w.s.JobStatus, err
		}
	}
}

// feeds holds the feeds that a watching hears.
type feeds struct {
	news    *bus.Feed[bus.Message[bus.Change]]
	done    *bus.Feed[bus.Message[bus.PartDone]]
	workers *bus.Feed[bus.Message[bus.WorkerStatus]]
	keeper  *bus.Feed[bus.Message[bus.Picture]]
}

// listenTo opens the feeds of a job's changes and parts, and of all workers and keepers. After an
// error none of them is open.
func (n *Node) listenTo(name string) (f feeds, err error) {
	if f.news, err = bus.Listen[bus.Change](n.bus, bus.News, name, watchKept); err == nil {
		f.done, err = bus.Listen[bus.PartDone](n.bus, bus.Done, name, watchKept)
	}
	if err == nil {
		f.workers, err = bus.Listen[bus.WorkerStatus](n.bus, bus.Status, "", watchKept)
	}
	if err == nil {
		f.keeper, err = bus.Listen[bus.Picture](n.bus, bus.Keeper, "", watchKept)
	}
	if err != nil {
		f.close()
	}
	return f, err
}

func (f *feeds) close() {
	f.news.Close()
	f.done.Close()
	f.workers.Close()
	f.keeper.Close()
}

// next handles messages until a period is over, or until the job has changed. check says whether it has changed, so that
// a look into the store is worth its cost.
func (f *feeds) next(ctx context.Context, tick <-chan time.Time, w *watching, now func() time.Time) (check bool, err error) {
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick:
			return false, nil
		case _, open := <-f.news.C:
			if !open {
				return false, bus.ErrAway
			}
			return true, nil
		case message, open := <-f.done.C:
			if !open {
				return false, bus.ErrAway
			}
			w.hearDone(message)
		case message, open := <-f.workers.C:
			if !open {
				return false, bus.ErrAway
			}
			w.hearWorker(message, now())
		case message, open := <-f.keeper.C:
			if !open {
				return false, bus.ErrAway
			}
			w.hearKeeper(message, now())
		}
	}
}

// absorb takes over the job's state from the store.
func (w *watching) absorb(s JobStatus) {
	if !w.began && s.Chunks > 0 {
		w.s.Before = itemsInParts(&s)
	}
	w.began = true
	w.s.JobStatus = s
}

// checkEvery returns the time between two looks into the store: a look lists all parts, a thousand with each request.
func (w *watching) checkEvery() time.Duration {
	const requests = 1000
	return min(listEvery, overseeEvery*time.Duration(1+w.s.Chunks/requests))
}

// itemsInParts estimates the items in the parts of a job from the number of parts.
func itemsInParts(s *JobStatus) int {
	if s.Chunks == 0 || s.Record.Round > 0 {
		return 0
	}
	return int(int64(s.Items) * int64(s.Parts) / int64(s.Chunks))
}

// hearDone adds the sums of a part that is done, once for each part of the present round.
func (w *watching) hearDone(m bus.Message[bus.PartDone]) {
	d := &m.Body
	var sums parts.Sums
	if d.Round != w.s.Record.Round || w.counted[d.Chunk] || json.Unmarshal(d.Footer, &sums) != nil {
		return
	}
	w.counted[d.Chunk] = true
	w.s.Since = w.s.Since.Plus(sums)
}

// hearWorker stores a worker's report. On the first one it notes what the worker had done before watching began.
func (w *watching) hearWorker(m bus.Message[bus.WorkerStatus], now time.Time) {
	s := m.Body
	if s.Serves != nil { // it does nothing for a job
		return
	}
	if _, known := w.doneBefore[m.About]; !known {
		w.doneBefore[m.About] = 0
		if s.UpS > now.Sub(w.s.Began).Seconds() { // it was there before; a later one begins with nothing
			w.doneBefore[m.About] = int(s.Jobs[w.job].Done)
		}
	}
	w.heard[m.About] = workerHeard{s, now}
}

// hearKeeper records the state of the job's limits by the latest keeper. It ignores an earlier
// keeper, and one whose epoch is not in the store.
func (w *watching) hearKeeper(m bus.Message[bus.Picture], now time.Time) {
	p := &m.Body
	if p.Epoch < w.s.Epoch || !w.believes(p.Epoch) {
		return
	}
	w.keeperHeard, w.s.Keeper, w.s.Epoch = now, m.About, p.Epoch
	w.s.Limits = w.s.Limits[:0]
	for _, l := range p.Limits {
		if slices.ContainsFunc(l.Jobs, func(j bus.JobPicture) bool { return j.Job == w.job }) {
			w.s.Limits = append(w.s.Limits, l)
		}
	}
}

// snapshot brings the figures up to date, and returns a copy of them.
func (w *watching) snapshot(now time.Time) *Standing {
	s := &w.s
	s.At = now
	if now.Sub(w.keeperHeard) > workerGone {
		s.Keeper, s.Limits = "", nil
	}
	w.addUp(now)
	w.measureSpeed(now)
	shown := *s
	shown.Limits = slices.Clone(s.Limits)
	return &shown
}

// addUp adds up the workers' reports.
func (w *watching) addUp(now time.Time) {
	s := &w.s
	s.InFlight, s.Concurrency, s.Waiting, s.Calls, s.Refused, s.Cooldowns, s.MeanMS, s.P95MS = 0, 0, 0, 0, 0, 0, 0, 0
	s.Workers = nil
	ended := s.Before
	for _, name := range slices.Sorted(maps.Keys(w.heard)) {
		h := w.heard[name]
		mine := h.status.Jobs[w.job]
		ended += max(0, int(mine.Done)-w.doneBefore[name])
		s.Calls, s.Refused, s.Cooldowns = s.Calls+mine.Calls, s.Refused+mine.Refused, max(s.Cooldowns, mine.Cooldowns)
		if now.Sub(h.at) > workerGone {
			continue
		}
		s.Workers = append(s.Workers, workerReport(name, h.status))
		s.InFlight, s.Concurrency, s.Waiting = s.InFlight+mine.InFlight, s.Concurrency+h.status.Concurrency, s.Waiting+mine.Waiting
		s.MeanMS, s.P95MS = max(s.MeanMS, mine.MeanMS), max(s.P95MS, mine.P95MS)
	}
	// Done never falls, and never exceeds the items: a worker that dies loses its unsaved items.
	s.Done = min(max(s.Done, ended, itemsInParts(&s.JobStatus)), s.Items)
	if s.Record.State == job.Done {
		s.Done = s.Items
	}
}

// measureSpeed adds a sample to the curve, and computes the speeds.
func (w *watching) measureSpeed(now time.Time) {
	w.samples = append(w.samples, sample{now, w.s.Done, w.s.Epoch, w.permitsGiven()})
	for len(w.samples) > 1 && now.Sub(w.samples[0].at) > SpeedSpan {
		w.samples = w.samples[1:]
	}
	first, last := w.samples[0], w.samples[len(w.samples)-1]
	w.s.PermitsPerSecond = map[string]float64{}
	seconds := now.Sub(first.at).Seconds()
	if seconds <= 0 {
		return
	}
	w.s.PerSecond = float64(w.s.Done-first.done) / seconds
	for name, given := range last.given {
		if first.epoch == last.epoch && given >= first.given[name] { // another keeper counts anew
			w.s.PermitsPerSecond[name] = float64(given-first.given[name]) / seconds
		}
	}
}

// permitsGiven returns the permits that this keeper has given the job, by limit.
func (w *watching) permitsGiven() map[string]uint64 {
	all := map[string]uint64{}
	for i := range w.s.Limits {
		for _, j := range w.s.Limits[i].Jobs {
			if j.Job == w.job {
				all[w.s.Limits[i].Name] = j.Given
			}
		}
	}
	return all
}

// Stand returns the state of a job after listening to workers and keeper for wait: each reports once a second.
func (n *Node) Stand(ctx context.Context, name string, wait time.Duration) (*Standing, error) {
	var at *Standing
	hearing, stop := clockwork.WithTimeout(ctx, n.clock, wait)
	defer stop()
	_, err := n.Watch(hearing, name, wait/2, func(s *Standing) { at = s }) //nolint:mnd // half, so that a standing comes once more before the end
	if at == nil || ctx.Err() != nil || errors.Is(err, job.ErrMissing) {
		return nil, err
	}
	return at, nil
}

// An Office shows the keeper of a cluster, the state of all limits, and the workers.
type Office struct {
	Keeper  string             `json:"keeper"`
	Epoch   uint64             `json:"epoch"`
	Limits  []bus.LimitPicture `json:"limits"`
	Workers []WorkerReport     `json:"workers"`
}

// Office listens to workers for wait, and to the keeper until it has reported. If ctx ends before, the result has the
// workers alone.
func (n *Node) Office(ctx context.Context, wait time.Duration) (o Office, err error) {
	workers, err := bus.Listen[bus.WorkerStatus](n.bus, bus.Status, "", watchKept)
	if err != nil {
		return o, err
	}
	defer workers.Close()
	keeper, err := bus.Listen[bus.Picture](n.bus, bus.Keeper, "", newsKept)
	if err != nil {
		return o, err
	}
	defer keeper.Close()
	over, heardOf := n.clock.After(wait), map[string]bus.WorkerStatus{}
	defer func() {
		for _, name := range slices.Sorted(maps.Keys(heardOf)) {
			o.Workers = append(o.Workers, workerReport(name, heardOf[name]))
		}
	}()
	for waited := false; !waited || o.Keeper == ""; {
		select {
		case <-ctx.Done():
			return o, ctx.Err()
		case <-over:
			waited = true
		case message, open := <-workers.C:
			if !open {
				return o, bus.ErrAway
			}
			heardOf[message.About] = message.Body
		case message, open := <-keeper.C:
			if !open {
				return o, bus.ErrAway
			}
			if p := &message.Body; p.Epoch >= o.Epoch && n.epochs.Believes(ctx, p.Epoch) {
				o.Keeper, o.Epoch, o.Limits = message.About, p.Epoch, p.Limits
			}
		}
	}
	return o, nil
}
