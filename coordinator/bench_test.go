package coordinator

import (
	"fmt"
	"sync"
	"testing"

	"github.com/headrace/headrace/coordinator/machine"
)

// The way of an item through the owner, offered and settled, with nothing done in
// between: nanoseconds and allocations are per item.
func BenchmarkCoordinator(b *testing.B) {
	for _, workers := range []int{16, 256, 4096} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			c := New(Config{})
			go c.Run()
			s, err := c.Open(b.Context(), machine.RunConfig{Concurrency: workers})
			if err != nil {
				b.Fatal(err)
			}
			all := make([]machine.Item, b.N)
			var group sync.WaitGroup
			for range workers {
				group.Go(func() {
					for g := range s.Work() {
						s.Settle(g, machine.Outcome{Signal: machine.Succeeded})
					}
				})
			}
			b.ReportAllocs()
			b.ResetTimer()
			offerAll(s, all)
			s.EndInput()
			group.Wait()
			b.StopTimer()
			c.Close()
			<-c.Done()
		})
	}
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
