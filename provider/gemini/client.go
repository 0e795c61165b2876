package gemini

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/wire"
)

// DefaultBaseURL is AI Studio's.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// KeyHeader is where AI Studio wants its key; in a URL it would be in everybody's logs.
const KeyHeader = "X-Goog-Api-Key"

// Config says whom to call and how. Its zero value calls AI Studio without a key.
type Config struct {
	// APIKey is sent as x-goog-api-key to AI Studio, and as a bearer token to Vertex, which
	// takes an access token. "" sends none. Spaces and line ends around it are cut off.
	APIKey string
	// Auth proves who calls in APIKey's place, if it is not nil: a source of Google's tokens,
	// which live an hour.
	Auth auth.Source
	// Project and Location are of Vertex, which is called if there is a project; the default
	// of Location is "global".
	Project, Location string
	// BaseURL includes the version (default DefaultBaseURL, or Vertex's). One without any
	// path gets /v1beta. It may have no user, query or fragment.
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
	base, header, prefix := cmp.Or(strings.TrimSpace(cfg.BaseURL), DefaultBaseURL), KeyHeader, ""
	if cfg.Project != "" {
		vertex, err := VertexURL(cfg.Project, cfg.Location)
		if err != nil {
			return nil, &provider.Error{Kind: provider.Misconfigured, Provider: name, Err: err}
		}
		base, header, prefix = cmp.Or(strings.TrimSpace(cfg.BaseURL), vertex), auth.Authorization, auth.BearerPrefix
	}
	who := cfg.Auth
	if who == nil {
		key, err := auth.NewKey(header, prefix, cfg.APIKey)
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

// VertexURL is the base URL of Google's models at a location of Vertex: a region such as
// us-central1, one of the two that are continents (us, eu), or "global", which "" means.
func VertexURL(project, location string) (string, error) {
	location = cmp.Or(location, "global")
	if strings.Trim(project, "abcdefghijklmnopqrstuvwxyz0123456789-.:") != "" || strings.Trim(project, ".:") == "" {
		return "", errors.New("the project has a character that no project has")
	}
	if strings.Trim(location, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", errors.New("the location has a character that no location has")
	}
	host := location + "-aiplatform.googleapis.com"
	switch location {
	case "global":
		host = "aiplatform.googleapis.com"
	case "us", "eu":
		host = "aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + host + "/v1/projects/" + project + "/locations/" + location + "/publishers/google", nil
}
