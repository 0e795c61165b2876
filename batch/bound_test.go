package batch

import (
	"context"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// In input order a slow head holds back what is ahead of it, and the reader of the
// input with it: no more is taken than fits.
func TestInputOrderWithASlowHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers = 8, 2
		begun, taken, atHead := time.Now(), 0, 0
		items := func(yield func(int) bool) {
			for i := range 100 {
				taken++
				if !yield(i) {
					return
				}
			}
		}
		fn := func(ctx context.Context, i int) (int, error) {
			if i == 0 {
				pause(ctx, time.Minute)
				synctest.Wait() // the reader waits for leave; what it wrote is read here
				atHead = taken
			}
			return i, nil
		}
		var sum Summary
		next := 0
		for r, err := range Stream(t.Context(), items, fn, WithPlainLaw(), WithInputOrder(), WithReadAhead(ahead), WithConcurrency(workers), WithSummary(&sum)) {
			if err != nil || r.Index != next || time.Since(begun) != time.Minute {
				t.Fatalf("%v, result %d at place %d after %v", err, r.Index, next, time.Since(begun))
			}
			next++
		}
		if next != 100 || atHead != ahead+workers || !sum.Proves() {
			t.Errorf("%d results; %d items taken while the head was slow, want %d", next, atHead, ahead+workers)
		}
	})
}

// A slow consumer slows the reader of the input: beyond what the loop has seen, no
// more than read-ahead and concurrency together are ever taken; nor much less.
func TestSlowConsumerBoundsTheInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers = 10, 4
		taken, seen, most := 0, 0, 0
		items := func(yield func(int) bool) {
			for i := range 200 {
				taken++
				if !yield(i) {
					return
				}
			}
		}
		var sum Summary
		for _, err := range Stream(t.Context(), items, double, WithPlainLaw(), WithReadAhead(ahead), WithConcurrency(workers), WithSummary(&sum)) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
			synctest.Wait() // everything else goes as far as it can
			most = max(most, taken-seen)
		}
		if most != ahead+workers || seen != 200 || !sum.Proves() {
			t.Errorf("%d items were taken ahead of the loop, want %d; %d seen", most, ahead+workers, seen)
		}
	})
}

// A run of three items is small: what it allocates is for its three items, and not for
// the thousands that may come. Half of the bytes is the mailbox, and room for results.
func TestThreeItemsAreCheap(t *testing.T) {
	const runs, most = 20, 80 << 10
	for name, order := range map[string]Option{"as they come": {}, "in order": WithInputOrder()} {
		once := func() {
			if results, err := Run(t.Context(), numbers(3), double, order, WithPlainLaw()); err != nil || len(results) != 3 {
				t.Fatal(err, results)
			}
		}
		once()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			once()
		}
		runtime.ReadMemStats(&after)
		bytes, allocs := (after.TotalAlloc-before.TotalAlloc)/runs, (after.Mallocs-before.Mallocs)/runs
		t.Logf("%s: %d bytes in %d allocations", name, bytes, allocs)
		if bytes > most || allocs > 160 {
			t.Errorf("%s: %d bytes in %d allocations, want at most %d in 160", name, bytes, allocs, most)
		}
	}
}

// A run starts workers as they are needed: one more than it has items, until there are as
// many as may be; and as many calls fly at once as without that.
func TestWorkersAreHiredAsNeeded(t *testing.T) {
	for _, c := range []struct{ items, concurrency, workers int }{
		{3, 64, 4}, {1000, 5, 5}, {1000, 1, 1}, {5, 5, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			before := runtime.NumGoroutine()
			flying, seen := make(chan int, c.items), make(chan [2]int, 1)
			calls := min(c.items, c.concurrency)
			lasts := time.Duration(c.items/calls) * time.Minute
			time.AfterFunc(lasts-time.Second, func() { seen <- [2]int{len(flying), runtime.NumGoroutine() - before} })
			fn := func(ctx context.Context, i int) (int, error) {
				flying <- i
				defer func() { <-flying }()
				return i, pause(ctx, time.Minute)
			}
			_, sum, err := proved(t.Context(), t, numbers(c.items), fn, WithConcurrency(c.concurrency))
			if err != nil || sum.Elapsed != lasts {
				t.Errorf("%v %+v", err, sum)
			}
			// Besides the workers: owner, reader, feed, steward, closer, and the timer's own.
			at := <-seen
			if at[0] != calls || at[1] > c.workers+6 {
				t.Errorf("%d items: %d calls in flight at once, %d goroutines", c.items, at[0], at[1])
			}
		})
	}
}

// An input that pauses, again and again, until all it gave was read costs none of the
// room: the credits that come back meanwhile find their channel full, and are owed. When
// it flows again, as much is read ahead as at first.
func TestPausesOfTheInputCostNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, workers, stretch, paused, all = 8, 2, 5, 100, 200
		taken, seen, least := 0, 0, all
		read := make(chan struct{}, paused)
		items := func(yield func(int) bool) {
			for i := range all {
				if i > 0 && i <= paused && i%stretch == 0 {
					<-read
				}
				taken++
				if !yield(i) {
					return
				}
			}
		}
		var sum Summary
		for _, err := range Stream(t.Context(), items, double, WithPlainLaw(), WithReadAhead(ahead), WithConcurrency(workers), WithSummary(&sum)) {
			if err != nil {
				t.Fatal(err)
			}
			if seen++; seen <= paused && seen%stretch == 0 {
				read <- struct{}{}
			}
			synctest.Wait() // everything else goes as far as it can
			if seen > paused && taken < all {
				least = min(least, taken-seen)
			}
		}
		if seen != all || !sum.Proves() {
			t.Errorf("%d results; %+v", seen, sum)
		}
		if withheld := ahead / 4; least < ahead+workers-withheld || least == all {
			t.Errorf("only %d items were taken ahead of the loop, want %d, less %d at most", least, ahead+workers, withheld)
		}
	})
}

