package tests

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// A limit that halves costs one wave of refusals and no more, however many workers there are;
// what is left of it is used, and so is one that doubles.
func TestTheLimitHalvesAndDoubles(t *testing.T) {
	t.Parallel()
	const halves, doubles = 8 * time.Second, 20 * time.Second
	config := strict(time.Second)
	config.RetryAfter = sim.Always
	config.Changes = []sim.Change{{At: halves, RPM: rate * 60 / 2}, {At: doubles, RPM: rate * 60}}
	f := newFleet(t, plan{workers: 4, inFlight: 64, provider: config})
	q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "halves", 28*rate)
	customer, output := f.customer(q, "out")
	f.delivers(q, customer, output)
	v := f.judged(true)
	book := f.judge.book()
	stalled := f.late.bunched(rate) // after a stall there may be a wave of these
	if w := waves(book); len(w) > 1 && stalled == 0 || v.refused > maxWave+stalled {
		t.Errorf("%d refusals in waves %v, want one wave", v.refused, w)
	}
	for _, c := range []struct {
		from, until time.Duration
		granted     float64
	}{{halves + adapts, doubles, rate / 2}, {doubles + adapts, doubles + 2*adapts, rate}} {
		_, calls := f.share("", f.judge.began.Add(c.from), f.judge.began.Add(c.until))
		if used := float64(calls) / (c.until - c.from).Seconds() / c.granted; used < 0.8 && stalled == 0 {
			t.Errorf("from %v on %.2f of the limit is used", c.from, used)
		} else {
			t.Logf("from %v on %.2f of the limit is used", c.from, used)
		}
	}
}

// adapts is within what a limit that changed is used again: a wave, its wait and the climb.
const adapts = 4 * time.Second

// maxWave bounds one wave: two hops of traffic and the permits on their way (SCALE 5.5: at 500
// calls/s some 50, 110 at worst), at this rate and a bucket of a second that has run dry.
const maxWave = 60

// waves counts refusals that came one after the other, by the seconds in which each began.
func waves(book []call) (sizes []int) {
	var last time.Time
	for _, c := range book {
		if !c.refused() {
			continue
		}
		if len(sizes) == 0 || c.at.Sub(last) > 2*time.Second {
			sizes = append(sizes, 0)
		}
		sizes[len(sizes)-1]++
		last = c.at
	}
	return sizes
}

// A balance that is used up ends every job on it with 3, and nobody goes on asking.
func TestQuotaEndsEverything(t *testing.T) {
	t.Parallel()
	config := strict(time.Second)
	config.QuotaAfter = 5 * rate
	f := newFleet(t, plan{workers: 3, inFlight: 64, provider: config})
	var customers []*process
	for _, name := range []string{"a", "b"} {
		q := writeQuestions(t, filepath.Join(f.dir, name+".in.jsonl"), name, 20*rate)
		p, _ := f.customer(q, name)
		customers = append(customers, p)
	}
	for _, p := range customers {
		if code := f.finishes(p); code != 3 {
			t.Errorf("%s ends with %d, want 3", p.name, code)
		}
	}
	book, empty := settled(t, f.judge), 0
	for _, c := range book {
		if c.refused() {
			empty++
		}
	}
	t.Logf("%d calls, %d of them with the balance used up", len(book), empty)
	if most := f.plan.workers * f.plan.inFlight; empty > most {
		t.Errorf("%d calls with the balance used up, want what was in flight: %d at most", empty, most)
	}
}
