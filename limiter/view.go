package limiter

import (
	"math"
	"time"
)

// A View holds a law's beliefs at one moment, for people and programs to look at. Asking for it
// changes nothing. Rates are calls per second, except those of a [LimitView]; a zero moment is
// none.
type View struct {
	At     time.Time
	Limits [Dimensions]LimitView // of requests, tokens, input tokens and output tokens, in that order

	Pace  float64 // at which calls may leave; 0 while they may not, +Inf while nothing limits them
	Most  float64 // pace of a call that draws one request and nothing else, held or not; +Inf while nothing limits it
	Rate  float64 // that the server is believed to allow, that is searched at, or that a ramp leads to; +Inf while nothing is known
	Binds Bound   // what gives the least rate
	Next  Bound   // what would, if that were gone

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

// A Bound is one thing that bounds the pace, and the calls per second that it allows.
type Bound struct {
	By   Binding
	Pace float64
}

// A Binding names what can bound the pace of calls.
type Binding uint8

// The bindings. The first four are the limits of these dimensions.
const (
	ByNothing Binding = iota
	ByRequests
	ByTokens
	ByInputTokens
	ByOutputTokens
	ByOthers  // a limit, as far as other clients draw on it
	ByRamp    // a limit, at the start of which the pace still rises
	BySearch  // no limit is known yet
	ByTrial   // going slower to see
	ByCap     // calls in flight; its pace is what that allows at the usual latency
	ByLatency // calls in flight at which the mean latency stays at its target; its pace is what that allows
	ByHold    // nothing leaves
	ByErrors  // too many calls break
)

var bindingWords = [...]string{
	"nothing", "requests", "tokens", "input tokens", "output tokens", "others", "ramp", "search", "trial", "cap", "latency", "hold", "errors",
}

func (b Binding) String() string { return bindingWords[b] }

// A Holdup says what a call waits for; the zero value is nothing.
type Holdup struct {
	By    Binding
	Short bool // that limit has too little left for it; else the call waits for the pace that By gives
}

// String returns "rate" where a call waits only for a pace, and else the binding's word.
func (h Holdup) String() string {
	switch {
	case h.By == ByNothing:
		return ""
	case h.Short, h.By == ByHold, h.By == ByErrors, h.By == ByRamp:
		return h.By.String()
	}
	return "rate"
}

var unlimited = math.Inf(1)

// nothing bounds nothing.
var nothing = Bound{Pace: unlimited}

// Bind puts one more bound among the two least. If two are equal, the earlier one stays.
func (v *View) Bind(by Binding, pace float64) {
	switch b := (Bound{By: by, Pace: pace}); {
	case math.IsNaN(pace) || math.IsInf(pace, 1):
	case pace < v.Binds.Pace:
		v.Binds, v.Next = b, v.Binds
	case pace < v.Next.Pace:
		v.Next = b
	}
}

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
