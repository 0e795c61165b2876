package seeds

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headrace/headrace/internal/race"
)

func tried(t *testing.T, usual int, oneOf uint64) (all []uint64) {
	t.Helper()
	var owner sync.Mutex
	Each(t, usual, oneOf, func(seed uint64) {
		owner.Lock()
		defer owner.Unlock()
		all = append(all, seed)
	})
	slices.Sort(all)
	return all
}

func TestEach(t *testing.T) {
	for _, name := range []string{"SEED", "SEEDS", "SEED_BASE"} {
		t.Setenv(name, "")
	}
	if got := tried(t, 100, 10); len(got) != race.Fewer(100)/10 || got[0] != 0 {
		t.Errorf("%v", got)
	}
	t.Setenv("SEEDS", "3")
	t.Setenv("SEED_BASE", "40")
	if got := tried(t, 100, 1); !slices.Equal(got, []uint64{40, 41, 42}) {
		t.Errorf("%v", got)
	}
	if got := tried(t, 100, 10); !slices.Equal(got, []uint64{40}) {
		t.Errorf("%v", got)
	}
	t.Setenv("SEED", "7")
	if got := tried(t, 100, 1); !slices.Equal(got, []uint64{7}) {
		t.Errorf("%v", got)
	}
}

func TestTail(t *testing.T) {
	var tail Tail
	for i := range tailLength + 5 {
		tail.Add("line %d", i)
	}
	if lines := strings.Split(tail.String(), "\n"); len(lines) != tailLength || lines[0] != "line 5" || lines[tailLength-1] != "line "+strconv.Itoa(tailLength+4) {
		t.Errorf("%d lines, from %q", len(lines), lines[0])
	}
}
