package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// A answeringLaw returns set answers to refusals, and records the news that it hears.
type answeringLaw struct {
	limiter.Law
	answer func(now time.Time) limiter.Refusal
	news   []limiter.News
}

func (l *answeringLaw) Refused(now time.Time, n limiter.News) limiter.Refusal {
	l.news = append(l.news, n)
	return l.answer(now)
}

func (l *answeringLaw) Vanished(now time.Time, n limiter.News) {
	l.news = append(l.news, n)
	l.Law.Vanished(now, n)
}

func (l *answeringLaw) Failed(now time.Time, n limiter.News) {
	l.news = append(l.news, n)
	l.Law.Failed(now, n)
}

// aloneFor has an item wait alone for so long; of nothing, until there is a place.
func aloneFor(wait time.Duration) func(time.Time) limiter.Refusal {
	return func(now time.Time) limiter.Refusal {
		if wait == 0 {
			return limiter.Refusal{Alone: true}
		}
		return limiter.Refusal{Alone: true, Until: now.Add(wait)}
	}
}

// newAloneBed is a bed of one lane, whose law answers that way.
func newAloneBed(r RunConfig, answer func(time.Time) limiter.Refusal) (*bed, *lane, *answeringLaw) {
	b := newBed(LaneConfig{Law: limiter.Plain}, r)
	b.offer(1, "", 0)
	l := b.lanes[DefaultPool]
	law := &answeringLaw{Law: l.law, answer: answer}
	l.law = law
	return b, l, law
}

// granted is the numbers of the items whose calls are in flight, in the order of grants.
func (b *bed) granted() (seqs []uint64) {
	for _, g := range b.calls {
		seqs = append(seqs, g.Item.Seq)
	}
	return seqs
}

func (b *bed) wantGranted(t *testing.T, when string, want ...uint64) {
	t.Helper()
	got := b.granted()
	same := len(got) == len(want)
	for i := range got {
		same = same && got[i] == want[i]
	}
	if !same {
		t.Fatalf("%s: items %v are in flight, want %v", when, got, want)
	}
}

// An item that waits alone waits until it is due, and no longer; its lane goes on, in the
// same epoch, and others overtake it. It goes before those that were never called.
func TestItemThatWaitsAlone(t *testing.T) {
	b, l, _ := newAloneBed(RunConfig{Concurrency: 1}, aloneFor(5*time.Second))
	b.offer(3, "", 0)
	b.end(time.Second, Outcome{Signal: Throttled})
	if l.phase != Flowing || l.epoch != 0 || l.delayed != 1 || l.parked != 0 {
		t.Fatalf("the lane is %v in epoch %d, %d delayed, %d parked", l.phase, l.epoch, l.delayed, l.parked)
	}
	b.wantGranted(t, "at once", 1)
	b.end(4999*time.Millisecond, Outcome{Signal: Failed}) // a moment before it is due
	b.wantGranted(t, "before it is due", 2)
	b.wait(time.Millisecond)
	b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Succeeded}))
	b.calls = nil
	b.decide()
	b.wantGranted(t, "when it is due", 0)
	if it := b.calls[0].Item; it.Attempts != 0 || it.Throttled != 1 {
		t.Errorf("it used %d attempts, and was throttled %d times", it.Attempts, it.Throttled)
	}
}

// The law hears how often a server refused the item before. A connection that could not be opened is no refusal.
func TestLawHearsHowOftenAnItemWasRefused(t *testing.T) {
	b, _, law := newAloneBed(RunConfig{Concurrency: 1}, aloneFor(time.Second))
	for _, o := range []Outcome{
		{Signal: Failed, Unsent: true}, {Signal: Throttled}, {Signal: Failed, Unsent: true}, {Signal: Overloaded}, {Signal: Throttled},
	} {
		b.endOfItem(0, 2*time.Second, o)
		b.wait(5 * time.Second)
	}
	var refusals []int
	for _, n := range law.news {
		if !n.Unsent {
			refusals = append(refusals, n.Refusals)
		}
	}
	if !slices.Equal(refusals, []int{0, 1, 2}) {
		t.Errorf("the law hears of %v refusals before", refusals)
	}
}

