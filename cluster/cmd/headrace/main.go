package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/internal/command"
	"github.com/headrace/headrace/internal/command/world"
)

func main() {
	os.Exit(command.Main(command.Extra{
		Heading:  "Many machines",
		Commands: commands,
		Cluster:  runTrial,
		Serve:    newServe,
	}))
}

// commands returns the commands that only this main has.
func commands(w *world.World) []*cobra.Command {
	return []*cobra.Command{
		newWorkerCommand(w), newHubCommand(w), newSubmitCommand(w), newJobsCommand(w), newLimitsCommand(w), newClusterCommand(w),
	}
}
