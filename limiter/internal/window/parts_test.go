package window

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
	"github.com/headrace/headrace/limiter/internal/parttest"
)

// Copies are independent.
func TestCopiesOfPartsAreIndependent(t *testing.T) {
	fine := limiter.ErrorWindowConfig{Buckets: measure.MaxSlots, MinSamples: 3}
	ends := func(e *Errors, now time.Time) { e.record(now, now.Second()%2 == 0) }
	parttest.Copies(t,
		parttest.Of(NewErrors(fine), ends),
		parttest.Of(Errors{}, ends),
		parttest.Of(Mean{Target: time.Second}, func(w *Mean, now time.Time) { w.Answered(now, time.Second, 3) }),
	)
}

func hot() parttest.Hot {
	rng := seeded(1)
	var e Errors
	return parttest.Hot{"Errors": func(now time.Time) { e.Watch(now, rng.IntN(3) == 0); e.Factor(now) }}
}

// No hot method allocates.
func TestHotMethodsDoNotAllocate(t *testing.T) { hot().Allocate(t) }

func BenchmarkHot(b *testing.B) { hot().Benchmark(b) }
