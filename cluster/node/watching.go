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

// A Standing is how a job stands, by all that can be known of it from outside: the store says what is done for good, the
// workers what they are about, the keeper what holds them back.
type Standing struct {
	JobStatus
	At    time.Time `json:"at"`
	Began time.Time `json:"began"` // since when it is watched

	Done      int        `json:"done"`       // items that have ended, of Items; what is in no part yet counts as it is heard of
	Before    int        `json:"before"`     // of these, before it was watched
	Since     parts.Sums `json:"since"`      // of the parts that were done since it is watched
	PerSecond float64    `json:"per_second"` // items that ended, over the last SpeedSpan

	InFlight    int          `json:"in_flight"`
	Concurrency int          `json:"concurrency"` // calls that its workers may have in flight, of all jobs
	Calls       uint64       `json:"calls"`       // since its workers began, as the next three
	Refused     uint64       `json:"refused"`
	Cooldowns   uint64       `json:"cooldowns"`
	Waiting     int          `json:"waiting"`
	MeanMS      int64        `json:"latency_ms"`
	P95MS       int64        `json:"p95_ms"`
	Workers     []WorkerLook `json:"workers"` // that were heard of in the last workerGone, by name

	Keeper string         `json:"keeper"` // ""; none was heard of
	Epoch  uint64         `json:"epoch"`
	Limits []LimitPicture `json:"limits"` // that it draws on
	// PermitsPerSecond are those that the job was given under each limit, over the last SpeedSpan.
	PermitsPerSecond map[string]float64 `json:"permits_per_second"`
}

// A WorkerLook is a worker as it says that it stands.
type WorkerLook struct {
	Name string `json:"name"`
	WorkerStatus
}

// lookAt leaves out what is for the keeper alone.
func lookAt(name string, s WorkerStatus) WorkerLook {
	s.Limits = nil
	return WorkerLook{name, s}
}

// SpeedSpan is the time over which a standing has its speeds, as of a run of one process.
const SpeedSpan = 10 * time.Second

// watchKept is how many words of workers may wait to be heard: a second of a thousand.
const watchKept = 4096

// A watching adds up what is heard.
type watching struct {
	s        Standing
	job      string
	heard    map[string]heard
	began    bool                    // the first look into the store is done
	counted  map[int]bool            // chunks whose sums are in Since
	curve    []ended                 // of the last SpeedSpan
	keeper   time.Time               // when it was heard last
	believes func(epoch uint64) bool // whether there is a keeper of that epoch
	base     map[string]int          // items of the job that a worker had ended when it was first heard of
}

type heard struct {
	status WorkerStatus
	at     time.Time
}

type ended struct {
	at    time.Time
	done  int
	epoch uint64
	given map[string]uint64 // permits, by limit
}

// Watch shows how a job stands, each time that a period is over or it has changed, until it has ended in whatever way.
func (n *Node) Watch(ctx context.Context, name string, every time.Duration, told func(*Standing)) (JobStatus, error) {
	feeds, err := n.listenTo(name)
	if err != nil {
		return JobStatus{}, err
	}
	defer feeds.close()
	w := &watching{job: name, believes: func(epoch uint64) bool { return n.epochs.Believes(ctx, epoch) }, heard: map[string]heard{}, base: map[string]int{}, counted: map[int]bool{}}
	w.s.Began = n.clock.Now()
	ticker := n.clock.NewTicker(every)
	defer ticker.Stop()
	var looked time.Time
	for look := true; ; {
		now := n.clock.Now()
		if look || now.Sub(looked) >= w.lookEvery() {
			looked = now
			s, err := n.Job(ctx, name)
			if err == nil {
				w.look(s)
			}
			if errors.Is(err, job.ErrMissing) {
				return s, err
			}
		}
		told(w.picture(now))
		if s := w.s.Record.State; w.began && s != job.Indexing && s != job.Running {
			return w.s.JobStatus, nil
		}
		look, err = feeds.next(ctx, ticker.Chan(), w, n.clock.Now)
		if err != nil {
			return w.s.JobStatus, err
		}
	}
}

// feeds are what a watching hears.
type feeds struct{ news, done, workers, keeper *bus.Feed[bus.Word] }

