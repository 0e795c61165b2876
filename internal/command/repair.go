package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/words"
)

func newRepairCommand(w *World) *cobra.Command {
	of := &runFlags{}
	cmd := &cobra.Command{
		Use:   "repair OUTPUT [flags]",
		Short: "Keep every good line of a damaged output",
		Long: `Make an output and its errors file usable again after a disk has damaged them. Every good
line is kept unchanged; the rest is dropped and listed. The original file is kept next to it,
under a name that ends in .bak. A file without faults is not changed. Then run the same
command again: it asks only the dropped items.`,
		Example: `  headrace repair results.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return refuse("repair takes one output: see %s --help", cmd.CommandPath())
		},
		RunE: func(_ *cobra.Command, args []string) error {
			of.output = args[0]
			return w.repair(of)
		},
	}
	cmd.Flags().StringVar(&of.errors, "errors", "", "file of failed items (default: OUTPUT with .errors before its ending)")
	nameValues(cmd.Flags(), map[string]string{"errors": "FILE"})
	return cmd
}

func (w *World) repair(of *runFlags) error {
	if _, err := os.Stat(of.output); errors.Is(err, fs.ErrNotExist) {
		return refuse("%s: there is no such file: check the name of the output", of.output)
	}
	output, err := journal.LockOutput(of.output)
	if err != nil {
		return repairFault(err)
	}
	failed, err := journal.LockOutput(of.errorsPath(), output)
	if err == nil {
		err = errors.Join(w.repairBoth(of), failed.Unlock())
	}
	if err = errors.Join(err, output.Unlock()); err != nil {
		return repairFault(err)
	}
	return nil
}

func (w *World) repairBoth(of *runFlags) error {
	r, err := journal.Repair(of.output)
	if err != nil {
		return err
	}
	w.sayRepaired(of.output, r)
	if r, err = journal.RepairErrors(of.errorsPath()); err == nil && r.As != "" {
		w.sayRepaired(of.errorsPath(), r)
	}
	return err
}

// repairFault tells faults of the files from faults of the disk.
func repairFault(err error) error {
	for _, theirs := range []error{journal.ErrForeign, journal.ErrRuined, journal.ErrOtherKind, journal.ErrLocked, journal.ErrForeignLock, journal.ErrDirectory, journal.ErrSameFile} {
		if errors.Is(err, theirs) {
			return refuse("%s", plainText(err))
		}
	}
	return &ending{code: ExitOutput, text: plainText(err) + ": check the disk or the permissions"}
}

func (w *World) sayRepaired(name string, r *journal.Repaired) {
	if r.As == "" {
		fmt.Fprintf(w.stdout, "%s: all good, %s\n", name, words.Count(r.Kept, "line"))
		return
	}
	fmt.Fprintf(w.stdout, "%s: %s kept, %d dropped; the original file is %s\n",
		name, words.Count(r.Kept, "good line"), len(r.Dropped)+r.More, r.As)
	for _, d := range r.Dropped {
		whose := "its item cannot be read"
		if d.ID != "" {
			whose = fmt.Sprintf("item %q", d.ID)
		}
		fmt.Fprintf(w.stdout, "  line %d: %s, %s\n", d.Line, words.Count(d.Bytes, "byte"), whose)
	}
	if r.More > 0 {
		fmt.Fprintf(w.stdout, "  and %d more\n", r.More)
	}
	fmt.Fprintln(w.stdout, "run the same command again: it asks only the dropped items")
}
