package event

import "github.com/headrace/headrace/observe"

// Format is the version of the events. A minor version adds events or fields.
const Format = "1.0"

// Progress describes how a run stands: every face shows this event. A number that is not
// known is null.
type Progress struct {
	Event     string  `json:"event"` // "progress"
	ElapsedS  float64 `json:"elapsed_s"`
	Done      int     `json:"done"` // items of the input that have ended, in earlier runs too
	Total     *int    `json:"total"`
	Before    int     `json:"before"` // of Done, ended by earlier runs
	Failed    int64   `json:"failed"`
	InFlight  int     `json:"in_flight"`
	Waiting   int     `json:"waiting"`
	PerSecond float64 `json:"per_second"`
	At        string  `json:"at"`    // RFC 3339
	State     string  `json:"state"` // running, paused, draining, stopped or over; killed only in status --json

	Input       string   `json:"input"`
	Output      string   `json:"output"`
	Provider    string   `json:"provider"`
	Models      []string `json:"models"` // of the lanes that were used, at most three
	OfModels    int      `json:"of_models"`
	Simulated   bool     `json:"simulated"` // the answers are simulated: they cost nothing
	Concurrency int      `json:"concurrency"`

	Bound      string             `json:"bound"`       // the word for what holds the run back
	BoundShare float64            `json:"bound_share"` // its share of the last four seconds
	BoundText  string             `json:"held_by"`     // the same in a sentence
	BoundMore  string             `json:"held_more"`   // further details; "": none
	BoundShort string             `json:"held_short"`  // in at most 31 cells
	BoundWide  string             `json:"held_wide"`   // in one line that may be long
	Next       *Next              `json:"next"`
	BoundS     map[string]float64 `json:"bound_s"` // seconds of the run by what held it back
	Allowed    *float64           `json:"allowed_per_second"`
	Efficiency *float64           `json:"efficiency"`

	Ends      *Ends  `json:"ends"`       // null: not known
	EndsWhy   string `json:"ends_why"`   // why not: early, total, outage, paused, over; "" if known
	EndsText  string `json:"ends_text"`  // in a sentence
	EndsShort string `json:"ends_short"` // in at most 34 cells
	EndsWide  string `json:"ends_wide"`  // in one line that may be long

	Spent Spent  `json:"spent"`
	InAll *InAll `json:"in_all"`

	Answered  int      `json:"answered"`
	Calls     int      `json:"calls"`
	Throttled int      `json:"throttled"`
	Cooldowns int      `json:"cooldowns"`
	Broke     int      `json:"broke"`
	Again     int      `json:"again"` // of these, the items that were called again
	Truncated int      `json:"truncated"`
	Filtered  int      `json:"filtered"` // answers that a content filter has cut short or emptied
	Parked    int      `json:"parked"`
	Delayed   int      `json:"delayed"`
	OldestS   *float64 `json:"oldest_s"`  // the time for which the oldest call has been in flight
	SlowestS  *float64 `json:"slowest_s"` // answer so far
	P50MS     *int64   `json:"p50_ms"`
	P95MS     *int64   `json:"p95_ms"`
	Disk      *Disk    `json:"disk"`

	Failures []Failure `json:"failures"`
	Latest   string    `json:"latest"` // the latest event, with its time

	Open     int    `json:"breakers_open"`      // lanes whose server seems to be down
	HalfOpen int    `json:"breakers_half_open"` // lanes that let one call through as a test
	Lanes    []Lane `json:"lanes"`

	Accounts []Account `json:"accounts,omitempty"` // those of several lanes of a file
}

