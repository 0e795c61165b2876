package command

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/auth/google"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/catalog"
	"github.com/headrace/headrace/provider/wire"
)

// keyFile sends the key or the token in a file as the vendor expects it. The choice between
// the two does not change later.
func keyFile(v *catalog.Vendor, path string) (*auth.File, error) {
	header, prefix := v.Header("", "")
	file, err := auth.NewFile(path, header, prefix)
	if err != nil || len(file.Secrets()) == 0 {
		return file, err
	}
	if bears, before := v.Header("", file.Secrets()[0]); bears != header {
		return auth.NewFile(path, bears, before)
	}
	return file, nil
}

// prove finds what proves the caller's identity to the provider: a key in a file or a
// variable, a signature, tokens. A real provider needs one; other endpoints may not.
func (r *runner) prove(b *backend) (err error) {
	v := &r.flags.vendor
	switch {
	case r.flags.sendsNoKey():
		return nil
	case r.flags.keyFile != "":
		err = r.useKeyFile(b)
	case v.Auth == catalog.None && !r.flags.keyEnvGiven:
		return nil
	case r.keyInEnvironment(b) != "":
		err = r.useKey(b)
	case r.flags.keyEnvGiven:
		return r.noKey()
	case v.Auth == catalog.AWS: // to any address: a signature is of use only to its host
		return r.sign(b)
	case v.Auth == catalog.Google && !r.mayGetKey():
		b.note(event.Key, fmt.Sprintf("Google's token is not sent to %s: if that server takes one, put it into a file and name the file with --api-key-file", hostOf(r.flags.baseURL)))
		return nil
	case v.Auth == catalog.Google:
		err = r.fetchTokens(b)
	case r.isTheirs():
		return r.noKey()
	default:
		return nil
	}
	if err == nil {
		r.sayWhereKeyGoes(b)
	}
	return err
}

func (r *runner) useKeyFile(b *backend) error {
	file, err := keyFile(&r.flags.vendor, r.flags.keyFile)
	if err != nil {
		return keyFileFault("--api-key-file", r.flags.keyFile, err)
	}
	b.proof, b.proven = file, r.flags.keyFile
	if r.flags.keyEnvGiven {
		b.note(event.Unused, "--api-key-env is ignored: --api-key-file has the key")
	}
	if text := auth.Exposed(r.flags.keyFile); text != "" {
		b.note(event.Key, text)
	}
	return nil
}

func (r *runner) useKey(b *backend) error {
	text := r.keyInEnvironment(b)
	header, prefix := r.flags.vendor.Header(r.flags.keyEnv, text)
	key, err := auth.NewKey(header, prefix, text)
	if err != nil {
		return refuse("%s: check %s", configFault(err), r.flags.keyEnv)
	}
	b.proof, b.proven = key, r.flags.keyEnv
	return nil
}

// keyInEnvironment returns the key in its variable, if it may go to the called address; ""
// otherwise. For a vendor without a variable of its own only a variable that the user named
// counts: the usual one holds another vendor's key.
func (r *runner) keyInEnvironment(b *backend) string {
	if !r.flags.keyEnvGiven && len(r.flags.vendor.Keys) == 0 {
		return ""
	}
	key, _ := r.env(r.flags.keyEnv)
	if key = strings.TrimSpace(key); key == "" || r.flags.keyEnvGiven || r.mayGetKey() {
		return key
	}
	if len(b.notice) == 0 {
		b.note(event.Key, fmt.Sprintf("the key in %s is for %s and is not sent to %s: if it is for that server, add --api-key-env %[1]s",
			r.flags.keyEnv, r.flags.whoseKey(), hostOf(r.flags.baseURL)))
	}
	return ""
}

// isTheirs reports whether the run calls the vendor's own servers. They need a key. Only
// they, and this machine, get the vendor's usual key without the user naming it. To any
// other server the key reveals an account, which that server could use.
func (r *runner) isTheirs() bool {
	return r.flags.baseURL == "" || r.flags.vendor.Answers(r.flags.baseURL)
}

