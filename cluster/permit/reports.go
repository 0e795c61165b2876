package permit

import "time"

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
