package limiter

import "time"

// A View holds a law's beliefs at one moment, for people and programs to look at. Asking for it
// changes nothing. Rates are calls per second, except those of a [LimitView]; a zero moment is
// none.
type View struct {
	At     time.Time
	Limits [Dimensions]LimitView // of requests, tokens, input tokens and output tokens, in that order

	Pace  float64   // at which calls may leave; 0 while they may not, +Inf while nothing limits them
	Most  float64   // pace of a call that draws one request and nothing else, held or not; +Inf while nothing limits it
	Rate  float64   // that the server is believed to allow, that is searched at, or that a ramp leads to; +Inf while nothing is known
	Binds PaceBound // what gives the least rate
	Next  PaceBound // what would, if that were gone

	Weight     float64 // what input tokens are worth, of what was estimated; 1 where nothing corrects estimates
	Cap        int     // calls that are let in at once, at most; 0: none is believed
	Window     int     // calls in flight at which the mean latency stays at its target; 0: it has none
	Errors     float64 // share of calls that broke, 0..1, over the error window
	Chance     float64 // share of calls that is refused at whatever pace, 0..1, as far as slower ones have shown it
	ChanceSeen float64 // recent refusals that speak for it
	Search     float64 // the rate that is tried while none is believed; 0: there is no search
	Over       float64 // the rate at which a search was last refused; 0: it was not
	Lied       float64 // the rate that headers showed and that was found wrong; 0: they were not
	Tried      float64 // of Try

	Hold    time.Time // nothing leaves before
	Ramp    time.Time // until then the pace rises to what the limits allow
	Trial   time.Time // since when the lane goes slower, to see whether refusals cease
	Try     time.Time // since when a little more than the believed rate is tried
	Drought time.Time // since when nothing is let in
	Probed  int       // refusals in the drought
}

// A LimitView holds the beliefs about one limit. Rates are units per second. The zero value is
// a limit of which nothing is known.
type LimitView struct {
	Source   Source
	Refill   float64
	Capacity float64 // units that may be saved up; 0: not known
	Level    float64 // units that are left; negative is debt; see [View.Level]
	Others   float64 // rate that other clients draw, as far as it is more than noise
	Ceiling  float64 // the user's limit as a rate; 0: none
	Said     bool    // seen in the words of a refusal, and in no header

	Period time.Duration // of a window, which is whole again all at once; 0: it refills all the time
	Ends   time.Time     // of the window
}

// Level returns the units that a limit has left; negative is debt. It is +Inf if the limit is
// not known, or if only a learned rate of it is.
func (v *View) Level(d Dimension) float64 {
	k := int(d) - 1
	if k < 0 || k >= Dimensions || !v.Limits[k].Known() || v.Limits[k].Source == Learned && v.Limits[k].Capacity == 0 {
		return unlimited
	}
	return v.Limits[k].Level
}

// Known reports whether anything is known of the limit.
func (l *LimitView) Known() bool { return l.Source != Unknown }

// Dimensions is the number of limits in a [View].
const Dimensions = int(OutputTokens)

// A Source says how a limit is known. Each outranks those before it.
type Source uint8

// The sources.
const (
	Unknown Source = iota
	Told           // by the user
	Learned        // from the calls let in between two refusals
	Seen           // in the headers of an answer
)

var sourceWords = [...]string{"unknown", "told", "learned", "seen"}

func (s Source) String() string { return sourceWords[s] }
