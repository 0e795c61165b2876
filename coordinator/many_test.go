package coordinator

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A muted session gets no news, and misses none.
func TestMutedRunHearsNothing(t *testing.T) {
	inBubble(t, Config{Machine: plain}, func(t *testing.T, c *Coordinator) {
		s, err := c.OpenMuted(t.Context(), machine.RunConfig{})
		if err != nil {
			t.Fatal(err)
		}
		other := open(t, c, machine.RunConfig{})
		s.Offer(items(1, ""))
		s.Settle(<-s.Work(), ok)
		for range newsSize + 1 {
			c.ResetLane(machine.DefaultPool) // each is a transition
		}
		synctest.Wait()
		finish(s)
		if _, missed := s.Final(); len(s.News()) != 0 || missed != 0 {
			t.Errorf("%d news, %d missed", len(s.News()), missed)
		}
		if finish(other); len(other.News()) != newsSize {
			t.Errorf("%d news for the other run, want %d", len(other.News()), newsSize)
		}
	})
}

// A crowd is an owner with many runs, in the hands of the test: no goroutine is at work.
type crowd struct {
	l   *loop
	now time.Time
	all []*Session
	at  int
}

func newCrowd(runs int) *crowd {
	w := &crowd{l: newLoop(New(Config{Machine: machine.Config{Lane: exact}})), now: time.Now()}
	for range runs {
		w.all = append(w.all, w.l.open(w.now, machine.RunConfig{Concurrency: 1}, true))
	}
	w.l.handle(w.now, message{fact: machine.Overheard("other", w.now, limiter.Cost{}, ok)})
	for range runs { // each opens its pool with its first call
		w.pass()
	}
	return w
}

// pass has the next run make a call, and another lane tell that it changes its phase.
func (w *crowd) pass() {
	s := w.all[w.at%len(w.all)]
	w.at++
	w.decide()
	<-s.leaveToOffer
	w.l.handle(w.now, message{question: offerQuestion{session: s, items: items(1, "")}})
	w.decide()
	w.l.handle(w.now, message{fact: machine.Settled(<-s.work, ok)})
	w.l.handle(w.now, message{fact: machine.LaneReset("other")})
	w.decide()
}

func (w *crowd) decide() {
	w.now = w.now.Add(time.Millisecond)
	w.l.dispatch(w.l.machine.Ready(w.now))
	w.l.allowOffers()
}

// A pass of the owner costs the same with one run open and with thousands. A loop over all
// would take a hundred times as long. Of several tries the best of each counts, as others use
// the machine too.
func TestManySessionsCostAsOne(t *testing.T) {
	few, many, one, all := newCrowd(1), newCrowd(4000), math.Inf(1), math.Inf(1)
	for try := 0; try < 3 || try < 20 && all > 2*one; try++ {
		one, all = min(one, timed(few.pass)), min(all, timed(many.pass))
	}
	if t.Logf("%.2f times", all/one); all > 4*one {
		t.Errorf("4000 runs cost %.1f times what one does", all/one)
	}
}

func timed(pass func()) float64 {
	begun := time.Now()
	for range 500 {
		pass()
	}
	return float64(time.Since(begun))
}
