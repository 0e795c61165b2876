package machine

import "time"

// Slept says that nothing ran from then on until now: the computer slept, or the process was
// stopped. Runs were held back by that, whatever held them back before.
func Slept(from time.Time) Event { return Event{kind: evSlept, config: from} }

// slept books the time. What holds a run back is found out anew when the machine decides.
func (m *Machine) slept(now, from time.Time) {
	for _, r := range m.runs {
		b := &r.books
		last := latest(from, b.since)
		b.ledger = r.accounted(last)
		b.ledger[BoundSlept] += now.Sub(last)
		if b.since = now; b.behind != nil {
			b.from = b.behind.until(now)
		}
	}
}
