package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/race"
)

// A blameWorld is a server and a run of items against it. Some items are poison: their
// calls always break. A good item breaks only while the server is down. The clock is that of
// the bubble, so a seed always gives nearly the same figures.
type blameWorld struct {
	items   int
	atOnce  int             // calls
	answer  time.Duration   // the mean; an answer takes half of it to one and a half
	poison  float64         // the share of poison, drawn by the seed
	last    int             // this many last items are poison, too
	slow    bool            // poison breaks as late as an answer comes; else within 20 ms
	outages []outage        // in each of them every call breaks
	drains  bool            // calls under way as an outage begins are answered; else they break
	flap    time.Duration   // for so long the server is up for 3 s and down for 10 s in turns
	dead    map[string]bool // lanes on which every call breaks at once
	unsent  bool            // calls of dead lanes, and of an outage, find no connection
	chance  float64         // any call breaks so often, as late as an answer comes
	seed    uint64
	options []Option
}

// An outage begins and ends so long after the start of the run.
type outage struct{ begins, ends time.Duration }

// blameSeen are the figures of one run.
type blameSeen struct {
	took               time.Duration
	poison, named      int // poison items, and those that failed
	goodFailed, notRun int
	openings           int           // of the breaker
	mean               float64       // calls of a poison item
	most               int           // likewise, of the item with the most
	silent             time.Duration // the longest time without an answer, while items waited for their first call
	sum                Summary
	err                error
	results            []Result[int, int]
}

var (
	errReset   = &Error{Kind: TransportFault, Message: "connection reset by peer", Err: syscall.ECONNRESET}
	errBroken  = &Error{Kind: Server, Status: 500, Message: "internal error"}
	errNobody  = &Error{Kind: TransportFault, Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	twoLanes   = WithPool("", "one", "other")
	longestRun = 4 * time.Hour
	observeNot = WithProgressEvery(time.Hour)
)

// A blameServer answers the calls of one run.
type blameServer struct {
	blameWorld
	began time.Time
	bad   []bool

	mu       sync.Mutex
	calls    []int
	openings int
	begun    int           // items that had a call
	answered time.Time     // the latest
	silent   time.Duration // as in blameSeen
}

func newBlameServer(w blameWorld) *blameServer {
	s := &blameServer{blameWorld: w, began: time.Now(), answered: time.Now(), calls: make([]int, w.items), bad: make([]bool, w.items)}
	rng := rand.New(rand.NewPCG(w.seed, 1))
	for i := range s.bad {
		s.bad[i] = rng.Float64() < w.poison || i >= w.items-w.last
	}
	return s
}

// draw counts a call. It returns how long an answer and a break would take, and whether the call
// breaks by chance. The order of calls does not change what each draws.
func (s *blameServer) draw(i int) (answer, breaks time.Duration, unlucky bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[i]++; s.calls[i] == 1 {
		s.begun++
	}
	rng := rand.New(rand.NewPCG(s.seed, uint64(i)<<16+uint64(s.calls[i])))
	answer = s.answer/2 + time.Duration(rng.Float64()*float64(s.answer))
	breaks = time.Duration(1+rng.IntN(20)) * time.Millisecond
	return answer, breaks, rng.Float64() < s.chance
}

// isDown reports whether the server is down at a time since the start.
func (s *blameServer) isDown(at time.Duration) bool {
	if at < s.flap && at%(13*time.Second) >= 3*time.Second {
		return true
	}
	return slices.ContainsFunc(s.outages, func(o outage) bool { return at >= o.begins && at < o.ends })
}

// call is the function of the run.
func (s *blameServer) call(ctx context.Context, i int) (int, error) {
	answer, breaks, unlucky := s.draw(i)
	at := time.Since(s.began)
	down := error(errBroken)
	if s.unsent {
		down = errNobody
	}
	fails := func(after time.Duration, err error) (int, error) {
		if e := pause(ctx, after); e != nil {
			return 0, e
		}
		return 0, err
	}
	switch {
	case s.dead[LaneFrom(ctx)] || s.isDown(at):
		return fails(breaks, down)
	case unlucky, s.bad[i] && s.slow:
		return fails(answer, errBroken)
	case s.bad[i]:
		return fails(breaks, errReset)
	}
	for _, o := range s.outages {
		if !s.drains && at < o.begins && at+answer > o.begins {
			return fails(o.begins-at+breaks, errBroken)
		}
	}
	err := pause(ctx, answer)
	s.notes()
	return i, err
}

// notes counts an answer.
func (s *blameServer) notes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun < s.items {
		s.silent = max(s.silent, time.Since(s.answered))
	}
	s.answered = time.Now()
}

