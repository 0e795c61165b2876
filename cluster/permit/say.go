package permit

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
)

// The law asks at these times.
//
//	wants that the keeper does not know of, or a refusal      ─▶ AskSoonest after the latest ask
//	calls that have ended, or nothing wanted any more         ─▶ AskEvery
//	wants, calls that have left, what was not acknowledged    ─▶ AskAgain
//	calls in flight, or permits in hand                       ─▶ AskStill
//	items that wait for a place, which others hold            ─▶ looked at again after AskAgain
//	otherwise                                                 ─▶ when something changes

// asks holds the state of a lane's asks.
type asks struct {
	seq       uint64    // number of the latest ask
	at        time.Time // when the latest ask was sent
	urgent    bool      // the next ask is due at AskSoonest
	unmet     int       // calls that the latest ask wanted, and that have got no permit since
	came      int       // permits that have come since the latest ask
	flow      float64   // recent permits from one ask to the next
	roundTrip float64   // seconds from an ask to the give that answers it, smoothed; 0: none did
	sent      []sentAsk // asks within Life: permits may yet come that answer them
}

// A sentAsk holds what a give needs of the ask that it answers.
type sentAsk struct {
	seq    uint64
	at     time.Time
	report uint64 // number of the last report in it; 0: none
}

const (
	roundTripWeight = 0.1 // weight of a new way in the smoothed one
	firstFlow       = 8   // flow before the first ask
	flowKept        = 0.8 // share of the flow left at the next ask, if no permit comes
	leastWants      = 4   // wants that an ask describes, if there are as many
)

// Say is part of [limiter.Speaker]. Its words are *[Ask].
func (l *Law) Say(now time.Time, up limiter.Upcoming) (any, time.Time) {
	l.expire(now)
	l.dropSpare(now, up.Waiting)
	if at := l.soonest(); at.After(now) {
		return nil, earliest(at, l.hand.firstExpiry())
	}
	wants, more := l.wants(up)
	wanted := len(wants) + more
	var next time.Time // nothing changes on this lane when a call of another one ends
	if wanted == 0 && up.Waiting > 0 && !l.stopped {
		next = now.Add(AskAgain)
	}
	if at := l.due(wanted); at.IsZero() || at.After(now) {
		return nil, earliest(earliest(at, next), l.hand.firstExpiry())
	}
	return l.ask(now, wants, more), earliest(earliest(l.due(wanted), next), l.hand.firstExpiry())
}

// soonest returns the earliest time of the next ask, whatever is wanted: wants are not cheap to find.
func (l *Law) soonest() time.Time {
	if a := &l.asks; !a.urgent && a.unmet > 0 {
		return a.at.Add(AskEvery)
	}
	return l.asks.at.Add(AskSoonest)
}

// wants returns the costs of the calls that would leave next without a permit in hand. They are as many as there will
// be places when the permits come. It only counts those beyond what may come before the next ask. Where a limit binds,
// most descriptions would be in vain, ten times a second.
func (l *Law) wants(up limiter.Upcoming) (wants []Cost, more int) {
	n := min(up.Waiting, l.places(up))
	if l.stopped || n <= 0 {
		return nil, 0
	}
	count := min(MaxWants, max(leastWants, 2*int(math.Ceil(l.asks.flow))))
	left, spare := n, l.hand.match()
	for cost := range up.Costs {
		c := CostOf(cost)
		if left--; l.hand.covers(c) {
			spare--
		} else {
			wants = append(wants, c)
		}
		if left == 0 || len(wants) == count {
			break
		}
	}
	return wants, max(0, left-spare)
}

// places returns the number of the lane's calls that will have a place when the permits come. If other lanes hold all
// places, it is one, provided that a call is likely to end while a permit lives. A lane that asked for none would never
// get a place.
func (l *Law) places(up limiter.Upcoming) int {
	n := up.Free + l.soonFree()
	if n <= 0 && len(l.out) == 0 && float64(up.Busy)*Life.Seconds() >= l.latency {
		return 1
	}
	return n
}

