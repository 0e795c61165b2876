package batch

import (
	"github.com/headrace/headrace/coordinator/machine"
	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// What options and results are made of, so that usual work needs no other import. Each is
// the same type as the one that it names.
type (
	// Limits is what a lane may draw per minute; see [limiter.Limits].
	Limits = limiter.Limits
	// Cost is what one call draws; see [limiter.Cost].
	Cost = limiter.Cost
	// Charge is how a provider draws on its limits; see [limiter.Charge].
	Charge = limiter.Charge
	// Periods are what the limits in headers are for; see [limiter.Periods].
	Periods = limiter.Periods
	// Period is one of them; see [limiter.Period].
	Period = limiter.Period
	// Usage is what calls used, as the provider reported it; see [provider.Usage].
	Usage = provider.Usage

	// LaneMemory is what is known of a lane; see [machine.LaneMemory].
	LaneMemory = machine.LaneMemory
	// ItemMemory is what is known of an item; see [machine.ItemMemory].
	ItemMemory = machine.ItemMemory

	// WaitError is a wait that is too long; see [ErrWaitTooLong].
	WaitError = machine.WaitError

	// OutageError is an outage that lasted too long; see [ErrOutage].
	OutageError = machine.OutageError

	// AlikeError is a mistake in every item; see [ErrAlike].
	AlikeError = machine.AlikeError

	// LawError is how a law failed that a Maker made; see [ErrLaw].
	LawError = machine.LawError

	// UsedUpError is a limit of which nothing is left; see [machine.UsedUpError].
	UsedUpError = machine.UsedUpError

	// LaneConfig is what one lane is like; see [machine.LaneConfig].
	LaneConfig = machine.LaneConfig
	// LawName names a law of admission: [Model], [Plain] or [NoLaw].
	LawName = limiter.LawName
	// RateConfig says how the plain law's rate adapts; see [limiter.RateConfig].
	RateConfig = limiter.RateConfig
	// RampConfig shapes the plain law's recovery; see [limiter.RampConfig].
	RampConfig = limiter.RampConfig
	// CooldownConfig says how long a refusal stops a lane under the plain law; see
	// [limiter.CooldownConfig].
	CooldownConfig = limiter.CooldownConfig
	// BreakerConfig says when a lane is given up for a while; see
	// [limiter.BreakerConfig].
	BreakerConfig = limiter.BreakerConfig
	// ErrorWindowConfig says when failures slow a lane down; see
	// [limiter.ErrorWindowConfig].
	ErrorWindowConfig = limiter.ErrorWindowConfig

	// Word is what a lane's law says to the outside; see [machine.Word].
	Word = machine.Word

	// LaneStatus is a picture of one lane; see [machine.LaneStatus].
	LaneStatus = machine.LaneStatus
	// RunStatus is a picture of one run; see [machine.RunStatus].
	RunStatus = machine.RunStatus
	// Phase is where a lane is between full flow and a stop.
	Phase = machine.Phase
	// Reason is why a lane is in its phase.
	Reason = machine.Reason
	// Speed says in three words what holds a lane back.
	Speed = machine.Speed

	// Error is a failed call in our own words; see [provider.Error].
	Error = provider.Error
	// Kind says what a failed call means. It is an error too: errors.Is(err, Throttled).
	Kind = provider.Kind
)

// The laws of admission.
const (
	Model = limiter.Model // follows the provider's own limits; the default
	Plain = limiter.Plain // told limits, trial, a cooldown and a ramp
	NoLaw = limiter.NoLaw // nothing is limited but calls in flight; waits that the server names are kept
)

// The phases of a lane.
const (
	Flowing = machine.Flowing // calls leave as limits and the learned rate allow
	Cooling = machine.Cooling // nothing leaves
	Probing = machine.Probing // one call at a time leaves, to see whether the refusals are over
	Ramping = machine.Ramping // the rate climbs back
	Stopped = machine.Stopped // nothing will leave any more, unless a person resets the lane
)

// The kinds of failures. What each means for its item and its lane is in the table at
// [Run]; what each is seen as, [provider.Kind] says.
const (
	Unknown        = provider.Unknown
	Throttled      = provider.Throttled
	Overloaded     = provider.Overloaded
	QuotaExhausted = provider.QuotaExhausted
	Unauthorized   = provider.Unauthorized
	Timeout        = provider.Timeout
	TransportFault = provider.TransportFault
	EmptyAnswer    = provider.EmptyAnswer
	Server         = provider.Server
	Invalid        = provider.Invalid
	Refused        = provider.Refused
	Truncated      = provider.Truncated
	Canceled       = provider.Canceled
	ModelNotFound  = provider.ModelNotFound
	Misconfigured  = provider.Misconfigured
)
