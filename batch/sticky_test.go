package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// line is an item with the beginning of its prompt.
type line struct{ prefix, pool string }

func (l line) HomeKey() string { return l.prefix }
func (l line) Pool() string    { return l.pool }

var fourLanes = []string{"a", "b", "c", "d"}

// prefixed returns n lines of each of some prefixes, which come in turns.
func prefixed(prefixes, n int) (lines []line) {
	for i := range prefixes * n {
		lines = append(lines, line{fmt.Sprintf("You are assistant number %d.", i%prefixes), "p"})
	}
	return lines
}

// answersIn has a call take a second. Calls on a lane that is dead end as dead says.
func answersIn(dead string, err error) Func[line, int] {
	return func(ctx context.Context, _ line) (int, error) {
		if LaneFrom(ctx) == dead {
			return 0, err
		}
		time.Sleep(time.Second)
		return 0, nil
	}
}

// byLane counts the results by prefix and lane.
func byLane(t *testing.T, results []Result[line, int]) map[string]map[string]int {
	t.Helper()
	served := map[string]map[string]int{}
	for _, r := range results {
		if r.Err != nil || r.Pool != "p" {
			t.Fatalf("item %d of pool %q: %v", r.Index, r.Pool, r.Err)
		}
		if served[r.Item.prefix] == nil {
			served[r.Item.prefix] = map[string]int{}
		}
		served[r.Item.prefix][r.Lane]++
	}
	return served
}

// stickyRun runs 20 prefixes of 500 lines over four lanes.
func stickyRun(t *testing.T, fn Func[line, int], further ...Option) []Result[line, int] {
	t.Helper()
	opts := append([]Option{
		WithSticky("p", 10*time.Second, fourLanes...), WithConcurrency(256), WithSeed(1),
	}, further...)
	results := must.Get(Run(t.Context(), slices.Values(prefixed(20, 500)), fn, opts...))(t)
	return results
}

// Nearly all items of a prefix go to one lane, and all lanes are homes.
func TestStickyItemsStayAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		homes := map[string]bool{}
		for prefix, lanes := range byLane(t, stickyRun(t, answersIn("", nil), WithLaneDefaults(LaneConfig{Limits: Limits{RPM: 1200}}))) {
			home, most := "", 0
			for lane, n := range lanes {
				if n > most {
					home, most = lane, n
				}
			}
			if homes[home] = true; most < 475 {
				t.Errorf("%q: %v, want 475 of 500 on one lane", prefix, lanes)
			}
		}
		if len(homes) != 4 {
			t.Errorf("the homes are %v", homes)
		}
	})
}

// The items of a home that is dead are spread over the other lanes, which have room, and those of
// other homes stay. Where these are at their limits, they take as much as each has left.
func TestStickyItemsOfADeadHomeAreSpread(t *testing.T) {
	for name, why := range map[string]error{
		"stopped": &provider.Error{Kind: provider.QuotaExhausted, Message: "no money"},
		"down":    &provider.Error{Kind: provider.Server, Status: 500, Message: "down"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := configure([]Option{WithSticky("p", time.Second, fourLanes...)})
				dead, elsewhere := "b", map[string]int{}
				for prefix, lanes := range byLane(t, stickyRun(t, answersIn(dead, why))) {
					if fourLanes[c.homes["p"].home(prefix)] != dead {
						if len(lanes) != 1 {
							t.Errorf("%q: %v, and its home is well", prefix, lanes)
						}
						continue
					}
					for lane, n := range lanes {
						elsewhere[lane] += n
					}
				}
				sum := elsewhere["a"] + elsewhere["c"] + elsewhere["d"]
				for _, lane := range []string{"a", "c", "d"} {
					if part := 3 * float64(elsewhere[lane]) / float64(sum); math.Abs(part-1) > 0.2 || sum < 500 {
						t.Errorf("the lines of the dead home: %v", elsewhere)
					}
				}
			})
		})
	}
}

// A head that would wait for its home for longer than the patience goes to another lane. Without a
// key the lanes take turns at once.
func TestStickyItemsLeaveABusyHome(t *testing.T) {
	slow := func(ctx context.Context, _ line) (string, error) {
		time.Sleep(4 * time.Second)
		return LaneFrom(ctx), nil
	}
	for _, c := range []struct {
		prefix   string
		patience time.Duration
		lanes    int
	}{{"one", 5 * time.Second, 1}, {"one", 2 * time.Second, 4}, {"", 5 * time.Second, 4}} {
		synctest.Test(t, func(t *testing.T) {
			results, err := Run(t.Context(), slices.Values(slices.Repeat([]line{{c.prefix, "p"}}, 8)), slow,
				WithSticky("p", c.patience, fourLanes...), WithLaneDefaults(LaneConfig{Window: 1, Law: limiter.Plain}))
			used := map[string]bool{}
			for _, r := range results {
				used[r.Value] = true
			}
			if err != nil || len(used) != c.lanes {
				t.Errorf("%q, with patience for %v: %v, %v, want %d lanes", c.prefix, c.patience, used, err, c.lanes)
			}
		})
	}
}

// Weights of lanes are their parts of the keys, and a lane that goes moves its own keys alone.
func TestHomesAreSteady(t *testing.T) {
	home := func(lanes ...string) func(string) string {
		c := configure([]Option{WithSticky("p", time.Second, lanes...), WithWeights("p", map[string]int{lanes[0]: 3})})
		return func(key string) string { return lanes[c.homes["p"].home(key)] }
	}
	four, three := home(fourLanes...), home(fourLanes[:3]...)
	count := map[string]int{}
	for i := range 6000 {
		key := fmt.Sprint("key ", i)
		count[four(key)]++
		if was := four(key); was != "d" && three(key) != was {
			t.Fatalf("%s moves from %s to %s", key, was, three(key))
		}
	}
	for lane, want := range map[string]int{"a": 3000, "b": 1000, "c": 1000, "d": 1000} {
		if math.Abs(float64(count[lane]-want)) > 150 {
			t.Errorf("lane %s is the home of %d keys of 6000, want %d", lane, count[lane], want)
		}
	}
}

// Hooks and measures name the pool as the caller does.
func TestStickyPoolsKeepTheirName(t *testing.T) {
	var pools []string
	note := func(pool string) { pools = append(pools, pool) }
	tries := 0
	fn := func(context.Context, line) (int, error) {
		if tries++; tries == 1 {
			return 0, errors.New("broke")
		}
		return 0, nil
	}
	_, err := Run(t.Context(), slices.Values([]line{{"x", "p"}}), fn, WithSticky("p", time.Second, "a", "b"), WithConcurrency(1), WithBackoff(1, 1),
		WithCalls(func(c Call) { note(c.Pool) }), WithEnds(func(e End) { note(e.Pool) }), WithRetryHook(func(r Retry) { note(r.Pool) }))
	if got := strings.Join(pools, " "); err != nil || got != "p p p p" {
		t.Errorf("%q, %v", got, err)
	}
}
