package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/provider/catalog"
)

// newProvidersTopic lists the values of --provider. It is not a command: "headrace help
// providers" shows it.
func newProvidersTopic() *cobra.Command {
	var text strings.Builder
	writeProviders(&text)
	return &cobra.Command{Use: "providers", Short: "The names that --provider takes, and where each looks for its key", Long: strings.TrimRight(text.String(), "\n")}
}

const providersHelp = `The names that --provider takes, the variable with the key of each (the first that is set
counts; --api-key-env names another, --api-key-file a file), the API that it speaks, the day
on which its facts were read at their source, and what else must be set. --base-url replaces
the address of any of them, so that no resource, project or location is needed.

`

const providersMore = `
A line in the provider's own form is sent byte for byte, plus what asks for a stream where one
is taken (--stream). A prompt is put into the form of the provider. A chat in OpenAI's form is converted for another API if every field has an exact
counterpart there; otherwise nothing is called (--on-untranslatable).

Parts of an address may also be set in variables:
%s.

Your own server (%s) needs no key. If it is on this machine,
it is sent the key that is set. A key goes only to the provider's own hosts and to this
machine, unless --api-key-env or --api-key-file names it; --api-key-env none sends none. Over
http:// the key in a usual variable goes to this machine only, unless --insecure-http is given.
headrace help network explains proxies, certificates and further headers.

docs/providers.md has what is known about each provider, with sources.
`

// writeProviders writes the help about providers. Its table has a row for each of the catalog, and one for the
// simulator.
func writeProviders(out io.Writer) {
	fmt.Fprint(out, providersHelp)
	var rows strings.Builder
	fmt.Fprintln(&rows, "  NAME\tKEY\tDIALECT\tREAD ON\tNEEDS")
	for _, v := range catalog.Rows() {
		fmt.Fprintf(&rows, "  %s\t%s\t%s\t%s\t%s\n", v.Name, keysOf(&v), v.Dialect.Name(), cmp.Or(v.Day, "-"), needsOf(&v))
	}
	fmt.Fprintf(&rows, "  %s\t%s\t%s\t-\t\n", settings.ProviderSim, "none", "openai")
	words.Columns(out, 2, rows.String())
	fmt.Fprintf(out, providersMore, wrapped(placeVariables(), "  "), strings.Join(ownServers(), ", "))
}

// placeVariables lists the variables that may hold parts of an address, sorted and each once.
func placeVariables() (names []string) {
	for _, part := range settings.PlaceParts {
		names = append(names, catalog.Variables(part)...)
	}
	for _, v := range catalog.Rows() {
		for _, part := range v.Needs() {
			names = append(names, v.Variables(part)...)
		}
		if v.Endpoint != "" {
			names = append(names, v.Endpoint)
		}
	}
	slices.Sort(names)
	return slices.Compact(append(names, settings.OpenAIBaseURL))
}

// ownServers lists the providers that are servers of the user's own.
func ownServers() (names []string) {
	for _, v := range catalog.Rows() {
		if v.Local {
			names = append(names, v.Name)
		}
	}
	return names
}

// keysOf lists the variables that may hold a vendor's key, or says where else the key comes from.
func keysOf(v *catalog.Vendor) string {
	keys := v.Keys
	switch {
	case v.Auth == catalog.AWS:
		keys = append(keys[:len(keys):len(keys)], "AWS_ACCESS_KEY_ID")
	case v.Auth == catalog.Google && len(keys) == 0:
		return "Google's own credentials"
	case len(keys) == 0 && v.Auth != catalog.None:
		return "--api-key-file"
	case len(keys) == 0:
		return "none"
	}
	return strings.Join(keys, ", ")
}

// needsOf lists the flags that a vendor's address needs.
func needsOf(v *catalog.Vendor) string {
	var flags []string
	for _, part := range v.Needs() {
		flags = append(flags, "--"+part)
	}
	if v.Base == "" {
		flags = append(flags, "--base-url")
	}
	return strings.Join(flags, " ")
}
