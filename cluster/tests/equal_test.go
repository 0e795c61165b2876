package tests

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/headrace/headrace/provider/sim"
)

// Three processes and one make the same files, but for times and attempts.
func TestThreeProcessesAreOne(t *testing.T) {
	told, rpm := silent(5 * time.Second)
	for name, p := range map[string]plan{
		"headers":  {provider: strict(time.Second)},
		"told":     {provider: told, told: rpm},
		"no limit": {provider: sim.Config{Latency: sim.Latency{Median: 20 * time.Millisecond}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p.workers, p.inFlight = 3, 64
			f := newFleet(t, p)
			q := writeQuestions(t, filepath.Join(f.dir, "in.jsonl"), "equal", 2000)
			customer, output := f.customer(q, "out", "--chunk-lines", "100")
			f.delivers(q, customer, output)
			if v := f.judged(false); v.repeated != 0 {
				t.Errorf("%d calls repeated in a calm", v.repeated)
			}
		})
	}
}
