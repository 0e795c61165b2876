package gates

import "time"

// A Gate is one limit of a server. Times count from the world's beginning, and never go
// back.
//
// A Gate is used either as itself, by Ask, Take and Refused, or as its oracle, by Next and
// Take: never both.
type Gate interface {
	// Ask is called once for every call that arrives, and says whether the gate is open for
	// it. If not, it says after how long the gate will be, as a server would.
	Ask(at time.Duration, tokens float64) (open bool, wait time.Duration)
	// Take charges a call that passed all gates, and is at work until then.
	Take(at time.Duration, tokens float64, until time.Duration)
	// Refused reports that a call was refused, by this gate or by another.
	Refused(at time.Duration, tokens float64)
	// Next is the oracle: the first moment, not before at, for the next call.
	Next(at time.Duration, tokens float64) time.Duration
}

// never is longer than any world lasts.
const never = 1000 * time.Hour

// seconds returns a time in the unit of the formulas.
func seconds(d time.Duration) float64 { return d.Seconds() }

// after returns at least a nanosecond for anything over 0: a wait rounded to nothing would
// come back at the same moment.
func after(s float64) time.Duration {
	if s <= 0 {
		return 0
	}
	return time.Duration(min(s*1e9, float64(never))) + 1
}
