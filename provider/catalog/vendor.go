package catalog

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/limiter"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/wire"
)

// A Vendor is what is known of a provider before its first answer. The zero value is for one of
// which nothing is known: it has no name, and costs count as reported. Maps and slices are
// shared: they are read only.
type Vendor struct {
	Name    string // in small letters, as --provider takes it
	Title   string // as its maker writes it
	Dialect provider.Dialect

	// Base is the URL below which the dialect's paths are, as in wire.Config, with the placeholders
	// {region}, {project}, {location} and {resource}; "": the address must be given. Bases are for
	// places with a base of their own, by the value of {location} or by the beginning of {region},
	// as "cn-".
	Base  string
	Bases map[string]string
	// Path is the path of an address with the model or a version elsewhere, as in wire.Config:
	// it contains {model} and {path}; "" is {path}.
	Path string
	// StreamPath is Path for answers that come as streams; "" is Path.
	StreamPath string
	// InBody is a member that bodies have in place of the model, as in wire.Config.
	InBody string
	// Serves lists the operations of its dialect that it has. The first is that of lines that
	// name none; nil: it may have all of them, and the dialect's own comes first.
	Serves []string
	// Hosts lists the hosts of the vendor, by the end of their names. A placeholder stands for what
	// looks like such a part of a Place, and for nothing else.
	Hosts []string

	Auth    Auth
	Service string   // what AWS signs for, if Auth is AWS
	Keys    []string // environment variables that may hold the key; the first that is set counts
	Bearers []string // those of Keys that hold a token: it is sent as Bearer, whatever Auth is
	// Headers maps environment variables to headers. Their values are sent in these headers, to the
	// vendor's own hosts alone.
	Headers map[string]string
	// Endpoint is an environment variable that may hold the address, with or without the path of
	// Base.
	Endpoint string
	// Places are environment variables of parts of a Place, in place of the usual ones.
	Places map[string][]string

	// Periods are the periods of the limits in its headers, by provider.RateLimit's families, where
	// they are always the same.
	Periods limiter.Periods
	// Charge says how a call draws on the limits when it is let in. Settles: the part that was not
	// used is given back at the end.
	Charge  limiter.Charge
	Settles bool
	// ByAccount: the limits are of all models together; otherwise each has its own.
	ByAccount bool
	// InFlight is the largest number of calls under way at once; 0: no such limit is known.
	InFlight int
	// StreamOver is the bound on its output, in tokens, over which the maker wants an answer
	// taken as a stream; 0: over none.
	StreamOver int
	// Tiers are the tiers of service that a body may name: the names are flex, which is cheap and
	// slow, and standard. A value is the member that names the tier. nil: none are known.
	Tiers map[string]string
	// Timeout bounds one attempt where the usual bound is too short for good answers; 0: the usual
	// bound.
	Timeout time.Duration

	Wording provider.Wording
	// Organisation names the header that says on whose limits a call drew, "" if no header does.
	Organisation string
	// TellsCost: the answer contains its own price.
	TellsCost bool
	// Local: a server of one's own. It has no quota and never answers 429; excess calls wait, and
	// show in the latency alone. It may have a key, and needs none.
	Local bool

	// SecondHand: its address or the variable of its key comes from others than its maker.
	SecondHand bool
	// Note tells a person what else to know, in a sentence or two.
	Note string

	// Source names the source of the row's facts: a page of its maker, or an SDK and its version.
	Source string
	// Day is the day on which they were read there, as 2026-11-26.
	Day string
}

// The names of Tiers.
const (
	Flex     = "flex"
	Standard = "standard"
)

// Auth is the way in which a caller proves to a vendor who it is.
type Auth uint8

// The ways. AWS takes a bearer key if there is one, and signs otherwise.
const (
	Bearer     Auth = iota // Authorization: Bearer KEY
	XAPIKey                // x-api-key: KEY
	APIKey                 // api-key: KEY
	GoogAPIKey             // x-goog-api-key: KEY
	AWS                    // Authorization: Bearer KEY, or a signature of version 4
	Google                 // Authorization: Bearer TOKEN, of a source of tokens
	None                   // no proof
)

var authWords = [...]string{"Bearer", "x-api-key", "api-key", "x-goog-api-key", "Bearer or SigV4", "Google token", "none"}

// String returns the header, in a word or two.
func (a Auth) String() string {
	if int(a) < len(authWords) {
		return authWords[a]
	}
	return "unknown"
}

// Client makes a client of the vendor of that name: at its address for a place, in its
// dialect, with its words for errors, and with a key where that vendor looks for one. Each
// option changes the client's configuration. No call is made.
//
// "" sends no key, as for servers of one's own. A key of Amazon Bedrock and a token of
// Google are keys; an option that sets Auth signs, or fetches tokens, in their place. A vendor
// without an address of its own needs an option that sets BaseURL.
//
// An error is of kind Misconfigured and does not contain the key. errors.Is finds
// ErrUnknown, ErrNoAddress or ErrPart in it.
func Client(name string, at Place, key string, options ...func(*wire.Config)) (*wire.Client, error) {
	v, known := Named(name)
	if !known {
		return nil, misconfigured(fmt.Errorf("catalog: vendor %q: %w", name, ErrUnknown))
	}
	source, err := v.Key(key)
	if err != nil {
		return nil, err
	}
	base, addressErr := v.Address(at)
	cfg := v.Config(base)
	cfg.Auth = source
	for _, option := range options {
		option(&cfg)
	}
	if cfg.BaseURL == "" {
		return nil, misconfigured(addressErr)
	}
	return wire.New(cfg)
}

func misconfigured(err error) error {
	return &provider.Error{Kind: provider.Misconfigured, Err: err}
}

// Config returns the configuration of a client at a base URL, without its credentials.
func (v Vendor) Config(base string) wire.Config {
	return wire.Config{
		Dialect: v.Dialect, Name: v.Name, BaseURL: base, Path: v.Path, StreamPath: v.StreamPath, InBody: v.InBody, Serves: v.Serves, Wording: &v.Wording, Timeout: v.Timeout,
		StreamOver: v.StreamOver,
	}
}

// Key sends a key where the vendor looks for one. An error does not contain the key.
func (v Vendor) Key(key string) (*auth.Key, error) {
	header, prefix := v.Header("", key)
	return auth.NewKey(header, prefix, key)
}

// Header returns the header for a key and the prefix before it. variable names the environment
// variable that held the key; "" means another place. A token is sent as Bearer. It comes from a
// variable of Bearers, or has the form of Azure Entra's, which no key of Azure has.
func (v Vendor) Header(variable, key string) (header, prefix string) {
	isWebToken := strings.HasPrefix(key, "eyJ") && strings.Count(key, ".") == 2
	switch {
	case slices.Contains(v.Bearers, variable) || isWebToken && strings.Contains(v.Base, "{resource}"):
	case v.Auth == XAPIKey:
		return "X-Api-Key", ""
	case v.Auth == APIKey:
		return "Api-Key", ""
	case v.Auth == GoogAPIKey:
		return "X-Goog-Api-Key", ""
	}
	return auth.Authorization, auth.BearerPrefix
}