// Lane is one of the run's lanes.
type Lane struct {
	Name     string   `json:"name"`
	Account  string   `json:"account,omitempty"` // that it shares its fate with, of a file with lanes
	Phase    string   `json:"phase"`
	Speed    string   `json:"speed"`
	Why      string   `json:"why,omitempty"`
	WaitS    float64  `json:"wait_s,omitempty"`
	Epoch    uint64   `json:"epoch"`
	Rate     *float64 `json:"per_second"` // null: not limited
	InFlight int      `json:"in_flight"`
	Parked   int      `json:"parked"`
	Delayed  int      `json:"delayed"`
	MeanMS   int64    `json:"latency_ms"`
	P95MS    int64    `json:"p95_ms"`
	P50MS    *int64   `json:"p50_ms"` // of the last half minute; null: there was no answer

	Bound      string  `json:"bound"`
	BoundShort string  `json:"held_short"` // in at most 16 cells
	Limits     []Limit `json:"limits"`
	Window     *int    `json:"window"`
	Answered   int     `json:"answered"`
	Throttled  int     `json:"throttled"`
	Broke      int     `json:"broke"`
	Failed     int     `json:"failed"`
	Left       *int    `json:"left"`  // items still to do
	Until      *string `json:"until"` // RFC 3339: when the phase changes by itself
	DonePerS   float64 `json:"items_per_second"`

	USD *float64 `json:"usd,omitempty"` // its cost, of a file with lanes; absent: it has no known price

	Errors   float64  `json:"error_rate"`
	Slowed   float64  `json:"slowed,omitempty"` // the share that is left of its pace because calls break
	Belief   string   `json:"belief,omitempty"` // the belief about its limit, in words
	Breaker  string   `json:"breaker"`          // closed, open or half-open
	Failures int      `json:"failures_in_row"`  // calls that broke since the latest success
	Cause    string   `json:"cause,omitempty"`  // why it has stopped, or why its breaker opened
	Advice   string   `json:"advice,omitempty"` // what to do about a lane of a file that has stopped
	FirstS   *float64 `json:"first_due_s"`      // seconds until the first delayed item may go again; null: there is none
	LastS    *float64 `json:"last_due_s"`       // seconds until the last one may
	Level    Levels   `json:"level"`
}

// Levels holds the units that each limit has left; negative is debt, null is not known.
type Levels struct {
	Requests     *float64 `json:"requests"`
	Tokens       *float64 `json:"tokens"`
	InputTokens  *float64 `json:"input_tokens"`
	OutputTokens *float64 `json:"output_tokens"`
}

// Limit is the belief about one limit of a lane.
type Limit struct {
	Limit     string   `json:"limit"` // requests, tokens, input_tokens or output_tokens
	PerSecond float64  `json:"per_second"`
	Source    string   `json:"source"` // told, learned, headers or refusals: where the limit is known from
	Used      *float64 `json:"used"`   // share of it that was drawn recently
	Level     *float64 `json:"level"`
}

// Next names the bound that would hold the run back if the present one were gone.
type Next struct {
	Bound  string  `json:"bound"`
	Factor float64 `json:"factor"` // the ratio of that bound's speed to the present one
	Then   string  `json:"then,omitempty"`
}

// Ends is the end of a run, in seconds from now: in four cases of five it falls between Low
// and High.
type Ends struct {
	LowS    float64 `json:"low_s"`
	LikelyS float64 `json:"likely_s"`
	HighS   float64 `json:"high_s"`
}

// Spent counts what the run has used.
type Spent struct {
	USD          *float64 `json:"usd"` // null: nothing of it has a price
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CachedTokens int64    `json:"cached_tokens"`
	Unpriced     int      `json:"unpriced"` // items
	Doubtful     Doubtful `json:"doubtful,omitzero"`
	Budget       *Budget  `json:"budget,omitempty"` // of --max-cost; absent: there is none
}

// Budget is the money of a run with a --max-cost, all in USD.
type Budget struct {
	CapUSD      float64 `json:"cap_usd"`
	SpentUSD    float64 `json:"spent_usd"` // also by earlier runs to the same output
	ReservedUSD float64 `json:"reserved_usd"`
	DoubtfulUSD float64 `json:"doubtful_usd"` // the most that calls which broke may cost in addition
	OverUSD     float64 `json:"over_usd"`     // by which calls cost more than was reserved for them
}

// Doubtful counts what the provider may bill in addition to what the run has used. These are
// calls whose answer was cut off, and the tokens that these answers reported before.
type Doubtful struct {
	Calls        int   `json:"calls"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CachedTokens int64 `json:"cached_tokens"`
}

// InAll is the expected cost of the whole run.
type InAll struct {
	USD       float64 `json:"usd"`
	PlusMinus float64 `json:"plus_minus"`
}

// Disk counts the lines that wait for the disk, or for the reader of the results.
type Disk struct {
	PendingLines int `json:"pending_lines"` // of ended items; the operating system does not have them yet
}

// Failure is one way in which items failed.
type Failure struct {
	Kind    string          `json:"kind"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Count   int             `json:"count"`
	Example observe.Example `json:"example"`
}