// mayGetKey reports whether the called address gets the caller's proof although the user has
// not said so.
func (r *runner) mayGetKey() bool { return r.isTheirs() || isLoopback(hostOf(r.flags.baseURL)) }

func (r *runner) noKey() error {
	keys := r.flags.vendor.Keys
	if !r.flags.keyEnvGiven && len(keys) == 0 {
		return refuse("--provider %s needs a token, and no variable is known for it: put it into a file and name that with --api-key-file, or name a variable with --api-key-env", r.flags.provider)
	}
	if r.flags.keyEnvGiven || len(keys) < 2 {
		return r.failAgain(ExitUsage, "%s is not set: put your key into it, name another variable with --api-key-env, or try without a key: --provider sim\nthen run:", r.flags.keyEnv)
	}
	return r.failAgain(ExitUsage, "none of %s is set: put your key into one, name another variable with --api-key-env, or try without a key: --provider sim\nthen run:", strings.Join(keys, ", "))
}

// whoseKey names the vendor that the variable of the key belongs to: the first row that
// names it.
func (f *runFlags) whoseKey() string {
	for _, v := range catalog.Rows() {
		if slices.Contains(v.Keys, f.keyEnv) {
			return v.Title
		}
	}
	return f.vendor.Title
}

// keyFileFault says why there is no key in a file. The user may have typed a key in place of
// the file's name.
func keyFileFault(flag, path string, err error) error {
	switch {
	case withoutKeys(path) != path:
		return refuse("%s takes the name of a file, not a key: put the key into a file and give its name", flag)
	case errors.Is(err, fs.ErrNotExist):
		return refuse("%s: %s: there is no such file: check its name", flag, path)
	case errors.Is(err, fs.ErrPermission):
		return refuse("%s: %s: permission denied: check its permissions", flag, path)
	}
	return refuse("%s: %s", flag, strings.TrimPrefix(configFault(err), "key file "))
}

// keyAdvice says what a user may do about a call that was refused for its key.
func (r *runner) keyAdvice() string {
	set, _ := r.env(r.flags.keyEnv)
	added := strings.Join(r.backend.addedFrom, " and ")
	switch {
	case r.backend.proof != nil:
		var check strings.Builder
		for _, one := range []string{r.flags.madeOf, added} { // a key is often for one place, and a gateway has its own
			if one != "" {
				check.WriteString(", check " + one)
			}
		}
		return "put a valid key into " + r.backend.proven + check.String() + ", or ask for access to the model"
	case r.flags.sendsNoKey() && added == "":
		return "no key was sent, as --api-key-env is none: name the variable with the key there, or add --header NAME=env:VARIABLE"
	case strings.TrimSpace(set) != "" && r.flags.vendor.Auth != catalog.None && !r.flags.sendsNoKey():
		text := "no key was sent: if the key in " + r.flags.keyEnv + " is for that server, add --api-key-env " + r.flags.keyEnv
		if added != "" {
			text += ", or check " + added
		}
		return text
	case added != "":
		return "put a valid key into " + added + ", or ask for access to the model"
	case r.flags.provider != providerOpenAI && len(r.flags.vendor.Keys) > 0:
		return "no key was sent: put that server's key into " + r.flags.keyEnv + ", or name its variable with --api-key-env NAME"
	}
	return "name the variable with that server's key: --api-key-env NAME"
}

// sayWhereKeyGoes names destinations of a key that the user may not have meant.
func (r *runner) sayWhereKeyGoes(b *backend) {
	if r.flags.configBaseURL {
		b.note(event.Key, fmt.Sprintf("the key in %s is sent to %s, the base-url in %s", b.proven, r.flags.baseURL, r.flags.config))
	}
	if u, err := url.Parse(r.flags.baseURL); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		b.note(event.Key, fmt.Sprintf("the key is sent unencrypted: %s is not this machine, and %s says http", u.Hostname(), r.flags.toldBy()))
	}
}

