package wire

import (
	"fmt"
	"sync"
	"testing"
)

// A call over TLS costs this much, with so many in flight and warm connections.
func BenchmarkCalls(b *testing.B) {
	for _, streams := range []int{0, 128} {
		for _, calls := range []int{64, 512} {
			b.Run(fmt.Sprintf("http%d/%d", 1+min(streams, 1), calls), func(b *testing.B) {
				s := newTier(b, streams, nil)
				c := s.client(b, calls)
				s.send(b, c, calls) // all connections are there, and the server waits for nothing more
				b.ReportAllocs()
				b.ResetTimer()
				inFlight(b, c, calls, b.N)
			})
		}
	}
}

// BenchmarkColdStart makes so many calls at once without a connection.
func BenchmarkColdStart(b *testing.B) {
	for _, streams := range []int{0, 128} {
		for _, calls := range []int{64, 512} {
			b.Run(fmt.Sprintf("http%d/%d", 1+min(streams, 1), calls), func(b *testing.B) {
				for range b.N {
					s := newTier(b, streams, nil)
					c := s.client(b, calls)
					b.StartTimer()
					s.send(b, c, calls)
					b.StopTimer()
					c.CloseIdle()
					s.Close()
				}
			})
		}
	}
}

// inFlight makes calls, so many at a time.
func inFlight(b *testing.B, c *Client, at, calls int) {
	var (
		work = make(chan struct{}, at)
		all  sync.WaitGroup
	)
	for range at {
		all.Go(func() {
			for range work {
				if _, err := ask(b.Context(), c, "{}"); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for range calls {
		work <- struct{}{}
	}
	close(work)
	all.Wait()
}
