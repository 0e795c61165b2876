package claim

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/headrace/headrace/internal/seeds"
)

// simSeeds is the number of worlds in a plain test run: each of the mutations below shows in a
// hundred of them or fewer.
const simSeeds = 2000

// In no world is an item lost, or twice in the parts, or called again without an excuse, and
// each world ends. SEEDS=n simulates n worlds, SEED_BASE=n those from that seed on, SEED=n only the
// one of that seed, and tells it.
func TestSimulation(t *testing.T) {
	if seed, ok := seeds.One(); ok {
		tellWorld(t, seed)
		return
	}
	sums := make(chan tally, 1)
	sums <- tally{}
	seeds.Each(t, simSeeds, 1, func(seed uint64) {
		sum, why := simulate(plan{seed: seed}, nil)
		if why != "" {
			t.Errorf("seed %d: %s", seed, why)
			report(t, plan{seed: seed})
		}
		all := <-sums
		all.add(sum)
		sums <- all
	})
	t.Log(<-sums)
}

// simulate lets one world happen, and says what broke; "" if nothing did.
func simulate(p plan, log func(string, ...any)) (sum tally, why string) {
	w := newWorld(p, log)
	defer func() {
		sum = w.tally
		switch x := recover().(type) {
		case nil:
		case fault:
			why = string(x)
		default:
			why = fmt.Sprintf("panic: %v\n%s", x, debug.Stack())
		}
	}()
	w.run()
	return w.tally, ""
}

// report leaves out troubles as long as a failing world still fails, and tells it.
func report(t *testing.T, p plan) {
	for i := range troubles {
		less := p
		less.without |= 1 << i
		if _, why := simulate(less, nil); why != "" {
			p = less
		}
	}
	lines := &seeds.Tail{}
	_, why := simulate(p, lines.Add)
	t.Errorf("To repeat it: SEED=%d go test -run TestSimulation ./claim\nThe world of that seed without %b:\n%s\n%s",
		p.seed, p.without, lines, why)
}

func tellWorld(t *testing.T, seed uint64) {
	p := plan{seed: seed}
	if _, why := simulate(p, nil); why != "" {
		report(t, p)
		return
	}
	lines := &seeds.Tail{}
	simulate(p, lines.Add)
	t.Log(lines)
}

// tally counts what worlds have seen.
type tally struct {
	worlds, kills, freezes, cuts, restarts, wipes, doubles, drains int
	claims, overlaps, takeovers, calls, repeats                    int
}

func (t *tally) add(o tally) {
	t.worlds += o.worlds
	t.kills += o.kills
	t.freezes += o.freezes
	t.cuts += o.cuts
	t.restarts += o.restarts
	t.wipes += o.wipes
	t.doubles += o.doubles
	t.drains += o.drains
	t.claims += o.claims
	t.overlaps += o.overlaps
	t.takeovers += o.takeovers
	t.calls += o.calls
	t.repeats += o.repeats
}

func (t tally) String() string {
	return fmt.Sprintf("%d worlds: %d kills, %d freezes, %d cuts, %d restarts of the hub, %d wipes of the queue, %d doubled messages, %d drains; "+
		"%d claims, %d overlapping, %d takeovers; %d calls, %d repeated, each with an excuse",
		t.worlds, t.kills, t.freezes, t.cuts, t.restarts, t.wipes, t.doubles, t.drains,
		t.claims, t.overlaps, t.takeovers, t.calls, t.repeats)
}