// A reset by hand frees the items that wait alone after a call on the lane, be it refused or
// broken. The next such wait is said again if it is long. Those of other lanes wait on.
func TestResetFreesItemsThatWaitAlone(t *testing.T) {
	for how, o := range map[string]Outcome{
		"refused": {Signal: Throttled},
		"broken":  {Signal: Failed, Directed: true, RetryAfter: 10 * time.Minute},
	} {
		t.Run(how, func(t *testing.T) {
			b, l, law := newAloneBed(RunConfig{}, aloneFor(14*time.Minute))
			b.offer(1, "other", 0)
			other := b.lanes["other"]
			other.law = &answeringLaw{Law: other.law, answer: law.answer}
			b.end(time.Second, o)
			b.end(0, o)
			if l.delayed != 1 || other.delayed != 1 || b.runs[1].delayed != 2 || len(b.calls) > 0 {
				t.Fatalf("%d and %d delayed, %d in flight", l.delayed, other.delayed, len(b.calls))
			}
			b.Step(b.now, LaneReset(DefaultPool))
			b.decide()
			b.wantGranted(t, "after the reset", 0)
			if l.delayed != 0 || other.delayed != 1 || b.runs[1].delayed != 1 {
				t.Errorf("%d and %d delayed, %d of the run", l.delayed, other.delayed, b.runs[1].delayed)
			}
			b.wait(14 * time.Minute)
			b.wantGranted(t, "when the other is due", 0, 1)
		})
	}
}

// While nobody else waits the machine asks to be woken when it is due, not before.
func TestWaitingAloneEndsOnTime(t *testing.T) {
	b, _, _ := newAloneBed(RunConfig{}, aloneFor(5*time.Second))
	b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Throttled}))
	b.calls = nil
	if wake := b.Ready(b.now).WakeAt; !wake.Equal(b.now.Add(5 * time.Second)) {
		t.Errorf("to be woken in %v", wake.Sub(b.now))
	}
	b.wait(5*time.Second - 1)
	b.wantGranted(t, "a moment before")
	b.wait(1)
	b.wantGranted(t, "when it is due", 0)
}

// An item for which there was no place is the first in line for the next: ahead of those
// that wait, and of those whose backoff is over.
func TestItemWithoutAPlaceGoesFirst(t *testing.T) {
	b, l, _ := newAloneBed(RunConfig{Concurrency: 1}, aloneFor(0))
	b.offer(2, "", 0)
	b.Step(b.now, HandedOver(b.calls[0], Outcome{Signal: Overloaded}))
	b.calls = nil
	if l.parked != 1 || l.phase != Flowing || l.epoch != 0 {
		t.Fatalf("%d parked, %v, epoch %d", l.parked, l.phase, l.epoch)
	}
	b.decide()
	b.wantGranted(t, "at once", 0)
}

// A refusal of a wave that its lane has reacted to parks its item, also if that waited
// alone before.
func TestStragglerDoesNotWaitAlone(t *testing.T) {
	b, l, law := newAloneBed(RunConfig{}, aloneFor(time.Second))
	b.offer(1, "", 0)
	b.end(0, Outcome{Signal: Throttled})
	b.wait(time.Second) // 0 is in flight again, together with 1
	law.answer = func(now time.Time) limiter.Refusal { return limiter.Refusal{Until: now.Add(time.Minute)} }
	b.end(0, Outcome{Signal: Throttled})
	b.end(0, Outcome{Signal: Throttled})
	if l.phase != Cooling || l.epoch != 1 || l.parked != 2 || l.delayed != 0 {
		t.Errorf("the lane is %v in epoch %d, %d parked, %d delayed", l.phase, l.epoch, l.parked, l.delayed)
	}
}

