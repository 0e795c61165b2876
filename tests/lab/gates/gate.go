package gates

import "time"

// A Gate is one limit of a server. Times are since the world's beginning, and
// never go back.
//
// A Gate is used either as what it is, by Ask, Take and Refused, or as its
// oracle, by Next and Take: not both.
type Gate interface {
	// Ask is asked once of every call that arrives, and says whether the gate is
	// open for it; if not, after how long it would be, as a server would tell.
	Ask(at time.Duration, tokens float64) (open bool, wait time.Duration)
	// Take charges a call that passed all gates, and is worked on until then.
	Take(at time.Duration, tokens float64, until time.Duration)
	// Refused says that a call was refused, by this gate or by another.
	Refused(at time.Duration, tokens float64)
	// Next is the oracle: the first moment, not before at, for the next call.
	Next(at time.Duration, tokens float64) time.Duration
}

// never is further than any world lasts.
const never = 1000 * time.Hour

// seconds is a time as the formulas want it.
func seconds(d time.Duration) float64 { return d.Seconds() }

// after is at least a nanosecond for what is over 0: a wait that were rounded to
// nothing would be asked for again at the same moment.
func after(s float64) time.Duration {
	if s <= 0 {
		return 0
	}
	return time.Duration(min(s*1e9, float64(never))) + 1
}
