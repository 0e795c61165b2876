package bank

import "time"

// A Target is the standard for a law in a world. The zero Target demands nothing.
type Target struct {
	Ratio  float64 `json:"ratio"`
	Excess float64 `json:"excess"` // refusals that chance did not impose, as a share of the items
	Wasted float64 `json:"wasted"` // calls lost to an outage; 0: no target

	// Recovered is the time after an outage within which the law must be at full speed; 0:
	// no target.
	Recovered time.Duration `json:"recovered,omitempty"`
}

// The targets, by the kind of server. A law that knows everything has no excuse. One that
// has to find out pays for it, and the more the less is saved up. Where others take part
// nobody can know what comes.
var (
	asHeaders           = Target{Ratio: 1.01}
	asFastHeaders       = Target{Ratio: 1.03} // the way to full speed is a large part of it
	asSlowHeaders       = Target{Ratio: 1.08} // the same for the first answer, which takes 20 s
	asStrict            = Target{Ratio: 1.05, Excess: 0.01}
	asConfigured        = Target{Ratio: 1.03}
	asWindowsConfigured = Target{Ratio: 1.10, Excess: 0.01}
	asBucket            = Target{Ratio: 1.01, Excess: 0.01}
	asFastBucket        = Target{Ratio: 1.03, Excess: 0.01} // silence cannot do better than headers
	asSlowBucket        = Target{Ratio: 1.08, Excess: 0.01}
	asFlatBucket        = Target{Ratio: 1.10, Excess: 0.01} // a second's depth or less
	asWindows           = Target{Ratio: 1.12, Excess: 0.03}
	asSpacing           = Target{Ratio: 1.15, Excess: 0.01}
	asCap               = Target{Ratio: 1.10, Excess: 0.03}
	asChance            = Target{Ratio: 1.10, Excess: 0.03}
	asShared            = Target{Ratio: 1.30, Excess: 0.08}
	asViolent           = Target{Ratio: 1.60, Excess: 0.08} // in windows, the quicker of which takes most
	asNoisy             = Target{Ratio: 1.05, Excess: 0.04}
	asTokens            = Target{Ratio: 1.05, Excess: 0.01}
	asLies              = Target{Ratio: 1.02, Excess: 0.03}
	asFew               = Target{Ratio: 1.03, Excess: 0.10} // two refusals a lesson, and few calls
	asOutage            = Target{Ratio: 1.02, Excess: 0.03, Wasted: 30, Recovered: 4 * time.Second}
	asFreeOutage        = Target{Ratio: 1.10, Excess: 0.03, Wasted: 30, Recovered: 4 * time.Second} // without any limit

	// Worlds that are over in three seconds if all goes well: the search itself is most of
	// the time.
	asQuickChance = Target{Ratio: 2.5, Excess: 0.03}
	asQuickThird  = Target{Ratio: 8, Excess: 0.03}
	asQuickBreaks = Target{Ratio: 5, Excess: 0.03}

	asWell = Target{} // printed, without a target
)

// The targets in the weak points.
var (
	asLargeCalls   = Target{Ratio: 1.05}
	asShortOutage  = Target{Ratio: 1.12, Excess: 0.01}
	asOwnCap       = Target{Ratio: 1.12, Excess: 0.03}
	asSilentTokens = Target{Ratio: 1.05, Excess: 0.03}
	asGCRA         = Target{Ratio: 1.15, Excess: 0.03} // the law sees only refusals, of a shallow bucket
	asMiddleware   = Target{Ratio: 1.25, Excess: 0.03}
	asShort        = Target{Ratio: 1.15, Excess: 0.04}
	asShortSpacing = Target{Ratio: 1.25, Excess: 0.04} // silence and spacing are the slowest lesson
	asNearMiss     = Target{Ratio: 1.05, Excess: 0.01}
	asTwo          = Target{Ratio: 1.15, Excess: 0.08} // each is the other's neighbour
	asSlowChance   = Target{Ratio: 1.10, Excess: 0.03}
	asLeft         = Target{Ratio: 1.05, Excess: 0.03}
	asBusyWindow   = Target{Ratio: 1.12, Excess: 0.05}
	asOwnThird     = Target{Ratio: 3, Excess: 0.03}
	asOwnBreaks    = Target{Ratio: 4.5, Excess: 0.03}
)

// Asks reports whether there is a target.
func (t Target) Asks() bool { return t.Ratio > 0 }

// Met reports whether a result meets the target.
func (t Target) Met(r Result) bool {
	return r.Ratio <= t.Ratio && r.Excess() <= t.Excess && r.Undone == 0 &&
		(t.Wasted == 0 || r.Wasted <= t.Wasted) &&
		(t.Recovered == 0 || r.Recovered >= 0 && r.Recovered <= t.Recovered)
}
