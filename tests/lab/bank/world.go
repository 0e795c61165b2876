package bank

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
	"github.com/headrace/headrace/tests/lab/gates"
)

// A Vary varies the usual numbers of the worlds. Usual changes none.
type Vary struct {
	Rate    float64       `json:"rate"`   // factor of every limit
	Chance  float64       `json:"chance"` // factor of every probability
	Cap     float64       `json:"cap"`    // factor of every cap
	Status  int           `json:"status"` // of refusals, where the world does not set it: 429 or 503
	Answers time.Duration `json:"answers,omitempty"`
}

// Usual holds the numbers with which the worlds are written.
var Usual = Vary{Rate: 1, Chance: 1, Cap: 1, Status: 429}

// A World is a server, and the work that we have there.
type World struct {
	Family, Name string
	Target       Target
	Weak         bool // a weak point: its figures are added up apart

	vary       Vary
	items      int
	scale      float64 // of the items: it follows the world's bound, so that the world lasts as long
	perSecond  float64 // R, varied
	hands      int
	hop        time.Duration
	configured limiter.Limits
	tokens     func(item int) float64
	thought    func(item int) float64 // the tokens that the client expects of an item; nil: the actual ones
	local      bool                   // the user says that the server is one's own
	period     time.Duration          // from the names of its headers
	processes  int                    // the number that share the items; 0: one
	neighbour  lab.Neighbour
	makers     []maker
	server     gates.Config // without its gates and its seed
}

// maker makes a fresh gate.
type maker func(w *World, seed uint64) gates.Gate

// Title returns the world's name with its family's.
func (w World) Title() string { return w.Family + " " + w.Name }

// Items returns the number of items in the batch.
func (w World) Items() int { return max(1, int(math.Round(float64(w.items)*w.scale))) }

// config returns the server's, with fresh gates.
func (w World) config(seed uint64) gates.Config {
	c := w.server
	c.Seed = seed
	for _, fresh := range w.makers {
		c.Gates = append(c.Gates, fresh(&w, seed))
	}
	return c
}

// optimum returns the clairvoyant's makespan, given the neighbour's admitted calls.
func (w World) optimum(seed uint64, neighbours []time.Duration) time.Duration {
	return gates.Task{
		Config: w.config(seed), Items: w.Items(), Tokens: w.tokens,
		Hands: w.hands, Hop: w.hop, Neighbours: neighbours,
	}.Optimum()
}

// mostWorkers is the number of a rival's workers, one for each call: more than answers of 20
// s need at ten calls a second.
const mostWorkers = 256

func (w World) batch() lab.Batch {
	return lab.Batch{
		Items: w.Items(), Concurrency: w.hands, Workers: min(w.hands, mostWorkers), Configured: w.configured,
		PerSecond: w.bound(), Tokens: w.tokens, Thought: w.thought, Local: w.local, Period: w.period,
	}
}

// law returns the law under test, in as many processes as the world has.
func (w World) law(of lab.Rival, b lab.Batch, seed uint64) lab.Law {
	if w.processes > 1 {
		return lab.Processes(w.processes, of.New)(b, seed)
	}
	return of.New(b, seed)
}

// bound returns roughly how many calls a second the world allows. Rivals that know the limit
// get it, and it defines full speed after an outage.
func (w World) bound() float64 {
	trip := w.server.Answers.Mean() + 2*w.hop
	if len(w.makers) == 0 {
		return float64(w.hands) / trip.Seconds()
	}
	return w.perSecond
}

// world makes a world of those traits at the usual numbers, varied.
func (v Vary) world(family, name string, target Target, traits ...trait) World {
	w := World{
		Family: family, Name: name, Target: target, vary: v,
		items: 10000, scale: 1, perSecond: 10 * v.Rate, hands: 1000, hop: lab.Hop,
		server: gates.Config{
			Answers: gates.Answers{Median: time.Second, Sigma: 0.5},
			Refusal: 20 * time.Millisecond, Status: sim.RateLimited, Named: -1,
		},
	}
	if v.Status == sim.Overloaded.Status() {
		w.server.Status = sim.Overloaded
	}
	for _, t := range traits {
		t(&w)
	}
	if v.Answers > 0 {
		w.server.Answers.Median = v.Answers
	}
	return w
}