// Who is withdrawn, or runs out of time, while it waits alone, leaves at once.
func TestWaitingAloneCanBeGivenUp(t *testing.T) {
	for _, c := range []struct {
		give func(*bed, *Item)
		want Verdict
	}{
		{func(b *bed, it *Item) { b.Step(b.now, Withdrawn(it)) }, EndWithdrawn},
		{func(b *bed, it *Item) { b.now = b.now.Add(10 * time.Second) }, EndExpired},
		{func(b *bed, it *Item) { b.Step(b.now, Drained(1)) }, EndDrained},
	} {
		b, l, _ := newAloneBed(RunConfig{ItemTimeout: 10 * time.Second}, aloneFor(time.Minute))
		it := b.calls[0].Item
		b.end(0, Outcome{Signal: Throttled})
		c.give(b, it)
		if grants := b.decide().Grants; len(grants) != 1 || grants[0].Verdict != c.want || l.delayed != 0 {
			t.Errorf("%v: grants %v, %d delayed", c.want, grants, l.delayed)
		}
	}
}

// A busy server is taken to be down only where probes say so: its refusals do not open the
// breaker of a lane that flows.
func TestBusyCountsForTheBreakerWhileProbing(t *testing.T) {
	b, l, law := newAloneBed(RunConfig{}, aloneFor(time.Second))
	for range 3 * limiter.DefaultBreakerConsecutive {
		b.end(0, Outcome{Signal: Overloaded})
		b.wait(time.Second)
	}
	if l.phase != Flowing || l.breaker.State(b.now) != limiter.Closed {
		t.Fatalf("the lane is %v, its breaker %v", l.phase, l.breaker.State(b.now))
	}
	law.answer = func(now time.Time) limiter.Refusal { return limiter.Refusal{Until: now.Add(time.Second)} }
	for range 2*limiter.DefaultBreakerConsecutive + 2 {
		if len(b.calls) > 0 {
			b.end(0, Outcome{Signal: Overloaded})
		}
		b.wait(time.Second)
	}
	if l.breaker.State(b.now) == limiter.Closed {
		t.Error("every probe was refused, and the breaker is closed")
	}
}

// The law hears that nothing of a call reached the wire, whether the call vanished or failed.
func TestLawHearsOfWhatNeverLeft(t *testing.T) {
	for _, signal := range []Signal{Nothing, Failed} {
		for _, unsent := range []bool{true, false} {
			b, _, law := newAloneBed(RunConfig{}, aloneFor(time.Second))
			b.end(0, Outcome{Signal: signal, Unsent: unsent})
			if len(law.news) != 1 || law.news[0].Unsent != unsent || law.news[0].Ticket == (limiter.Ticket{}) {
				t.Errorf("%v, unsent %v: the law heard %+v", signal, unsent, law.news)
			}
		}
	}
}

// Where nothing but refusals says that a server is down, a probe that was not refused in time
// has passed. A call that broke says more, until one is answered.
func TestAnswerEndsWhatABrokenCallSaid(t *testing.T) {
	for _, answered := range []bool{true, false} {
		b := newBed(LaneConfig{Law: limiter.Plain}, RunConfig{})
		b.offer(3, "", 0)
		ends := []Signal{Succeeded, Failed}
		if answered {
			ends = []Signal{Failed, Succeeded}
		}
		for i, s := range ends {
			b.endOf(t, uint64(i), Settled, Outcome{Signal: s})
		}
		l := b.lanes[DefaultPool]
		for range 900 {
			if l.phase == Probing && l.breaker.State(b.now) != limiter.Closed && len(b.calls) > 0 {
				break
			}
			if len(b.calls) > 0 {
				b.end(0, Outcome{Signal: Overloaded})
			}
			b.wait(time.Second)
		}
		if l.phase != Probing || len(b.calls) != 1 {
			t.Fatalf("the lane is %v, with %d calls", l.phase, len(b.calls))
		}
		b.wait(2 * ProbeWait)
		if passed := l.phase != Probing; passed != answered {
			t.Errorf("a call was answered since one broke: %v; the lane is %v", answered, l.phase)
		}
	}
}
