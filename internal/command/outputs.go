package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/command/event"
	"github.com/headrace/headrace/provider"
	"github.com/headrace/headrace/provider/wire"
)

// stdoutErrors is the errors file of a run to standard output, or to a device.
const stdoutErrors = "headrace.errors.jsonl"

// stdoutNames are the names that some systems have for standard output. Opening one again
// would overwrite the file that it leads to from its start, and leave files in a folder of
// the system.
var stdoutNames = []string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}

func (f *runFlags) toStdout() bool { return f.output == "-" || slices.Contains(stdoutNames, f.output) }

// errorsPath is the name of the errors file.
func (f *runFlags) errorsPath() string {
	switch {
	case f.errors != "":
		return f.errors
	case f.toStdout(), isNoFile(f.output):
		return stdoutErrors
	}
	return journal.ErrorsPath(f.output)
}

// A namedFile is one of a run's own files.
type namedFile struct{ what, name string }

// files lists the files that a run reads and writes, without its timeline and its log.
func (r *runner) files() (list []namedFile) {
	for _, name := range r.inputs {
		if name != "-" {
			list = append(list, namedFile{"input", name})
		}
	}
	if !r.flags.toStdout() {
		list = append(list, namedFile{"output", r.flags.output}, namedFile{"state file", statePath(r.flags.output)})
	}
	return append(list, namedFile{"errors file", r.flags.errorsPath()})
}

// isNoFile reports whether the path is not a regular file, such as /dev/null, or has a name
// of the system's, such as /dev/fd/3. Next to such a path nothing can be kept.
func isNoFile(path string) bool {
	if folder := filepath.ToSlash(filepath.Dir(path)); strings.HasSuffix(folder, "/fd") && (strings.HasPrefix(folder, "/dev") || strings.HasPrefix(folder, "/proc")) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// outputFault is the end of a run whose files cannot be used: either the user chose the
// wrong ones, or the disk refuses them.
func (r *runner) outputFault(err error) error {
	if errors.Is(err, journal.ErrLocked) && r.flags.errors == "" && r.flags.errorsPath() == stdoutErrors {
		return refuse("%s, or choose another errors file with --errors", plainText(err))
	}
	for _, choice := range []error{
		journal.ErrForeign, journal.ErrDamaged, journal.ErrOtherKind, journal.ErrChanged,
		journal.ErrLocked, journal.ErrForeignLock, journal.ErrDirectory, journal.ErrSameFile, journal.ErrNotEmpty,
		promptfile.ErrSimulated, promptfile.ErrReal, promptfile.ErrPacked, promptfile.ErrReserved,
	} {
		if errors.Is(err, choice) {
			return refuse("%s", plainText(err))
		}
	}
	if text := noFolder(r.flags.output, r.flags.errorsPath()); text != "" && errors.Is(err, fs.ErrNotExist) {
		return refuse("%s", text)
	}
	advice := "check the disk"
	if errors.Is(err, fs.ErrPermission) {
		advice = "check the permissions of the file and its folder"
	}
	return r.failAgain(ExitOutput, "%s: %s, then run:", plainText(err), advice)
}

// noFolder names the first file whose folder does not exist; "" if all folders do.
func noFolder(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return sayf("%s: there is no folder %s: create it first, or choose another", path, filepath.Dir(path))
		}
	}
	return ""
}

// job describes what the run does: the input, its files, and how to read lines.
func (r *runner) job(in promptfile.Input) promptfile.Config {
	output := r.flags.output
	if r.flags.toStdout() {
		output = ""
	}
	return promptfile.Config{
		Input: in, Output: output, Stdout: r.stdout, Errors: r.flags.errorsPath(),
		Reader: r.flags.readerConfig(in.Name), SkipBad: r.flags.skipsBadLines(), SkipUntranslatable: r.flags.skipsUntranslatable(),
		MaxTokens: r.flags.boundOfChats(), MaxTokensOfPrompts: r.flags.maxTokens, Fields: r.flags.fields(),
		FilteredFails: r.flags.filtered == filteredFail, RetryFailed: r.flags.retryFailed, Fresh: r.flags.fresh, InputOrder: r.flags.order == orderInput, Durability: r.flags.durability(),
		Concurrency: r.flags.concurrency, Drain: r.halt.drain,
		Lane: r.backend.lane, Cost: estimateOf,
		Simulated: r.backend.books != nil,
		Price:     r.flags.known.Cost,
		Checked:   true, // the client passes on only valid JSON as an answer
		Redact:    func(text string) string { return withoutPackages(r.redact(text)) }, Watch: r.watchJob(in.Name),
	}
}

