package account

import (
	"cmp"
	"context"
	"crypto/tls"
	"os"
	"strings"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/wire"
)

// A Way is how the calls of a lane reach their server, apart from what proves who calls.
type Way struct {
	Address string      // the base URL, or that of headrace serve; "": the provider is simulated
	TLS     *tls.Config // nil: the usual authorities, and no certificate to show
}

// WayOf returns the way of the calls of these flags. It refuses addresses, proxies and certificates that
// cannot be used. It needs no key and makes no call.
func WayOf(ctx context.Context, w *world.World, flags *settings.Flags) (Way, error) {
	b := &Account{World: w, flags: flags, ctx: ctx}
	if flags.Provider == settings.ProviderSim {
		return Way{}, nil
	}
	err := b.useNetwork()
	if err == nil && flags.Through == "" {
		if _, addressErr := wire.New(b.ClientConfig()); addressErr != nil {
			err = b.addressFault(addressErr)
		}
	}
	return Way{cmp.Or(flags.Through, flags.BaseURL, flags.Vendor.Base), b.tls}, err
}

// A KeyPlace is where what proves the caller's identity is looked for.
type KeyPlace struct {
	Name    string // of the variable or file; "": nothing is sent
	IsFile  bool
	Missing bool
	Length  int    // in characters, without blanks around it; 0: not known
	Odd     string // what is strange about it, in words; "": nothing
}

// String names the place, and adds whether the key is there.
func (p KeyPlace) String() string {
	switch {
	case p.Name == "":
		return "none"
	case p.IsFile && p.Missing:
		return p.Name + " (not there)"
	case p.Missing:
		return p.Name + " (not set)"
	case p.IsFile || p.Length == 0:
		return p.Name
	}
	return p.Name + " (set)"
}

// Remedy returns what to do about a missing key.
func (p KeyPlace) Remedy(flags *settings.Flags) string {
	const otherwise = ", name another variable with --api-key-env, or try without a key: --provider sim"
	keys := flags.Vendor.Keys
	switch {
	case p.IsFile:
		return "check the name of the file in --api-key-file"
	case flags.Vendor.Auth == catalog.AWS && !flags.KeyEnvGiven:
		return "put your key into " + flags.KeyEnv + ", or set " + sigv4.AccessKeyIDVariable + " and " + sigv4.SecretAccessKeyVariable
	case !flags.KeyEnvGiven && len(keys) == 0:
		return "put your token into a file and name that with --api-key-file, or name a variable with --api-key-env"
	case !flags.KeyEnvGiven && len(keys) > 1:
		return "put your key into one of " + strings.Join(keys, ", ") + otherwise
	}
	return "put your key into " + p.Name + otherwise
}

// PlaceOfKey returns the place where the key of these flags is looked for. It makes no call, and returns no
// part of the key.
func PlaceOfKey(w *world.World, flags *settings.Flags) (place KeyPlace) {
	account := &Account{World: w, flags: flags, ctx: context.Background()}
	vendor := &flags.Vendor
	switch {
	case flags.Provider == settings.ProviderSim, flags.SendsNoKey():
		return place
	case flags.KeyFile != "":
		text, err := os.ReadFile(flags.KeyFile)
		place.Name, place.IsFile, place.Missing = flags.KeyFile, true, isMissing(flags.KeyFile)
		if err == nil {
			place.inspect(strings.TrimRight(string(text), "\r\n"))
		}
		return place
	case vendor.Auth == catalog.None && !flags.KeyEnvGiven:
		return place
	case flags.KeyEnvGiven, account.keyInEnvironment() != "":
		place.Name = flags.KeyEnv
	case vendor.Auth == catalog.AWS:
		place.Name = sigv4.AccessKeyIDVariable
	case vendor.Auth == catalog.Google && account.mayGetKey():
		place.Name = "Google's credentials"
		return place
	case account.callsVendor():
		place.Name = flags.KeyEnv
	default:
		return place
	}
	key, _ := w.Env(place.Name)
	place.inspect(key)
	place.Missing = place.Length == 0
	return place
}

// inspect stores the length of a key, and what looks wrong about it.
func (p *KeyPlace) inspect(key string) {
	trimmed := strings.TrimSpace(key)
	p.Length = len(trimmed)
	switch {
	case trimmed != key:
		p.Odd = "and blanks around it"
	case strings.ContainsAny(trimmed, "\"'"):
		p.Odd = "and quotation marks among them"
	case strings.ContainsAny(trimmed, " \t\r\n"):
		p.Odd = "and blanks among them"
	}
}
