package observe

import (
	"github.com/headrace/headrace/batch"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// present returns what holds the run back at this moment, and whether that is a state of the
// run. A state is named at once: in an outage nobody wants to read the former bound for five
// seconds more.
func (r *Recorder) present(s *batch.Status) (by machine.Bound, state bool) {
	switch by = s.Run.Bound; by {
	case machine.BoundPaused, machine.BoundDraining, machine.BoundStopped, machine.BoundBreaker:
		return by, true
	case machine.BoundOverload:
		return by, nothingIn(s)
	case machine.BoundRecovery: // a probe is out, and the state that it tests is not over
		switch named := machine.Bound(r.holder.by); {
		case !r.holder.forced:
		case named == machine.BoundBreaker && s.HalfOpen > 0, named == machine.BoundOverload && nothingIn(s):
			return named, true
		}
	case machine.BoundConcurrency:
		if r.unanswered(s) {
			return machine.BoundUnanswered, true
		}
	}
	return by, false
}

// nothingIn reports whether a server lets nothing in on some lane.
func nothingIn(s *batch.Status) bool {
	for k := range s.Lanes {
		if refusesAll(&s.Lanes[k]) {
			return true
		}
	}
	return false
}

// refusesAll reports whether a server has let in none of the probes: one refusal alone says
// little.
func refusesAll(l *batch.LaneStatus) bool { return l.View.Probed >= 2 && !l.View.Drought.IsZero() }

// overdueTimes says when a call is overdue: once it has been under way for more than that many
// times the slowest answer.
const overdueTimes = 2

// unanswered reports whether all calls in flight are overdue, and none has ended within
// SpeedSpan. More calls at once would only wait with them.
func (r *Recorder) unanswered(s *batch.Status) bool {
	slowest := r.run.total.slowest
	return slowest > 0 && r.run.calls.speed(SpeedSpan) == 0 && !s.Run.Oldest.IsZero() &&
		s.At.Sub(s.Run.Oldest) > max(SpeedSpan, overdueTimes*slowest)
}

// told reports whether a limit is the provider's word, or the user's.
func told(l *limiter.LimitView) bool { return l.Source == limiter.Told || l.Source == limiter.Seen }