// sign makes requests carry a signature for AWS.
func (r *runner) sign(b *backend) error {
	credentials, err := sigv4.Environment(func(name string) string { value, _ := r.env(name); return value })
	if err != nil {
		return r.failAgain(ExitUsage, "%s is not set, so requests cannot be signed: put your key into it, or set %s and %s\nthen run:",
			r.flags.keyEnv, sigv4.AccessKeyIDVariable, sigv4.SecretAccessKeyVariable)
	}
	if missing := r.flags.missing([]string{"region"}); missing != "" {
		return refuse("--provider %s needs %s to sign requests", b.name, missing)
	}
	signer, err := sigv4.New(credentials, r.flags.place.Region, r.flags.vendor.Service)
	if err != nil {
		return refuse("%s: check --region and %s", configFault(err), sigv4.AccessKeyIDVariable)
	}
	b.proof, b.proven = signer, sigv4.AccessKeyIDVariable
	return nil
}

// fetchTokens makes requests carry tokens of Google.
func (r *runner) fetchTokens(b *backend) error {
	found, err := google.Find(r.halt.ctx, b.tls)
	if err != nil {
		return r.failAgain(ExitUsage, "no Google credentials were found%s: run gcloud auth application-default login, name a file of credentials in GOOGLE_APPLICATION_CREDENTIALS, or keep a token in a file (--api-key-file)\nthen run:",
			r.googleFault(err))
	}
	b.proof, b.proven, b.counted = found.Tokens, "Google's credentials", found.QuotaProject
	return nil
}

// googleFault says what is wrong with the file of credentials; "" if none was named.
func (r *runner) googleFault(err error) string {
	path, _ := r.env("GOOGLE_APPLICATION_CREDENTIALS")
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

// useVendor fills in the vendor's values where the user has set none. These are the variable of
// the key, the timeout, the most calls in flight, and the endpoint of lines that name none.
func (f *runFlags) useVendor(flags *pflag.FlagSet, env func(string) (string, bool)) {
	if v := f.vendor.Timeout; v > 0 && !flags.Changed("timeout") {
		f.timeout = v
	}
	if serves := f.vendor.Serves; len(serves) > 0 && prompts.KnownEndpoint(serves[0]) && !flags.Changed("endpoint") {
		f.endpoint = serves[0]
	}
	if most := f.vendor.InFlight; most > 0 && most < f.concurrency && !flags.Changed("concurrency") {
		f.concurrency, f.fewInFlight = most, true
	}
	if f.keyEnvGiven {
		return
	}
	f.keyEnv = defaultKeyEnv
	for i, name := range f.vendor.Keys {
		value, _ := env(name)
		isSet := strings.TrimSpace(value) != "" // as keyInEnvironment does
		if isSet || i == 0 {
			f.keyEnv = name
		}
		if isSet {
			return
		}
	}
}

// defaultKeyEnv is the variable in which a key is looked for, where the provider has no
// variable of its own.
const defaultKeyEnv = "OPENAI_API_KEY"

// fields says which extra fields result lines have about the answering provider, where not
// all answers are in OpenAI's shape.
func (f *runFlags) fields() (told promptfile.Fields) {
	if told.Text = f.writesText(); !f.isOpenAIShaped() {
		told.Provider = f.name()
	}
	return told
}

// writesText reports whether result lines have the answer's text in a field of its own.
func (f *runFlags) writesText() bool {
	return f.text == textAlways || f.text == textAuto && !f.isOpenAIShaped()
}

// streams says which answers come as streams, and how long one may be silent.
func (f *runFlags) streams() (when wire.StreamWhen, idle time.Duration) {
	if idle = f.streamIdle; idle == 0 {
		idle = -1 // for ever, as 0 is the default
	}
	return map[string]wire.StreamWhen{streamAlways: wire.StreamAlways, streamAuto: wire.StreamAuto}[f.stream], idle
}