func (n *Node) listenTo(name string) (f feeds, err error) {
	for _, one := range []struct {
		to    **bus.Feed[bus.Word]
		topic bus.Topic
		about string
	}{{&f.news, bus.News, name}, {&f.done, bus.Done, name}, {&f.workers, bus.Status, ""}, {&f.keeper, bus.Keeper, ""}} {
		if *one.to, err = n.bus.Listen(one.topic, one.about, watchKept); err != nil {
			f.close()
			return f, err
		}
	}
	return f, nil
}

func (f *feeds) close() {
	for _, one := range []*bus.Feed[bus.Word]{f.news, f.done, f.workers, f.keeper} {
		if one != nil {
			one.Close()
		}
	}
}

// next hears until a period is over, or until the job has changed, which is worth a look into the store.
func (f *feeds) next(ctx context.Context, tick <-chan time.Time, w *watching, now func() time.Time) (look bool, err error) {
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
		case word, open := <-f.done.C:
			if !open {
				return false, bus.ErrAway
			}
			w.hearDone(word)
		case word, open := <-f.workers.C:
			if !open {
				return false, bus.ErrAway
			}
			w.hearWorker(word, now())
		case word, open := <-f.keeper.C:
			if !open {
				return false, bus.ErrAway
			}
			w.hearKeeper(word, now())
		}
	}
}

// look takes what the store says.
func (w *watching) look(s JobStatus) {
	if !w.began && s.Chunks > 0 {
		w.s.Before = ofParts(&s)
	}
	w.began = true
	w.s.JobStatus = s
}

// lookEvery is how often the store is asked: all parts are listed, a thousand with each request.
func (w *watching) lookEvery() time.Duration {
	const requests = 1000
	return min(listEvery, lookEvery*time.Duration(1+w.s.Chunks/requests))
}

// ofParts is how many items the parts of a job have, as nearly as their number tells.
func ofParts(s *JobStatus) int {
	if s.Chunks == 0 || s.Record.Round > 0 {
		return 0
	}
	return int(int64(s.Items) * int64(s.Parts) / int64(s.Chunks))
}

func (w *watching) hearDone(word bus.Word) {
	var d doneWord
	var sums parts.Sums
	if json.Unmarshal(word.Body, &d) != nil || d.Round != w.s.Record.Round || w.counted[d.Chunk] || json.Unmarshal(d.Footer, &sums) != nil {
		return
	}
	w.counted[d.Chunk] = true
	w.s.Since = w.s.Since.Plus(sums)
}

func (w *watching) hearWorker(word bus.Word, now time.Time) {
	var s WorkerStatus
	if json.Unmarshal(word.Body, &s) != nil {
		return
	}
	if _, known := w.base[word.About]; !known {
		w.base[word.About] = 0
		if s.UpS > now.Sub(w.s.Began).Seconds() { // it was there before; one that comes later begins with nothing
			w.base[word.About] = int(s.Jobs[w.job].Done)
		}
	}
	w.heard[word.About] = heard{s, now}
}

func (w *watching) hearKeeper(word bus.Word, now time.Time) {
	var p Picture
	if json.Unmarshal(word.Body, &p) != nil || p.Epoch < w.s.Epoch || !w.believes(p.Epoch) {
		return
	}
	w.keeper, w.s.Keeper, w.s.Epoch = now, word.About, p.Epoch
	w.s.Limits = w.s.Limits[:0]
	for _, l := range p.Limits {
		if slices.ContainsFunc(l.Jobs, func(j JobPicture) bool { return j.Job == w.job }) {
			w.s.Limits = append(w.s.Limits, l)
		}
	}
}

// picture is how it stands now.
func (w *watching) picture(now time.Time) *Standing {
	s := &w.s
	s.At = now
	if now.Sub(w.keeper) > workerGone {
		s.Keeper, s.Limits = "", nil
	}
	w.addUp(now)
	w.speed(now)
	shown := *s
	shown.Limits = slices.Clone(s.Limits)
	return &shown
}

