package main

import "fmt"

// bound is the standard that a row must meet.
type bound struct {
	ratio   float64 // took over ideal, at most
	refused float64 // refusals over items, at most
}

// learned applies where the law has to find a limit. It allows a quarter more time for
// finding it and for keeping a distance, and one refusal in ten items.
var learned = bound{1.25, 0.10}

// known applies where the user has set the limit, or every answer gives it. No call need be
// refused then, and the twentieth more time is for the start.
var known = bound{1.05, 0}

// byChance applies where a share of the calls is refused at every pace. That share of all
// calls is unavoidable; a quarter more, and one item in fifty, is for the law's attempts
// before it believes it.
func byChance(ratio, share float64) bound {
	return bound{ratio, 1.25*share/(1-share) + 0.02}
}

// wider is for short runs: the start costs the same, in time and in refusals, and half as
// many items bear it.
func (b bound) wider() bound {
	return bound{1 + 2*(b.ratio-1), 2 * b.refused}
}

// guard is the limit beyond which a run fails. A bound is the target of the law on a quiet
// machine, and a few rows still miss it (docs/measurements.md names them). A run eight times
// as far from the ideal, or refused three times as often, is no noise: the law is broken.
func (b bound) guard() bound {
	return bound{1 + guardRatio*(b.ratio-1) + guardSlack, guardRefused*b.refused + guardFew}
}

const (
	guardRatio   = 8.0
	guardSlack   = 0.15 // of the ideal, for a machine that is busy with other things
	guardRefused = 3.0
	guardFew     = 0.02 // of the items: a call or two that overtook another
)

// misses says where an outcome exceeds the bound.
func (b bound) misses(o outcome) (why []string) {
	if o.Done < o.Items {
		why = append(why, fmt.Sprintf("%d of %d done", o.Done, o.Items))
	}
	if o.Ratio > b.ratio {
		why = append(why, fmt.Sprintf("ratio over %.2f", b.ratio))
	}
	if most := b.refused * float64(o.Items); float64(o.Server.Refused) > most {
		why = append(why, fmt.Sprintf("over %.0f refused", most))
	}
	return why
}
