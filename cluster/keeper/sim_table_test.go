package keeper

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// usual is an organisation of 200 workers with 64 places each, calls of 2 s, and 500 calls a
// second bound by tokens: five minutes, measured from 90 s on.
func usual(seed uint64) plan {
	return plan{
		seed: seed, length: 5 * time.Minute, from: 90 * time.Second, workers: 200, places: 64, rate: 500_000, depth: 5, headers: true,
		latency: 2 * time.Second, tokens: 1000, spread: 0.5, storm: true, loss: 0.001,
	}
}

// small is a tenth of it, and shorter, for every day.
func small(seed uint64) plan {
	p := usual(seed)
	p.workers, p.rate, p.length, p.from = 40, 100_000, 190*time.Second, 70*time.Second
	return p
}

// A row is a world of the table.
type row struct {
	name string
	of   func(p plan) plan
}

var rows = []row{
	{"calm, bucket of 60 s, headers", func(p plan) plan { p.storm, p.depth = false, 60; return p }},
	{"storm, 60 s, headers", func(p plan) plan { p.depth = 60; return p }},
	{"storm, 5 s, headers", func(p plan) plan { return p }},
	{"storm, 1 s, headers", func(p plan) plan { p.depth = 1; return p }},
	{"storm, 1 s, no headers, limit told", func(p plan) plan { p.depth, p.headers, p.told = 1, false, true; return p }},
	{"storm, 5 s, no headers, limit not told", func(p plan) plan { p.headers = false; return p }},
	{"storm, a tenth have all the work", func(p plan) plan {
		tenth := p.workers / 10
		p.works = func(slot int, _ time.Duration) bool { return slot < tenth }
		return p
	}},
	{"storm, idle and busy change each 20 s", func(p plan) plan {
		p.works = func(slot int, at time.Duration) bool {
			return (uint(slot)*2654435761>>7+uint(at/(20*time.Second))*40503>>3)%2 == 0
		}
		return p
	}},
	{"storm, the limit halves", func(p plan) plan { p.limit = from(p, 0.5); return p }},
	{"storm, the limit doubles", func(p plan) plan { p.limit = from(p, 2); return p }},
	{"storm, a call in a hundred draws 50 times", func(p plan) plan { p.heavy, p.tokens = 0.01, p.tokens/1.49; return p }},
}

// from changes the limit in the middle of what is measured.
func from(p plan, factor float64) func(time.Duration) float64 {
	middle := (p.from + p.length) / 2
	return func(at time.Duration) float64 {
		if at < middle {
			return 1
		}
		return factor
	}
}

var columns = []struct {
	name string
	of   func(plan) plan
}{
	{"permits", func(p plan) plan { return p }},
	{"next keeper knows only the rate", rateOnly},
	{"central", central},
	{"static", static},
	{"own AIMD", ownRate},
	{"own law", ownLaw},
}

// TestTable prints the table of worlds and rivals: use of what flows in · refusals in a
// thousand calls · Jain's index. It is for LAB=1, as it takes a quarter of an hour; SEEDS=3
// worlds of each row are run with permits, and one with each rival. FIRST=1 is the seed of the first.
// LAB=permits leaves the rivals out, LAB=small has small worlds, and LAB=small,permits both; ROW=halves has
// only the rows that are called so.
func TestTable(t *testing.T) {
	if os.Getenv("LAB") == "" {
		t.Skip("LAB=1 runs it")
	}
	seeds, first, columns, world := fromEnv("SEEDS", 3), fromEnv("FIRST", 1), columns, usual
	if strings.Contains(os.Getenv("LAB"), "small") {
		world = small
	}
	if strings.Contains(os.Getenv("LAB"), "permits") {
		columns = columns[:1]
	}
	rows := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !strings.Contains(r.name, os.Getenv("ROW")) })
	cells := make([][]string, len(rows))
	tickets := make(chan func(), len(rows)*len(columns))
	var all sync.WaitGroup
	for i, r := range rows {
		cells[i] = make([]string, len(columns))
		for j, c := range columns {
			worlds := 1
			if j == 0 {
				worlds = seeds
			}
			all.Add(1)
			tickets <- func() {
				defer all.Done()
				cells[i][j] = cell(t, first, worlds, func(seed uint64) plan { return c.of(r.of(world(seed))) })
				t.Logf("%s | %s | %s", r.name, c.name, cells[i][j])
			}
		}
	}
	close(tickets)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for do := range tickets {
				do()
			}
		}()
	}
	all.Wait()
	var b strings.Builder
	b.WriteString("|")
	for _, c := range columns {
		b.WriteString(" | " + c.name)
	}
	b.WriteString(" |\n")
	for i, r := range rows {
		b.WriteString("| " + r.name + " | " + strings.Join(cells[i], " | ") + " |\n")
	}
	t.Log("\n" + b.String())
}

// fromEnv is a number that the environment tells.
func fromEnv(name string, usual int) (n int) {
	if _, err := fmt.Sscan(os.Getenv(name), &n); err != nil {
		return usual
	}
	return n
}

// cell is the mean of some worlds.
func cell(t *testing.T, first, worlds int, of func(seed uint64) plan) string {
	var sum result
	for seed := first; seed < first+worlds; seed++ {
		r := newLab(of(uint64(seed))).run()
		for _, fault := range r.faults {
			t.Errorf("%s: seed %d: %s", t.Name(), seed, fault)
		}
		sum.use, sum.refused, sum.jain = sum.use+r.use, sum.refused+r.refused, sum.jain+r.jain
		sum.worst, sum.words = max(sum.worst, r.worst), sum.words+r.words
	}
	n := float64(worlds)
	return fmt.Sprintf("%.3f · %.3g · %.3f (%.0f/s)", sum.use/n, sum.refused/n, sum.jain/n, sum.words/n)
}