// The ring gives what a list that is sorted and searched each time would give,
// for any arrival within the window.
func TestOrderAgainstSlowTwin(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		n, window := 1+rng.IntN(60), 1+rng.IntN(12)
		ring := order[int, int]{cap: window}
		var early, fast, slow []int
		for _, i := range arrivals(rng, n, window) {
			early = append(early, i)
			for at := slices.Index(early, len(slow)); at >= 0; at = slices.Index(early, len(slow)) {
				early = slices.Delete(early, at, at+1)
				slow = append(slow, len(slow))
			}
			for r, ok := ring.push(Result[int, int]{Index: i}); ok; r, ok = ring.pop() {
				fast = append(fast, r.Index)
			}
			if !slices.Equal(fast, slow) {
				t.Fatalf("seed %d, window %d: %v, want %v", seed, window, fast, slow)
			}
		}
		if len(fast) != n {
			t.Fatalf("seed %d: %d of %d came out", seed, len(fast), n)
		}
	}
}

// arrivals are 0 to n-1, none window or more ahead of the lowest that is missing.
func arrivals(rng *rand.Rand, n, window int) []int {
	missing := make([]int, n)
	for i := range missing {
		missing[i] = i
	}
	var all []int
	for len(missing) > 0 {
		ahead := 0
		for ahead < len(missing) && missing[ahead] < missing[0]+window {
			ahead++
		}
		at := rng.IntN(ahead)
		all = append(all, missing[at])
		missing = slices.Delete(missing, at, at+1)
	}
	return all
}

// A document is an input so large that it matters whether it is held.
type document struct {
	text string
	back int // how often its call is refused before it is answered
	slow time.Duration
}

// Pool is a piece of the text: to hold it is to hold all of it.
func (d *document) Pool() string { return d.text[:1] }

// A library makes documents, and knows which of them are held by anybody.
type library struct {
	made  []weak.Pointer[document]
	texts []weak.Pointer[byte]
}

func (l *library) documents(n int, fill func(i int, d *document)) iter.Seq[*document] {
	return func(yield func(*document) bool) {
		for i := range n {
			d := &document{text: strings.Repeat(string(rune('a'+i%7)), 1<<10)}
			fill(i, d)
			l.made = append(l.made, weak.Make(d))
			l.texts = append(l.texts, weak.Make(unsafe.StringData(d.text)))
			if !yield(d) {
				return
			}
		}
	}
}

// kept counts the documents of which anything is still in memory.
func (l *library) kept() (n int) {
	runtime.GC()
	for i := range l.made {
		if l.made[i].Value() != nil || l.texts[i].Value() != nil {
			n++
		}
	}
	return n
}

// A run holds no input beyond its read-ahead and its concurrency, however slow one of
// them is and however many pass it: what has its result is let go.
func TestFinishedInputsAreLetGo(t *testing.T) {
	const ahead, workers, passing = 6, 4, 3000
	const inHand = 2 // by the iterator and the loop, for all that is known of them
	for name, fill := range map[string]func(i int, d *document){
		"calls":     func(int, *document) {},
		"comebacks": func(i int, d *document) { d.back = i % 3 },
		"three slow": func(i int, d *document) {
			if i == 70 || i == 700 {
				d.slow = 24 * time.Hour
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l library
				fn := func(ctx context.Context, d *document) (int, error) {
					pause(ctx, d.slow)
					if d.back--; d.back >= 0 {
						return 0, RetryAfter(time.Millisecond, context.DeadlineExceeded)
					}
					return len(d.text), nil
				}
				first := func(i int, d *document) {
					if fill(i, d); i == 0 {
						d.slow = 24 * time.Hour
					}
				}
				exact := WithLaneDefaults(machine.LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1}})
				seen, most := 0, 0
				for r, err := range Stream(t.Context(), l.documents(passing, first), fn, exact, WithAttemptTimeout(0), WithReadAhead(ahead), WithConcurrency(workers)) {
					if err != nil || r.Err != nil {
						t.Fatal(err, r.Err)
					}
					if seen++; seen%500 == 0 {
						r.Item = nil
						synctest.Wait()
						most = max(most, l.kept())
					}
				}
				if seen != passing || most > ahead+workers+inHand {
					t.Errorf("%d of %d inputs were held at once, want at most %d", most, passing, ahead+workers+inHand)
				}
			})
		})
	}
}

// Jobs share an allocation, but never a large one: where inputs are large values, each
// has its own.
func TestJobsShareLittle(t *testing.T) {
	if n := len(newJobs[int, int]()); n < 2 || n > jobBytes/300 {
		t.Errorf("%d small jobs in one allocation", n)
	}
	if n := len(newJobs[[jobBytes]byte, int]()); n != 1 {
		t.Errorf("%d large jobs in one allocation", n)
	}
}
