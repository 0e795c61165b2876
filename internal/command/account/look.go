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

// WayOf finds the way of the calls of these flags, and refuses addresses, proxies and certificates that cannot be
// used. It needs no key and calls nobody.
func WayOf(ctx context.Context, w *world.World, flags *settings.Flags) (Way, error) {
	b := &Account{World: w, flags: flags, ctx: ctx}
	if flags.Provider == settings.ProviderSim {
		return Way{}, nil
	}
	err := b.useNetwork()
	if err == nil && flags.Through == "" {
		if _, fault := wire.New(b.ClientConfig()); fault != nil {
			err = b.addressFault(fault)
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

// String names the place and says whether the key is there.
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

// Remedy says what to do about a key that is missing.
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

// PlaceOfKey finds the place of the key of these flags. It calls nobody, and returns nothing of the key.
func PlaceOfKey(w *world.World, flags *settings.Flags) (p KeyPlace) {
	b := &Account{World: w, flags: flags, ctx: context.Background()}
	v := &flags.Vendor
	switch {
	case flags.Provider == settings.ProviderSim, flags.SendsNoKey():
		return p
	case flags.KeyFile != "":
		text, err := os.ReadFile(flags.KeyFile)
		p.Name, p.IsFile, p.Missing = flags.KeyFile, true, isMissing(flags.KeyFile)
		if err == nil {
			p.measure(strings.TrimRight(string(text), "\r\n"))
		}
		return p
	case v.Auth == catalog.None && !flags.KeyEnvGiven:
		return p
	case flags.KeyEnvGiven, b.keyInEnvironment() != "":
		p.Name = flags.KeyEnv
	case v.Auth == catalog.AWS:
		p.Name = sigv4.AccessKeyIDVariable
	case v.Auth == catalog.Google && b.mayGetKey():
		p.Name = "Google's credentials"
		return p
	case b.isTheirs():
		p.Name = flags.KeyEnv
	default:
		return p
	}
	key, _ := w.Env(p.Name)
	p.measure(key)
	p.Missing = p.Length == 0
	return p
}

// measure keeps the length of a key, and what is strange about it.
func (p *KeyPlace) measure(key string) {
	bare := strings.TrimSpace(key)
	p.Length = len(bare)
	switch {
	case bare != key:
		p.Odd = "and blanks around it"
	case strings.ContainsAny(bare, "\"'"):
		p.Odd = "and quotation marks among them"
	case strings.ContainsAny(bare, " \t\r\n"):
		p.Odd = "and blanks among them"
	}
}
