package machine

import (
	"cmp"
	"time"

	"github.com/headrace/headrace/limiter"
)

// heed reports when a lane slows down because its calls break, and when it is restored. It runs
// when a call has ended, and before a call leaves a lane that was slowed down. So no call
// leaves at another pace than the one that was reported last.
func (m *Machine) heed(now time.Time, l *lane) {
	share := l.law.Slowed(now)
	if float32(share) == l.slowed || l.phase == Stopped {
		return
	}
	l.slowed = float32(share)
	reason := ByErrors
	if share == 0 {
		reason = ByAnswers
	}
	v := l.law.View(now, l.nextCost())
	m.out.Transitions = append(m.out.Transitions, Transition{
		At: now, Lane: l.name, From: l.phase, To: l.phase, Reason: reason, Epoch: l.epoch,
		Until: l.alarmAt(), Wave: l.wave, Rate: v.Most, Belief: l.belief(&v),
		Slowed: share, Errors: v.Errors, Span: cmp.Or(max(0, l.cfg.Errors.Window), limiter.DefaultErrorWindow),
	})
}
