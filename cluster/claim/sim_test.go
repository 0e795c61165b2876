package claim

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

// simSeeds is how many worlds a plain test run simulates: each of the mutations below shows in a
// hundred of them or fewer.
const simSeeds = 2000

// In no world is an item lost, or twice in the parts, or called again without an excuse, and
// each world ends. SEEDS=n simulates n worlds, SEED_BASE=n those from that seed on, SEED=n only the
// one of that seed, and tells it.
func TestSimulation(t *testing.T) {
	if seed, ok := number("SEED"); ok {
		tellWorld(t, seed)
		return
	}
	sums := make(chan tally, 1)
	sums <- tally{}
	eachSeed(t, func(seed uint64) {
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

// eachSeed tries the seeds, simSeeds or SEEDS of them from SEED_BASE or 0 on, until one fails.
func eachSeed(t *testing.T, try func(seed uint64)) {
	t.Helper()
	seeds := uint64(race.Fewer(simSeeds))
	if n, ok := number("SEEDS"); ok {
		seeds = n
	}
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
	lines := &tail{}
	_, why := simulate(p, lines.add)
	t.Errorf("To repeat it: SEED=%d go test -run TestSimulation ./claim\nThe world of that seed without %b:\n%s\n%s",
		p.seed, p.without, strings.Join(lines.lines, "\n"), why)
}

// tail keeps the last lines of a story.
type tail struct{ lines []string }

const tailLength = 400

func (t *tail) add(format string, args ...any) {
	if len(t.lines) == tailLength {
		t.lines = t.lines[1:]
	}
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func tellWorld(t *testing.T, seed uint64) {
	p := plan{seed: seed}
	if _, why := simulate(p, nil); why != "" {
		report(t, p)
		return
	}
	lines := &tail{}
	simulate(p, lines.add)
	t.Log(strings.Join(lines.lines, "\n"))
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
