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

// notePool notes the limits that a pool draws on.
func (r *refusals) notePool(pool string, limits []string) {
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

// concerns reports whether a limit, or a pool with that limit, is the reason of a refusal.
func (r *refusals) concerns(job string, entry *refused, limit string) bool {
	return entry.limit == limit || slices.Contains(r.pools[laneName(entry.limit, job)], limit)
}

// refuse notes why this worker cannot work on a job, and pauses it. Each further try that fails doubles the pause. final
// says that no later try can help.
func (r *refusals) refuse(job, limit, why string, final bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, entry := r.clock.Now(), r.jobs[job]
	switch {
	case entry == nil:
		entry = &refused{since: now, pause: refusedAfter / 2}
		r.jobs[job] = entry
		r.say(fmt.Sprintf("job %s is left to other workers: %s", job, why))
	case now.Before(entry.again): // a chunk that was taken before
		return
	}
	entry.Refusal, entry.limit, entry.waits = bus.Refusal{Why: why, Final: final, Tries: entry.Tries + 1}, limit, false
	entry.pause = min(2*entry.pause, refusedAtMost)
	entry.again = now.Add(entry.pause)
}

// capAsLimit is the name under which the cap of a job counts as a limit here. No true limit has such a name.
const capAsLimit = laneSeparator + "money"

// refuseUnpaid refuses a job whose cap does not cover a call. Unless that is final, calls in flight here may return
// money. So the worker only pauses, and does not report the refusal to others.
func (r *refusals) refuseUnpaid(job, why string, final bool) {
	r.refuse(job, capAsLimit, why, final)
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.jobs[job]; entry != nil && entry.limit == capAsLimit {
		entry.Bound, entry.Final, entry.waits = true, final, !final
	}
}

// noteRead lifts or makes a refusal by the result of reading a job's input.
func (r *refusals) noteRead(ctx context.Context, job string, err error) {
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

// refuseUnserved refuses a job if an item was not called because all limits of its pool have stopped.
func (r *refusals) refuseUnserved(pool string, err error) {
	var cause interface{ Unwrap() []error }
	if !errors.Is(err, batch.ErrStopped) || !errors.As(err, &cause) {
		return
	}
	all := cause.Unwrap()
	limit, job := splitLane(pool)
	r.refuse(job, limit, all[len(all)-1].Error(), true)
}

// lift ends a refusal whose reason is the limit; "" lifts one that no limit causes.
func (r *refusals) lift(job, limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.jobs[job]; entry != nil && r.concerns(job, entry, limit) {
		delete(r.jobs, job)
	}
}

// forget drops the refusal of a job that was resumed, or has ended. The worker may then try it at once.
func (r *refusals) forget(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, job)
}

// liftLimit ends all refusals whose reason is a limit, because a person has vouched for it.
func (r *refusals) liftLimit(limit string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for job, entry := range r.jobs {
		if r.concerns(job, entry, limit) {
			delete(r.jobs, job)
		}
	}
}

// refuses reports whether the worker must not take a chunk of a job now.
func (r *refusals) refuses(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.jobs[job]
	return entry != nil && r.clock.Now().Before(entry.again)
}

// isRefused reports whether a job is refused, though it may be about to be tried again.
func (r *refusals) isRefused(job string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jobs[job] != nil
}

// report returns the refusals for this worker's status report, at most bus.MostJobs.
func (r *refusals) report() map[string]bus.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all map[string]bus.Refusal
	for job, entry := range r.jobs {
		if all == nil {
			all = map[string]bus.Refusal{}
		}
		if len(all) < bus.MostJobs && !entry.waits {
			s := entry.Refusal
			s.ForS = r.clock.Since(entry.since).Seconds()
			all[job] = s
		}
	}
	return all
}
