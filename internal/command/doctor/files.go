package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/account"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/route"
	"github.com/headrace/headrace/internal/command/settings"
	"github.com/headrace/headrace/internal/command/verdict"
	"github.com/headrace/headrace/internal/command/words"
	"github.com/headrace/headrace/internal/command/world"
	"github.com/headrace/headrace/internal/disk"
)

// checkInput reads the input to its end, as a run does before its first call.
func (d *doctor) checkInput(args []string, settingsHold bool) {
	switch {
	case len(args) == 0:
		return
	case slices.Contains(args, "-"):
		d.found.add(Finding{Check: Input, State: Skipped, Text: "standard input can be read only once"})
		return
	case !settingsHold:
		d.found.add(Finding{Check: Input, State: Skipped, Text: "not read, as the settings have a fault"})
		return
	}
	if err := d.scanInput(args); err != nil {
		d.addInputFaults(err)
	}
}

// addInputFaults adds a fault for each bad line of the input, or one for the missing model.
func (d *doctor) addInputFaults(err error) {
	end, is := errors.AsType[*exit.Ending](err)
	if text, _, lacks := strings.Cut(exit.PlainText(err), "; nothing was called. Name a model"); lacks {
		d.found.fault(exit.Usage, Finding{Check: Input, Text: text, Do: "add --model NAME"})
		return
	}
	if !is || len(end.List) == 0 {
		d.found.refusal(Input, err)
		return
	}
	for _, complaint := range end.List {
		d.found.fault(exit.Usage, Finding{Check: Input, Text: exit.PlainText(complaint), Do: "correct or remove the line, or add --on-bad-line skip"})
	}
	if more, _, some := strings.Cut(end.Text, "\n"); some && strings.HasPrefix(more, "and ") {
		d.found.fault(exit.Usage, Finding{Check: Input, Text: more, Do: "correct these first"})
	}
}

// scanInput counts the items, finds what a run would refuse before its first call, and keeps the first model.
func (d *doctor) scanInput(args []string) error {
	inputs, err := settings.Matching(args)
	if err != nil {
		return err
	}
	src, err := settings.OpenInputs(d.Stdin, inputs, d.flags.FormatOf)
	if err != nil {
		return err
	}
	var routes *route.Table
	reads := func(*prompts.Config) {}
	if d.flags.Fleet != nil {
		routes = route.New(d.flags)
		reads = routes.Reads
	}
	items := 0
	found, err := verdict.Scan(d.World, &d.flags.InputFlags, src, reads, func(req prompts.Request) {
		if items++; d.model == "" {
			d.model = req.Model
		}
	})
	if err != nil {
		return err
	}
	if routes != nil {
		if err := routes.Close(); err != nil {
			return exit.Refuse("%s: %v: correct the models of the lines, or lanes and pools in %s", src.Name, err, d.flags.Config)
		}
	}
	finding := Finding{Check: Input, State: Well, Text: fmt.Sprintf("%s: %s", src.Name, words.Count(items, "item"))}
	if bad := found.Bad.All + found.Untranslatable.All; bad > 0 {
		finding.State, finding.Text = Warning, fmt.Sprintf("%s, and %s that a run leaves out", finding.Text, words.Count(bad, "line"))
		finding.Do = "headrace plan names them without --on-bad-line and --on-untranslatable"
	}
	if items == 0 {
		finding.State, finding.Do = Warning, "check the file: there is nothing to do"
	}
	d.found.add(finding)
	return nil
}

// checkEarlierResults returns an error if a run could not continue the files of results. With --fresh it checks that
// they may be put aside.
func (d *doctor) checkEarlierResults(inputs []string) error {
	output, failed := d.flags.Output, d.flags.ErrorsPath()
	if d.flags.Fresh {
		_, err := journal.MayStartOver(output, inputs...)
		_, second := journal.MayStartOver(failed, append(inputs, output)...)
		return cmp.Or(err, second)
	}
	results, err := journal.ReadJournal(output, inputs...)
	if err != nil {
		return err
	}
	failures, err := journal.ReadErrorsOf(output, failed, append(inputs, output)...)
	if err != nil {
		return err
	}
	simulated := slices.ContainsFunc(d.lanes(), func(l lane) bool { return l.flags.Provider == settings.ProviderSim })
	for k, j := range []*journal.Journal{results, failures} {
		switch name := [...]string{output, failed}[k]; {
		case !simulated && j.Simulated > 0:
			return fmt.Errorf("promptfile: resume %s: %w", name, promptfile.ErrSimulated)
		case simulated && j.Simulated < j.Lines-j.Others:
			return fmt.Errorf("promptfile: resume %s: %w", name, promptfile.ErrReal)
		}
	}
	return nil
}

