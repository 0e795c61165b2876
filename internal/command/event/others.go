package event

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

// A Code is the subject of a notice, in a word that programs read.
type Code string

// The codes.
const (
	Simulated          Code = "simulated"           // the answers are simulated
	Key                Code = "key"                 // where the key goes, or does not
	Checking           Code = "checking"            // the input, before any call
	SameKey            Code = "same_key"            // another process on this machine calls with it
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
	Asked              Code = "asked"               // a user asked how the run stands before there was anything to say
	Timeline           Code = "timeline"            // there is no timeline, or not any more
	Failing            Code = "failing"             // some items fail while the others are answered
	Unlimited          Code = "unlimited"           // no limit but that on calls in flight
	Unused             Code = "unused"              // a setting that has no meaning here
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
	Efficiency     *float64           `json:"efficiency"`
	ExitCode       int                `json:"exit_code"`
	Resume         *string            `json:"resume"` // the command that continues from here; null: there is none
	Proved         bool               `json:"proved"`
}
