package lab

import (
	"strings"
	"testing"
	"time"
)

// bounds are the figures that the law must reach, by the scenario's name: the
// mean of three seeds. A bound of 0 on the ratio is none.
var bounds = map[string]struct {
	ratio           float64
	refused, wasted int
}{
	"headers, 60 s: steady":      {1.03, 0, 0},
	"headers, 60 s: halves":      {1.03, 5, 0},
	"headers, 60 s: doubles":     {1.04, 0, 0},
	"headers, 60 s: outage":      {1.05, 0, 30},
	"headers, 60 s: hangs":       {0, 0, 250},
	"headers, 60 s: noisy":       {1.05, 20, 0},
	"headers, 5 s: noisy":        {1.06, 300, 0},
	"told, silent, 60 s":         {0, 0, 0},
	"told, silent, 5 s":          {1.05, 0, 0},
	"told, silent, 1 s":          {1.05, 0, 0},
	"told with its burst, 60 s":  {1.05, 0, 0},
	"guess twice too high, 60 s": {1.05, 60, 0},
	"guess half, 60 s":           {1.05, 60, 0},
	"silent, 60 s":               {1.04, 60, 0},
	"silent, 5 s":                {1.05, 40, 0},
	"silent, 1 s":                {1.05, 40, 0},
	"silent, 10 s windows":       {1.06, 250, 0},
	"silent, 1 s: violent":       {1.62, 805, 0},
	"headers: token-bound":       {1.03, 0, 0},
	"headers: estimate ×1.5":     {1.04, 0, 0},
	"headers: estimate ÷1.5":     {1.04, 0, 0},
	"headers, 3000 a minute":     {1.10, 0, 0},
}

// The law reaches its figures, loses nothing, repeats nothing, and comes back from
// an outage within five seconds.
func TestFigures(t *testing.T) {
	for _, s := range Scenarios() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			m := measure(t, s)
			b, ok := bounds[s.Name]
			if !ok {
				return
			}
			if b.ratio > 0 && m.ratio > b.ratio {
				t.Errorf("ratio %.3f is over %.2f", m.ratio, b.ratio)
			}
			if m.refused > b.refused || m.wasted > b.wasted {
				t.Errorf("%d refused, %d wasted; at most %d and %d", m.refused, m.wasted, b.refused, b.wasted)
			}
			if s.Headers && m.attempts > 3 {
				t.Errorf("an item was refused %d times", m.attempts)
			}
			if strings.HasSuffix(s.Name, "outage") && (m.recovered < 0 || m.recovered > 5*time.Second) {
				t.Errorf("full speed %v after the outage", m.recovered)
			}
		})
	}
}

type mean struct {
	ratio                     float64
	refused, wasted, attempts int
	recovered                 time.Duration
}

func measure(t *testing.T, s Scenario) (m mean) {
	const seeds = 3
	for seed := range uint64(seeds) {
		f := Run(s, Headrace(false)(s, seed), seed)
		if f.Done != s.Items || f.Repeated > 0 {
			t.Fatalf("seed %d: %d of %d done, %d repeated", seed, f.Done, s.Items, f.Repeated)
		}
		m.ratio += f.Ratio() / seeds
		m.refused += f.Refused
		m.wasted += f.Wasted
		m.attempts = max(m.attempts, f.Attempts)
		m.recovered = max(m.recovered, f.Recovered)
	}
	m.refused, m.wasted = m.refused/seeds, m.wasted/seeds
	t.Logf("%-28s %.3f · %d, %d wasted, most %d, back after %v", strings.TrimSpace(s.Name), m.ratio, m.refused, m.wasted, m.attempts, m.recovered)
	return m
}
