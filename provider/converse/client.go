package converse

import (
	"errors"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/wire"
)

// Config says whom to call and how. Region or BaseURL is needed.
type Config struct {
	// APIKey is one of Bedrock's, sent as a bearer token; "" sends none. Spaces and line ends
	// around it are cut off.
	APIKey string
	// Auth proves who calls in APIKey's place, if it is not nil: a signature of AWS.
	Auth auth.Source
	// Region is where Bedrock is called, such as us-east-1.
	Region string
	// BaseURL is of a place of one's own, in the region's stead. It may have no user, query
	// or fragment.
	BaseURL string
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
	base := strings.TrimSpace(cfg.BaseURL)
	if base == "" {
		url, err := RegionURL(cfg.Region)
		if err != nil {
			return nil, &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: err}
		}
		base = url
	}
	who := cfg.Auth
	if who == nil {
		key, err := auth.Bearer(cfg.APIKey)
		if err != nil {
			return nil, err
		}
		who = key
	}
	return wire.New(wire.Config{
		Dialect: Dialect{}, BaseURL: base, Auth: who,
		Text: cfg.Text, HTTPClient: cfg.HTTPClient, Transport: cfg.Transport, Conns: cfg.Conns,
		MaxBody: cfg.MaxBody, MaxBodies: cfg.MaxBodies, HoldBodies: cfg.HoldBodies,
	})
}

// RegionURL is the base URL of Bedrock's runtime in a region of AWS. China's have a domain
// of their own.
func RegionURL(region string) (string, error) {
	switch {
	case region == "":
		return "", errors.New("a region is needed, such as us-east-1")
	case strings.Trim(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return "", errors.New("the region has a character that no region has")
	}
	domain := ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = ".amazonaws.com.cn"
	}
	return "https://bedrock-runtime." + region + domain, nil
}
