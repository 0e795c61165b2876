package machine

import (
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
)

// until lets time pass, and looks when the machine asks for that. It gives the waits that
// were said.
func (b *bed) until(d time.Duration) (said []LongWait) {
	end := b.now.Add(d)
	for ready := b.decide(); ; ready = b.decide() {
		said = append(said, ready.LongWaits...)
		if ready.WakeAt.IsZero() || ready.WakeAt.After(end) {
			b.now = end
			return said
		}
		b.now = ready.WakeAt
	}
}

// A lane that flows and whose law lets nothing go for an hour waits: headers say that
// nothing is left until then.
func TestLongWaitOfALaneThatFlows(t *testing.T) {
	b := newBed(LaneConfig{}, RunConfig{})
	b.offer(5, "", 0)
	for left := 2.0; left >= 0; left-- {
		b.until(time.Second)
		g := b.calls[0]
		b.calls = b.calls[1:]
		b.Step(b.now, Settled(g, Outcome{Signal: Succeeded, Latency: time.Second, Sightings: []limiter.Sighting{{
			Dimension: limiter.Requests, Limit: 3, Window: time.Hour, Remaining: left, Reset: storyStart.Add(time.Hour).Sub(g.Item.Sent), HasReset: true,
		}}}))
	}
	said := b.until(2 * time.Hour)
	sent := b.calls[0].Item.Sent // the first that left again
	for _, lw := range said {
		t.Logf("%v, then sent %v", lw, sent.Sub(lw.At))
	}
	if len(said) != 1 || said[0].Phase != Flowing || said[0].Why != "requests" || said[0].Items != 2 {
		t.Fatalf("said %v", said)
	}
	if off := sent.Sub(said[0].Until).Abs(); off > time.Second {
		t.Errorf("a call left %v away from what was said", off)
	}
}
