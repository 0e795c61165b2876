package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/cluster/bus"
	"github.com/headrace/headrace/cluster/store"
)

const (
	// refusedAfter is the pause of a chunk that a worker gives back as it refuses the job. Then another worker takes
	// it.
	refusedAfter = time.Second
	// refusedAtMost bounds the pause before a worker tries a refused job again. The first pause is refusedAfter.
	refusedAtMost = 30 * time.Second
)

// refusals holds the jobs that a worker refuses. The worker takes one of their chunks now and then to see whether it
// can, and no others. Any goroutine may call its methods.
type refusals struct {
	clock clockwork.Clock
	say   func(string)
	mu    sync.Mutex
	jobs  map[string]*refused
	pools map[string][]string // the limits of pools that have several
}

type refused struct {
	bus.Refusal
	limit string // the stopped limit, or the route whose limits have stopped; "": no limit is the reason
	waits bool   // calls in flight here may lift it: the others do not hear of it
	since time.Time
	again time.Time // when the job is tried again
	pause time.Duration
}

func (n *Node) newRefusals() *refusals {
	return &refusals{clock: n.clock, say: n.cfg.Say, jobs: map[string]*refused{}, pools: map[string][]string{}}
}

// draws notes the limits that a pool draws on.
func (r *refusals) draws(pool string, limits []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pools[pool] = limits
}

// forgetPools forgets the limits of pools whose jobs have ended.
func (r *refusals) forgetPools(pools []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pool := range pools {
		delete(r.pools, pool)
	}
}

// isOf reports whether a limit, or a pool with that limit, is the reason of a refusal.
func (r *refusals) isOf(job string, one *refused, limit string) bool {
	return one.limit == limit || slices.Contains(r.pools[laneOf(one.limit, job)], limit)
}

// refuse notes why a job cannot be worked on. Each further try that fails doubles the pause before the next.
func (r *refusals) refuse(job, limit, why string, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, one := r.clock.Now(), r.jobs[job]
	switch {
	case one == nil:
		one = &refused{since: now, pause: refusedAfter / 2}
		r.jobs[job] = one
		r.say(fmt.Sprintf("job %s is left to other workers: %s", job, why))
	case now.Before(one.again): // a chunk that was taken before
		return
	}
	one.Refusal, one.limit, one.waits = bus.Refusal{Why: why, Final: final, Tries: one.Tries + 1}, limit, false
	one.pause = min(2*one.pause, refusedAtMost)
	one.again = now.Add(one.pause)
}

// money stands for the limit whose name it is: the cap of a job. No limit has such a name.
const money = laneSeparator + "money"

// unpaid notes that a job's cap does not cover a call. While other calls of the job are in flight here, they may bring
// money back. So the worker pauses, and nobody takes the job for over.
func (r *refusals) unpaid(job, why string, final bool) {
	r.refuse(job, money, why, final)
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.jobs[job]; one != nil && one.limit == money {
		one.Bound, one.Final, one.waits = true, final, !final
	}
}

// read notes the result of reading a job's input.
func (r *refusals) read(ctx context.Context, job string, err error) {
	var bad *prompts.LineError
	switch {
	case err == nil || errors.As(err, &bad):
		r.lift(job, "")
	case ctx.Err() != nil || errors.Is(err, store.ErrChanged): // the error says nothing, or the job stops
	default:
		cause := cmp.Or(errors.Unwrap(err), err) // without the name of the chunk
		r.refuse(job, "", cause.Error(), errors.Is(err, store.ErrMissing))
	}
}

// unserved notes that all limits of a pool have stopped, if that is why an item was not called.
func (r *refusals) unserved(pool string, err error) {
	var cause interface{ Unwrap() []error }
	if !errors.Is(err, batch.ErrStopped) || !errors.As(err, &cause) {
		return
	}
	all := cause.Unwrap()
	limit, job := partsOf(pool)
	r.refuse(job, limit, all[len(all)-1].Error(), true)
}

// lift ends a refusal whose reason is the limit; "" lifts one that no limit causes.
func (r *refusals) lift(job, limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.jobs[job]; one != nil && r.isOf(job, one, limit) {
		delete(r.jobs, job)
	}
}

// forget makes the worker try a job at once: the job is resumed, or has ended.
func (r *refusals) forget(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, job)
}

// flows makes the worker try the jobs of a limit at once: a person vouches for the limit.
func (r *refusals) flows(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for job, one := range r.jobs {
		if r.isOf(job, one, limit) {
			delete(r.jobs, job)
		}
	}
}

// refuses reports whether the worker must not take a chunk of a job now.
func (r *refusals) refuses(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.jobs[job]
	return one != nil && r.clock.Now().Before(one.again)
}

// has reports whether a job is refused, though it may be about to be tried again.
func (r *refusals) has(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[job] != nil
}

// said returns the refusals as others hear them, at most bus.MostJobs.
func (r *refusals) said() map[string]bus.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all map[string]bus.Refusal
	for job, one := range r.jobs {
		if all == nil {
			all = map[string]bus.Refusal{}
		}
		if len(all) < bus.MostJobs && !one.waits {
			s := one.Refusal
			s.ForS = r.clock.Since(one.since).Seconds()
			all[job] = s
		}
	}
	return all
}
