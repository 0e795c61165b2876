package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/cmd/headrace/internal/event"
	"github.com/headrace/headrace/provider/auth"
	"github.com/headrace/headrace/provider/auth/google"
	"github.com/headrace/headrace/provider/auth/sigv4"
	"github.com/headrace/headrace/provider/vendor"
)

// headerOf is where a vendor looks for the key, and what stands before it.
func headerOf(a vendor.Auth) (header, prefix string) {
	switch a {
	case vendor.XAPIKey:
		return "X-Api-Key", ""
	case vendor.APIKey:
		return "Api-Key", ""
	case vendor.GoogAPIKey:
		return "X-Goog-Api-Key", ""
	}
	return auth.Authorization, auth.BearerPrefix
}

// prove finds what proves to the provider who calls: a key in a file or a variable, a
// signature, tokens. A real provider needs one; other endpoints may not.
func (r *runner) prove(b *backend) (err error) {
	v := &r.flags.vendor
	header, prefix := headerOf(v.Auth)
	switch {
	case r.flags.keyFile != "":
		if b.proof, err = auth.NewFile(r.flags.keyFile, header, prefix); err != nil {
			return refuse("--api-key-file: %s", configFault(err))
		}
		b.proven = r.flags.keyFile
		if text := auth.Exposed(r.flags.keyFile); text != "" {
			b.note(event.Key, text)
		}
	case v.Auth == vendor.None && !r.flags.keyEnvGiven:
		return nil
	case r.keyInEnvironment(b) != "":
		if b.proof, err = auth.NewKey(header, prefix, r.keyInEnvironment(b)); err != nil {
			return refuse("%s: look at %s", configFault(err), r.flags.keyEnv)
		}
		b.proven = r.flags.keyEnv
	case r.flags.keyEnvGiven:
		return r.noKey()
	case v.Auth == vendor.AWS:
		return r.sign(b)
	case v.Auth == vendor.Google:
		return r.fetchTokens(b)
	case r.isTheirs():
		return r.noKey()
	default:
		return nil
	}
	r.sayWhereKeyGoes(b)
	return nil
}

// keyInEnvironment is the key in its variable, if it may be sent where the run calls; ""
// otherwise.
func (r *runner) keyInEnvironment(b *backend) string {
	key, _ := r.env(r.flags.keyEnv)
	if key = strings.TrimSpace(key); key == "" || r.flags.keyEnvGiven || r.isTheirs() || isLoopback(hostOf(r.flags.baseURL)) {
		return key
	}
	if len(b.notice) == 0 {
		b.note(event.Key, fmt.Sprintf("the key in %s is %s's and is not sent to %s: if it is that server's, say so with --api-key-env %[1]s",
			r.flags.keyEnv, r.flags.vendor.Title, hostOf(r.flags.baseURL)))
	}
	return ""
}

// isTheirs reports whether the run calls the vendor's own servers: they need a key, and they
// alone, and this machine, are given the vendor's usual one without being named. To
// another the key says who has an account there, and it could use that.
func (r *runner) isTheirs() bool {
	return r.flags.baseURL == "" || r.flags.vendor.Answers(r.flags.baseURL)
}

func (r *runner) noKey() error {
	return r.failAgain(exitUsage, "%s is not set: put your key into it, name another variable with --api-key-env, or try without a key: --provider sim\nthen run:", r.flags.keyEnv)
}

// sayWhereKeyGoes says what a person may not have meant.
func (r *runner) sayWhereKeyGoes(b *backend) {
	if r.flags.configBaseURL {
		b.note(event.Key, fmt.Sprintf("the key in %s goes to %s, as %s says", b.proven, r.flags.baseURL, r.flags.config))
	}
	if u, err := url.Parse(r.flags.baseURL); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		b.note(event.Key, "the key travels unencrypted: "+u.Hostname()+" is not this machine, and --base-url says http")
	}
}

// sign has requests signed for AWS.
func (r *runner) sign(b *backend) error {
	credentials, err := sigv4.Environment(func(name string) string { value, _ := r.env(name); return value })
	if err != nil {
		return r.failAgain(exitUsage, "%s is not set, and there is nothing to sign with: put your key into it, or set %s and %s\nthen run:",
			r.flags.keyEnv, sigv4.AccessKeyIDVariable, sigv4.SecretAccessKeyVariable)
	}
	signer, err := sigv4.New(credentials, r.flags.place.Region, r.flags.vendor.Service)
	if err != nil {
		return refuse("%s: look at --region and %s", configFault(err), sigv4.AccessKeyIDVariable)
	}
	b.proof, b.proven = signer, sigv4.AccessKeyIDVariable
	return nil
}

// fetchTokens has requests bear tokens of Google.
func (r *runner) fetchTokens(b *backend) error {
	tokens, _, err := google.Find(r.halt.ctx)
	if err != nil {
		return r.failAgain(exitUsage, "there are no credentials of Google's: %s: set GOOGLE_APPLICATION_CREDENTIALS, or keep a token in a file (--api-key-file)\nthen run:", configFault(err))
	}
	b.proof, b.proven = tokens, "Google's credentials"
	return nil
}

// useVendor takes from the vendor what the user did not say: the variable of the key, how
// long a call may take, and how many may be under way.
func (f *runFlags) useVendor(fs *pflag.FlagSet, env func(string) (string, bool)) {
	if v := f.vendor.Timeout; v > 0 && !fs.Changed("timeout") {
		f.timeout = v
	}
	if most := f.vendor.InFlight; most > 0 && !fs.Changed("concurrency") {
		f.concurrency = min(f.concurrency, most)
	}
	if f.keyEnvGiven {
		return
	}
	f.keyEnv = defaultKeyEnv
	for i, name := range f.vendor.Keys {
		if value, _ := env(name); i == 0 || value != "" {
			f.keyEnv = name
		}
		if value, _ := env(name); value != "" {
			return
		}
	}
}

// defaultKeyEnv is where a key is looked for of whom no variable is known.
const defaultKeyEnv = "OPENAI_API_KEY"

// fields are what result lines tell of who answered, where not all are in OpenAI's shape.
func (f *runFlags) fields() (told promptfile.Fields) {
	if told.Text = f.writesText(); !f.isOpenAIShaped() {
		told.Provider = f.name()
	}
	return told
}

// writesText says whether result lines have the answer's words by themselves.
func (f *runFlags) writesText() bool {
	return f.text == textAlways || f.text == textAuto && !f.isOpenAIShaped()
}
