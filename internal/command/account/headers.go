package account

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/auth"
)

// addHeaders adds the user's headers to those of every call. Secrets become sources, so that they are
// redacted like keys.
func (b *Account) addHeaders(headers http.Header) error {
	for i := range b.flags.Added {
		added := &b.flags.Added[i]
		if !added.IsSecret() {
			headers.Set(added.Name, added.Value)
			continue
		}
		if b.flags.IsInClear() {
			return exit.Refuse("%v", b.flags.InClear("what is in "+added.From()))
		}
		source, err := b.secretHeader(added)
		if err != nil {
			return err
		}
		b.added, b.addedFrom = append(b.added, source), append(b.addedFrom, added.From())
		b.noteWhereHeaderGoes(added)
		if !slices.ContainsFunc(source.Secrets(), isRemoved) {
			b.Note(event.Key, fmt.Sprintf("what is in %s is short, a plain word or a number: it is not removed from answers that repeat it", added.From()))
		}
	}
	return nil
}

// isRemoved reports whether redaction removes a secret from texts.
func isRemoved(secret string) bool { return provider.RedactText(secret, secret) != secret }

// secretHeader returns a source for the secret of a header, from its file or variable.
func (b *Account) secretHeader(added *settings.AddedHeader) (auth.Source, error) {
	if added.File != "" {
		file, err := auth.NewFile(added.File, added.Name, added.Prefix)
		if err != nil {
			return nil, keyFileFault("--header "+added.Name, added.File, err)
		}
		if text := auth.Exposed(added.File); text != "" {
			b.Note(event.Key, text)
		}
		return file, nil
	}
	text, _ := b.Env(added.Variable)
	if strings.TrimSpace(text) == "" {
		return nil, b.flags.Again(b.World, exit.Usage, "%s is not set, and --header %s has its value there: set it\nthen run:", added.Variable, added.Name)
	}
	key, err := auth.NewKey(added.Name, added.Prefix, text)
	if err != nil {
		return nil, exit.Refuse("%s: check %s", configFault(err), added.Variable)
	}
	return key, nil
}

// noteWhereHeaderGoes adds a notice if the secret of a header goes to an unexpected place.
func (b *Account) noteWhereHeaderGoes(h *settings.AddedHeader) {
	if b.flags.ConfigBaseURL {
		b.Note(event.Key, fmt.Sprintf("what is in %s is sent to %s, the base-url in %s", h.From(), b.flags.BaseURL, b.flags.Config))
	}
	if u, err := url.Parse(b.flags.BaseURL); err == nil && u.Scheme == "http" && !settings.IsLoopback(u.Hostname()) {
		b.Note(event.Key, fmt.Sprintf("what is in %s is sent unencrypted: %s is not this machine, and %s says http", h.From(), u.Hostname(), b.flags.AddressSource()))
	}
}

// userAgent returns the name that this program sends with its calls.
func userAgent() string { return "headrace/" + strings.Trim(Version(), "()") }

// release is the version that a release build was given, by -ldflags. Every other build names itself
// after its commit, or after the version that go install was asked for.
var release string

// Version returns the version of this build; "(unknown)" if it has none.
func Version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
