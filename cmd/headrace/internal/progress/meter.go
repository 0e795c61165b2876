package progress

import (
	"time"

	"github.com/headrace/headrace/batch"
)

// Scale is what progress is measured against.
type Scale struct {
	Began  time.Time    // of the run
	Total  int          // items of the input; UnknownTotal while a stream goes on
	Before int          // of these, ended by earlier runs
	Failed func() int64 // items that have failed so far; asked in the console's goroutine
}

// UnknownTotal is the total of an input that can be read only once.
const UnknownTotal = -1

// rateWindow is the stretch over which the rate is measured: long enough to be
// steady, short enough to show a cooldown.
const rateWindow = 10 * time.Second

// mark is how many items had ended at a time.
type mark struct {
	at   time.Time
	done uint64
}

// meter makes figures for people of a run's pictures.
type meter struct {
	Scale
	marks []mark // of the rate window, oldest first
}

func (m *meter) read(s batch.Status) picture {
	p := picture{
		elapsed: s.At.Sub(m.Began), done: m.Before + int(s.Totals.Settled), total: m.Total,
		failed: m.Failed(), waiting: s.Held, perSecond: m.rate(s), ofLanes: s.Known,
		open: s.Open, halfOpen: s.HalfOpen,
	}
	for _, l := range s.Lanes {
		p.inFlight += l.InFlight
		p.add(l, s.At)
	}
	if s.Known == 1 && len(s.Lanes) == 1 {
		p.belief = s.Lanes[0].View.String()
	}
	if p.perSecond > 0 && m.Total > p.done {
		p.left = time.Duration(float64(m.Total-p.done) / p.perSecond * float64(time.Second))
	}
	return p
}

// rate is items a second over the window.
func (m *meter) rate(s batch.Status) float64 {
	if len(m.marks) == 0 {
		m.marks = append(m.marks, mark{at: m.Began})
	}
	m.marks = append(m.marks, mark{s.At, s.Totals.Settled})
	for len(m.marks) > 2 && s.At.Sub(m.marks[1].at) >= rateWindow {
		m.marks = m.marks[1:]
	}
	first := m.marks[0]
	seconds := s.At.Sub(first.at).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(s.Totals.Settled-first.done) / seconds
}
