package model

import "testing"

// A refusal that ends a try compares the new rate with the rate before the try, and not with
// the rate that the try had come to. So a limit that grew is tried again soon.
func TestALimitThatGrewIsTriedSoon(t *testing.T) {
	m := modelRig(bucketGate(10, 20)).run(60e9).law.(*Law)
	g, e := &m.gauges[dimRequests], &m.estimate
	now := m.seconds(at(60))
	for before, soon := range map[float64]bool{g.refill / 2: true, g.refill: false} {
		e.every, e.try = 30, &try{rate: g.refill, before: before, began: now - 5}
		m.addEvidence(g, &lesson{interval: interval{e.anchor, now, g.refill}})
		if least := firstTryGap(g); (e.every == least) != soon {
			t.Errorf("from %v to %v a second: %v s until the next try, and at least %v", before, g.refill, e.every, least)
		}
	}
}