// checkOutput checks that a run may write to its output, and then measures the disk under it.
func (d *doctor) checkOutput(args []string) {
	path := d.flags.Output
	if path == "" || d.flags.ToStdout() {
		return
	}
	info, err := os.Stat(path)
	who, locked := journal.LockedBy(path)
	finding := Finding{Check: Output, State: Well}
	switch {
	case err == nil && !info.Mode().IsRegular():
		d.found.fault(exit.Usage, Finding{Check: Output, Text: path + " is not a regular file", Do: "name another with -o"})
		return
	case locked:
		d.found.fault(exit.Usage, Finding{Check: Output, Text: fmt.Sprintf("%s is in use by %s", path, who), Do: "wait for that run to end, or name another with -o"})
		return
	case err == nil && d.flags.Fresh:
		finding.Text = fmt.Sprintf("%s has %d bytes: a run starts over, and keeps it under another name", path, info.Size())
	case err == nil:
		finding.Text = fmt.Sprintf("%s has %d bytes: a run continues it", path, info.Size())
	case errors.Is(err, fs.ErrNotExist):
		finding.Text = path + " will be made"
	default:
		d.found.fault(exit.Usage, Finding{Check: Output, Text: fmt.Sprintf("%s: %v", path, disk.Bare(err)), Do: "check the permissions of the file and its folder"})
		return
	}
	if err == nil {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) // it is not written to
		if err != nil {
			d.found.fault(exit.Usage, Finding{Check: Output, Text: fmt.Sprintf("%s: %v", path, disk.Bare(err)), Do: "check the permissions of the file"})
			return
		}
		_ = file.Close()
	}
	inputs, _ := settings.Matching(args) // its fault is one of the input
	if err := d.checkEarlierResults(inputs); err != nil {
		d.found.refusal(Output, err)
		return
	}
	d.found.add(finding)
	d.checkDisk(filepath.Dir(path))
}

// Bounds of a disk that is fit for a run.
const (
	syncCount      = 20                    // enough for a median, and half a second on a slow disk
	slowSync       = 50 * time.Millisecond // above it, a run that waits for each sync answers fewer than 20 items a second and worker
	leastFreeBytes = 64 << 20              // bytes: some 20,000 short results
	resultBytes    = 2048                  // of a line of results, and of its place in the state and timeline
)

// checkDisk measures how long a sync takes in a folder, and how much space is free.
func (d *doctor) checkDisk(folder string) {
	times, err := timeSyncs(folder, d.Clock.Now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.found.fault(exit.Usage, Finding{Check: Disk, Text: folder + ": there is no such folder", Do: "make it: mkdir -p " + settings.ShellQuote(folder)})
		return
	case errors.Is(err, fs.ErrPermission):
		d.found.fault(exit.Usage, Finding{Check: Disk, Text: folder + ": permission denied", Do: "check the permissions of the folder, or name another with -o"})
		return
	case err != nil:
		d.found.fault(exit.Usage, Finding{Check: Disk, Text: fmt.Sprintf("%s: %v", folder, disk.Bare(err)), Do: "make room, or check the disk"})
		return
	}
	slices.Sort(times)
	median, slow := times[len(times)/2], times[len(times)-1]
	finding := Finding{Check: Disk, State: Well, Text: fmt.Sprintf("a sync takes %s, and %s at the most", milliseconds(median), milliseconds(slow))}
	if median > slowSync {
		finding.State, finding.Do = Warning, "use a local disk, or --durable os if a loss of power may cost the last results"
	}
	room, known := freeBytes(folder)
	if known {
		finding.Text += fmt.Sprintf("; %s MiB are free", words.Number(int(room>>20)))
	}
	if known && room < leastFreeBytes {
		finding.State, finding.Do = Warning, fmt.Sprintf("make room: %d MiB hold about %s results", leastFreeBytes>>20, words.Number(leastFreeBytes/resultBytes))
	}
	d.found.add(finding)
}

// milliseconds formats a duration in milliseconds.
func milliseconds(t time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(t)/float64(time.Millisecond))
}

// timeSyncs writes to a short file in a folder, and returns how long each sync took. It removes the file.
func timeSyncs(folder string, now func() time.Time) (times []time.Duration, err error) {
	file, err := os.CreateTemp(folder, ".headrace-doctor-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	line := make([]byte, resultBytes)
	for range syncCount {
		began := now()
		if _, err := file.Write(line); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		times = append(times, now().Sub(began))
	}
	return times, nil
}

// checkOpenFiles warns if the limit on open files is too low for --concurrency.
func (d *doctor) checkOpenFiles() {
	limit, asked := world.OpenFiles(), d.flags.Concurrency
	if limit == 0 {
		return
	}
	finding := Finding{Check: Files, State: Well, Text: fmt.Sprintf("%s may be open, and %s in flight", words.Count(int(min(limit, 1<<30)), "file"), words.Count(asked, "call"))}
	if fits := account.CallsWithin(limit, asked); fits < asked {
		finding.State, finding.Text = Warning, fmt.Sprintf("at most %d files may be open, too few for --concurrency %d: a run lowers it to %d", limit, asked, fits)
		finding.Do = fmt.Sprintf("ulimit -n %d", asked+account.OwnFiles)
	}
	d.found.add(finding)
}
