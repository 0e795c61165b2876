package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/provider/vendor"
)

// newProvidersTopic lists whom --provider knows. It is no command: "headrace help providers"
// shows it.
func newProvidersTopic() *cobra.Command {
	var text strings.Builder
	writeProviders(&text)
	return &cobra.Command{Use: "providers", Short: "Whom --provider knows, and where each looks for its key", Long: strings.TrimRight(text.String(), "\n")}
}

const providersHelp = `The names that --provider takes, the variable in which each looks for its key (the first
that is set counts; --api-key-env names another, --api-key-file a file), the dialect that it
speaks, and what else must be told. --base-url beats the address of any of them, and so the
need for a resource, a project and a location.

`

const providersMore = `
A line in the words of the dialect is sent byte for byte. A prompt is put into the words of
whoever takes it. A chat in OpenAI's words goes to another dialect if every field of it can
be said there exactly; else nothing is called (--on-untranslatable).

What an address needs may be in a variable, too: %s.

A server of one's own (%s) needs no key, and is sent the
one that is set if it is on this machine. A key goes to the provider's own hosts and to this
machine alone, but for one that --api-key-env or --api-key-file names.

What is known of each, and from where, stands in docs/providers.md.
`

func writeProviders(out io.Writer) {
	fmt.Fprint(out, providersHelp)
	var rows strings.Builder
	table := tabwriter.NewWriter(&rows, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  NAME\tKEY\tDIALECT\tNEEDS")
	for _, v := range vendor.Rows() {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", v.Name, keysOf(&v), v.Dialect, needsOf(&v))
	}
	fmt.Fprintf(table, "  %s\t%s\t%s\t\n", providerSim, "none", "openai")
	_ = table.Flush() // to memory
	for line := range strings.Lines(rows.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	fmt.Fprintf(out, providersMore, strings.Join(placeVariables(), ", "), strings.Join(ownServers(), ", "))
}

// placeVariables are those in which the parts of an address may be.
func placeVariables() (names []string) {
	for _, part := range placeParts {
		names = append(names, vendor.Variables(part)...)
	}
	return append(names, azureEndpoint)
}

// ownServers are the names of servers of one's own.
func ownServers() (names []string) {
	for _, v := range vendor.Rows() {
		if v.Local {
			names = append(names, v.Name)
		}
	}
	return names
}

// keysOf are the variables of a vendor's key.
func keysOf(v *vendor.Vendor) string {
	keys := v.Keys
	switch {
	case v.Auth == vendor.AWS:
		keys = append(keys[:len(keys):len(keys)], "AWS_ACCESS_KEY_ID")
	case v.Auth == vendor.Google && len(keys) == 0:
		return "Google's own credentials"
	case len(keys) == 0:
		return "none"
	}
	return strings.Join(keys, ", ")
}

// needsOf are the flags that a vendor's address needs.
func needsOf(v *vendor.Vendor) string {
	var flags []string
	for _, part := range v.Needs() {
		flags = append(flags, "--"+part)
	}
	if v.Base == "" {
		flags = append(flags, "--base-url")
	}
	return strings.Join(flags, " ")
}
