package machine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// manyRuns are as many as a service has open at once on one key.
const manyRuns = 4000

// A crowd is a machine with many runs on one lane. Each always has an item that waits, unless
// nothing holds the lane back: then one has.
type crowd struct {
	m      *Machine
	now    time.Time
	flying []Grant
	seq    uint64
	moved  int // runs that took an event
	runs   int
}

func newCrowd(runs, bound int, c LaneConfig) *crowd {
	w := &crowd{m: New(Config{Concurrency: bound, Lane: c}), now: time.Now(), runs: runs}
	for id := 1; id <= runs; id++ {
		w.m.Step(w.now, RunOpened(RunID(id), RunConfig{}))
	}
	if c.Window == 0 && c.Limits == (limiter.Limits{}) { // each has opened its pool, and then one item waits
		for id := 1; id <= runs; id++ {
			w.offer(RunID(id))
			w.ready()
			w.end(Outcome{Signal: Succeeded, Latency: time.Second})
		}
		w.offer(RunID(runs))
		w.ready()
		return w
	}
	for range max(2, 2*DefaultConcurrency/runs) {
		for id := 1; id <= runs; id++ {
			w.offer(RunID(id))
		}
	}
	w.ready()
	return w
}

func (w *crowd) offer(id RunID) {
	w.seq++
	w.m.Step(w.now, Offered(id, []*Item{{Seq: w.seq, Cost: limiter.Cost{Requests: 1, Input: 100}}}))
}

func (w *crowd) ready() {
	w.flying = append(w.flying, w.m.Ready(w.now).Grants...)
}

// wait passes until a call is under way.
func (w *crowd) wait() {
	for len(w.flying) == 0 {
		w.now = latest(w.now.Add(time.Millisecond), w.m.wakeAt())
		w.ready()
	}
}

// end ends the oldest call.
func (w *crowd) end(o Outcome) (id RunID) {
	g := w.flying[0]
	w.flying = append(w.flying[:0], w.flying[1:]...)
	if o.Signal == Throttled {
		w.m.Step(w.now, HandedOver(g, o))
	} else {
		w.m.Step(w.now, Settled(g, o))
	}
	return g.Run
}

// flow is a pass in which a call ends, its run offers one more, and the next call leaves.
func (w *crowd) flow() {
	w.now = w.now.Add(time.Millisecond)
	w.offer(w.end(Outcome{Signal: Succeeded, Latency: time.Second}))
	w.ready()
}

// paced is a pass in which the pace lets the next call leave.
func (w *crowd) paced() {
	for len(w.flying) > 0 {
		w.offer(w.end(Outcome{Signal: Succeeded, Latency: time.Second}))
	}
	w.wait()
}

// blocked is a pass in which a run offers an item, and nothing can go.
func (w *crowd) blocked() {
	w.now = w.now.Add(time.Microsecond)
	w.moved++
	w.m.Step(w.now, Offered(RunID(w.moved%w.runs+1), nil))
	w.ready()
}

// refused is a refusal that cools the lane, and its whole way back.
func (w *crowd) refused() {
	w.now = w.now.Add(time.Millisecond)
	w.wait()
	w.end(Outcome{Signal: Throttled, Latency: time.Millisecond, Directed: true, RetryAfter: time.Second})
	w.ready()
	for l := w.m.lanes[DefaultPool]; l.phase != Flowing; {
		w.now = latest(w.now.Add(time.Millisecond), w.m.wakeAt())
		w.ready()
		if n := len(w.flying); l.phase == Probing && n > 0 && w.flying[n-1].Item.Probe {
			w.flying[0], w.flying[n-1] = w.flying[n-1], w.flying[0]
			w.flow()
		}
	}
	w.wait()
	w.flow()
}

// crowding are the passes whose cost is bounded, by what happens in them.
var crowding = []struct {
	name  string
	bound int // on the calls of all runs together; 0: none
	lane  LaneConfig
	cool  bool // the lane cools all the time
	pass  func(*crowd)
}{
	{"window", 0, LaneConfig{Limits: configured, Window: 16}, false, (*crowd).flow},
	{"bound", 16, LaneConfig{Law: limiter.Plain, Window: 17}, false, (*crowd).flow},
	{"bound and pace", 16, LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60_000}}, false, (*crowd).paced},
	{"pace", 0, LaneConfig{Law: limiter.Plain, Limits: limiter.Limits{RPM: 60_000}}, false, (*crowd).paced},
	{"idle", 0, LaneConfig{Law: limiter.Plain, Rate: limiter.RateConfig{Floor: 100}}, false, (*crowd).refused},
	{"held", 0, LaneConfig{Limits: configured, Window: 16}, true, (*crowd).blocked},
	{"refused/law=plain", 0, LaneConfig{Law: limiter.Plain, Window: 16, Rate: limiter.RateConfig{Floor: 100}}, false, (*crowd).refused},
	{"refused/law=model", 0, LaneConfig{Limits: configured, Window: 16}, false, (*crowd).refused},
}

func (w *crowd) cooled(cool bool) *crowd {
	if cool {
		w.end(Outcome{Signal: Throttled, Directed: true, RetryAfter: MaxDirected})
	}
	return w
}

// What a pass costs, and a refusal, however many runs are open on one lane.
func BenchmarkRuns(b *testing.B) {
	for _, c := range crowding {
		for _, runs := range []int{1, manyRuns} {
			b.Run(fmt.Sprintf("%s/runs=%d", c.name, runs), func(b *testing.B) {
				w := newCrowd(runs, c.bound, c.lane).cooled(c.cool)
				b.ReportAllocs()
				for b.Loop() {
					c.pass(w)
				}
			})
		}
	}
}

// A pass and a refusal cost the same with one run and with thousands on one lane. A loop over
// all runs would take a hundred times as long. The tolerance covers the cost of memory that is
// far away, and of others who use its caches too. The best of several tries counts.
func TestManyRunsCostAsOne(t *testing.T) {
	most := 4.0
	if race.Enabled { // its shadow of the memory is far away, too
		most = 10
	}
	for _, c := range crowding {
		few, many := newCrowd(1, c.bound, c.lane).cooled(c.cool), newCrowd(manyRuns, c.bound, c.lane).cooled(c.cool)
		one, all := math.Inf(1), math.Inf(1)
		for try := 0; try < 3 || try < 100 && all > 2*one; try++ {
			one, all = min(one, timed(c.pass, few)), min(all, timed(c.pass, many))
		}
		t.Logf("%s: %.2f times", c.name, all/one)
		if all > most*one {
			t.Errorf("%s: %d runs cost %.1f times what one does", c.name, manyRuns, all/one)
		}
	}
}

// timed returns the time that many passes take.
func timed(pass func(*crowd), w *crowd) float64 {
	begun := time.Now()
	for range 200 {
		pass(w)
	}
	return float64(time.Since(begun))
}

// The law of a lane is asked as often whether one run draws on it or thousands do: who sleeps
// in its line is not asked before its turn has come.
func TestManyRunsAskAsOne(t *testing.T) {
	for _, c := range crowding {
		var asked [2]int
		for i, runs := range []int{1, manyRuns} {
			w := newCrowd(runs, c.bound, c.lane).cooled(c.cool)
			w.ready()
			l := w.m.lanes[DefaultPool]
			l.law = countedLaw{l.law, &asked[i]}
			for range 100 {
				c.pass(w)
			}
		}
		if asked[1] > asked[0]+manyRuns/100 {
			t.Errorf("%s: %d runs asked %d times, one asked %d times", c.name, manyRuns, asked[1], asked[0])
		}
	}
}