// watchJob reports what happens to items, and counts bad lines for those who watch the run.
func (r *runner) watchJob(input string) promptfile.Watch {
	return promptfile.Watch{
		Checked: func(items int) {
			r.console.Notice(event.Checking, fmt.Sprintf("checking %s before any call: %d items so far", input, items))
		},
		Ended:   r.itemEnded,
		Written: func(lines int) { r.unwritten.Add(-int64(lines)) },
		Skipped: func(bad *prompts.LineError) {
			r.skipped.Add(1)
			r.unwritten.Add(1)
			if isNoJSONL(bad) {
				r.console.Notice(event.ReadOtherwise, formatHint(bad.File))
			}
		},
		Renamed: r.sayRenamed(),
		Broke: func(err error) {
			r.console.Notice(event.InputBroke, plainText(err)+" (reading stops here; items before it are finished)")
			var bad *prompts.LineError
			if errors.As(err, &bad) {
				for _, hint := range hintsFor([]*prompts.LineError{bad}) {
					r.console.Notice(event.ReadOtherwise, hint)
				}
			}
		},
		Fault: r.halt.fault,
	}
}

// sayRenamed says what became of the first item whose id was taken.
func (r *runner) sayRenamed() func(*prompts.Request, string) {
	said := false
	return func(req *prompts.Request, was string) {
		if !said {
			r.console.Notice(event.Renamed, fmt.Sprintf("%s has a result for a different question with the id %q: the result of %s gets the id %s, and so on",
				r.flags.output, was, placeOf(req), req.ID))
		}
		said = true
	}
}

// placeOf names the line of a request, in words.
func placeOf(req *prompts.Request) string {
	if req.File == "" {
		return fmt.Sprintf("line %d", req.Line)
	}
	return fmt.Sprintf("line %d of %s", req.FileLine, req.File)
}

// sayOrder says what became of an output that was to stand in the order of the input.
func (r *runner) sayOrder(s *promptfile.Sums) {
	switch {
	case s.Arranged:
		r.console.Notice(event.Ordered, r.flags.output+": its lines are now in the order of the input")
	case s.Unordered:
		r.console.Notice(event.Ordered, r.flags.output+": its lines may not be in the order of the input yet: a run that reaches the end sorts them")
	}
}

func (r *runner) itemEnded(res *promptfile.Result) {
	r.unwritten.Add(1)
	if len(res.Failures) > 0 {
		r.failing.drop(res.Item.ID)
	}
	if res.Err == nil {
		r.answered.note(r.answeredAs(res))
		return
	}
	r.noteFailed(res)
	r.logItem(res)
}

// answeredAs returns the operation that gives an item's answer its shape.
func (r *runner) answeredAs(res *promptfile.Result) string {
	if res.Value.Translated {
		if res.Item.Endpoint == prompts.Embeddings {
			return provider.EmbedContent // of one or of several: all are read alike
		}
		return wire.Served(r.flags.dialect, r.flags.vendor.Serves...)[0]
	}
	return res.Item.Endpoint
}

// begin opens the files, and says what became of earlier ones.
func (r *runner) begin(job *promptfile.Job) (promptfile.Begun, error) {
	begun, err := job.Begin()
	for _, f := range begun.Kept {
		r.console.Notice(event.StartingOver, fmt.Sprintf("starting over: the old %s is kept as %s", f.Name, f.As))
	}
	for _, f := range begun.Torn {
		r.console.Notice(event.TornLine, fmt.Sprintf("%s ended in an incomplete line of %d bytes: it is removed, and its item is asked again", f.Name, f.Bytes))
	}
	if r.startedOver = begun.Fresh; errors.Is(err, promptfile.ErrHalted) {
		return begun, r.haltedEarly()
	}
	if err != nil {
		return begun, r.outputFault(err)
	}
	return begun, nil
}
