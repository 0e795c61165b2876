package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
)

// Random returns a scenario drawn by its number: a provider that nobody thought of. The
// neighbour, if there is one, takes less than there is. The limit never rises above the one
// that we know, for that is a ceiling that the user set.
func Random(number uint64) Scenario {
	rng := rand.New(rand.NewPCG(number, 13))
	s := Scenario{RPM: math.Round(30 * math.Pow(200, rng.Float64()))} // 30 to 6,000, as many of each size
	minutes := 2 + 13*rng.Float64()
	s.Items = min(20000, max(50, int(s.RPM*minutes)))
	if rng.Float64() < 0.3 {
		s.Window = []time.Duration{time.Second, 10 * time.Second, time.Minute}[rng.IntN(3)]
		if s.RPM < 300 { // nobody sets a window that holds one call or none
			s.Window = max(s.Window, 10*time.Second)
		}
	} else {
		s.Burst = seconds(0.5 * math.Pow(120, rng.Float64())) // half a second to a minute
	}
	switch rng.IntN(3) {
	case 0:
		headers(&s)
	case 1:
		retryAfter(&s)
	}
	randomKnowledge(&s, rng)
	randomEvents(&s, rng)
	s.Name = fmt.Sprintf("random %d: %s", number, s.words())
	return s
}

func randomKnowledge(s *Scenario, rng *rand.Rand) {
	off := math.Pow(2, 2*rng.Float64()-1) // half to twice
	switch x := rng.Float64(); {
	case x < 0.15:
		s.Configured = limiter.Limits{RPM: s.RPM}
	case x < 0.3:
		s.Guess = off * s.RPM / 60
	case x < 0.4:
		s.Configured = limiter.Limits{RPM: max(1, off) * s.RPM}
	}
}

// randomEvents may draw a change of the limit, an outage and a neighbour. A limit that the user has
// set never rises: the law takes it for a ceiling.
func randomEvents(s *Scenario, rng *rand.Rand) {
	// length is the time that the limit needs for all items, in seconds.
	length := float64(s.Items) / s.RPM * 60
	// at draws the moment at which something begins, well before the items end.
	at := func() time.Duration { return seconds(length * (0.1 + 0.6*rng.Float64())) }
	if rng.Float64() < 0.3 {
		factor := math.Pow(4, 2*rng.Float64()-1)
		if s.Configured.RPM > 0 {
			factor = min(factor, 1/factor)
		}
		s.Changes = []sim.Change{{At: at(), RPM: max(15, math.Round(s.RPM*factor))}}
	}
	if rng.Float64() < 0.25 {
		mode := []sim.OutageMode{sim.Outage503, sim.OutageHang, sim.OutageReset}[rng.IntN(3)]
		s.Outages = []sim.Outage{{From: at(), For: seconds(5 + 85*rng.Float64()), Mode: mode}}
	}
	if rng.Float64() < 0.25 {
		s.Neighbour = 0.1 + 0.8*rng.Float64()
		s.On, s.Off = seconds(5+55*rng.Float64()), seconds(5+55*rng.Float64())
	}
}

// words describes a drawn scenario.
func (s Scenario) words() string {
	w := fmt.Sprintf("%d items, %g a minute", s.Items, s.RPM)
	if s.Window > 0 {
		w += fmt.Sprintf(", %v windows", s.Window)
	} else {
		w += fmt.Sprintf(", %.1f s deep", s.Burst.Seconds())
	}
	switch {
	case s.Headers:
		w += ", headers"
	case s.Retry == sim.Always:
		w += ", Retry-After"
	default:
		w += ", silent"
	}
	if s.Configured.RPM > 0 {
		w += fmt.Sprintf(", told %.0f", s.Configured.RPM)
	}
	if s.Guess > 0 {
		w += fmt.Sprintf(", guess %.0f", 60*s.Guess)
	}
	for _, c := range s.Changes {
		w += fmt.Sprintf(", %g from %.0f s", c.RPM, c.At.Seconds())
	}
	for _, o := range s.Outages {
		w += fmt.Sprintf(", %s from %.0f s for %.0f s", o.Mode, o.From.Seconds(), o.For.Seconds())
	}
	if s.Neighbour > 0 {
		w += fmt.Sprintf(", neighbour %.0f %% %.0f s of %.0f s", 100*s.Neighbour, s.On.Seconds(), (s.On + s.Off).Seconds())
	}
	return w
}
