package anthropic

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/wire"
)

// Defaults of Config.
const (
	// DefaultBaseURL is Anthropic's own.
	DefaultBaseURL = "https://api.anthropic.com"
	// DefaultVersion is the one that takes what all bodies of prompt files have: from
	// 2026-10-21 on, temperature and its like are refused even at their defaults.
	DefaultVersion = "2023-06-01"
)

// The headers that Anthropic asks for.
const (
	KeyHeader     = "X-Api-Key"
	VersionHeader = "Anthropic-Version"
)

// Config says whom to call and how. Its zero value calls Anthropic without a key.
type Config struct {
	// APIKey is sent as x-api-key; "" sends none. Spaces and line ends around it are cut off.
	APIKey string
	// Auth proves who calls in APIKey's place, if it is not nil.
	Auth auth.Source
	// BaseURL is without the version (default DefaultBaseURL); one that ends in /v1 means the
	// same. It may have no user, query or fragment.
	BaseURL string
	// Version is sent as anthropic-version (default DefaultVersion).
	Version string
	// Text has what a good answer says in words read into Reply.Text.
	Text bool

	// HTTPClient, Transport, Conns, MaxBody, MaxBodies and HoldBodies are as in wire.Config.
	HTTPClient         *http.Client
	Transport          http.RoundTripper
	Conns              int
	MaxBody, MaxBodies int64
	HoldBodies         bool
}

// New checks the configuration and makes a client. No call is made. An error is of kind
// Misconfigured and does not contain the key.
func New(cfg Config) (*wire.Client, error) {
	who := cfg.Auth
	if who == nil {
		key, err := auth.NewKey(KeyHeader, "", cfg.APIKey)
		if err != nil {
			return nil, err
		}
		who = key
	}
	return wire.New(wire.Config{
		Dialect: Dialect{}, BaseURL: cmp.Or(strings.TrimSpace(cfg.BaseURL), DefaultBaseURL), Auth: who,
		Header: http.Header{VersionHeader: {cmp.Or(cfg.Version, DefaultVersion)}},
		Text:   cfg.Text, HTTPClient: cfg.HTTPClient, Transport: cfg.Transport, Conns: cfg.Conns,
		MaxBody: cfg.MaxBody, MaxBodies: cfg.MaxBodies, HoldBodies: cfg.HoldBodies,
	})
}
