package catalog

import (
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
)

// A Vendor is what is known of one before its first answer. The zero value is one of whom
// nothing is known: it has no name, and costs are taken as they are told. Maps and slices are
// shared: they are read only.
type Vendor struct {
	Name    string // in small letters, as --provider takes it
	Title   string // as its maker writes it
	Dialect provider.Dialect

	// Base is the URL below which the dialect's paths are, as wire.Config has it, with the
	// placeholders {region}, {project}, {location} and {resource}; "" must be told. Bases are those of places that
	// have one of their own, by the value of {location} or by how {region} begins, as "cn-".
	Base  string
	Bases map[string]string
	// Path is where the model or a version stand elsewhere in the address, as wire.Config
	// has it: {model} and {path} in it; "" is {path}.
	Path string
	// StreamPath is Path for answers that come as streams; "" is Path.
	StreamPath string
	// InBody is a member that bodies bear in place of the model, as wire.Config has it.
	InBody string
	// Serves are the operations of its dialect that it has, and the first is that of lines that
	// name none; nil: it may have all of them, and the dialect's own comes first.
	Serves []string
	// Hosts are whose answers these are, by the end of their names. A placeholder stands for what
	// looks like such a part of a Place, and for nothing else.
	Hosts []string

	Auth    Auth
	Service string   // what AWS signs for, if Auth is AWS
	Keys    []string // environment variables that may hold the key; the first that is set counts
	Bearers []string // those of Keys that hold a token: it is sent as Bearer, whatever Auth is
	// Headers are environment variables whose values are sent, each in the header that it has
	// here: to the vendor's own hosts alone.
	Headers map[string]string
	// Endpoint is an environment variable that may hold the address, with or without the path of
	// Base.
	Endpoint string
	// Places are environment variables of parts of a Place, in place of the usual ones.
	Places map[string][]string

	// Periods are those of the limits in its headers, by provider.RateLimit's families, where
	// they are always the same.
	Periods limiter.Periods
	// Charge is how a call draws on the limits when it is let in. Settles: what was not used
	// is given back at the end.
	Charge  limiter.Charge
	Settles bool
	// ByAccount: the limits are of all models together; otherwise each has its own.
	ByAccount bool
	// InFlight is how many calls may be under way at once; 0: no such limit is known.
	InFlight int
	// StreamOver is the bound on its output, in tokens, over which the maker wants an answer
	// taken as a stream; 0: over none.
	StreamOver int
	// Timeout is how long one attempt may take where the usual one is too short for good
	// answers; 0: it is not.
	Timeout time.Duration

	Wording provider.Wording
	// Organisation is the header that says whose limits a call drew on, "" if none does.
	Organisation string
	// TellsCost: the answer has its own price in it.
	TellsCost bool
	// Local: a server of one's own. It has no quota and never answers 429; what is too
	// much for it waits, and shows in the latency alone. It may have a key, and needs none.
	Local bool

	// SecondHand: its address or the variable of its key was found with others than its maker.
	SecondHand bool
	// Note is what a person should know besides, in a sentence or two.
	Note string

	// Source names where the row's facts stand: a page of its maker, or an SDK and its version.
	Source string
	// Day is when they were read there, as 2026-11-26.
	Day string
}

// Auth is how a vendor is told who calls.
type Auth uint8

// The ways. AWS takes a bearer key if there is one, and signs otherwise.
const (
	Bearer     Auth = iota // Authorization: Bearer KEY
	XAPIKey                // x-api-key: KEY
	APIKey                 // api-key: KEY
	GoogAPIKey             // x-goog-api-key: KEY
	AWS                    // Authorization: Bearer KEY, or a signature of version 4
	Google                 // Authorization: Bearer TOKEN, of a source of tokens
	None                   // not at all
)

var authWords = [...]string{"Bearer", "x-api-key", "api-key", "x-goog-api-key", "Bearer or SigV4", "Google token", "none"}

// String is the header, in a word or two.
func (a Auth) String() string {
	if int(a) < len(authWords) {
		return authWords[a]
	}
	return "unknown"
}
