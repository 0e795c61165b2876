package machine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/virtual"
	"github.com/headrace/headrace/limiter"
)

func withPriority(n int, c RunConfig) RunConfig {
	c.Priority = n
	return c
}

// A run of priority 3 is given three items for each one of a run of priority 1, where
// they want the same lane; one that says nothing has priority 1.
func TestPriorityIsAShare(t *testing.T) {
	got := order(4, withPriority(3, drawingOnX("a")), drawingOnX("a"), withPriority(1, drawingOnX("a")))
	if want := "1a 1a 1a 2a 3a 1a 2a 3a 2a 3a 2a 3a"; got != want {
		t.Errorf("served %s, want %s", got, want)
	}
}

// The shares hold where a pace, and not a window, lets one call go at a time, under both
// laws; and nobody starves: between two calls of a run, no other has more than its
// priority.
func TestPrioritiesUnderAPace(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		for _, law := range []limiter.LawName{limiter.Plain, limiter.Model} {
			lane := LaneConfig{Law: law, Limits: limiter.Limits{RPM: []float64{60, 600, 6000}[rng.IntN(3)]}}
			priorities := []int{1 + rng.IntN(5), 1 + rng.IntN(5), 1 + rng.IntN(5)}
			served := paced(lane, priorities, 400)
			sharesHold(t, fmt.Sprintf("seed %d, %v law, priorities %v", seed, law, priorities), served, priorities)
		}
	}
}

// paced has runs of these priorities, each with enough to do, draw on one lane, and gives
// the runs of the first n calls. Every call takes two seconds.
func paced(c LaneConfig, priorities []int, n int) (served []RunID) {
	m, w := New(Config{Lane: c}), virtual.Begin(storyStart)
	for i, p := range priorities {
		run := RunID(i + 1)
		r := withPriority(p, drawingOnX("a"))
		r.Concurrency = n // no bound: who is at its own ceiling wants nothing
		m.Step(w.Now(), RunOpened(run, r))
		for range n {
			m.Step(w.Now(), Offered(run, []*Item{{Pool: "a"}}))
		}
	}
	for len(served) < n {
		for w.Do() {
		}
		ready := m.Ready(w.Now())
		for _, g := range ready.Grants {
			served = append(served, g.Run)
			w.In(2*time.Second, func() { m.Step(w.Now(), Settled(g, Outcome{Signal: Succeeded, Latency: 2 * time.Second})) })
		}
		w.Pass(ready.WakeAt)
	}
	return served
}

func sharesHold(t *testing.T, name string, served []RunID, priorities []int) {
	t.Helper()
	round := 0
	for _, p := range priorities {
		round += p
	}
	since := make([][]int, len(priorities)) // since[i][j]: calls of j since the latest of i
	for i := range since {
		since[i] = make([]int, len(priorities))
	}
	calls := make([]int, len(priorities))
	for _, run := range served {
		j := int(run) - 1
		calls[j]++
		clear(since[j])
		for i := range since {
			if since[i][j]++; i != j && since[i][j] > priorities[j] {
				t.Errorf("%s: run %d had %d calls while run %d waited", name, run, since[i][j], i+1)
				return
			}
		}
	}
	for i, p := range priorities {
		want := len(served) * p / round
		if calls[i] < want-p || calls[i] > want+p {
			t.Errorf("%s: run %d had %d of %d calls, want about %d", name, i+1, calls[i], len(served), want)
		}
	}
}

// What a run does not use of its turn is the others': priority costs nothing where there
// is no contest.
func TestUnusedTurnIsTheOthers(t *testing.T) {
	m, now := New(Config{Lane: LaneConfig{Law: limiter.Plain, Window: 1}}), storyStart
	m.Step(now, RunOpened(1, withPriority(100, drawingOnX("a"))))
	m.Step(now, RunOpened(2, drawingOnX("a")))
	m.Step(now, Offered(1, []*Item{{Pool: "a"}}))
	m.Step(now, Offered(2, []*Item{{Pool: "a"}, {Pool: "a"}}))
	var served []string
	for grants := m.Ready(now).Grants; len(grants) > 0; grants = m.Ready(now).Grants {
		served = append(served, fmt.Sprint(grants[0].Run))
		m.Step(now, Settled(grants[0], Outcome{Signal: Succeeded}))
	}
	if got := strings.Join(served, " "); got != "1 2 2" {
		t.Errorf("served %s", got)
	}
}

// A priority is a small number, and not negative.
func TestPriorityIsValidated(t *testing.T) {
	for n, ok := range map[int]bool{-1: false, 0: true, 1: true, MaxPriority: true, MaxPriority + 1: false} {
		if err := (RunConfig{Priority: n}).Validate(); ok != (err == nil) {
			t.Errorf("%d: %v", n, err)
		}
	}
	if err := (RunConfig{Total: -1}).Validate(); err == nil {
		t.Error("a total of -1 was taken")
	}
}

// A picture of a run says how far it is, of how much, and what it waits for; one of a run
// that is not open says nothing.
func TestRunStatus(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Window: 1}, RunConfig{Total: 7})
	b.offer(3, "", 0)
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded}))
	b.decide()
	s := b.RunStatus(1)
	if s.Total != 7 || s.Counters.Offered != 3 || s.Counters.Calls != 2 || s.Counters.Settled != 1 || s.Done() != 1 || s.Held != 1 || s.Paused {
		t.Errorf("%+v", s)
	}
	b.Step(b.now, Paused(1))
	if !b.RunStatus(1).Paused {
		t.Error("paused, and not said")
	}
	if s := b.RunStatus(9); s != (RunStatus{}) {
		t.Errorf("%+v", s)
	}
}

// A promise ends when its pool does not come, as its run may have no place free. Other pools
// that wait do not make it longer.
func TestPromiseEnds(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60}}, RunConfig{Concurrency: 2})
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.offer(2, "shared", 0) // one leaves, and one is promised the next, in a second
	b.offer(1, "other", 0)  // takes the run's last place
	begun := b.now
	for range 10 {
		b.Step(b.now, Offered(2, []*Item{{Pool: "shared"}}))
		b.wait(time.Second/8 + 1)
	}
	if n := len(b.calls); n != 3 || b.calls[2].Run != 2 {
		t.Errorf("%d calls left in %v, want three, the last of them of the other run", n, b.now.Sub(begun))
	}
}

// A promise that is void goes to the next pool that must wait. Else small items of a third run
// would take every token that its large item waits for.
func TestVoidPromiseGoesToTheNext(t *testing.T) {
	b := newBed(LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{TPM: 6000, Burst: 50 * time.Second}}, RunConfig{Concurrency: 2})
	b.Step(b.now, RunOpened(2, RunConfig{}))
	b.Step(b.now, RunOpened(3, RunConfig{}))
	b.offer(1, "shared", 5000) // all that the bucket holds
	b.offer(1, "shared", 1000) // is promised what comes in for ten seconds
	b.offer(1, "other", 0)     // takes the run's last place
	large := &Item{Pool: "shared", Cost: limiter.Cost{Input: 5000}}
	b.Step(b.now, Offered(2, []*Item{large}))
	for range 120 {
		b.Step(b.now, Offered(3, []*Item{{Pool: "shared", Cost: limiter.Cost{Input: 100}}}))
		b.wait(time.Second)
		if g := b.calls[len(b.calls)-1]; g.Run == 3 {
			b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
			b.calls = b.calls[:len(b.calls)-1]
		}
	}
	if large.Calls != 1 {
		t.Error("the large item has not left after 120 s")
	}
}