// see counts the openings of breakers.
func (s *blameServer) see(e Event) {
	if e.Transition == nil || e.Transition.To != machine.Cooling || e.Transition.Reason != machine.ByBreaker {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.openings++
}

// run runs the world in a bubble, and fails the test unless its summary proves.
func (w blameWorld) run(t *testing.T) (seen blameSeen) {
	t.Helper()
	if w.atOnce == 0 {
		w.atOnce = DefaultConcurrency
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), longestRun)
		defer cancel()
		s := newBlameServer(w)
		opts := append([]Option{WithConcurrency(w.atOnce), WithTotal(w.items), WithObserver(s.see), observeNot, WithSummary(&seen.sum)}, w.options...)
		seen.results, seen.err = Run(ctx, numbers(w.items), s.call, opts...)
		seen.took = time.Since(s.began)
		agrees(t, seen.sum, seen.results)
		seen.count(t, s)
	})
	return seen
}

// count looks at each item and its calls.
func (seen *blameSeen) count(t *testing.T, s *blameServer) {
	t.Helper()
	if seen.sum.Dropped > 0 {
		t.Errorf("the observer missed %d events", seen.sum.Dropped)
	}
	seen.openings, seen.silent = s.openings, s.silent
	sum := 0
	for i, bad := range s.bad {
		if bad {
			seen.poison++
			sum += s.calls[i]
			seen.most = max(seen.most, s.calls[i])
		}
	}
	seen.mean = float64(sum) / float64(max(1, seen.poison))
	seen.notRun = s.items - len(seen.results)
	for _, r := range seen.results {
		tellsEachCall(t, r)
		switch {
		case r.Err == nil && s.bad[r.Index]:
			t.Errorf("item %d is poison and was answered", r.Index)
		case r.Err == nil:
		case errors.Is(r.Err, ErrNotRun):
			seen.notRun++
		case s.bad[r.Index]:
			seen.named++
		default:
			seen.goodFailed++
		}
	}
}

// tellsEachCall fails the test unless the failures of a result account for each of its calls.
func tellsEachCall(t *testing.T, r Result[int, int]) {
	t.Helper()
	calls := 0
	for _, f := range r.Failures {
		calls += f.Calls
	}
	if r.Err == nil {
		calls++
	}
	if calls != r.Calls || r.Attempts > r.Calls {
		t.Errorf("item %d had %d calls and %d attempts, and %d calls are told of: %+v", r.Index, r.Calls, r.Attempts, calls, r.Failures)
	}
}

// blameFigures are those of a world over several seeds.
type blameFigures struct {
	worlds             int
	took               time.Duration // the mean
	poison, named      int
	goodFailed, notRun int
	openings           int
	mean               float64 // calls of a poison item
	most               int
	err                error
}

// figures runs the world with so many seeds. Short tests and slow ones use one seed.
func (w blameWorld) figures(t *testing.T, seeds int) (f blameFigures) {
	t.Helper()
	if testing.Short() || race.Enabled {
		seeds = 1
	}
	calls := 0.0
	for s := range seeds {
		w.seed = uint64(s + 1)
		seen := w.run(t)
		t.Logf("seed %d: %.1f s, %d of %d poison named in %.2f calls, at most %d; %d good failed, %d not run, %d openings",
			w.seed, seen.took.Seconds(), seen.named, seen.poison, seen.mean, seen.most, seen.goodFailed, seen.notRun, seen.openings)
		f.worlds++
		f.took += (seen.took - f.took) / time.Duration(f.worlds)
		f.poison, f.named = f.poison+seen.poison, f.named+seen.named
		f.goodFailed, f.notRun = f.goodFailed+seen.goodFailed, f.notRun+seen.notRun
		f.openings += seen.openings
		f.most = max(f.most, seen.most)
		f.err = cmp.Or(f.err, seen.err)
		calls += seen.mean * float64(seen.poison)
	}
	f.mean = calls / float64(max(1, f.poison))
	return f
}