// Start is the first event: the settings of the run. It leaves out those that have their
// defaults.
type Start struct {
	Event       string    `json:"event"` // "start"
	Format      string    `json:"format"`
	Headrace    string    `json:"headrace"` // its version
	Run         string    `json:"run"`      // names this run, and no other
	At          string    `json:"at"`       // RFC 3339
	Input       string    `json:"input"`
	Output      string    `json:"output"`
	Errors      string    `json:"errors"`
	Timeline    *string   `json:"timeline"` // null: there is none
	Items       *int      `json:"items"`    // of the whole input; null: that is not known
	Before      *int      `json:"before"`   // of these, ended by earlier runs
	Concurrency int       `json:"concurrency"`
	Settings    []Setting `json:"settings"`
}

// Setting is a setting that the user gave. A text that may be a prompt has no value here.
type Setting struct {
	Name  string  `json:"name"` // of the flag, or of the setting that only the file of --config has
	Value *string `json:"value"`
	From  string  `json:"from"` // flag, environment or file
}

// Notice is something that the user should know.
type Notice struct {
	Event   string `json:"event"` // "notice"
	Message string `json:"message"`
	At      string `json:"at"`
	Code    Code   `json:"code"`
}

// Changed is something that a person changed of a run while it goes on.
type Changed struct {
	Event string `json:"event"` // "changed"
	At    string `json:"at"`
	What  string `json:"what"`           // state, concurrency, limits, max-cost, reset or log-level
	Lane  string `json:"lane,omitempty"` // of limits and reset; absent: it concerns all
	From  string `json:"from"`           // in words; "": it was not set
	To    string `json:"to"`
	By    string `json:"by"` // ctl
	Text  string `json:"text"`
}

// IsNone reports that it is as before, so that nobody else needs to hear of it.
func (c *Changed) IsNone() bool { return c.From != "" && c.From == c.To }

// Say returns the change as a sentence for people.
func (c *Changed) Say() string {
	what := c.What
	if c.Lane != "" {
		what += " of " + c.Lane
	}
	switch {
	case c.IsNone():
		return what + ": " + c.To + ", as before"
	case c.From != "" && c.To != "":
		what += ": " + c.From + " → " + c.To
	case c.To != "":
		what += ": " + c.To
	}
	return what + ", by headrace " + c.By
}

// A Code is the subject of a notice, in a word that programs read.
type Code string

// The codes.
const (
	Simulated          Code = "simulated"           // the answers are simulated
	Key                Code = "key"                 // where the key goes, or does not
	Checking           Code = "checking"            // the input, before any call
	SameKey            Code = "same_key"            // another process on this machine calls with it
	SameLimits         Code = "same_limits"         // lanes of the file draw on one limit
	Resumed            Code = "resumed"             // the run goes on with what an earlier run has left
	EmptyInput         Code = "empty_input"         // the input holds no items
	OtherOutput        Code = "other_output"        // the output holds answers to other questions
	BadLines           Code = "bad_lines"           // some are skipped
	Untranslatable     Code = "untranslatable"      // some lines are skipped that no lane takes
	TornLine           Code = "torn_line"           // the end of a file is cut off
	StartingOver       Code = "starting_over"       // an old file is kept under another name
	LoweredConcurrency Code = "lowered_concurrency" // too few files may be open
	Renamed            Code = "renamed"             // an item has another id, as its own was taken
	Ordered            Code = "ordered"             // whether the lines of the output stand in the order of the input
	State              Code = "state"               // knowledge of the provider is not used, or not saved
	InputBroke         Code = "input_broke"         // no further line of the input is taken
	ReadOtherwise      Code = "read_otherwise"      // how the input would have to be read
	MaxTokens          Code = "max_tokens"          // the bound on answers whose lines have none
	OddWait            Code = "odd_wait"            // the provider names an implausible wait
	Stopping           Code = "stopping"            // calls in flight finish
	Abandoning         Code = "abandoning"          // calls in flight are abandoned
	LeftOut            Code = "left_out"            // lines that the terminal was too slow for
	Planned            Code = "planned"             // what is left after a pilot may cost
	Asked              Code = "asked"               // a user asked how the run stands before there was anything to say
	Timeline           Code = "timeline"            // there is no timeline, or not any more
	Report             Code = "report"              // it could not be written
	Metrics            Code = "metrics"             // where they are, or that they are not written
	Failing            Code = "failing"             // some items fail while the others are answered
	Unlimited          Code = "unlimited"           // no limit but that on calls in flight
	Budget80           Code = "budget_80"           // four fifths of --max-cost are spent
	Narrow             Code = "narrow"              // a lane could use more calls in flight than it may have
	Unused             Code = "unused"              // a setting that has no meaning here
	OldPrices          Code = "old_prices"          // the built-in prices may have changed
	Other              Code = "other"
)

