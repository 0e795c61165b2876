package measure

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter/internal/parttest"
)

// Copies are independent.
func TestCopiesOfPartsAreIndependent(t *testing.T) {
	var few, many Tallies
	few.Begin(noon, time.Minute, fewSlots)
	many.Begin(noon, time.Minute, MaxSlots)
	add := func(c *Tallies, now time.Time) { c.Add(now.Sub(noon), now.Second()%2 == 0) }
	parttest.Copies(t, parttest.Of(Meter{}, func(m *Meter, now time.Time) { m.Add(now) }), parttest.Of(few, add), parttest.Of(many, add))
}

func hot() parttest.Hot {
	var m Meter
	return parttest.Hot{"Meter": func(now time.Time) { m.Add(now); m.PerSecond(now) }}
}

// No hot method allocates.
func TestHotMethodsDoNotAllocate(t *testing.T) { hot().Allocate(t) }

func BenchmarkHot(b *testing.B) { hot().Benchmark(b) }