// allNamed fails the test unless each poison item failed, each good one was answered, and
// the runs took no longer than most, in the mean.
func (f *blameFigures) allNamed(t *testing.T, most time.Duration) {
	t.Helper()
	if f.err != nil {
		t.Errorf("a run ended with %v", f.err)
	}
	if f.goodFailed > 0 || f.notRun > 0 || f.named != f.poison {
		t.Errorf("%d good items failed, %d were not run, %d of %d poison items were named", f.goodFailed, f.notRun, f.named, f.poison)
	}
	if f.took > most {
		t.Errorf("a run took %v, want at most %v", f.took, most)
	}
}

// calls fails the test if poison had more calls than that.
func (f *blameFigures) calls(t *testing.T, mean float64, most int) {
	t.Helper()
	if f.mean > mean || f.most > most {
		t.Errorf("%.2f calls for each poison item and up to %d, want at most %.2f and %d", f.mean, f.most, mean, most)
	}
}

// opensNothing fails the test if a breaker opened.
func (f *blameFigures) opensNothing(t *testing.T) {
	t.Helper()
	if f.openings > 0 {
		t.Errorf("breakers opened %d times in %d worlds", f.openings, f.worlds)
	}
}

// judged runs a batch and fails the test unless its summary proves. Unlike proved, it uses the
// default law unless an option names another.
func judged[In, Out any](ctx context.Context, t *testing.T, items iter.Seq[In], fn Func[In, Out], opts ...Option) ([]Result[In, Out], Summary, error) {
	t.Helper()
	var sum Summary
	results, err := Run(ctx, items, fn, append([]Option{WithSummary(&sum)}, opts...)...)
	agrees(t, sum, results)
	return results, sum, err
}

// thousands are 2,000 items, 64 at once, with answers of 2 s: the world of most figures.
// Without any poison it takes 70 s.
func thousands(poison float64) blameWorld {
	return blameWorld{items: 2000, answer: 2 * time.Second, poison: poison}
}

// tenMinutes is an outage of ten minutes that begins after 20 s.
var tenMinutes = []outage{{20 * time.Second, 620 * time.Second}}

// byLaw runs a test of a world under each law.
func byLaw(t *testing.T, w blameWorld, f func(t *testing.T, w blameWorld)) {
	t.Helper()
	for name, opts := range laws {
		t.Run(name, func(t *testing.T) {
			w.options = opts
			f(t, w)
		})
	}
}

// A few items that always break cost a run few seconds and five calls each. They open no
// breaker.
func TestPoisonIsNamedQuickly(t *testing.T) {
	for _, poison := range []float64{0.01, 0.1} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			byLaw(t, thousands(poison), func(t *testing.T, w blameWorld) {
				f := w.figures(t, 5)
				f.allNamed(t, 80*time.Second)
				f.calls(t, 5.5, 9)
				f.opensNothing(t)
			})
		})
	}
}

// Poison that breaks as late as an answer comes costs the time of its calls. The last item may
// add 45 s.
func TestSlowPoisonIsNamed(t *testing.T) {
	for poison, most := range map[float64]time.Duration{0.01: 110 * time.Second, 0.1: 150 * time.Second} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			w := thousands(poison)
			w.slow = true
			f := w.figures(t, 3)
			f.allNamed(t, most)
			f.calls(t, 5.5, 9)
			f.opensNothing(t)
		})
	}
}

// An outage of ten minutes takes back what poison used up in it. No good item fails, and
// poison has little more than five calls.
func TestOutageAndPoisonAreDistinguished(t *testing.T) {
	for _, poison := range []float64{0, 0.01, 0.1} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			w := thousands(poison)
			w.outages = tenMinutes
			byLaw(t, w, func(t *testing.T, w blameWorld) {
				f := w.figures(t, 5)
				f.allNamed(t, 720*time.Second)
				f.calls(t, 5.5, 9)
				if f.openings == 0 {
					t.Error("the breaker did not open in the outage")
				}
			})
		})
	}
}

// Nine poison items at the end, for which no other item is left to speak, are named within a
// minute.
func TestLastItemsAreNamedQuickly(t *testing.T) {
	w := blameWorld{items: 200, last: 9, atOnce: 16, answer: time.Second}
	f := w.figures(t, 5)
	f.allNamed(t, time.Minute)
	f.calls(t, 5, 5)
	w.atOnce = 1
	f = w.figures(t, 2)
	f.allNamed(t, 191*time.Second+time.Minute) // the answers alone take 191 s
	f.calls(t, 5, 5)
}

