package claim

import (
	"slices"
	"time"
)

// A source holds a machine's knowledge of one job's chunks in the queue.
type source struct {
	job      string
	fetching bool      // a Fetch is under way
	at       time.Time // no other Fetch before that
}

// sources are those of all jobs that have chunks. The one asked last is at the end.
type sources []*source

// offer updates which jobs have chunks. A Fetch that is under way ends by itself.
func (q *sources) offer(jobs []string) {
	*q = slices.DeleteFunc(*q, func(o *source) bool { return !o.fetching && !slices.Contains(jobs, o.job) })
	for _, job := range jobs {
		if q.find(job) < 0 {
			*q = append(*q, &source{job: job})
		}
	}
}

func (q sources) find(job string) int {
	return slices.IndexFunc(q, func(o *source) bool { return o.job == job })
}

// ended records the end of a Fetch, and lets other jobs go first.
func (q sources) ended(job string, again time.Time) {
	i := q.find(job)
	if i < 0 {
		return
	}
	o := q[i]
	o.fetching, o.at = false, again
	copy(q[i:], q[i+1:])
	q[len(q)-1] = o
}

func (q sources) busy() bool {
	return slices.ContainsFunc(q, func(o *source) bool { return o.fetching })
}

func (m *Machine) fetchEnded(e FetchEnded) {
	var again time.Time
	if e.Err != nil {
		again = m.now.Add(pause)
	}
	m.sources.ended(e.Job, again)
}

// fetch asks for chunks, one at a time for each job, while few chunks of the job are at hand. Jobs without a
// chunk at hand take turns for the rest of [JobsAtHand].
func (m *Machine) fetch() {
	if m.draining {
		return
	}
	held := m.held()
	jobs := len(held)
	for _, q := range m.sources {
		if held[q.job] == 0 && q.fetching {
			jobs++
		}
	}
	for _, q := range m.sources {
		begins := held[q.job] == 0
		if q.fetching || m.now.Before(q.at) || held[q.job] >= m.cfg.AtHand() || begins && jobs >= JobsAtHand {
			continue
		}
		if begins {
			jobs++
		}
		q.fetching = true
		m.do(Fetch{q.job})
	}
}

// held counts the chunks at hand by their jobs.
func (m *Machine) held() map[string]int {
	held := make(map[string]int)
	for _, c := range m.claims {
		held[c.chunk.Job]++
	}
	return held
}

// wakeOfSources returns when a job may be asked for again after an error.
func (m *Machine) wakeOfSources() (at time.Time) {
	for _, q := range m.sources {
		if !q.fetching && q.at.After(m.now) {
			at = sooner(at, q.at)
		}
	}
	return at
}
