package machine

import (
	"cmp"
	"slices"

	"github.com/headrace/headrace/limiter"
)

// What the book says to what a remote lane's law is asked: how much is to come, and what it costs.

// areUpToDate: after each decision a law that speaks has been asked since anything on its lane
// has changed. It is true after Ready only. Where a law panics as it is asked, its lane stops
// and others may have been asked before: they hear of the items that ended when they are asked
// next.
//
// Between two looks it only notes what was asked until then.
func (b *book) areUpToDate(look bool) {
	stopped := false
	for _, page := range b.w.outer.pages {
		stopped = stopped || page.broken && !page.noticed
		page.noticed = page.broken
	}
	for _, page := range b.w.outer.pages {
		if look {
			b.isUpToDate(page, stopped)
		}
		page.seen = page.asked
	}
}

func (b *book) isUpToDate(page *remotePage, stopped bool) {
	l := b.w.m.lanes[page.lane]
	if l == nil || !l.remote() || page.asked == 0 || page.broken {
		return
	}
	up, most, free := b.upcoming(l)
	got := page.up
	if got.InFlight != up.InFlight || got.Waiting == 0 && free {
		b.w.failf("lane %s: its law was asked when %+v was to come, and now %+v is", page.lane, got, up)
	}
	if page.asked == page.seen {
		return
	}
	if stopped {
		return
	}
	few, many := got.Waiting < up.Waiting || got.Delayed < up.Delayed, got.Waiting > most.Waiting || got.Delayed > most.Delayed
	if few || many || got.Free != up.Free {
		b.w.failf("lane %s: %+v is to come, counted %+v up to %+v", page.lane, got, up, most)
	}
	b.areCosts(l, page)
}

// upcoming counts what is to come from the items, at least and at most, and says whether the run of
// one that waits has a place, and money.
func (b *book) upcoming(l *lane) (up, most limiter.Upcoming, free bool) {
	up.InFlight = l.inFlight
	runs := map[*bookRun]bool{}
	for _, p := range l.pools {
		if r := b.runs[p.run.id]; r.paused == 0 && !r.draining && !runs[r] {
			runs[r] = true
			up.Free += max(0, withDefault(r.config.Concurrency)-r.busy)
		}
	}
	if all := b.w.plan.machine.Concurrency; all > 0 {
		up.Free = min(up.Free, max(0, all-b.w.m.inFlight))
	}
	for _, x := range b.living {
		is := x.item.place
		if x.run.paused > 0 || x.run.draining || is != Waiting && is != Parked && is != Delayed {
			continue
		}
		may := b.mayUse(x, l.name)
		switch {
		case may == no:
		case is == Delayed:
			most.Delayed++
		default:
			most.Waiting++
		}
		switch {
		case may != yes:
		case is == Delayed:
			up.Delayed++
		default:
			up.Waiting++
			free = free || x.run.busy < withDefault(x.run.config.Concurrency) && !b.w.m.full() && !x.lacksMoney()
		}
	}
	return up, most, free
}

// lacksMoney reports whether the item's pool waits for money. It stands in no line then, so that a tier
// which opens by time alone is not noticed before some comes back.
func (x *bookItem) lacksMoney() bool {
	purse := x.item.run.purse
	return purse != nil && slices.Contains(purse.waiting, x.item.pool)
}

// areCosts: the law sees as many costs as it may, and of one pool the first in their order.
func (b *book) areCosts(l *lane, page *remotePage) {
	if n := min(page.up.Waiting, limiter.MostUpcoming); len(page.costs) > n || (len(page.costs) == 0) != (n == 0) || len(l.pools) == 1 && len(page.costs) != n {
		b.w.failf("lane %s: %d costs are told of %d items", page.lane, len(page.costs), page.up.Waiting)
	}
	if len(l.pools) != 1 {
		return
	}
	var line []*bookItem
	for _, x := range b.living {
		if x.item.pool == l.pools[0] && (x.item.place == Waiting || x.item.place == Parked) && x.run.paused == 0 && !x.run.draining && b.mayUse(x, l.name) != no {
			line = append(line, x)
		}
	}
	slices.SortFunc(line, func(x, y *bookItem) int { return cmp.Or(b.rankNow(x)-b.rankNow(y), x.order(y)) })
	for i, c := range page.costs {
		if want := l.charge.Of(line[i].item.Cost); c != want {
			b.w.failf("lane %s: cost %d of those to come is %+v, want %+v", page.lane, i, c, want)
		}
	}
}

// rankNow is the rank of an item that may have ripened since the book has written it down.
func (b *book) rankNow(x *bookItem) int {
	switch {
	case x.item.place == Parked:
		return 0
	case x.item.Calls > 0:
		return 1
	}
	return 2
}
