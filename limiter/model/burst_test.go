package model

import (
	"math"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/limiter/internal/measure"
)

// pressed counts the calls that leave within a span, where one always wants to.
func pressed(law limiter.Law, from time.Time, span time.Duration) (n float64) {
	for now, one := from, (limiter.Cost{Requests: 1}); now.Sub(from) <= span; {
		law.Tick(now, true)
		if wait, _ := law.Wait(now, one); wait > 0 {
			now = now.Add(wait)
			continue
		}
		k := law.Sent(now, one, 0)
		law.Answered(now, limiter.News{Ticket: k, Sent: now, Cost: one, Present: true, Good: true, Latency: time.Millisecond})
		n++
	}
	return n
}

// Burst bounds the refill that is there at the start, and again after a rest, besides the
// inflow: no more, and all but a little. The plain law spends it at once, and the model law
// within half a minute.
func TestBurstIsWhatIsSavedUp(t *testing.T) {
	const perSecond = 10
	usual := map[limiter.LawName]time.Duration{limiter.Plain: limiter.DefaultBurst, limiter.Model: configuredBurst * 1e9}
	spent := map[limiter.LawName]time.Duration{limiter.Plain: 0, limiter.Model: 30 * time.Second}
	for _, burst := range []time.Duration{
		0, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, 10 * time.Second, limiter.MaxBurst,
	} {
		for name, span := range spent {
			saved := perSecond * measure.OrElseDuration(burst, usual[name]).Seconds()
			began := func() limiter.Law {
				return newLaw(limiter.LawConfig{Law: name, Limits: limiter.Limits{RPM: 60 * perSecond, Burst: burst}}, noon, seeded(1))
			}
			rested := func() limiter.Law {
				law := began()
				pressed(law, noon, time.Minute)
				return law
			}
			later := noon.Add(2 * time.Hour)
			most := max(1, saved) + perSecond*span.Seconds()
			for what, n := range map[string]float64{"at the start": pressed(began(), noon, span), "after a rest": pressed(rested(), later, span)} {
				if n > math.Ceil(most) || n < math.Floor(0.93*most-1) {
					t.Errorf("%v, %v, %s: %v calls within %v, want %.1f", name, burst, what, n, span, most)
				}
			}
			if n := pressed(rested(), later, 0); n > math.Ceil(max(1, saved)) {
				t.Errorf("%v, %v: %v calls at once after a rest, of %.1f saved up", name, burst, n, saved)
			}
		}
	}
}
