package machine

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The usual length of an answer is half as much again as the longest of a thousand, at most 9 %
// more; it is not known before a hundred answers.
func TestUsualLength(t *testing.T) {
	var n *lengths
	if n.usual() != 0 {
		t.Error("no answers have a usual length")
	}
	n = &lengths{}
	for range UsualAfter - 1 {
		n.add(300)
	}
	if n.usual() != 0 {
		t.Error("too few answers have a usual length")
	}
	n.add(1000)
	if got := n.usual(); got < 1500 || got > 1500*1.1 {
		t.Errorf("of a hundred answers, one of them of 1,000 tokens: %v, want 1,500 to 1,650", got)
	}
	for range 10_000 {
		n.add(300)
	}
	if got := n.usual(); got < 450 || got > 450*1.1 {
		t.Errorf("of ten thousand answers, one of them of 1,000 tokens: %v, want 450 to 495", got)
	}
	for _, odd := range []float64{0, 1, math.MaxFloat64, math.Inf(1)} {
		(&lengths{}).add(odd)
	}
}

// The price of a call without a bound is asked with the usual length of its own lane, and only
// answers that nothing bounds tell it.
func TestPriceHearsUsualLength(t *testing.T) {
	m := New(Config{})
	now, asked := storyStart, map[string]float64{}
	m.Step(now, RunOpened(1, RunConfig{Concurrency: 1, Budget: limiter.USD(1), Price: func(_ *Item, lane string, usual float64) (limiter.Money, bool) {
		asked[lane] = usual
		return 1, true
	}}))
	call := func(lane string, bound, output float64) {
		now = now.Add(time.Second)
		m.Step(now, Offered(1, []*Item{{Pool: lane, Cost: limiter.Cost{Requests: 1, Output: bound}}}))
		for _, g := range m.Ready(now).Grants {
			m.Step(now, Settled(g, Outcome{Signal: Succeeded, Measured: true, Actual: limiter.Cost{Requests: 1, Output: output}}))
		}
	}
	for range UsualAfter {
		call("bounded", 100, 90)
		call("free", 0, 200)
	}
	call("bounded", 100, 90)
	call("free", 0, 200)
	if asked["bounded"] != 0 || asked["free"] < 300 || asked["free"] > 330 {
		t.Errorf("the price was asked with %v, want 0 for bounded answers and 300 to 330 for the others", asked)
	}
}

// A budget needs a price, and neither it nor what was spent before may be negative.
func TestBudgetIsChecked(t *testing.T) {
	price := func(*Item, string, float64) (limiter.Money, bool) { return 0, true }
	for want, c := range map[string]RunConfig{
		"needs a Price":       {Budget: 1},
		"may be negative":     {Budget: -1, Price: price},
		"neither may be nega": {Budget: 1, Spent: -1, Price: price},
		"in doubt":            {Budget: 1, Doubtful: -1, Price: price},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c.Budget, err, want)
		}
	}
	if err := (RunConfig{Budget: 1, Spent: 2, Price: price}).Validate(); err != nil {
		t.Error(err)
	}
}

// A run whose budget was spent before it began makes no call, and says why; free calls leave.
func TestBudgetSpentBefore(t *testing.T) {
	m := New(Config{Lane: LaneConfig{Law: limiter.NoLaw}})
	m.Step(storyStart, RunOpened(1, RunConfig{Budget: 1, Spent: 2, Price: func(it *Item, _ string, _ float64) (limiter.Money, bool) {
		return limiter.Money(it.Seq), true
	}}))
	m.Step(storyStart, Offered(1, []*Item{{Seq: 0}, {Seq: 1}, {Seq: 2}}))
	r := m.Ready(storyStart)
	if len(r.Grants) != 3 || r.Grants[0].Verdict != Call || r.Grants[1].Verdict != EndUnpaid || r.Grants[2].Verdict != EndUnpaid {
		t.Fatalf("%v, want the free one called, and two that end unpaid", r.Grants)
	}
	var why *BudgetError
	if err := r.Grants[1].Cause; !errors.Is(err, ErrMaxCost) || !errors.As(err, &why) || why.Item != 1 || why.Left() != -1 {
		t.Errorf("%v", err)
	}
	if len(r.Stranded) != 1 || !errors.Is(r.Stranded[0].Cause, ErrMaxCost) {
		t.Errorf("stranded: %v", r.Stranded)
	}
}

// An item that does not fit has the money that comes back before those of other pools: their calls
// would take it, each as it comes, for as long as they have items.
func TestADearItemHasItsTurnForMoney(t *testing.T) {
	b := &bed{Machine: New(Config{Lane: LaneConfig{Law: limiter.NoLaw}}), now: storyStart}
	b.Step(b.now, RunOpened(1, RunConfig{Budget: 100, Price: func(it *Item, _ string, _ float64) (limiter.Money, bool) {
		return map[string]limiter.Money{"cheap": 10, "dear": 60}[it.Pool], true
	}}))
	b.offer(10, "cheap", 0)
	b.offer(1, "dear", 0)
	b.offer(90, "cheap", 0)
	for ended := range 100 {
		g := b.calls[0]
		b.calls = b.calls[1:]
		if g.Item.Pool == "dear" {
			if ended > 10 {
				t.Errorf("it left after %d calls had ended", ended)
			}
			return
		}
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded}))
		b.decide()
	}
	t.Error("it never left before all others had ended")
}

// Items of other pools go on once the one before them has left, or waits for its lane instead, and
// so do those that cost nothing.
func TestTheTurnForMoneyGoesOn(t *testing.T) {
	for name, end := range map[string]func(b *bed, waits *Item){
		"withdrawn": func(b *bed, waits *Item) { b.Step(b.now, Withdrawn(waits)) },
		"stopped":   func(b *bed, _ *Item) { b.Step(b.now, Settled(b.calls[0], Outcome{Signal: Exhausted, Spent: 50})) },
	} {
		t.Run(name, func(t *testing.T) {
			b := &bed{Machine: New(Config{Lane: LaneConfig{Law: limiter.NoLaw}}), now: storyStart}
			b.Step(b.now, RunOpened(1, RunConfig{Budget: 100, Price: func(it *Item, _ string, _ float64) (limiter.Money, bool) {
				return map[string]limiter.Money{"cheap": 10, "dear": 60}[it.Pool], true
			}}))
			b.offer(1, "dear", 0)
			waits := &Item{Seq: 100, Pool: "dear"}
			b.Step(b.now, Offered(1, []*Item{waits}))
			b.decide()
			b.offer(2, "cheap", 0)
			b.offer(1, "free", 0)
			if n := len(b.calls); n != 2 || b.calls[1].Item.Pool != "free" {
				t.Fatalf("%d calls left while one waits for money: %+v", n, b.calls)
			}
			end(b, waits)
			b.decide()
			cheap := 0
			for _, g := range b.calls {
				if g.Item.Pool == "cheap" {
					cheap++
				}
			}
			if cheap != 2 {
				t.Errorf("%d of 2 calls left after it", cheap)
			}
		})
	}
}
