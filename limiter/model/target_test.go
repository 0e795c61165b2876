package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/window"
	"github.com/headrace/headrace/limiter/plain"
)

// A loadedServer answers later, the more it has to do.
type loadedServer struct {
	base    float64 // seconds that a call takes by itself, on average
	workers int     // a queue before so many; 0: none
	batch   float64 // calls in flight that double the latency; 0: they do not
	spread  float64 // sigma of a lognormal factor
	places  int     // calls in flight, from which on it refuses; 0: never
	headers *pail   // the limit that its headers show; nil: it has none

	free      []float64 // when each worker is
	rng       *rand.Rand
	latencies []float64 // of its answers
	refused   int
}

func (s *loadedServer) serve(t float64, beside int) (r reply) {
	if s.headers != nil {
		let := s.headers.takes(t, 1)
		r.news.Sightings = []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: 60 * s.headers.refill, Remaining: math.Floor(s.headers.level), HasReset: true,
			Reset: time.Duration((s.headers.depth - s.headers.level) / s.headers.refill * 1e9),
		}}
		if !let {
			s.refused++
			return reply{kind: isRefused, after: 0.05, news: r.news}
		}
	}
	if s.places > 0 && beside >= s.places {
		s.refused++
		return reply{kind: isRefused, after: 0.05, news: r.news}
	}
	r.after = s.takes(t, beside)
	s.latencies = append(s.latencies, r.after)
	return r
}

func (s *loadedServer) takes(t float64, beside int) float64 {
	takes := s.base * math.Exp(s.spread*s.rng.NormFloat64()-s.spread*s.spread/2)
	switch {
	case s.batch > 0:
		return takes * (1 + float64(beside)/s.batch)
	case s.workers == 0:
		return takes
	case len(s.free) < s.workers:
		s.free = append(s.free, t+takes)
		return takes
	}
	first := slices.Index(s.free, slices.Min(s.free))
	s.free[first] = max(t, s.free[first]) + takes
	return s.free[first] - t
}

// most returns the calls per second that it can give at all while their mean is the target.
func (s *loadedServer) most(target float64) float64 {
	if s.batch > 0 {
		n := max(1, s.batch*(target/s.base-1)+1)
		return n / (s.base * (1 + (n-1)/s.batch))
	}
	return float64(s.workers) / s.base
}

func (s *loadedServer) mean() float64 {
	sum := 0.0
	for _, l := range s.latencies {
		sum += l
	}
	return sum / float64(len(s.latencies))
}

// servers are of both kinds, small and large, fast and slow, as even and uneven as they come.
func servers() map[string]func() *loadedServer {
	all := map[string]func() *loadedServer{}
	for _, base := range []float64{0.05, 17.3} {
		for _, spread := range []float64{0, 0.5} {
			for _, n := range []int{1, 5, 47} {
				all[fmt.Sprintf("queue before %d, %v s, spread %v", n, base, spread)] = func() *loadedServer {
					return &loadedServer{base: base, workers: n, spread: spread, rng: seeded(uint64(n))}
				}
				all[fmt.Sprintf("batches of %d, %v s, spread %v", n, base, spread)] = func() *loadedServer {
					return &loadedServer{base: base, batch: float64(n), spread: spread, rng: seeded(uint64(n))}
				}
			}
		}
	}
	return all
}

func keeping(target float64) map[string]limiter.LawConfig {
	d := time.Duration(target * 1e9)
	return map[string]limiter.LawConfig{"model": {Target: d}, "plain": {Law: limiter.Plain, Target: d}}
}

// Where latency answers to load, every law keeps its mean within a quarter of the target,
// from the first call on, and the server gives most of what it can give at that.
func TestMeanLatencyStaysAtItsTarget(t *testing.T) {
	worst, least, sum, n := 0.0, 1.0, 0.0, 0
	for name, make := range servers() {
		for _, loose := range []float64{1.2, 2, 5}[:race.Fewer(3)] {
			for law, c := range keeping(loose * make().base) {
				s := make()
				target := loose * s.base
				newLawWorld(c, 1, s.serve).run(200*s.base, 12_000)
				mean, gave := s.mean()/target, float64(len(s.latencies))/(200*s.base)/s.most(target)
				if mean > limiter.MeanTolerance {
					t.Errorf("%s, %s law, target %.1f times that: a mean of %.2f times the target", name, law, loose, mean)
				}
				if gave < 0.7 {
					t.Errorf("%s, %s law, target %.1f times that: %.2f of what it can give", name, law, loose, gave)
				}
				worst, least, sum, n = max(worst, mean), min(least, gave), sum+min(1, gave), n+1
			}
		}
	}
	t.Logf("%d worlds: mean latency at most %.2f of the target; %.2f of what the servers can give at least, %.3f on average", n, worst, least, sum/float64(n))
}

// A server that refuses what is too many at once is kept to the target as well, below its
// cap, and above it as little as before.
func TestMeanLatencyStaysAtItsTargetBesideRefusals(t *testing.T) {
	for _, places := range []int{12, 40} {
		for law, c := range keeping(2) {
			s := &loadedServer{base: 1, batch: 20, spread: 0.5, places: places, rng: seeded(3)}
			newLawWorld(c, 1, s.serve).run(600, 12_000)
			if mean := s.mean(); mean > 2*limiter.MeanTolerance {
				t.Errorf("%d places, %s law: a mean of %.2f s for a target of 2 s", places, law, mean)
			}
			if places > 21 && s.refused > 0 {
				t.Errorf("%s law: %d refusals by a server that refuses from %d on, where a target of 2 s is 21", law, s.refused, places)
			}
			if gave := float64(len(s.latencies)) / 600; law == "model" && gave < 0.7*min(10.5, float64(places)/(1+float64(places)/20)) {
				t.Errorf("%d places, %s law: %.1f calls a second", places, law, gave)
			}
		}
	}
}

