package account

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/auth/google"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/catalog"
)

// keyFile returns a source for the key or token in a file, in the header that the vendor expects for it. The
// choice of the header does not change later.
func keyFile(v *catalog.Vendor, path string) (*auth.File, error) {
	header, prefix := v.Header("", "")
	file, err := auth.NewFile(path, header, prefix)
	if err != nil || len(file.Secrets()) == 0 {
		return file, err
	}
	if neededHeader, neededPrefix := v.Header("", file.Secrets()[0]); neededHeader != header {
		return auth.NewFile(path, neededHeader, neededPrefix)
	}
	return file, nil
}

// findProof finds what proves the caller's identity: a key in a file or a variable, a signature, or tokens. A
// real provider needs one; other servers may not.
func (b *Account) findProof() (err error) {
	vendor := &b.flags.Vendor
	switch {
	case b.flags.SendsNoKey():
		return nil
	case b.flags.KeyFile != "":
		err = b.useKeyFile()
	case vendor.Auth == catalog.None && !b.flags.KeyEnvGiven:
		return nil
	case b.keyInEnvironment() != "":
		err = b.useKey()
	case b.flags.KeyEnvGiven:
		return b.missingKey()
	case vendor.Auth == catalog.AWS: // to any address: a signature is of use only to its host
		return b.sign()
	case vendor.Auth == catalog.Google && !b.mayGetKey():
		b.Note(event.Key, fmt.Sprintf("Google's token is not sent to %s: if that server takes one, put it into a file and name the file with --api-key-file", settings.HostOf(b.flags.BaseURL)))
		return nil
	case vendor.Auth == catalog.Google:
		err = b.fetchTokens()
	case b.callsVendor():
		return b.missingKey()
	default:
		return nil
	}
	if err == nil {
		b.noteWhereKeyGoes()
	}
	return err
}

// useKeyFile uses the key in the file of --api-key-file. It adds notices about a useless --api-key-env, and
// about a file that others can read.
func (b *Account) useKeyFile() error {
	file, err := keyFile(&b.flags.Vendor, b.flags.KeyFile)
	if err != nil {
		return keyFileFault("--api-key-file", b.flags.KeyFile, err)
	}
	b.proof, b.Proven = file, b.flags.KeyFile
	if b.flags.KeyEnvGiven {
		b.Note(event.Unused, "--api-key-env is ignored: --api-key-file has the key")
	}
	if text := auth.Exposed(b.flags.KeyFile); text != "" {
		b.Note(event.Key, text)
	}
	return nil
}

// useKey uses the key in the environment.
func (b *Account) useKey() error {
	text := b.keyInEnvironment()
	header, prefix := b.flags.Vendor.Header(b.flags.KeyEnv, text)
	key, err := auth.NewKey(header, prefix, text)
	if err != nil {
		return exit.Refuse("%s: check %s", configFault(err), b.flags.KeyEnv)
	}
	b.proof, b.Proven = key, b.flags.KeyEnv
	return nil
}

// keyInEnvironment returns the key in its variable, if it may go to the called address; "" otherwise. If the
// vendor has no variable of its own, only one that the user has named counts. The usual variable holds
// another vendor's key.
func (b *Account) keyInEnvironment() string {
	if !b.flags.KeyEnvGiven && len(b.flags.Vendor.Keys) == 0 {
		return ""
	}
	key, _ := b.Env(b.flags.KeyEnv)
	if key = strings.TrimSpace(key); key == "" || b.flags.KeyEnvGiven || b.mayGetKey() {
		return key
	}
	if len(b.Notice) == 0 {
		b.Note(event.Key, fmt.Sprintf("the key in %s is for %s and is not sent to %s: if it is for that server, add --api-key-env %[1]s",
			b.flags.KeyEnv, b.whoseKey(), settings.HostOf(b.flags.BaseURL)))
	}
	return ""
}

// callsVendor reports whether the run calls the vendor's own servers. They need a key. Only
// they, and this machine, get the vendor's usual key without the user naming it. To any
// other server the key reveals an account, which that server could use.
func (b *Account) callsVendor() bool {
	return b.flags.BaseURL == "" || b.flags.Vendor.Answers(b.flags.BaseURL)
}

// mayGetKey reports whether the called address gets the caller's proof although the user has
// not said so.
func (b *Account) mayGetKey() bool {
	return b.callsVendor() || settings.IsLoopback(settings.HostOf(b.flags.BaseURL))
}

// missingKey returns the error for a missing key. It names the variables that could hold one.
func (b *Account) missingKey() error {
	keys := b.flags.Vendor.Keys
	if !b.flags.KeyEnvGiven && len(keys) == 0 {
		return exit.Refuse("--provider %s needs a token, and no variable is known for it: put it into a file and name that with --api-key-file, or name a variable with --api-key-env", b.flags.Provider)
	}
	unset := b.flags.KeyEnv + " is not set: put your key into it"
	if !b.flags.KeyEnvGiven && len(keys) > 1 {
		unset = "none of " + strings.Join(keys, ", ") + " is set: put your key into one"
	}
	return b.flags.Again(b.World, exit.Usage, "%s, name another variable with --api-key-env, or try without a key: --provider sim\nthen run:", unset)
}

