package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/internal/command/exit"
	"github.com/headrace/headrace/internal/command/timeline"
)

// StdoutErrors is the errors file of a run to standard output, or to a device.
const StdoutErrors = "headrace.errors.jsonl"

// stdoutNames are the names that some systems have for standard output. Opening one again
// would overwrite the file that it leads to from its start, and leave files in a folder of
// the system.
var stdoutNames = []string{"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}

// ToStdout reports whether results go to standard output.
func (f *Flags) ToStdout() bool { return f.Output == "-" || slices.Contains(stdoutNames, f.Output) }

// ErrorsPath returns the name of the errors file.
func (f *Flags) ErrorsPath() string {
	switch {
	case f.Errors != "":
		return f.Errors
	case f.ToStdout(), IsNoFile(f.Output):
		return StdoutErrors
	}
	return journal.ErrorsPath(f.Output)
}

// IsNoFile reports whether the path is not a regular file, such as /dev/null, or has a name
// of the system's, such as /dev/fd/3. Next to such a path nothing can be kept.
func IsNoFile(path string) bool {
	if folder := filepath.ToSlash(filepath.Dir(path)); strings.HasSuffix(folder, "/fd") && (strings.HasPrefix(folder, "/dev") || strings.HasPrefix(folder, "/proc")) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// NoFolder returns a complaint about the first file whose folder does not exist; "" if all folders do.
func NoFolder(paths ...string) string {
	for _, path := range paths {
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			return exit.Sayf("%s: there is no folder %s: create it first, or choose another", path, filepath.Dir(path))
		}
	}
	return ""
}

// OutputName names the output for people.
func (f *Flags) OutputName() string {
	if f.ToStdout() {
		return "standard output"
	}
	return f.Output
}

// TimelineNone is the value of --timeline that keeps no timeline.
const TimelineNone = "none"

// TimelinePath returns the path of a run's timeline; "" if there is none. An output that is
// no file has none, unless the user names one.
func (f *Flags) TimelinePath() string {
	switch {
	case f.Timeline == TimelineNone:
		return ""
	case f.Timeline != "":
		return f.Timeline
	case f.ToStdout(), IsNoFile(f.Output):
		return ""
	}
	return timeline.Path(f.Output)
}

func (f *Flags) checkTimeline() error {
	if f.Timeline == "-" {
		return errors.New(`--timeline "-": standard output carries results only: name a file, or none`)
	}
	return nil
}

// CheckMetricsAddr returns an error if a value of --metrics-addr is not an address. An empty value is
// allowed: it means none.
func CheckMetricsAddr(addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return fmt.Errorf("--metrics-addr %q is invalid: want HOST:PORT, as in 127.0.0.1:9500", addr)
	}
	return nil
}

// checkMeters refuses flags of the group Meters that have no meaning. Examples are a report without a file of
// results, and --linger without an address.
func (f *Flags) checkMeters() error {
	if f.Report != "" && (f.ToStdout() || IsNoFile(f.Output)) {
		return fmt.Errorf("--report: the results go to %s, and a report is made of a file of results: name one with --output", f.OutputName())
	}
	if f.MetricsFile == "-" {
		return errors.New(`--metrics-file "-": standard output carries results only: name a file`)
	}
	if err := CheckMetricsAddr(f.MetricsAddr); err != nil {
		return err
	}
	if f.Linger > 0 && f.MetricsAddr == "" {
		return errors.New("--linger has no meaning without --metrics-addr")
	}
	return AtLeast("linger", f.Linger, 0)
}

// StatePath returns the path of an output's state: its name with .state.json in place of
// .jsonl, or after any other ending.
func StatePath(output string) string {
	return journal.Beside(output, ".state.json")
}