// addUp adds up what workers have said.
func (w *watching) addUp(now time.Time) {
	s := &w.s
	s.InFlight, s.Concurrency, s.Waiting, s.Calls, s.Refused, s.Cooldowns, s.MeanMS, s.P95MS = 0, 0, 0, 0, 0, 0, 0, 0
	s.Workers = nil
	ended := s.Before
	for _, name := range slices.Sorted(maps.Keys(w.heard)) {
		h := w.heard[name]
		mine := h.status.Jobs[w.job]
		ended += max(0, int(mine.Done)-w.base[name])
		s.Calls, s.Refused, s.Cooldowns = s.Calls+mine.Calls, s.Refused+mine.Refused, max(s.Cooldowns, mine.Cooldowns)
		if now.Sub(h.at) > workerGone {
			continue
		}
		s.Workers = append(s.Workers, lookAt(name, h.status))
		s.InFlight, s.Concurrency, s.Waiting = s.InFlight+mine.InFlight, s.Concurrency+h.status.Concurrency, s.Waiting+mine.Waiting
		s.MeanMS, s.P95MS = max(s.MeanMS, mine.MeanMS), max(s.P95MS, mine.P95MS)
	}
	// Never less than was shown, and never more than there are: a worker that dies takes what it had not saved with it.
	s.Done = min(max(s.Done, ended, ofParts(&s.JobStatus)), s.Items)
	if s.Record.State == job.Done {
		s.Done = s.Items
	}
}

// speed takes the latest of the curve in.
func (w *watching) speed(now time.Time) {
	w.curve = append(w.curve, ended{now, w.s.Done, w.s.Epoch, w.given()})
	for len(w.curve) > 1 && now.Sub(w.curve[0].at) > SpeedSpan {
		w.curve = w.curve[1:]
	}
	first, last := w.curve[0], w.curve[len(w.curve)-1]
	w.s.PermitsPerSecond = map[string]float64{}
	took := now.Sub(first.at).Seconds()
	if took <= 0 {
		return
	}
	w.s.PerSecond = float64(w.s.Done-first.done) / took
	for name, given := range last.given {
		if first.epoch == last.epoch && given >= first.given[name] { // another keeper counts anew
			w.s.PermitsPerSecond[name] = float64(given-first.given[name]) / took
		}
	}
}

// given is how many permits the job was given by this keeper.
func (w *watching) given() map[string]uint64 {
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

// Stand is how a job stands, when workers and keeper were listened to for so long: they speak once a second.
func (n *Node) Stand(ctx context.Context, name string, wait time.Duration) (*Standing, error) {
	var at *Standing
	hearing, stop := clockwork.WithTimeout(ctx, n.clock, wait)
	defer stop()
	_, err := n.Watch(hearing, name, wait/2, func(s *Standing) { at = s }) //nolint:mnd // it is told once more before the end
	if at == nil || ctx.Err() != nil || errors.Is(err, job.ErrMissing) {
		return nil, err
	}
	return at, nil
}

// An Office is who keeps the limits of a cluster, how all of them stand, and who works.
type Office struct {
	Keeper  string         `json:"keeper"`
	Epoch   uint64         `json:"epoch"`
	Limits  []LimitPicture `json:"limits"`
	Workers []WorkerLook   `json:"workers"`
}

// Office listens to workers for so long, and to the keeper until it has spoken, or ctx ends: then it has the workers alone.
func (n *Node) Office(ctx context.Context, wait time.Duration) (o Office, err error) {
	workers, err := n.bus.Listen(bus.Status, "", watchKept)
	if err != nil {
		return o, err
	}
	defer workers.Close()
	keeper, err := n.bus.Listen(bus.Keeper, "", newsKept)
	if err != nil {
		return o, err
	}
	defer keeper.Close()
	over, heardOf := n.clock.After(wait), map[string]WorkerStatus{}
	defer func() {
		for _, name := range slices.Sorted(maps.Keys(heardOf)) {
			o.Workers = append(o.Workers, lookAt(name, heardOf[name]))
		}
	}()
	for waited := false; !waited || o.Keeper == ""; {
		select {
		case <-ctx.Done():
			return o, ctx.Err()
		case <-over:
			waited = true
		case word, open := <-workers.C:
			var s WorkerStatus
			if !open {
				return o, bus.ErrAway
			}
			if json.Unmarshal(word.Body, &s) == nil {
				heardOf[word.About] = s
			}
		case word, open := <-keeper.C:
			var p Picture
			if !open {
				return o, bus.ErrAway
			}
			if json.Unmarshal(word.Body, &p) == nil && p.Epoch >= o.Epoch && n.epochs.Believes(ctx, p.Epoch) {
				o.Keeper, o.Epoch, o.Limits = word.About, p.Epoch, p.Limits
			}
		}
	}
	return o, nil
}