// whoseKey returns the title of the vendor that the key's variable belongs to: the first row that names it.
func (b *Account) whoseKey() string {
	for _, v := range catalog.Rows() {
		if slices.Contains(v.Keys, b.flags.KeyEnv) {
			return v.Title
		}
	}
	return b.flags.Vendor.Title
}

// keyFileFault returns the error for a file without a usable key. The user may have typed a key in place of a
// file name.
func keyFileFault(flag, path string, err error) error {
	switch {
	case exit.WithoutKeys(path) != path:
		return exit.Refuse("%s takes the name of a file, not a key: put the key into a file and give its name", flag)
	case errors.Is(err, fs.ErrNotExist):
		return exit.Refuse("%s: %s: there is no such file: check its name", flag, path)
	case errors.Is(err, fs.ErrPermission):
		return exit.Refuse("%s: %s: permission denied: check its permissions", flag, path)
	}
	return exit.Refuse("%s: %s", flag, strings.TrimPrefix(configFault(err), "key file "))
}

// KeyAdvice returns what a user may do about a call that was refused for its key.
func (b *Account) KeyAdvice() string {
	if b.Lanes != nil {
		return b.lanesAdvice()
	}
	key, _ := b.Env(b.flags.KeyEnv)
	added := strings.Join(b.addedFrom, " and ")
	switch {
	case b.proof != nil:
		var check strings.Builder
		for _, place := range []string{b.flags.MadeOf, added} { // a key is often for one place, and a gateway has its own
			if place != "" {
				check.WriteString(", check " + place)
			}
		}
		return "put a valid key into " + b.Proven + check.String() + ", or ask for access to the model"
	case b.flags.SendsNoKey() && added == "":
		return "no key was sent, as --api-key-env is none: name the variable with the key there, or add --header NAME=env:VARIABLE"
	case strings.TrimSpace(key) != "" && b.flags.Vendor.Auth != catalog.None && !b.flags.SendsNoKey():
		text := "no key was sent: if the key in " + b.flags.KeyEnv + " is for that server, add --api-key-env " + b.flags.KeyEnv
		if added != "" {
			text += ", or check " + added
		}
		return text
	case added != "":
		return "put a valid key into " + added + ", or ask for access to the model"
	case b.flags.Provider != settings.ProviderOpenAI && len(b.flags.Vendor.Keys) > 0:
		return "no key was sent: put that server's key into " + b.flags.KeyEnv + ", or name its variable with --api-key-env NAME"
	}
	return "name the variable with that server's key: --api-key-env NAME"
}

// noteWhereKeyGoes adds a notice if the key goes to a place that the user may not expect.
func (b *Account) noteWhereKeyGoes() {
	if b.flags.ConfigBaseURL {
		b.Note(event.Key, fmt.Sprintf("the key in %s is sent to %s, the base-url in %s", b.Proven, b.flags.BaseURL, b.flags.Config))
	}
	if u, err := url.Parse(b.flags.BaseURL); err == nil && u.Scheme == "http" && !settings.IsLoopback(u.Hostname()) {
		b.Note(event.Key, fmt.Sprintf("the key is sent unencrypted: %s is not this machine, and %s says http", u.Hostname(), b.flags.AddressSource()))
	}
}

// sign makes requests carry a signature for AWS, with the credentials in the environment.
func (b *Account) sign() error {
	credentials, err := sigv4.Environment(func(name string) string { value, _ := b.Env(name); return value })
	if err != nil {
		return b.flags.Again(b.World, exit.Usage, "%s is not set, so requests cannot be signed: put your key into it, or set %s and %s\nthen run:",
			b.flags.KeyEnv, sigv4.AccessKeyIDVariable, sigv4.SecretAccessKeyVariable)
	}
	if missing := b.flags.Missing([]string{"region"}); missing != "" {
		return exit.Refuse("--provider %s needs %s to sign requests", b.Name, missing)
	}
	signer, err := sigv4.New(credentials, b.flags.Place.Region, b.flags.Vendor.Service)
	if err != nil {
		return exit.Refuse("%s: check --region and %s", configFault(err), sigv4.AccessKeyIDVariable)
	}
	b.proof, b.Proven = signer, sigv4.AccessKeyIDVariable
	return nil
}

// fetchTokens makes requests carry tokens from Google's credentials.
func (b *Account) fetchTokens() error {
	found, err := google.Find(b.ctx, b.tls)
	if err != nil {
		return b.flags.Again(b.World, exit.Usage, "no Google credentials were found%s: run gcloud auth application-default login, name a file of credentials in GOOGLE_APPLICATION_CREDENTIALS, or keep a token in a file (--api-key-file)\nthen run:",
			b.googleFault(err))
	}
	b.proof, b.Proven, b.quotaProject = found.Tokens, "Google's credentials", found.QuotaProject
	return nil
}

// googleFault describes what is wrong with the named file of credentials; "" if none was named.
func (b *Account) googleFault(err error) string {
	path, _ := b.Env("GOOGLE_APPLICATION_CREDENTIALS")
	switch {
	case path == "":
		return ""
	case isMissing(path):
		return fmt.Sprintf(" (%s, which GOOGLE_APPLICATION_CREDENTIALS names, is not there)", path)
	}
	return fmt.Sprintf(" (%s)", strings.TrimPrefix(strings.TrimPrefix(configFault(err), "default credentials: "), "google: "))
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
