package purse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/headrace/headrace/cluster/store"
	"github.com/headrace/headrace/cluster/store/storetest"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

// purseOf is a worker's purse for the test's job, whose caps the test may change.
func purseOf(s store.Store, who string, caps *[]limiter.Money) *Purse {
	return New(Config{Store: s, Job: "j", Who: who, Caps: func(context.Context) ([]limiter.Money, limiter.Money, error) {
		return *caps, (*caps)[len(*caps)-1], nil
	}})
}

// Workers at once, with calls that cost what was reserved or less, spend the cap and never more. The rest is less than a
// call for each of them. A raise adds what it says, and no more.
func TestWorkersShareACap(t *testing.T) {
	const most = limiter.Money(1_000_000)
	s, caps := storetest.NewMemory(), []limiter.Money{limiter.USD(1)}
	for round, want := range []limiter.Money{limiter.USD(1), limiter.USD(0.5)} {
		var all sync.WaitGroup
		var mu sync.Mutex
		spent := limiter.Money(0)
		for worker := range 3 {
			chance := rand.New(rand.NewPCG(uint64(worker), uint64(round)))
			p := purseOf(s, fmt.Sprint("w", worker), &caps)
			all.Go(func() {
				for {
					price := 1000 * (1 + limiter.Money(chance.Int64N(int64(most)))) // up to a tenth of a cent
					if _, err := p.Reserve(t.Context(), price); err != nil {
						if !errors.Is(err, ErrSpent) {
							t.Error(err)
						}
						return
					}
					cost := price - limiter.Money(chance.Int64N(int64(price)))
					p.Settle(price, cost)
					mu.Lock()
					spent += cost
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if least := want - 3*1000*most - Slices; spent > want || spent < least {
			t.Errorf("%g spent, want %g to %g", spent.USD(), least.USD(), want.USD())
		}
		caps = append(caps, limiter.USD(1.5))
	}
}

// Money that is set aside is nobody else's until its call has ended. Of what it has cost beyond that the purse is short.
func TestReservedMoneyIsTaken(t *testing.T) {
	caps := []limiter.Money{500}
	p := purseOf(storetest.NewMemory(), "w", &caps)
	reserve := func(price limiter.Money, want error, wantFinal bool) {
		t.Helper()
		if final, err := p.Reserve(t.Context(), price); !errors.Is(err, want) || final != wantFinal {
			t.Errorf("%d: final %v, error %v; want %v, %v", price, final, err, wantFinal, want)
		}
	}
	reserve(300, nil, false)
	reserve(201, ErrSpent, false) // the call in flight may cost less
	reserve(200, nil, false)
	reserve(0, nil, false) // what costs nothing is covered
	p.Settle(0, 0)
	p.Settle(200, 200)
	p.Settle(300, 250)
	reserve(51, ErrSpent, true)
	reserve(50, nil, false)
	p.Settle(50, 80)
	reserve(1, ErrSpent, true)
	caps = append(caps, 1000)
	reserve(470, nil, false)
	reserve(1, ErrSpent, false)
}

// A worker that dies takes with it what it has reserved, and less than a note. One that comes later has the rest.
func TestADeadWorkerLosesLessThanANote(t *testing.T) {
	s, caps := storetest.NewMemory(), []limiter.Money{1000 * Slices}
	dead := purseOf(s, "dead", &caps)
	for range 10 {
		must.Get(dead.Reserve(t.Context(), 333))(t)
	}
	p, got := purseOf(s, "alive", &caps), limiter.Money(0)
	for {
		if _, err := p.Reserve(t.Context(), 1); err != nil {
			break
		}
		got++
	}
	if lost := caps[0] - got; lost < 3330 || lost >= 3330+1000 {
		t.Errorf("%d of %d lost, of which 3330 were reserved", lost, caps[0])
	}
}

// A store that is away is not taken for a spent cap. A note whose answer was lost counts as another's: what the purse has is
// never more than the store shows.
func TestAStoreThatIsAway(t *testing.T) {
	caps := []limiter.Money{1000 * Slices}
	for fault := range map[storetest.Fault]bool{storetest.Refuse: true, storetest.LoseReply: true} {
		inner := storetest.NewMemory()
		flaky := &storetest.Flaky{Store: inner, Rule: func(n int, _, _ string) storetest.Fault {
			if n%2 == 0 {
				return fault
			}
			return storetest.None
		}}
		p, got := purseOf(flaky, "w", &caps), 0
		for tries := 0; ; tries++ {
			_, err := p.Reserve(t.Context(), 1000)
			if errors.Is(err, ErrSpent) {
				break
			}
			if err == nil {
				got++
			} else if !errors.Is(err, storetest.ErrFlaky) || tries > 10*Slices {
				t.Fatalf("after %d tries: %v", tries, err)
			}
		}
		notes := 0
		for range inner.List(t.Context(), "jobs/j/money/", "") {
			notes++
		}
		if got == 0 || got > notes || notes != Slices {
			t.Errorf("fault %v: %d calls were covered by %d notes", fault, got, notes)
		}
	}
}

// Of a cap that was lowered workers draw no more than it allows, whatever they knew before, and of one that was raised again
// they draw the rest. Drawn counts what they have drawn, over all raises.
func TestALoweredCap(t *testing.T) {
	s, caps, most := storetest.NewMemory(), []limiter.Money{10 * Slices}, limiter.Money(10*Slices)
	config := Config{Store: s, Job: "j", Who: "w", Caps: func(context.Context) ([]limiter.Money, limiter.Money, error) { return caps, most, nil }}
	workers := []*Purse{New(config), New(config)}
	spend := func() (calls limiter.Money) {
		t.Helper()
		for _, p := range workers {
			for {
				if _, err := p.Reserve(t.Context(), 1); err != nil {
					if !errors.Is(err, ErrSpent) {
						t.Fatal(err)
					}
					break
				}
				p.Settle(1, 1)
				calls++
			}
		}
		return calls
	}
	for _, p := range workers { // each has nine left of its first note
		must.Get(p.Reserve(t.Context(), 1))(t)
		p.Settle(1, 1)
	}
	for _, c := range []struct {
		caps             []limiter.Money
		most, got, drawn limiter.Money
	}{
		{caps, 15, 18, 20},
		{caps, 105, 80, 100},
		{[]limiter.Money{10 * Slices, 30 * Slices}, 5000 + 40*3, 4900 + 40*3, 5000 + 40*3},
	} {
		caps, most = c.caps, c.most
		if got := spend(); got != c.got {
			t.Errorf("below %d: %d spent, want %d", most, got, c.got)
		}
		if drawn := must.Get(Drawn(t.Context(), s, "j", caps))(t); drawn != c.drawn {
			t.Errorf("below %d: %d drawn, want %d", most, drawn, c.drawn)
		}
	}
}
