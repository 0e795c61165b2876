package bank

import (
	"math"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider/sim"
	"github.com/headrace/headrace/tests/lab"
	"github.com/headrace/headrace/tests/lab/gates"
)

// A Vary says how far the worlds are from the usual numbers. Usual leaves them.
type Vary struct {
	Rate    float64       `json:"rate"`   // times every limit
	Chance  float64       `json:"chance"` // times every probability
	Cap     float64       `json:"cap"`    // times every cap
	Status  int           `json:"status"` // of refusals, where the world does not name it: 429 or 503
	Answers time.Duration `json:"answers,omitempty"`
}

// Usual are the numbers that the worlds are written with.
var Usual = Vary{Rate: 1, Chance: 1, Cap: 1, Status: 429}

// A World is a server, and what we have to do there.
type World struct {
	Family, Name string
	Target       Target
	Weak         bool // a weak point: its figures are added up apart

	vary      Vary
	items     int
	scale     float64 // of items: as its bound is scaled, that it lasts as long
	perSecond float64 // R, as it is varied
	hands     int
	hop       time.Duration
	told      limiter.Limits
	tokens    func(item int) float64
	thought   func(item int) float64 // the tokens that the client expects of an item; nil: those that are drawn
	local     bool                   // the user says that the server is one's own
	period    time.Duration          // that the names of its headers tell
	processes int                    // that share the items; 0: one
	neighbour lab.Neighbour
	makers    []maker
	server    gates.Config // without its gates and its seed
}

// maker makes a gate, fresh.
type maker func(w *World, seed uint64) gates.Gate

// Title is the world's name with its family's.
func (w World) Title() string { return w.Family + " " + w.Name }

// Items is how many the batch has.
func (w World) Items() int { return max(1, int(math.Round(float64(w.items)*w.scale))) }

// config is the server's, with fresh gates.
func (w World) config(seed uint64) gates.Config {
	c := w.server
	c.Seed = seed
	for _, fresh := range w.makers {
		c.Gates = append(c.Gates, fresh(&w, seed))
	}
	return c
}

// optimum is the clairvoyant's makespan, given what the neighbour was let in.
func (w World) optimum(seed uint64, foreign []time.Duration) time.Duration {
	return gates.Task{
		Config: w.config(seed), Items: w.Items(), Tokens: w.tokens,
		Hands: w.hands, Hop: w.hop, Foreign: foreign,
	}.Optimum()
}

// mostWorkers are a rival's, who has one for each call: more than 20 s answers
// need at ten calls a second.
const mostWorkers = 256

func (w World) batch() lab.Batch {
	return lab.Batch{
		Items: w.Items(), Concurrency: w.hands, Workers: min(w.hands, mostWorkers), Told: w.told,
		PerSecond: w.bound(), Tokens: w.tokens, Thought: w.thought, Local: w.local, Period: w.period,
	}
}

// law is the one that the world happens to, in as many processes as it has.
func (w World) law(of lab.Rival, b lab.Batch, seed uint64) lab.Law {
	if w.processes > 1 {
		return lab.Processes(w.processes, of.New)(b, seed)
	}
	return of.New(b, seed)
}

// bound is about how many calls a second the world allows, for rivals that are
// told it, and for what is full speed after an outage.
func (w World) bound() float64 {
	trip := w.server.Answers.Mean() + 2*w.hop
	if len(w.makers) == 0 {
		return float64(w.hands) / trip.Seconds()
	}
	return w.perSecond
}

// world makes one of those traits at the usual numbers, varied.
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
