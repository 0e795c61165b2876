package machine

import (
	"errors"
	"fmt"

	"github.com/headrace/headrace/limiter"
)

// validateLaw finds fields that the chosen law does not use. They are refused and not ignored:
// a user who sets a ramp and forgets the law that has one would wait for it in vain.
func (c LaneConfig) validateLaw() error {
	if c.Maker != nil && !canBeCompared(c.Maker) {
		return fmt.Errorf("machine: lane: maker: a %T cannot be compared: make it a pointer", c.Maker)
	}
	ofPlain := errors.Join(c.notUsed("ramp", c.Ramp != limiter.RampConfig{}), c.notUsed("cooldown", c.Cooldown != limiter.CooldownConfig{}))
	switch c.Law {
	case limiter.Model:
		rate := c.Rate
		rate.Initial = 0 // a first guess
		return errors.Join(ofPlain, c.notUsed("rate but an initial one", rate != limiter.RateConfig{}))
	case limiter.Plain:
		return c.notUsed("local server", c.Local)
	case limiter.NoLaw:
		return errors.Join(
			ofPlain,
			c.notUsed("rate", c.Rate != limiter.RateConfig{}),
			c.notUsed("limits", c.Limits != limiter.Limits{}),
			c.notUsed("local server", c.Local),
			c.notUsed("target", c.Target != 0),
			c.notUsed("error window", c.Errors != limiter.ErrorWindowConfig{}),
		)
	}
	return fmt.Errorf("machine: lane: law %d: want limiter.Model, Plain and NoLaw", c.Law)
}

// canBeCompared finds a maker that would make the comparison of two configs panic.
func canBeCompared(m limiter.Maker) (can bool) {
	defer func() { can = recover() == nil }()
	same := m
	return m == same
}

func (c LaneConfig) notUsed(field string, given bool) error {
	if !given {
		return nil
	}
	return fmt.Errorf("machine: lane: the %v law uses no %s: leave it out or choose another law", c.Law, field)
}

// validateParts finds values of a lane's parts that are impossible by themselves.
func (c LaneConfig) validateParts() error {
	var target error
	if c.Target < 0 {
		target = fmt.Errorf("machine: lane: target %v is negative", c.Target)
	}
	if c.AttemptTimeout < 0 {
		target = errors.Join(target, fmt.Errorf("machine: lane: attempt timeout %v is negative", c.AttemptTimeout))
	}
	if c.ItemTimeout < 0 {
		target = errors.Join(target, fmt.Errorf("machine: lane: item timeout %v is negative", c.ItemTimeout))
	}
	if c.MaxAttempts < 0 {
		target = errors.Join(target, fmt.Errorf("machine: lane: %d attempts at most is negative", c.MaxAttempts))
	}
	return errors.Join(target, c.Charge.Validate(), c.Periods.Validate(), c.Rate.Validate(), c.Ramp.Validate(), c.Cooldown.Validate(), c.Breaker.Validate(), c.Errors.Validate())
}