// What headers tell binds as before while latency is below the target, and a target that
// latency would exceed binds besides.
func TestTargetLeavesHeadersAlone(t *testing.T) {
	run := func(c limiter.LawConfig, batch float64) *loadedServer {
		s := &loadedServer{base: 1, batch: batch, spread: 0.5, headers: fullPail(10, 50), rng: seeded(5)}
		newLawWorld(c, 1, s.serve).run(300, 12_000)
		return s
	}
	without, with := run(limiter.LawConfig{}, 0), run(limiter.LawConfig{Target: 1500 * time.Millisecond}, 0)
	near(t, "calls", float64(len(with.latencies)), float64(len(without.latencies)), 0.01*float64(len(without.latencies)))
	if with.refused > without.refused {
		t.Errorf("%d refusals, and %d without a target", with.refused, without.refused)
	}
	bound := run(limiter.LawConfig{Target: 1500 * time.Millisecond}, 8)
	if mean := bound.mean(); mean > 1.5*limiter.MeanTolerance || bound.refused > 0 {
		t.Errorf("a mean of %.2f s for a target of 1.5 s, and %d refusals", mean, bound.refused)
	}
	if gave := float64(len(bound.latencies)) / 300; gave < 0.7*bound.most(1.5) {
		t.Errorf("%.2f calls a second, and %.2f within the target", gave, bound.most(1.5))
	}
}

// Where a single call takes longer than the target, one is always in flight.
func TestTargetThatCannotBeKeptStarvesNobody(t *testing.T) {
	for law, c := range keeping(0.5) {
		s := &loadedServer{base: 1, batch: 4, spread: 0.5, rng: seeded(5)}
		w := newLawWorld(c, 1, s.serve)
		w.run(300, 12_000)
		if n := w.law.Window(at(300)); n != 1 {
			t.Errorf("%s law: %d in flight", law, n)
		}
		if gave := w.between(100, 300); gave < 0.9 {
			t.Errorf("%s law: %.2f calls a second, of one that takes a second", law, gave)
		}
	}
}

// A server that slows down to a third is followed down, and up again.
func TestTargetFollowsTheServer(t *testing.T) {
	for law, c := range keeping(2) {
		s := &loadedServer{base: 1, batch: 30, spread: 0.3, rng: seeded(5)}
		w := newLawWorld(c, 1, s.serve)
		w.run(200, 12_000)
		s.batch, s.latencies = 10, nil
		w.run(500, 12_000)
		if mean := s.mean(); mean > 2*limiter.MeanTolerance {
			t.Errorf("%s law, while it is slow: a mean of %.2f s for a target of 2 s", law, mean)
		}
		s.batch, s.latencies = 30, nil
		w.run(800, 12_000)
		if gave := float64(len(s.latencies)) / 300; gave < 0.8*s.most(2) || s.mean() > 2*limiter.MeanTolerance {
			t.Errorf("%s law, after that: %.1f calls a second of %.1f, with a mean of %.2f s", law, gave, s.most(2), s.mean())
		}
	}
}

// Without a target there is no window, whatever latency is; and of a local server the
// target is another.
func TestTargetIsOffUnlessAskedFor(t *testing.T) {
	want(t, "plain", plain.New(limiter.LawConfig{Law: limiter.Plain}, noon, seeded(1)).Window(noon), 0)
	want(t, "model", New(limiter.LawConfig{}, noon, seeded(1)).Window(noon), leastWindow)
	want(t, "local", New(limiter.LawConfig{Local: true, Target: time.Second}, noon, seeded(1)).Window(noon), localStart)
}

// Calls that time out shrink the window, though nothing of them is ever answered; many at
// one moment are one fault.
func TestTimeoutsShrinkTheMeanWindow(t *testing.T) {
	for law, c := range keeping(2) {
		l := newLaw(c, noon, seeded(1))
		before := l.Window(noon)
		for range 50 {
			l.Failed(noon, limiter.News{Sent: noon, Cost: one, Timeout: true, Latency: time.Minute})
		}
		want(t, law+": once", l.Window(noon), int(window.Fault*float64(before)))
		for i := range 20 {
			l.Failed(at(20*float64(i+1)), limiter.News{Sent: noon, Cost: one, Timeout: true, Latency: time.Minute})
		}
		want(t, law+": and again", l.Window(noon), 1)
	}
}

// The law finds the same window again after a restart, and says what binds.
func TestTargetIsSavedAndSaid(t *testing.T) {
	for law, c := range keeping(2) {
		s := &loadedServer{base: 1, batch: 30, rng: seeded(5)}
		w := newLawWorld(c, 1, s.serve)
		w.run(100, 12_000)
		n := w.law.Window(at(100))
		if n < 20 || n > 45 {
			t.Errorf("%s law: %d in flight, where 31 are right", law, n)
		}
		v := w.law.View(at(100), one)
		want(t, law+": view", v.Window, n)
		want(t, law+": binds", v.Binds.By, limiter.BoundLatency)
		if want := fmt.Sprintf("no more than %d in flight, or answers take longer than they may", n); !slices.Contains(v.Words(), want) {
			t.Errorf("%s law: %q, want %q among them", law, v.Words(), want)
		}
		later := newLaw(c, at(101), seeded(1))
		must.Do(t, later.Restore(at(101), w.law.Save(at(100))))
		want(t, law+": after a restart", later.Window(at(101)), n)
	}
}
