package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/internal/must"
	"github.com/headrace/headrace/limiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exact is a lane whose cooldowns last as long as they are asked to.
var exact = machine.LaneConfig{Law: limiter.Plain, Cooldown: limiter.CooldownConfig{Jitter: -1}}

// plain is a machine whose lanes start at full speed: what is tested here is the loop.
var plain = machine.Config{Lane: machine.LaneConfig{Law: limiter.Plain}}

// inBubble runs a coordinator in a bubble of virtual time, and waits for its end.
func inBubble(t *testing.T, cfg Config, f func(t *testing.T, c *Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := New(cfg)
		go c.Run()
		f(t, c)
		c.Close()
		<-c.Done()
	})
}

func open(t *testing.T, c *Coordinator, cfg machine.RunConfig) *Session {
	t.Helper()
	s := must.Get(c.Open(t.Context(), cfg))(t)
	return s
}

// items are n of a pool.
func items(n int, pool string) []*machine.Item {
	all := make([]*machine.Item, n)
	for i := range all {
		all[i] = &machine.Item{Seq: uint64(i), Pool: pool}
	}
	return all
}

// granted takes whatever Work has once nothing moves any more.
func granted(s *Session) []machine.Grant {
	synctest.Wait()
	var all []machine.Grant
	for {
		select {
		case g, ok := <-s.Work():
			if !ok {
				return all
			}
			all = append(all, g)
		default:
			return all
		}
	}
}

// finish ends a run: no more input, and whatever comes succeeds.
func finish(s *Session) machine.Counters {
	s.EndInput()
	for g := range s.Work() {
		s.Settle(g, ok)
	}
	n, _ := s.Final()
	return n
}

var (
	ok      = machine.Outcome{Signal: machine.Succeeded}
	refused = machine.Outcome{Signal: machine.Throttled}
	broken  = machine.Outcome{Signal: machine.Failed}
)

// within is a refusal that names a wait.
func within(d time.Duration) machine.Outcome {
	return machine.Outcome{Signal: machine.Throttled, Directed: true, RetryAfter: d}
}

// proves fails the test unless nothing was lost or given out twice.
func proves(t *testing.T, n machine.Counters, offered, calls uint64) {
	t.Helper()
	if !n.Proves() || n.Offered != offered || n.Calls != calls {
		t.Errorf("want %d offered and %d calls, all accounted for: %+v", offered, calls, n)
	}
}
