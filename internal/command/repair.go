package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
)

// newRepairCommand makes headrace repair.
func newRepairCommand(w *world.World) *cobra.Command {
	of := &settings.Flags{}
	cmd := &cobra.Command{
		Use:   "repair OUTPUT [flags]",
		Short: "Keep every good line of a damaged output",
		Long: `Make an output and its errors file usable again after a disk has damaged them. Every good
line is kept unchanged; the rest is dropped and listed. The original file is kept next to it,
under a name that ends in .bak. A file without faults is not changed. Then run the same
command again: it asks only the dropped items.`,
		Example: `  headrace repair results.jsonl`,
		Args:    settings.One("output"),
		RunE: func(_ *cobra.Command, args []string) error {
			of.Output = args[0]
			return repairFiles(w, of)
		},
	}
	cmd.Flags().StringVar(&of.Errors, "errors", "", "file of failed items (default: OUTPUT with .errors before its ending)")
	settings.NameValues(cmd.Flags(), map[string]string{"errors": "FILE"})
	return cmd
}

// repairFiles repairs an output and its errors file, while it has the locks of both. An output
// that does not exist is refused before the locks, which would make files.
func repairFiles(w *world.World, of *settings.Flags) error {
	if _, err := os.Stat(of.Output); errors.Is(err, fs.ErrNotExist) {
		return exit.Refuse("%s: there is no such file: check the name of the output", of.Output)
	}
	output, err := journal.LockOutput(of.Output)
	if err != nil {
		return repairEnding(err)
	}
	failed, err := journal.LockOutput(of.ErrorsPath(), output)
	if err == nil {
		err = errors.Join(repairBoth(w, of), failed.Unlock())
	}
	if err = errors.Join(err, output.Unlock()); err != nil {
		return repairEnding(err)
	}
	return nil
}

// repairBoth repairs the output and then its errors file, and prints what was kept of each.
func repairBoth(w *world.World, of *settings.Flags) error {
	r, err := journal.Repair(of.Output)
	if err != nil {
		return err
	}
	sayRepaired(w.Stdout, of.Output, r)
	if r, err = journal.RepairErrors(of.ErrorsPath()); err == nil && r.As != "" {
		sayRepaired(w.Stdout, of.ErrorsPath(), r)
	}
	return err
}

// repairEnding returns a refusal for a fault of the files, and an ending with exit.Output for one of the disk.
func repairEnding(err error) error {
	for _, theirs := range []error{journal.ErrForeign, journal.ErrRuined, journal.ErrOtherKind, journal.ErrLocked, journal.ErrForeignLock, journal.ErrDirectory, journal.ErrSameFile} {
		if errors.Is(err, theirs) {
			return exit.Refuse("%s", exit.PlainText(err))
		}
	}
	return &exit.Ending{Code: exit.Output, Text: exit.PlainText(err) + ": check the disk or the permissions"}
}

// sayRepaired prints what was kept and dropped of a file, and what to do next.
func sayRepaired(out io.Writer, name string, r *journal.Repaired) {
	if r.As == "" {
		fmt.Fprintf(out, "%s: all good, %s\n", name, words.Count(r.Kept, "line"))
		return
	}
	fmt.Fprintf(out, "%s: %s kept, %d dropped; the original file is %s\n",
		name, words.Count(r.Kept, "good line"), len(r.Dropped)+r.More, r.As)
	for _, d := range r.Dropped {
		whose := "its item cannot be read"
		if d.ID != "" {
			whose = fmt.Sprintf("item %q", d.ID)
		}
		fmt.Fprintf(out, "  line %d: %s, %s\n", d.Line, words.Count(d.Bytes, "byte"), whose)
	}
	if r.More > 0 {
		fmt.Fprintf(out, "  and %d more\n", r.More)
	}
	fmt.Fprintln(out, "run the same command again: it asks only the dropped items")
}
