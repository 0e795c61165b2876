package lab

import (
	"os"
	"strconv"
	"testing"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// Bounds on the ratio in a world that nobody thought of: a world of a few minutes,
// in which a minute's outage or a limit that falls to a quarter weighs much. A
// neighbour who takes nearly all makes the optimum a matter of luck.
const (
	aloneBound = 2.5
	noisyBound = 7.0
)

// leastCapacity is the number of calls that a bucket or window must hold before the bounds
// apply. Where it holds one or two, every refusal comes before there is anything to learn
// from.
const leastCapacity = 3.0

// capacity returns the number of calls that the bucket or window holds when the limit is lowest.
func (s Scenario) capacity() float64 {
	rpm := s.RPM
	for _, c := range s.Changes {
		rpm = min(rpm, c.RPM)
	}
	return rpm / 60 * max(s.Burst, s.Window).Seconds()
}

// Whatever the provider, every item is answered once, and in a time that has
// something to do with what the provider allows. WORLDS says how many to try.
func TestRandomWorlds(t *testing.T) {
	worlds := uint64(race.Fewer(200))
	if n, err := strconv.ParseUint(os.Getenv("WORLDS"), 10, 64); err == nil {
		worlds = n
	}
	for number := range worlds {
		s := Random(number)
		if s.capacity() < leastCapacity {
			continue
		}
		t.Run(strconv.FormatUint(number, 10), func(t *testing.T) {
			t.Parallel()
			m := Measure(s, Headrace(limiter.Model), []uint64{0})
			bound := aloneBound
			if s.Neighbour > 0 {
				bound = noisyBound
			}
			if m.Lost > 0 || m.Repeated > 0 || m.Ratio > bound {
				t.Errorf("%s: %d lost, %d repeated, ratio %.3f, at most %.1f", s.Name, m.Lost, m.Repeated, m.Ratio, bound)
			}
		})
	}
}
