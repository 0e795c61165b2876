package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and how it was built",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return nil
		},
	}
}

// versionText is the text that version and --version print.
func versionText() string {
	info, _ := debug.ReadBuildInfo()
	return versionLine(info)
}

// version returns the build's version; "(unknown)" if the build has none.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}

// versionLine returns the build's own description: "(devel)" is a build from a working copy.
func versionLine(info *debug.BuildInfo) string {
	words := []string{"headrace", "(unknown)"}
	if info != nil {
		if info.Main.Version != "" {
			words[1] = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				words = append(words, "commit "+s.Value)
			case s.Key == "vcs.modified" && s.Value == "true":
				words = append(words, "(with changes)")
			}
		}
	}
	return strings.Join(append(words, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH), " ")
}
