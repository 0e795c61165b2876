package machine_test

import (
	"fmt"
	"time"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
)

// A machine takes facts, each with its time, and returns what follows from them. It never looks
// at a clock: its owner asks again at WakeAt.
func Example() {
	start := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	now := start
	m := machine.New(machine.Config{Lane: machine.LaneConfig{
		Law:      limiter.Plain,
		Cooldown: limiter.CooldownConfig{Jitter: -1},
		Ramp:     limiter.RampConfig{Initial: 2, Target: 2, Duration: time.Minute},
	}})
	m.Step(now, machine.RunOpened(1, machine.RunConfig{Concurrency: 2}))
	m.Step(now, machine.Offered(1, []*machine.Item{{Seq: 0}, {Seq: 1}, {Seq: 2}}))
	m.Step(now, machine.InputEnded(1))

	refused := false
	for {
		ready := m.Ready(now)
		for _, g := range ready.Grants {
			fmt.Printf("%v: item %d is called\n", now.Sub(start), g.Item.Seq)
		}
		for _, t := range ready.Transitions {
			fmt.Printf("%v: lane %s: %v, %v\n", now.Sub(start), t.Lane, t.To, t.Reason)
		}
		if len(ready.Finished) > 0 {
			fmt.Println("over:", ready.Finished[0].Counters.Proves(), ready.Finished[0].Held)
			return
		}
		if len(ready.Grants) == 0 {
			now = ready.WakeAt // nothing else happens before
			continue
		}
		grants := append([]machine.Grant(nil), ready.Grants...) // they are valid until the machine is called again
		now = now.Add(time.Second)
		for _, g := range grants {
			if g.Item.Seq == 1 && !refused {
				refused = true
				m.Step(now, machine.HandedOver(g, machine.Outcome{Signal: machine.Throttled, Directed: true, RetryAfter: 5 * time.Second}))
				continue
			}
			m.Step(now, machine.Settled(g, machine.Outcome{Signal: machine.Succeeded, Latency: time.Second}))
		}
	}
	// Output:
	// 0s: item 0 is called
	// 0s: item 1 is called
	// 1s: lane default: cooling, throttled
	// 6s: item 1 is called
	// 6s: lane default: probing, time
	// 7s: item 2 is called
	// 7s: lane default: ramping, probe
	// over: true concurrency 1s, cooldown 5s, recovery 1s, tail 1s
}
