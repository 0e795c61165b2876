package plain

import (
	"testing"

	"github.com/headrace/headrace/limiter"
)

// Where to climb back to is learned from refusals that nothing but the rate led to: not from
// that of a first burst, nor from one in a ramp, which says what the server takes now.
func TestPlainLawAimsAtWhatItWasRefusedInTheOpen(t *testing.T) {
	p := New(limiter.LawConfig{Rate: limiter.RateConfig{Initial: 20}}, noon, seeded(1))
	refuse := func(s float64) {
		for i := range 40 {
			p.Sent(at(s-2+float64(i)/20), one, 0)
		}
		p.Refused(at(s), limiter.News{Sent: at(s), Cost: one, Present: true})
		p.Resume(at(s + 1))
		p.Climb(at(s + 1))
	}
	refuse(2)
	near(t, "goal after the first burst", p.rate.goal, 0, 0)
	refuse(4)
	want(t, "it was refused in a ramp", p.ramp.Ends(), at(7.5))
	near(t, "goal", p.rate.goal, 0, 0)
	refuse(20)
	near(t, "goal, in the open", p.rate.goal, p.rate.Limit()/limiter.DefaultRateDecrease, 1e-9)
}
