package command

import (
	"context"

	"github.com/spf13/cobra"
)

// An Extra is a set of features that only some mains have. The zero value adds nothing, but
// marks the main as not the light one.
type Extra struct {
	// Heading stands above the commands in headrace help, without a colon, such as "Many
	// machines". The commands of every main then stand under a heading of their own.
	Heading string
	// Commands makes them. A command ends with End; any other error ends it with ExitUsage.
	Commands func(*World) []*cobra.Command
	// Cluster takes over headrace run where --cluster is given. Until then only the flags
	// are checked. Among several extras the first that has it takes over.
	Cluster func(ctx context.Context, s *Settings, input string) error
}

// ClusterTrial is the value of --cluster without an address: a cluster in this process, for
// a trial.
const ClusterTrial = "trial"

// clusterWords lists the commands that only the full command has.
var clusterWords = []string{"worker", "hub", "submit", "jobs", "limits", "cluster"}

// notHere says that only the full command has a word or a flag.
func notHere(what string) string {
	return what + ": this is the light command, for one machine; install the full one: go install github.com/headrace/headrace/cluster/cmd/headrace@latest"
}

// ownHeading stands above the commands that every main has, where an extra adds others. It
// is cobra's heading where there are no groups.
const ownHeading = "Available Commands"

// addExtras gives the root the commands of the extras. Without any, it adds words that say
// where to get those commands.
func (w *World) addExtras(root *cobra.Command) {
	if len(w.extras) == 0 {
		for _, word := range clusterWords {
			root.AddCommand(absentCommand(word))
		}
		return
	}
	head(root, ownHeading, root.Commands()...)
	root.SetHelpCommandGroupID(ownHeading)
	root.SetCompletionCommandGroupID(ownHeading)
	for _, e := range w.extras {
		if e.Commands == nil {
			continue
		}
		commands := e.Commands(w)
		head(root, e.Heading, commands...)
		root.AddCommand(commands...)
	}
}

// head puts commands under a heading.
func head(root *cobra.Command, heading string, commands ...*cobra.Command) {
	if !root.ContainsGroup(heading) {
		root.AddGroup(&cobra.Group{ID: heading, Title: heading + ":"})
	}
	for _, c := range commands {
		c.GroupID = heading
	}
}

// absentCommand says that another build has a word, no matter which arguments follow it.
func absentCommand(word string) *cobra.Command {
	return &cobra.Command{
		Use: word, Hidden: true, Long: notHere(word), DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error { return refuse("%s", notHere(word)) },
	}
}

// runOnCluster has an extra run the input.
func (w *World) runOnCluster(ctx context.Context, flags *runFlags, inputs []string) error {
	own := flags.setOf(Ends)
	if flags.cluster == ClusterTrial {
		own = flags.setOf(Ends | Fails)
	}
	if len(own) > 0 {
		return refuse("%s: only for runs on one machine, as a cluster decides by itself when to stop: remove them", dashed(own))
	}
	for _, e := range w.extras {
		switch {
		case e.Cluster == nil:
		case len(inputs) > 1:
			return refuse("--cluster: %d inputs, and a run takes one there: headrace submit --wait takes several", len(inputs))
		default:
			return e.Cluster(ctx, settingsOf(w, flags, inputs[0]), inputs[0])
		}
	}
	return refuse("%s", notHere("--cluster"))
}
