//go:build linux

package tests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/provider/sim"
)

// A worker of three, or the keeper, is killed while a fifth of the answers do not fit. Each line ends once, and all workers
// together have asked again for a tenth of the lines at most, besides what the killed one had in hands or had just been answered.
func TestAJobWhoseAnswersMustFit(t *testing.T) {
	t.Parallel()
	const items, inFlight, badEvery = 1500, 12, 5
	for name, strike := range map[string]func(*fleet) *worker{
		"a worker":   func(f *fleet) *worker { return f.other(f.keeper()) },
		"the keeper": func(f *fleet) *worker { return f.keeper() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, plan{workers: 3, inFlight: inFlight, provider: sim.Config{Latency: sim.Latency{Median: 100 * time.Millisecond, Sigma: 0.4}}})
			path, output, schema := filepath.Join(f.dir, "in.jsonl"), filepath.Join(f.dir, "out.jsonl"), filepath.Join(f.dir, "schema.json")
			var lines []byte
			for i := range items {
				answer := `{\"n\":1}`
				if i%badEvery == 0 {
					answer = `{\"n\":\"one\"}`
				}
				lines = fmt.Appendf(lines, "{\"prompt\":\"%d? Answer exactly: %s\",\"model\":\"m\"}\n", i, answer)
			}
			if err := errors.Join(os.WriteFile(path, lines, 0o600), os.WriteFile(schema, []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`), 0o600)); err != nil {
				t.Fatal(err)
			}
			customer := f.process("submit", "submit", path, "-o", output, "--cluster", f.url(), "--base-url", f.judge.base("customer"),
				"--chunk-lines", "100", "--schema", schema, "--wait")
			customer.start()
			<-f.judge.after(items / 2)
			w := strike(f)
			w.struck = true
			w.kill()
			if code := f.finishes(customer); code != 1 {
				t.Errorf("exit %d, want 1, and what is said is\n%s", code, customer.lastWords())
			}
			failed := lineNumbers(t, journal.ErrorsPath(output))
			both := slices.Sorted(slices.Values(slices.Concat(failed, lineNumbers(t, output))))
			if n := len(slices.Compact(slices.Clone(both))); n != items || len(both) != items || len(failed) != items/badEvery {
				t.Errorf("%d lines of %d items, and %d in all; %d have failed", n, items, len(both), len(failed))
			}
			calls := 0
			type asked struct {
				prompt   string
				byKilled bool
			}
			of := map[asked]int{}
			for _, c := range settled(t, f.judge) {
				calls++
				of[asked{c.prompt, c.who == w.name}]++
			}
			t.Logf("%d calls for %d items", calls, items)
			if calls < items+items/20 || calls > items+items/10+2*inFlight {
				t.Errorf("%d calls for %d items", calls, items)
			}
			again := 0 // an item that the killed worker had in hands begins anew with another, and has all its tries there
			for a, n := range of {
				if most := 1 + 2*strings.Count(a.prompt, "one"); n > most {
					t.Errorf("%d calls of %s, by the killed worker: %v", n, a.prompt, a.byKilled)
				}
				if a.byKilled && of[asked{a.prompt, false}] > 0 {
					again++
				}
			}
			if again > 2*inFlight {
				t.Errorf("%d items began anew, of %d in hands", again, inFlight)
			}
		})
	}
}
