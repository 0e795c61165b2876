package batch

import (
	"cmp"
	"context"
	"errors"
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
