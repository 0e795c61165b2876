package limiter

import (
	"errors"
	"fmt"
	"time"
)

// MaxPeriods is the most periods that a lane may have: one for each limit that the headers of a
// provider show.
const MaxPeriods = 4

// Periods are the periods that the limits in a lane's headers are for, where its provider is
// known to mean always the same. Headers show "14400 requests", and not whether that is a
// minute's or a day's. The law finds out the other periods (see [Sighting]).
//
// The first that fits holds. It is a value, and may be compared; the zero value knows none.
type Periods [MaxPeriods]Period

// A Period is the period of the limits in one kind of header. The zero value says nothing.
//
// A user who names a period vouches for these headers. A refusal that shows a limit of 0 in one
// of them says that the lane has no quota at all.
type Period struct {
	Family string        // whose headers, in the words of the code that reads them: "openai", "anthropic"; "": any
	On     Dimension     // what they count; None: anything
	Per    time.Duration // more than 0
}

// Of returns the period of a limit in a family's headers, 0 if it is not told.
func (p *Periods) Of(family string, on Dimension) time.Duration {
	for i := range p {
		if k := &p[i]; k.Per > 0 && (k.Family == "" || k.Family == family) && (k.On == None || k.On == on) {
			return k.Per
		}
	}
	return 0
}

// ErrPeriods is the kind of every error of [Periods.Validate].
var ErrPeriods = errors.New("limiter: periods")

// longestPeriod is the period of a monthly limit.
const longestPeriod = 31 * 24 * time.Hour

// Validate checks the periods: each is over 0, and no longer than a month of 31 days. The error
// is [ErrPeriods].
func (p *Periods) Validate() error {
	for _, k := range p {
		switch {
		case k == Period{}:
		case k.On > OutputTokens:
			return fmt.Errorf("%w: %v: there is no such dimension", ErrPeriods, k.On)
		case k.Per <= 0 || k.Per > longestPeriod:
			return fmt.Errorf("%w: %s of family %q: %v is not in 0..%v", ErrPeriods, k.On, k.Family, k.Per, longestPeriod)
		}
	}
	return nil
}