// soonFree estimates how many calls in flight will have ended before the next ask's permits can arrive. It allows two
// intervals between asks, and two ways. It uses the mean latency, as if ends were spread evenly.
func (l *Law) soonFree() int {
	if l.latency <= 0 {
		return 0
	}
	horizon := 2 * (AskEvery.Seconds() + l.asks.roundTrip)
	return int(math.Ceil(float64(len(l.out)) * min(1, horizon/l.latency)))
}

// due returns the time of the next ask; zero: there is nothing to ask or report.
func (l *Law) due(wanted int) time.Time {
	a := &l.asks
	switch {
	case a.urgent, wanted > 0 && a.unmet <= 0:
		return a.at.Add(AskSoonest)
	case l.reports.news, wanted == 0 && a.unmet > 0:
		return a.at.Add(AskEvery)
	case wanted > 0, len(l.reports.list) > 0:
		return a.at.Add(AskAgain)
	case len(l.out) > 0, len(l.hand.permits) > 0:
		return a.at.Add(AskStill)
	}
	return time.Time{}
}

// ask makes an ask that is due, and remembers it for the give that will answer it. It forgets asks
// that were sent a Life ago: the permits that answer them are no longer good.
func (l *Law) ask(now time.Time, wants []Cost, more int) *Ask {
	a := &l.asks
	a.seq++
	a.at, a.urgent, a.unmet = now, false, len(wants)+more
	a.flow, a.came = max(float64(a.came), flowKept*a.flow), 0
	for len(a.sent) > 0 && now.Sub(a.sent[0].at) >= Life {
		a.sent = a.sent[1:]
	}
	first, list := l.reports.unheard(now)
	last := uint64(0)
	if len(list) > 0 {
		last = first + uint64(len(list)) - 1
	}
	a.sent = append(a.sent, sentAsk{seq: a.seq, at: now, report: last})
	return &Ask{
		Version: Version, Worker: l.worker, Job: l.job, Limit: l.limit, Seq: a.seq, Epoch: l.epoch, Got: l.got,
		Wants: wants, More: more, First: first, Reports: list, Weight: l.weight,
	}
}

// earliest returns the earlier of two moments, and skips a zero one.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reports holds the reports that the keeper is not known to have heard.
//
// Invariant: list[i] is the report of number first+i. Reports up to seen were in an ask, and do not
// change any more.
type reports struct {
	first uint64
	list  []report
	seen  uint64
	news  bool // a report of more than a call's leaving was in no ask yet
}

type report struct {
	Report
	at time.Time // when its call left
}

// add notes a report, and returns its number.
func (r *reports) add(x Report, at time.Time) uint64 {
	r.news = r.news || x.Unused || x.Ended != nil
	r.list = append(r.list, report{x, at})
	return r.first + uint64(len(r.list)) - 1
}

// left notes that a call has left with a permit, and returns the number of its report. For a permit that
// came back it is the number of the earlier report.
func (r *reports) left(p inHand, cost Cost, now time.Time) uint64 {
	x := Report{Epoch: p.epoch, Number: p.Number, Cost: cost}
	if p.report == 0 {
		return r.add(x, now)
	}
	if p.report > r.seen {
		r.list[p.report-r.first] = report{x, now}
	}
	return p.report
}

// replace puts x in the place of an earlier report, unless that was in an ask already: once a call has ended,
// its leaving is of no interest. It reports whether it did.
func (r *reports) replace(number uint64, x Report) bool {
	if number <= r.seen {
		return false
	}
	r.list[number-r.first].Report = x
	r.news = true
	return true
}

// unheard returns the oldest reports with their age now, and the number of the first.
func (r *reports) unheard(now time.Time) (first uint64, list []Report) {
	n := min(len(r.list), MaxReports)
	if n == 0 {
		return 0, nil
	}
	list = make([]Report, n)
	for i := range list {
		list[i] = r.list[i].Report
		if !list[i].Unused {
			list[i].Age = max(0, now.Sub(r.list[i].at))
		}
	}
	r.seen = max(r.seen, r.first+uint64(n)-1)
	r.news = len(r.list) > n
	return r.first, list
}

// heard forgets the reports up to a number.
func (r *reports) heard(number uint64) {
	if number < r.first {
		return
	}
	n := min(number-r.first+1, uint64(len(r.list)))
	r.list = r.list[n:]
	r.first += n
	if len(r.list) == 0 {
		r.list = nil
	}
}
