package forecast_test

import (
	"testing"
	"time"

	"github.com/headrace/headrace/internal/command/forecast"
	"github.com/headrace/headrace/limiter"
)

// Calls that last half as long take half the time one by one, and calls that draw twice as much take
// twice the time of a limit.
func TestScaled(t *testing.T) {
	var s forecast.Sample
	for range 300 {
		s.Add(forecast.Call{Cost: limiter.Cost{Requests: 1, Input: 10, Output: 300}, Latency: 6500 * time.Millisecond})
	}
	run := func(s *forecast.Sample, l limiter.Limits) float64 {
		return forecast.Run(forecast.Config{Limits: []limiter.Limits{l}, Concurrency: 1, Seed: 1}, s).Took.Seconds()
	}
	whole := run(&s, limiter.Limits{})
	for _, lasts := range []float64{0.5, 2} {
		if took := run(s.Scaled(1, lasts), limiter.Limits{}); took < 0.95*lasts*whole || took > 1.05*lasts*whole {
			t.Errorf("%v times as long: %v s, and %v s as it is", lasts, took, whole)
		}
	}
}
