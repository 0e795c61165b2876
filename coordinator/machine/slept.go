package machine

import "time"

// Slept says that nothing ran from then until now: the computer slept, or the process was
// stopped. That held runs back, whatever held them back before.
func Slept(from time.Time) Event { return Event{kind: evSlept, config: from} }

// slept books the time. The machine finds out anew, when it decides, what holds a run back.
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
