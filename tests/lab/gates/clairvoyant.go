package gates

import (
	"cmp"
	"slices"
	"time"
)

// A Task is the work of a clairvoyant: a server's gates, fresh, and a batch.
type Task struct {
	Config
	Items      int
	Tokens     func(item int) float64
	Hands      int           // the most calls in flight
	Hop        time.Duration // one way
	Neighbours []time.Duration
}

// Optimum returns a clairvoyant's makespan, the last answer included: the items in their
// order, each as soon as every oracle lets it in. The neighbour's admitted calls are charged
// at their moments. The clairvoyant pays for broken calls like anybody else: a break is not
// known before the call's time is over, and the call took a place meanwhile.
func (t Task) Optimum() time.Duration {
	answers, broke := newAnswers(t.Answers, t.Seed), newBreaks(t.Breaks, t.Seed)
	hands := NewCap(t.Hands)
	hands.News = 2 * t.Hop
	left := errands{items: t.Items}
	var last time.Duration
	for at := t.Hop; left.any(); {
		var e errand
		e, at = left.next(at)
		tokens := 0.0
		if t.Tokens != nil {
			tokens = t.Tokens(e.item)
		}
		at = t.next(at, tokens, hands)
		until := at + answers.next()
		t.take(at, tokens, until, hands)
		if broke.next() {
			left.again(errand{e.item, until + 2*t.Hop})
			continue
		}
		last = max(last, until+t.Hop)
	}
	return last
}

// take charges all gates with a call.
func (t *Task) take(at time.Duration, tokens float64, until time.Duration, hands *Cap) {
	for _, g := range t.Gates {
		g.Take(at, tokens, until)
	}
	hands.Take(at, tokens, until)
}

// An errand is a broken item, and the moment from which it can be here again.
type errand struct {
	item int
	at   time.Duration
}

// errands holds the work that is left. Broken items go before those that were never tried.
// Otherwise their tries would come one after the other at the end.
type errands struct {
	items, begun int
	broken       []errand // the earliest first
}

func (e *errands) any() bool { return e.begun < e.items || len(e.broken) > 0 }

func (e *errands) next(at time.Duration) (errand, time.Duration) {
	if len(e.broken) > 0 && (e.begun == e.items || e.broken[0].at <= at) {
		first := e.broken[0]
		e.broken = e.broken[1:]
		return first, max(at, first.at)
	}
	e.begun++
	return errand{item: e.begun - 1}, at
}

func (e *errands) again(one errand) {
	i, _ := slices.BinarySearchFunc(e.broken, one, func(a, b errand) int { return cmp.Compare(a.at, b.at) })
	e.broken = slices.Insert(e.broken, i, one)
}

// next returns the first moment at which all gates let a call in. While one makes the call
// wait another may shut again, so next asks them in turn until all agree.
func (t *Task) next(at time.Duration, tokens float64, hands *Cap) time.Duration {
	for {
		before := at
		t.charge(at)
		at = max(at, hands.Next(at, tokens))
		for _, g := range t.Gates {
			at = max(at, g.Next(at, tokens))
		}
		for _, o := range t.Outages {
			if o.now(at) {
				at = o.From + o.For
			}
		}
		if at == before {
			return at
		}
	}
}

// charge charges the neighbour's calls until now.
func (t *Task) charge(at time.Duration) {
	for len(t.Neighbours) > 0 && t.Neighbours[0] <= at {
		for _, g := range t.Gates {
			g.Take(t.Neighbours[0], 0, t.Neighbours[0])
		}
		t.Neighbours = t.Neighbours[1:]
	}
}
