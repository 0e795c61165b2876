//go:build unix

package tests

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/provider/sim"
)

// A run over lanes with fallback that is killed is continued with lanes in another order, with other
// names, and with a lane less. Nothing is bought twice but the calls that were in flight at a kill.
func TestKilledOverLanes(t *testing.T) {
	const (
		items  = 600
		window = 2 // so that each lane is busy, and the next tier is used
	)
	bin, dir := buildCommand(t), t.TempDir()
	in, out, config := filepath.Join(dir, "prompts.jsonl"), filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "lanes.yaml")
	writeQuestions(t, in, items)
	prompts, servers := map[string]string{}, []*witness{}
	for i := 1; i <= items; i++ {
		prompts[idOf(i)] = question(i)
	}
	for range 3 {
		servers = append(servers, newWitness(t, sim.Config{Latency: sim.Latency{Median: 40 * time.Millisecond}}))
	}
	saved, received, repeated := map[string]int{}, map[string]int{}, 0
	for _, c := range []struct {
		lanes []string       // in the order of their tiers
		at    map[string]int // the server of each
		kill  int            // the server whose next calls end the process; -1: none does
	}{
		{[]string{"a", "b", "c"}, map[string]int{"a": 0, "b": 1, "c": 2}, 2},
		{[]string{"c", "zwei", "a"}, map[string]int{"a": 0, "zwei": 1, "c": 2}, 0},
		{[]string{"zwei", "a"}, map[string]int{"a": 0, "zwei": 1}, -1},
	} {
		var text strings.Builder
		text.WriteString("lanes:\n")
		for _, name := range c.lanes {
			fmt.Fprintf(&text, "  %s: {provider: openai, base-url: %q, api-key-env: none, concurrency: %d}\n", name, servers[c.at[name]].base, window)
		}
		fmt.Fprintf(&text, "pools:\n  p: {prefer: [%s], spill: 2ms}\n", strings.Join(c.lanes, ", "))
		must.Do(t, os.WriteFile(config, []byte(text.String()), 0o600))
		j := &job{T: t, args: []string{bin, "run", in, "-o", out, "--config", config, "--model", "m", "--progress", "none"}}
		var now <-chan struct{}
		if c.kill >= 0 {
			now = servers[c.kill].after(40)
		}
		if killed := j.processUntil(now); killed != (c.kill >= 0) {
			t.Fatalf("%v: killed: %t", c.lanes, killed)
		}
		lines := savedItems(t, out, prompts)
		asked := map[string]int{}
		for _, w := range servers {
			ofLane, _ := w.settle()
			for prompt, n := range ofLane {
				asked[prompt] += n
			}
		}
		lost := 0
		for id, prompt := range prompts {
			if saved[id] > 0 && asked[prompt] != received[prompt] {
				t.Errorf("%v: %s was saved, and asked again", c.lanes, id)
			}
			lost += asked[prompt] - received[prompt] - (lines[id] - saved[id])
		}
		if most := window * len(c.lanes); lost > most || c.kill < 0 && lost != 0 {
			t.Errorf("%v: %d calls left no result, and %d could be in flight", c.lanes, lost, most)
		}
		repeated += lost
		saved, received = lines, asked
	}
	if text, err := os.ReadFile(out); err != nil || !bytes.Contains(text, []byte(`"fallback":true`)) {
		t.Errorf("no line is of a later tier: %v", err)
	}
	for id := range prompts {
		if saved[id] != 1 {
			t.Errorf("%s has %d results", id, saved[id])
		}
	}
	t.Logf("%d calls repeated", repeated)
}
