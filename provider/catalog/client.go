package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/wire"
)

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
	who, err := v.Key(key)
	if err != nil {
		return nil, err
	}
	base, fault := v.Address(at)
	cfg := v.Config(base)
	cfg.Auth = who
	for _, option := range options {
		option(&cfg)
	}
	if cfg.BaseURL == "" {
		return nil, misconfigured(fault)
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
// variable that held the key; "" means another place. Tokens are sent as Bearer: those from a
// variable of Bearers, and those of Azure's Entra, which are known by their form.
func (v Vendor) Header(variable, key string) (header, prefix string) {
	isWebToken := strings.HasPrefix(key, "eyJ") && strings.Count(key, ".") == 2 // as no key of Azure's is
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
