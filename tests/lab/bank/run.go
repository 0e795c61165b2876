package bank

import (
	"sync"
	"time"

	"github.com/headrace/headrace/tests/lab"
	"github.com/headrace/headrace/tests/lab/gates"
)

// A Result holds the figures of a law in a world: the mean of several seeds, unless a field
// says otherwise.
type Result struct {
	World     string        `json:"world"`
	Items     int           `json:"items"`
	Ratio     float64       `json:"ratio"` // of the makespan to the clairvoyant's
	Refused   float64       `json:"refused"`
	Imposed   float64       `json:"imposed"` // of these, by chance
	Wasted    float64       `json:"wasted"`  // calls that broke, or met an outage
	Undone    float64       `json:"undone"`  // share of the items
	Most      int           `json:"most"`    // refusals of one item, in any seed
	Recovered time.Duration `json:"recovered"`
	Repeated  int           `json:"repeated"` // items that were answered more than once, in all
	Target    Target        `json:"target"`
	Weak      bool          `json:"weak,omitempty"` // a weak point, see [WeakPoints]
}

// Excess returns the refusals that chance did not impose, as a share of the items.
func (r Result) Excess() float64 { return (r.Refused - r.Imposed) / float64(r.Items) }

// Met reports whether the result meets the world's target.
func (r Result) Met() bool { return r.Target.Met(r) }

// A world that does not end is stopped after ten times the optimum, plus five minutes for
// worlds that are over in seconds.
const (
	stopTimes = 10
	stopSlack = 5 * time.Minute
)

// setting returns a world about to begin.
func (w World) setting(seed uint64) (lab.World, *gates.Server) {
	server := gates.NewServer(w.config(seed))
	return lab.World{
		Batch: w.batch(), Provider: server, Neighbour: w.neighbour, Refusal: server.Status,
		Hop: w.hop, Seed: seed, Stop: stopTimes*w.optimum(seed, nil) + stopSlack,
	}, server
}

// Run measures a law once.
func (w World) Run(law lab.Rival, seed uint64) Result {
	setting, server := w.setting(seed)
	h := setting.Run(w.law(law, setting.Batch, seed))
	return w.result(h, server, seed)
}

// result returns the figures of one run. The makespan of a world that did not end is the time at
// which it was stopped. Recovery is measured after the last outage.
func (w World) result(h lab.History, server *gates.Server, seed uint64) Result {
	optimum := w.optimum(seed, h.Neighbours)
	makespan := h.Makespan
	if h.Done < w.Items() {
		makespan = h.Stopped
	}
	r := Result{
		World: w.Title(), Items: w.Items(), Target: w.Target, Weak: w.Weak, Ratio: makespan.Seconds() / optimum.Seconds(),
		Refused: float64(server.Refused), Imposed: float64(server.Imposed), Wasted: float64(server.Broken + server.Down),
		Undone: 1 - float64(h.Done)/float64(w.Items()), Most: h.Attempts, Repeated: h.Repeated,
	}
	if outages := w.server.Outages; len(outages) > 0 {
		o := outages[len(outages)-1]
		r.Recovered = lab.Recovery(h.Accepted, o.From+o.For, 0.95*w.bound())
	}
	return r
}

// mean returns the mean of one world's results, one a seed.
func mean(some []Result) Result {
	m := some[0]
	for _, r := range some[1:] {
		m.Ratio += r.Ratio
		m.Refused += r.Refused
		m.Imposed += r.Imposed
		m.Wasted += r.Wasted
		m.Undone += r.Undone
		m.Repeated += r.Repeated
		m.Most = max(m.Most, r.Most)
		if m.Recovered >= 0 && (r.Recovered < 0 || r.Recovered > m.Recovered) {
			m.Recovered = r.Recovered
		}
	}
	n := float64(len(some))
	m.Ratio /= n
	m.Refused /= n
	m.Imposed /= n
	m.Wasted /= n
	m.Undone /= n
	return m
}

// Measure measures a law in all these worlds, so many runs at a time.
func Measure(worlds []World, law lab.Rival, seeds []uint64, parallel int) []Result {
	runs := make([][]Result, len(worlds))
	var wait sync.WaitGroup
	room := make(chan struct{}, max(1, parallel))
	for i, w := range worlds {
		runs[i] = make([]Result, len(seeds))
		for j, seed := range seeds {
			room <- struct{}{}
			wait.Go(func() {
				runs[i][j] = w.Run(law, seed)
				<-room
			})
		}
	}
	wait.Wait()
	results := make([]Result, len(worlds))
	for i := range runs {
		results[i] = mean(runs[i])
	}
	return results
}
