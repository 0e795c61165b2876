package observe

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
)

// watched is the real machine in virtual time, of which a forecaster sees what a recorder
// would show it.
type watched struct {
	lab.Law
	f       forecaster
	p       Snapshot
	work    []Work
	tokens  func(int) float64
	before  Ledger
	second  Sample
	left    int64           // bytes
	answers []time.Duration // the latest 128
	all     []said
}

func watch(law lab.Law, b lab.Batch) *watched {
	w := &watched{Law: law, tokens: b.Tokens, p: Snapshot{Began: lab.Start, At: lab.Start, Total: b.Items, Concurrency: b.Concurrency}}
	for i := range b.Items {
		w.left += w.bytes(i)
	}
	w.work = []Work{{Items: b.Items, Bytes: w.left}}
	return w
}

// bytes returns the length of an item's body: four bytes to a token, and some around them.
func (w *watched) bytes(item int) int64 {
	if w.tokens == nil {
		return 100
	}
	return 100 + 4*int64(w.tokens(item))
}

func (w *watched) Ready(now time.Time) ([]lab.Call, time.Time) {
	calls, wake := w.Law.Ready(now)
	if now.Sub(w.p.At) >= time.Second {
		w.tick(now)
	}
	return calls, wake
}

func (w *watched) Ended(now time.Time, c lab.Call, v sim.Verdict) bool {
	done := w.Law.Ended(now, c, v)
	if done {
		w.p.Answered++
		w.left -= w.bytes(c.Item)
		w.second.Answered++
		if w.tokens != nil {
			w.second.InputTokens += int64(w.tokens(c.Item))
		}
		w.answers = append(w.answers, now.Sub(c.Sent))
		w.answers = w.answers[max(0, len(w.answers)-128):]
	}
	return done
}

func (w *watched) tick(now time.Time) {
	status, _ := lab.StatusOf(w.Law, now)
	s := &w.second
	s.At, s.Elapsed, s.Span = now, now.Sub(w.p.Began).Seconds(), now.Sub(w.p.At).Seconds()
	var ledger Ledger
	copy(ledger[:], status.Run.Ledger[:])
	s.Bounds, w.before = ledger.minus(&w.before), ledger
	w.f.note(s)
	*s = Sample{}
	p := &w.p
	p.At, p.InFlight = now, status.Run.InFlight
	sorted := slices.Sorted(slices.Values(w.answers))
	if n := len(sorted); n > 0 {
		p.P50, p.P95 = sorted[n/2], sorted[n*95/100]
	}
	p.Lanes = p.Lanes[:0]
	for _, l := range status.Lanes { // there is one
		w.work[0].Lane = l.Name
		p.Lanes = append(p.Lanes, Lane{LaneStatus: l, NextBound: l.Bound, Answered: p.Answered, Left: p.Total - p.Answered, LeftBytes: w.left})
	}
	w.all = append(w.all, said{now.Sub(p.Began).Seconds(), w.f.forecastEnd(p, w.work)})
}

// A scene is a provider, and a batch for it.
type scene struct {
	lab.Batch
	sim.Config
	lab.Neighbour
}

// newScene draws a provider that lets 30 to 600 calls a minute through, and a batch that takes
// it 5 to 40 minutes. It also draws how the client learns the limit: from its configuration,
// from headers, or from refusals.
func newScene(rng *rand.Rand) scene {
	rpm, minutes := math.Round(between(rng, 30, 600)), between(rng, 5, 40)
	s := scene{
		Batch: lab.Batch{Items: max(100, int(rpm*minutes)), Concurrency: 1000},
		Config: sim.Config{
			RPM: rpm, Burst: seconds(between(rng, 1, 20)), Seed: rng.Uint64(),
			Latency: sim.Latency{Median: seconds(between(rng, 0.3, 5)), Sigma: 0.5},
		},
	}
	switch rng.IntN(3) {
	case 0:
		s.Configured = limiter.Limits{RPM: rpm}
	case 1:
		s.Headers = true
	default:
		s.RetryAfter = sim.Always
	}
	return s
}

// scenes are what befalls them.
var scenes = []struct {
	name string
	draw func(*rand.Rand, *scene)
}{
	{"steady", func(*rand.Rand, *scene) {}},
	{"steady by concurrency", func(rng *rand.Rand, s *scene) {
		s.Concurrency = max(2, int(between(rng, 0.2, 0.7)*s.RPM/60*s.Latency.Median.Seconds()*1.13))
	}},
	{"waves", func(rng *rand.Rand, s *scene) { // a neighbour takes up to two thirds, for 10 to 60 s, each few minutes
		s.Neighbour = lab.Neighbour{
			PerSecond: between(rng, 0.3, 0.67) * s.RPM / 60,
			On:        seconds(between(rng, 10, 60)), Off: seconds(between(rng, 30, 120)),
		}
	}},
	{"drift", func(rng *rand.Rand, s *scene) { // of the limit, each half minute, unannounced
		s.Configured = limiter.Limits{}
		at := drift(rng)
		for second := range 3 * 3600 {
			if f := at(second); second%30 == 29 {
				s.Changes = append(s.Changes, sim.Change{At: seconds(float64(second)), RPM: max(10, math.Round(s.RPM*f))})
			}
		}
	}},
	{"bursts", func(rng *rand.Rand, s *scene) { // of large items, where tokens are what is limited
		large, share := between(rng, 2, 5), between(rng, 0.1, 0.4)
		s.TPM, s.Burst = 1000*s.RPM, max(s.Burst, 10*time.Second)
		if s.Configured.RPM > 0 {
			s.Configured.TPM = s.TPM
		}
		s.Tokens = func(item int) float64 {
			u := float64((uint64(item/50)*0x9E3779B97F4A7C15+s.Seed)>>40) / (1 << 24)
			if u < share {
				return 1000 * large
			}
			return 1000
		}
	}},
}

func play(draw func(*rand.Rand, *scene), seed uint64) judged {
	rng := rand.New(rand.NewPCG(seed, 14))
	s := newScene(rng)
	draw(rng, &s)
	law := watch(lab.Headrace(limiter.Model)(s.Batch, seed), s.Batch)
	h := lab.World{
		Batch: s.Batch, Provider: sim.NewModel(s.Config, lab.Start), Neighbour: s.Neighbour, Refusal: sim.RateLimited,
		Hop: lab.Hop, Stop: 24 * time.Hour, Seed: seed,
	}.Run(law)
	return judge(law.all, h.Makespan.Seconds())
}

// The same with the real machine in virtual time, behind limits that the user sets, that
// headers show, or that it has to learn.
func TestForecastHoldsInTheLab(t *testing.T) {
	n, seed := worldsOf(t, 3)
	for _, kind := range scenes {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var all []judged
			for i := range n {
				all = append(all, play(kind.draw, seed+uint64(i)))
			}
			table := tabulate(all)
			t.Log(kind.name, table)
			if n >= 40 { // of fewer a share says nothing
				table.within(t, strings.HasPrefix(kind.name, "steady"), promised[strings.Fields(kind.name)[0]], slackOf(n))
			} else if strings.HasPrefix(kind.name, "steady") && table.missed[2] > promised["steady"] {
				t.Errorf("at half of it missed by %.1f %%", 100*table.missed[2])
			}
		})
	}
}
