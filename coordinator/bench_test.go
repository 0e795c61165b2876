package coordinator

import (
	"fmt"
	"sync"
	"testing"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
)

// The way of an item through the owner, offered and settled, with nothing done in
// between: nanoseconds and allocations are per item.
func BenchmarkCoordinator(b *testing.B) {
	for _, workers := range []int{1, 16, 256, 4096} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			all := make([]machine.Item, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			pass(b, workers, all)
		})
	}
}

// The same for a run as a whole, where the number of items or of lanes grows.
func BenchmarkScale(b *testing.B) {
	for _, c := range []struct {
		name         string
		items, lanes int
	}{
		{"items=1k/lanes=1", 1000, 1},
		{"items=100k/lanes=1", 100_000, 1},
		{"items=1M/lanes=1", 1_000_000, 1},
		{"items=100k/lanes=10", 100_000, 10},
		{"items=100k/lanes=1000", 100_000, 1000},
		{"items=100k/lanes=10000", 100_000, 10_000},
	} {
		b.Run("workers=256/"+c.name, func(b *testing.B) {
			all, names := make([]machine.Item, c.items), make([]string, c.lanes)
			for i := range names {
				names[i] = fmt.Sprint("lane", i)
			}
			for b.Loop() {
				for i := range all {
					all[i] = machine.Item{Pool: names[i%c.lanes]}
				}
				pass(b, 256, all)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.items), "ns/item")
		})
	}
}

// pass runs all items, by workers that have nothing to do.
func pass(b *testing.B, workers int, all []machine.Item) {
	c := New(Config{Machine: plain})
	go c.Run()
	s := must.Get(c.Open(b.Context(), machine.RunConfig{Concurrency: workers}))(b)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for g := range s.Work() {
				s.Settle(g, machine.Outcome{Signal: machine.Succeeded})
			}
		})
	}
	offerAll(s, all)
	s.EndInput()
	group.Wait()
	c.Close()
	<-c.Done()
}

func offerAll(s *Session, all []machine.Item) {
	const chunk = 64
	for at := 0; at < len(all); at += chunk {
		some := make([]*machine.Item, 0, chunk)
		for i := at; i < min(at+chunk, len(all)); i++ {
			all[i].Seq = uint64(i)
			some = append(some, &all[i])
		}
		s.Offer(some)
	}
}
