package machine

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/headrace/headrace/internal/seeds"
)

// simSeeds is the number of worlds that a plain test run simulates: enough to meet each of the
// faults in this package's history of sabotage several times over.
const simSeeds = 2000

// In no world does the machine break a promise of doc.go, and each world ends
// with nothing lost and nothing granted twice. SEEDS=n simulates n worlds, SEED_BASE=n
// those from that seed on, SEED=n only the one of that seed, and tells it.
func TestSimulation(t *testing.T) {
	if seed, ok := seeds.One(); ok {
		tellWorld(t, seed)
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a world leaves little behind, and a tenth of the time is saved
	seeds.Each(t, simSeeds, 1, func(seed uint64) {
		if why := simulate(newPlan(seed, allItems, 0), nil); why != "" {
			t.Errorf("seed %d: %s", seed, why)
			report(t, seed)
		}
	})
}

// closePlan is the plan of a world that is looked at closely, so that it ends at the first step after which something is wrong.
func closePlan(seed uint64, maxItem int, without trouble) *plan {
	p := newPlan(seed, maxItem, without)
	p.closely = true
	return p
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
	lines := &seeds.Tail{}
	why := simulate(closePlan(seed, items, without), lines.Add)
	t.Errorf("To repeat it: SEED=%d go test -run TestSimulation ./coordinator/machine\n"+
		"The smallest world of that seed (%d items a run, without %b) that fails:\n%s\n%s",
		seed, items, without, lines, why)
}

// allItems bounds no world: as many items a run as it has by itself.
const allItems = 1 << 30

// shrink leaves out items and troubles as long as the world still fails.
func shrink(seed uint64) (items int, without trouble) {
	fails := func(items int, without trouble) bool { return simulate(closePlan(seed, items, without), nil) != "" }
	items = allItems
	for tries := true; tries; {
		tries = false
		for _, smaller := range []int{1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256} {
			if smaller < items && fails(smaller, without) {
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

func tellWorld(t *testing.T, seed uint64) {
	if why := simulate(closePlan(seed, allItems, 0), nil); why != "" {
		report(t, seed)
		return
	}
	lines := &seeds.Tail{}
	simulate(closePlan(seed, allItems, 0), lines.Add)
	t.Log(lines)
}
