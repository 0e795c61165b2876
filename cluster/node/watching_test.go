package node

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/job"
)

// watchRig is a watching with facts that the test makes up.
type watchRig struct {
	t   *testing.T
	w   *watching
	now time.Time
}

func newWatchRig(t *testing.T, items, chunks, parts int) *watchRig {
	r := &watchRig{t, &watching{job: "j", believes: func(uint64) bool { return true }, heard: map[string]workerHeard{}, doneBefore: map[string]int{}, counted: map[int]bool{}}, time.Unix(1000, 0)}
	r.w.s.Began = r.now
	r.check(items, chunks, parts, job.Running)
	return r
}

func (r *watchRig) check(items, chunks, parts int, state job.State) {
	r.w.absorb(JobStatus{Record: job.Record{Job: "j", State: state}, Items: items, Chunks: chunks, Parts: parts})
}

func from[T any](about string, body T) bus.Message[T] {
	return bus.Message[T]{About: about, Body: body}
}

func (r *watchRig) worker(name string, done uint64, inFlight int) {
	up := r.now.Sub(r.w.s.Began).Seconds()
	if name == "a" { // it was there before
		up += 60
	}
	s := bus.WorkerStatus{UpS: up, Concurrency: 8, Jobs: map[string]bus.JobWork{"j": {Done: done, InFlight: inFlight}, "other": {Done: 1000}}}
	r.w.hearWorker(from(name, s), r.now)
}

func (r *watchRig) done(after time.Duration) (done int) {
	r.now = r.now.Add(after)
	return r.w.snapshot(r.now).Done
}

// What is done never falls, never is more than there is, and is known before a part is whole.
func TestWatchingCountsWhatIsDone(t *testing.T) {
	r := newWatchRig(t, 1000, 10, 2)
	steps := []struct {
		what string
		do   func()
		want int
	}{
		{"what the parts have", func() {}, 200},
		{"what a worker had done before is in a part, or will be", func() { r.worker("a", 130, 4) }, 200},
		{"what it does from then on counts", func() { r.worker("a", 180, 4) }, 250},
		{"so does all of one that comes later", func() { r.worker("b", 40, 4) }, 290},
		{"a part that is whole was counted already", func() { r.check(1000, 10, 3, job.Running) }, 300},
		{"one that dies takes nothing back that was shown", func() { r.now = r.now.Add(2 * workerGone) }, 300},
		{"another life of it begins with nothing", func() { r.worker("a2", 5, 1) }, 300},
		{"no more than there are", func() { r.worker("b", 5000, 1) }, 1000},
	}
	for _, s := range steps {
		s.do()
		if got := r.done(3 * time.Second); got != s.want {
			t.Errorf("%s: %d, want %d", s.what, got, s.want)
		}
	}
}

func TestWatchingForgetsTheDead(t *testing.T) {
	r := newWatchRig(t, 100, 1, 0)
	r.worker("a", 0, 5)
	r.worker("b", 0, 3)
	r.w.hearKeeper(from("a", bus.Picture{Epoch: 4, Limits: []bus.LimitPicture{{Name: "l", Jobs: []bus.JobPicture{{Job: "j", Given: 10}}}, {Name: "m", Jobs: []bus.JobPicture{{Job: "other"}}}}}), r.now)
	r.w.hearKeeper(from("old", bus.Picture{Epoch: 3}), r.now)
	if s := r.w.snapshot(r.now); s.InFlight != 8 || s.Concurrency != 16 || len(s.Workers) != 2 || s.Keeper != "a" || s.Epoch != 4 || len(s.Limits) != 1 || s.Limits[0].Name != "l" {
		t.Errorf("%+v", s)
	}
	r.now = r.now.Add(6 * time.Second)
	r.worker("b", 9, 2)
	r.w.hearKeeper(from("a", bus.Picture{Epoch: 4, Limits: []bus.LimitPicture{{Name: "l", Jobs: []bus.JobPicture{{Job: "j", Given: 70}}}}}), r.now)
	if s := r.w.snapshot(r.now); s.PermitsPerSecond["l"] != 10 || s.PerSecond != 1.5 {
		t.Errorf("%v permits and %v items a second", s.PermitsPerSecond, s.PerSecond)
	}
	r.now = r.now.Add(6 * time.Second)
	if s := r.w.snapshot(r.now); s.InFlight != 2 || len(s.Workers) != 1 || s.Keeper != "a" {
		t.Errorf("%+v", s)
	}
	r.now = r.now.Add(workerGone)
	if s := r.w.snapshot(r.now); s.InFlight != 0 || len(s.Workers) != 0 || s.Keeper != "" || len(s.Limits) != 0 {
		t.Errorf("%+v", s)
	}
}

// The sums of a part count once, however often it is said that it is there, and only those of this round.
func TestWatchingSumsParts(t *testing.T) {
	r := newWatchRig(t, 100, 4, 0)
	footer := json.RawMessage(`{"chunk":1,"done":20,"failed":5,"cost_usd":0.5,"usage":{"input_tokens":7}}`)
	for range 3 {
		r.w.hearDone(from("j", bus.PartDone{Chunk: 1, Footer: footer}))
	}
	r.w.hearDone(from("j", bus.PartDone{Chunk: 2, Round: 1, Footer: footer}))
	if s := r.w.snapshot(r.now).Since; s.Done != 20 || s.Failed != 5 || s.CostUSD != 0.5 || s.Usage.InputTokens != 7 {
		t.Errorf("%+v", s)
	}
	r.check(100, 4, 4, job.Done)
	if got := r.done(0); got != 100 {
		t.Errorf("%d of a job that is done", got)
	}
}
