package keeper

import (
	"time"

	"github.com/headrace/headrace/cluster/permit"
	"github.com/headrace/headrace/coordinator/machine"
)

// A plan is what a lab is like.
type plan struct {
	name    string
	seed    uint64
	length  time.Duration
	from    time.Duration // what is measured begins then
	workers int
	places  int
	rate    float64 // tokens that flow in per second
	depth   float64 // seconds of it that the bucket holds
	headers bool
	told    bool // the user tells the limit
	latency time.Duration
	tokens  float64       // of a call, on average
	spread  float64       // they differ by so much, up and down
	heavy   float64       // share of calls that draw fifty times as much
	storm   bool          // keepers and workers die, and a fifth of them is cut off at times
	deaths  time.Duration // mean life of a worker in a storm; 0: five minutes
	kills   time.Duration // life of a keeper in a storm; 0: a minute
	loss    float64       // share of words that are lost, and as many are doubled
	slow    float64       // times the usual way to the bus; 0: once

	limit    func(at time.Duration) float64                         // times the rate; nil: it does not change
	knows    *machine.LaneConfig                                    // what the user says of the limit; nil: what told says
	quota    time.Duration                                          // when the provider serves no more; 0: never
	works    func(slot int, at time.Duration) bool                  // whether a worker has work; nil: always
	jobs     []simJob                                               // nil: one
	sizes    map[string]float64                                     // times the tokens of a job's calls; nil: once
	estimate float64                                                // times the truth; 0: once
	json     func(any) any                                          // what a word becomes on the bus; nil: it stays
	limits   []string                                               // nil: one
	split    [2]time.Duration                                       // two keepers from then until then
	rival    func(*lab) center                                      // who is asked; nil: a keeper
	lane     func(l *lab, worker, job string) machine.LaneConfig    // of a worker; nil: one that is led by permits
	hand     func(*Keeper, time.Time) map[string]machine.LaneMemory // what the next keeper knows; nil: all
	watched  func(*desk)                                            // after each decision of a keeper
	taped    func(*desk, *permit.Ask)                               // what a keeper hears, and nil when it decides
}

type simJob struct {
	name   string
	weight float64
}

// known returns what the user says of a limit.
func (p *plan) known() (c machine.LaneConfig) {
	if p.knows != nil {
		return *p.knows
	}
	if p.told {
		c.Limits.TPM = 60 * p.rate
	}
	return c
}