// Probes of a dead lane cost poison nothing, and the other lane of the pool names it.
func TestDeadLaneOfTwoAndPoison(t *testing.T) {
	for _, unsent := range []bool{false, true} {
		t.Run(fmt.Sprint("unsent ", unsent), func(t *testing.T) {
			w := thousands(0.1)
			w.dead, w.unsent = map[string]bool{"other": true}, unsent
			w.options = []Option{twoLanes, WithAnsweredBefore()}
			f := w.figures(t, 3)
			f.allNamed(t, 150*time.Second)
			f.calls(t, 5.5, 14)
		})
	}
}

// A run names all poison and fails no good item also where half of the items are poison. It
// ends within an hour.
func TestHalfOfTheItemsArePoison(t *testing.T) {
	w := thousands(0.5)
	f := w.figures(t, 1)
	f.allNamed(t, time.Hour)
	f.calls(t, 11, 28)
}

// An outage of an hour fails no good item of 10,000, and all poison is named.
func TestLongOutageFailsNoGoodItem(t *testing.T) {
	w := thousands(0.01)
	w.items, w.outages = 10_000, []outage{{60 * time.Second, 3660 * time.Second}}
	f := w.figures(t, 2)
	f.allNamed(t, 4000*time.Second)
	f.calls(t, 5.5, 9)
}

// Without an outage no breaker opens while up to three items in ten are poison.
func TestPoisonOpensNoBreaker(t *testing.T) {
	for _, poison := range []float64{0.2, 0.3} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprint(poison, " slow ", slow), func(t *testing.T) {
				w, seeds := thousands(poison), 2
				if w.slow = slow; slow {
					seeds = 1
				}
				f := w.figures(t, seeds)
				f.allNamed(t, time.Hour)
				f.opensNothing(t)
			})
		}
	}
}

// Retries of poison leave room for good items that wait for their first call, also where the
// error window has slowed the lane.
func TestPoisonDoesNotStarveGoodItems(t *testing.T) {
	w := thousands(0.3)
	w.items, w.seed = 600, 1
	if seen := w.run(t); seen.silent > 6*time.Second {
		t.Errorf("for %v no item was answered, and good ones waited", seen.silent)
	}
}

// No item fails before it has used up its attempts.
func TestFailedItemsHadTheirAttempts(t *testing.T) {
	limited := blameWorld{items: 600, answer: 2 * time.Second, poison: 0.1, seed: 2, options: []Option{WithLimits(Limits{RPM: 300})}}
	down := thousands(0.1)
	down.outages, down.flap = tenMinutes, 20*time.Second
	for name, w := range map[string]blameWorld{"limited": limited, "down": down} {
		t.Run(name, func(t *testing.T) {
			for _, r := range w.run(t).results {
				if r.Err != nil && r.Attempts != DefaultMaxAttempts {
					t.Errorf("item %d failed after %d attempts in %d calls", r.Index, r.Attempts, r.Calls)
				}
			}
		})
	}
}

// A limit on requests is shared out between poison and good items, so that five tries cost
// poison about as many calls as without a limit.
func TestPoisonUnderALimit(t *testing.T) {
	for _, rpm := range []float64{60, 300} {
		t.Run(fmt.Sprint(rpm, " a minute"), func(t *testing.T) {
			w := blameWorld{items: 600, answer: 2 * time.Second, poison: 0.1, options: []Option{WithLimits(Limits{RPM: rpm})}}
			f := w.figures(t, 2)
			five := float64(w.items*f.worlds+4*f.poison) / float64(f.worlds) // calls of a run
			f.allNamed(t, time.Duration(1.2*five/rpm*float64(time.Minute))+45*time.Second)
			f.calls(t, 7, 12)
		})
	}
}

// Poison that breaks at once opens no breaker while all answers take 20 s. The row of failures
// must be as long as the calls under way.
func TestPoisonBreaksBeforeAnybodyIsAnswered(t *testing.T) {
	for _, poison := range []float64{0.1, 0.2} {
		t.Run(fmt.Sprint(poison), func(t *testing.T) {
			f := blameWorld{items: 1000, answer: 20 * time.Second, poison: poison}.figures(t, 2)
			f.allNamed(t, 20*time.Minute)
			f.calls(t, 6, 11)
			f.opensNothing(t)
		})
	}
}
