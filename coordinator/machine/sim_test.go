package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/race"
)

// simSeeds is how many worlds a plain test run simulates: enough that each of the
// faults in this package's history of sabotage is met several times over.
const simSeeds = 2000

// In no world does the machine break a promise of doc.go, and each world ends
// with nothing lost and nothing granted twice. SEEDS=n simulates n worlds, SEED_BASE=n
// those from that seed on, SEED=n only the one of that seed, and tells it.
func TestSimulation(t *testing.T) {
	if seed, ok := number("SEED"); ok {
		tellWorld(t, seed)
		return
	}
	eachSeed(t, 1, func(seed uint64) {
		if why := simulate(newPlan(seed, 1<<30, 0), nil); why != "" {
			t.Errorf("seed %d: %s", seed, why)
			report(t, seed)
		}
	})
}

// eachSeed tries the seeds, simSeeds or SEEDS of them from SEED_BASE or 0 on, until one
// fails; or SEED alone. Where a seed costs more than its world, one of so many is enough. What is tried does not depend on chance unless the caller's choice
// of SEED_BASE does.
func eachSeed(t *testing.T, oneOf uint64, try func(seed uint64)) {
	t.Helper()
	if seed, ok := number("SEED"); ok {
		try(seed)
		return
	}
	seeds := uint64(race.Fewer(simSeeds))
	if n, ok := number("SEEDS"); ok {
		seeds = n
	}
	seeds = max(1, seeds/oneOf)
	base, _ := number("SEED_BASE")
	t.Logf("seeds %d to %d (SEED_BASE=%d SEEDS=%d)", base, base+seeds-1, base, seeds)
	workers := uint64(runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < seeds && !t.Failed(); i += workers {
				try(base + i)
			}
		})
	}
	all.Wait()
}

func number(name string) (uint64, bool) {
	n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
	return n, err == nil
}

// simulate lets one world happen, and says what broke; "" if nothing did.
func simulate(p *plan, log func(string, ...any)) (why string) { return newWorld(p, log).happen() }

// happen lets a world happen, and says what broke.
func (w *world) happen() (why string) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case fault:
			why = string(x)
		default:
			why = fmt.Sprintf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	w.run()
	return ""
}

// report makes a failing world as small as it still fails, and tells it.
func report(t *testing.T, seed uint64) {
	items, without := shrink(seed)
	lines := &tail{}
	why := simulate(newPlan(seed, items, without), lines.add)
	t.Errorf("To repeat it: SEED=%d go test -run TestSimulation ./coordinator/machine\n"+
		"The smallest world of that seed (%d items a run, without %b) that fails:\n%s\n%s",
		seed, items, without, strings.Join(lines.lines, "\n"), why)
}

// shrink leaves out items and troubles as long as the world still fails.
func shrink(seed uint64) (items int, without trouble) {
	fails := func(items int, without trouble) bool { return simulate(newPlan(seed, items, without), nil) != "" }
	items = 256
	for tries := true; tries; {
		tries = false
		for smaller := range items {
			if smaller > 0 && (smaller < 8 || smaller&(smaller-1) == 0) && fails(smaller, without) {
				items, tries = smaller, true
				break
			}
		}
		for i := range troubles {
			if without&(1<<i) == 0 && fails(items, without|1<<i) {
				without, tries = without|1<<i, true
			}
		}
	}
	return items, without
}

// tail keeps the last lines of a story.
type tail struct{ lines []string }

const tailLength = 300

func (t *tail) add(format string, args ...any) {
	if len(t.lines) == tailLength {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func tellWorld(t *testing.T, seed uint64) {
	if why := simulate(newPlan(seed, 1<<30, 0), nil); why != "" {
		report(t, seed)
		return
	}
	lines := &tail{}
	simulate(newPlan(seed, 1<<30, 0), lines.add)
	t.Log(strings.Join(lines.lines, "\n"))
}