// Transition is a lane's step from one phase to the next.
type Transition struct {
	Event    string   `json:"event"` // "transition"
	ElapsedS float64  `json:"elapsed_s"`
	Lane     string   `json:"lane"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Reason   string   `json:"reason,omitempty"`
	Epoch    uint64   `json:"epoch"`
	ForS     float64  `json:"for_s,omitempty"`
	Cause    string   `json:"cause,omitempty"` // why it has stopped, or why its breaker opened
	Met      int      `json:"met"`             // calls that met the latest wave of refusals
	Rate     *float64 `json:"per_second"`
	Belief   string   `json:"belief,omitempty"`
	Slowed   float64  `json:"slowed,omitempty"`     // the share that is left of the pace because calls break
	Errors   *float64 `json:"error_rate,omitempty"` // where that changes: the share that broke
	At       string   `json:"at"`
	Text     string   `json:"text"` // the same for people
}

// LongWait is a wait that is longer than expected.
type LongWait struct {
	Event    string   `json:"event"` // "long_wait"
	ElapsedS float64  `json:"elapsed_s"`
	Lane     string   `json:"lane"`
	Phase    string   `json:"phase"`
	Cause    string   `json:"cause,omitempty"` // of the lane's latest cooldown
	Why      string   `json:"why"`
	Items    int      `json:"items"`
	Item     *uint64  `json:"item"` // its number in this run, from 0; null: the lane waits
	WaitedS  float64  `json:"waited_s"`
	ForS     *float64 `json:"for_s"` // null: that is not known
	Until    *string  `json:"until"` // RFC 3339; likewise
	Text     string   `json:"text"`  // the same for people
}

// Summary is the last event of a run that began.
type Summary struct {
	Event          string             `json:"event"` // "summary"
	ElapsedS       float64            `json:"elapsed_s"`
	Items          int                `json:"items"`
	Before         int                `json:"before"` // ended by earlier runs
	Succeeded      int                `json:"succeeded"`
	Truncated      int                `json:"truncated"`
	Filtered       int                `json:"filtered"` // answers that a content filter has cut short or emptied
	Failed         int                `json:"failed"`
	FailedBy       map[string]int     `json:"failed_by,omitempty"`
	BadLines       int                `json:"bad_lines"`                // skipped
	Untranslatable int                `json:"untranslatable,omitempty"` // lines that no lane takes: they are skipped
	Renamed        int                `json:"renamed,omitempty"`        // their ids were taken
	NotRun         int                `json:"not_run"`                  // items that were taken but did not run
	Left           int                `json:"left"`                     // of the whole input
	Unsaved        int                `json:"unsaved"`                  // ended, but could not be kept
	Offered        uint64             `json:"offered"`
	Settled        uint64             `json:"settled"`
	Released       uint64             `json:"released"`
	Calls          uint64             `json:"calls"`
	HandedOver     uint64             `json:"handed_over"`
	Throttled      uint64             `json:"throttled"`
	Cooldowns      uint64             `json:"cooldowns"`
	Participants   uint64             `json:"participants"`
	Probes         uint64             `json:"probes"`
	Redistributed  uint64             `json:"redistributed"`
	Parked         uint64             `json:"parked"`
	Delayed        uint64             `json:"delayed"`
	Stragglers     uint64             `json:"stragglers"`
	BreakerOpened  int                `json:"breaker_opened"`
	Broke          string             `json:"broke,omitempty"`   // why the calls broke that opened it last
	Stopped        string             `json:"stopped,omitempty"` // why the provider no longer serves some items
	PerSecond      float64            `json:"per_second"`
	InputTokens    int64              `json:"input_tokens"`
	OutputTokens   int64              `json:"output_tokens"`
	CachedTokens   int64              `json:"cached_tokens"`
	At             string             `json:"at"`
	BoundS         map[string]float64 `json:"bound_s"` // seconds of the run, by what held it back
	Spent          Spent              `json:"spent"`
	Accounts       []Account          `json:"accounts,omitempty"`      // those of several lanes of a file
	StoppedLanes   []StoppedLane      `json:"stopped_lanes,omitempty"` // of a file, at most MostStopped
	Efficiency     *float64           `json:"efficiency"`
	ExitCode       int                `json:"exit_code"`
	Resume         *string            `json:"resume"` // the command that continues from here; null: there is none
	Proved         bool               `json:"proved"`
}
