package coordinator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headrace/headrace/coordinator"
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A run opens a session, offers its items, and answers each grant with how the call ended:
// Settle if that was the end of the item, HandOver if it is to be called again. Who works
// never waits for a cooldown.
func Example() {
	c := coordinator.New(coordinator.Config{Machine: machine.Config{Lane: machine.LaneConfig{Law: limiter.Plain}}})
	go c.Run()
	defer func() {
		c.Close()
		<-c.Done()
	}()
	s, err := c.Open(context.Background(), machine.RunConfig{Concurrency: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	var items []*machine.Item
	for i, prompt := range []string{"one", "two", "three"} {
		items = append(items, &machine.Item{Seq: uint64(i), Payload: prompt})
	}
	s.Offer(items)
	s.EndInput()
	for g := range s.Work() {
		if g.Item.Payload == "two" && g.Item.Throttled == 0 {
			fmt.Println("two is refused")
			s.HandOver(g, machine.Outcome{Signal: machine.Throttled, Directed: true, RetryAfter: time.Millisecond})
			continue
		}
		fmt.Println(g.Item.Payload, "is answered by lane", g.Lane, "at call", g.Item.Calls)
		s.Settle(g, machine.Outcome{Signal: machine.Succeeded})
	}
	counters, _ := s.Final()
	fmt.Println(counters.Settled, "items,", counters.Calls, "calls:", counters.Proves())
	// Output:
	// one is answered by lane default at call 1
	// two is refused
	// two is answered by lane default at call 2
	// three is answered by lane default at call 1
	// 3 items, 4 calls: true
}
