package permit

import "time"

// reports are what is not known to have been heard.
//
// Invariant: list[i] is the report of number first+i; those to seen were in an ask, and are
// not changed any more.
type reports struct {
	first uint64
	list  []report
	seen  uint64
	news  bool // some that is more than that a call has left was in no ask yet
}

type report struct {
	Report
	at time.Time // when its call left
}

// add notes a report, and answers its number.
func (r *reports) add(x Report, at time.Time) uint64 {
	r.news = r.news || x.Unused || x.Ended != nil
	r.list = append(r.list, report{x, at})
	return r.first + uint64(len(r.list)) - 1
}

// left notes that a call has left with a permit, and answers the number of the report that says so: of a
// permit that was taken back, the one that had said so before.
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

// replace has one report say what two would: that a call has left is of no interest when it
// has ended. It reports whether nobody has seen the first one yet.
func (r *reports) replace(number uint64, x Report) bool {
	if number <= r.seen {
		return false
	}
	r.list[number-r.first].Report = x
	r.news = true
	return true
}

// unheard are the oldest of them as they are said now, and the number of the first.
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

// heard forgets the reports up to that number.
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
