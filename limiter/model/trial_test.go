package model

import (
	"math"
	"testing"

	"github.com/headrace/headrace/limiter"
)

// The odds are the ratio of two likelihoods: that as many calls are refused at the slower
// pace as at the faster one, and that it is a fraction of that.
func TestOddsAreARatioOfLikelihoods(t *testing.T) {
	for seed := range uint64(2000) {
		rng := seeded(seed)
		n := float64(rng.IntN(200))
		k := math.Floor(rng.Float64() * (n + 1))
		r := trial{calls: n, refused: k, excess: 0.02 + 0.88*rng.Float64()}
		near(t, "odds", r.odds(), nats(n, k, r.excess)-nats(n, k, r.excess/trialDrop), 1e-9)
	}
}

// A trial counts calls of its own time at slower paces, and no others.
func TestTrialCountsSlowerCalls(t *testing.T) {
	r := trial{bin: 20, began: 100}
	for _, c := range []struct {
		at      float64
		bin     int
		refused bool
	}{{99, 10, true}, {100, 20, true}, {101, 25, false}, {100, 19, true}, {101, 3, false}} {
		r.count(&fate{at: c.at, refused: c.refused}, c.bin)
	}
	want(t, "calls", r.calls, 2)
	want(t, "refused", r.refused, 1)
}

// judgement lets n calls of a trial end at random, and answers the first verdict.
func judgement(seed uint64, excess, share float64, n int) (v verdict, calls float64) {
	rng := seeded(seed)
	r := trial{bin: 20, excess: excess}
	for v = open; v == open && r.calls < float64(n); v = r.verdict() {
		r.count(&fate{refused: rng.Float64() < share}, 10)
	}
	return v, r.calls
}

// As many refusals at the slower pace find chance guilty, and none find the pace so; a
// trial that is refused nearly everything is too fast itself. Each is found out nearly
// always, within two hundred calls, and none before there is any evidence.
func TestTrialFindsTheGuilty(t *testing.T) {
	for _, c := range []struct {
		excess, share float64
		want          verdict
	}{{0.3, 0.3, byChance}, {0.1, 0.1, byChance}, {0.3, 0, byPace}, {0.1, 0, byPace}, {0.4, 0.95, tooFast}} {
		right := 0
		for seed := range uint64(200) {
			got, calls := judgement(seed, c.excess, c.share, 200)
			if got == c.want {
				right++
			}
			if calls < 3 {
				t.Fatalf("%+v: a verdict after %v calls", c, calls)
			}
		}
		if right < 160 {
			t.Errorf("%+v: %d verdicts of 200 are right", c, right)
		}
	}
}

// Chance is not found guilty before something was let in: then nobody knows whether it
// was slow enough.
func TestChanceNeedsAnAlibi(t *testing.T) {
	for k := 1.0; k < 50; k++ {
		r := trial{excess: 0.3, calls: k, refused: k}
		if v := r.verdict(); v == byChance || v == byPace {
			t.Errorf("%v refused, none let in: verdict %v", k, v)
		}
	}
}

// A trial that is over the limit itself goes slower, and convicts headers that permit its pace:
// the next header would put the pace back.
func TestTrialThatIsTooFast(t *testing.T) {
	for _, source := range []limiter.Source{limiter.Learned, limiter.Seen} {
		m := newModel(limiter.LawConfig{}, noon)
		m.estimate.search = nil
		m.gauges[dimRequests] = gauge{source: source, refill: 100, capacity: 100, shown: &shown{printed: 100}}
		m.markUsed(dimRequests)
		m.trial = &trial{pace: 80, bin: paceBin(100), excess: 0.9, calls: 10, refused: 9}
		want(t, "verdict", m.trial.verdict(), tooFast)
		m.concludeTrial(1)
		want(t, "under way", m.trial != nil, false)
		want(t, "headers are convicted", m.headersLie, source == limiter.Seen)
		if source == limiter.Learned {
			near(t, "rate", m.gauges[dimRequests].refill, 8, 1e-9)
		}
	}
}

// A verdict for chance comes when the fate of a call is known, long after the call left. What flowed in between is in the
// level by then, and does not flow in a second time.
func TestALevelFlowsInOnceAfterChanceIsBlamed(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	m.estimate.search, m.estimate.confirmed = nil, true
	m.gauges[dimRequests] = gauge{source: limiter.Learned, refill: 10, capacity: 100, level: -5, at: 20}
	m.markUsed(dimRequests)
	m.trial = &trial{pace: 8, bin: paceBin(10), excess: 0.2, before: m.beliefs()}
	m.blameChance(18.5)
	near(t, "level", m.gauges[dimRequests].levelAt(20), -5, 1e-9)
}

// An item that is refused again and again says nothing of a trial's pace: a limit on tokens strikes it at any.
func TestATrialCountsAnItemTwice(t *testing.T) {
	m := newModel(limiter.LawConfig{}, noon)
	m.estimate.search = nil
	m.gauges[dimRequests] = gauge{source: limiter.Learned, refill: 100, capacity: 100}
	m.markUsed(dimRequests)
	m.trial = &trial{pace: 80, bin: paceBin(100), excess: 0.5, before: m.beliefs()}
	for refusals := range 3 {
		n := limiter.News{Ticket: limiter.Ticket{Pace: 50, Number: uint64(refusals)}, Refusals: refusals}
		m.refusedInTrial(1, 0.5, &n, paceBin(50))
	}
	near(t, "refused", m.trial.refused, fewRefusals, 0)
}

// A trial whose pace is a call in many seconds ends after two minutes, as the odds are then. It
// would take forty calls, and a lane would crawl for a quarter of an hour.
func TestSlowTrialEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		refused float64 // of ten calls of the trial
		headers bool
		after   float64
		ends    bool
		rate    float64 // believed in the end
	}{
		{"no refusal speaks against the pace", 0, false, trialMost, true, 0.5},
		{"refusals speak for chance", 2, false, trialMost, true, 5},
		{"before its time", 0, false, trialMost - 1, false, 0.5},
		{"headers are not convicted by ten calls", 0, true, trialMost, false, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := modelRig(bucketGate(10, 20)).run(60e9).law.(*Law)
			g, now := &m.gauges[dimRequests], m.seconds(at(60))
			m.estimate.try, m.estimate.confirmed = nil, true
			g.refill = 5
			before := m.beliefs()
			if g.refill = 0.5; c.headers {
				g.source = limiter.Seen
			}
			m.trial = &trial{bin: 20, began: now - c.after, pace: 0.05, excess: 0.2, calls: 10, refused: c.refused, before: before}
			m.learnFromTime(now, 1, true)
			want(t, "trial ended", m.trial == nil, c.ends)
			near(t, "rate", g.refill, c.rate, 0)
		})
	}
}
