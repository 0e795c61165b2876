package command

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/batch/prompts"
	"github.com/headrace/headrace/internal/disk"
)

// source makes one input of files. Format says how a file of that name holds its items, where
// there are several.
func (w *World) source(paths []string, format func(name string) prompts.Format) (promptfile.Input, error) {
	var all []promptfile.Input
	for _, path := range paths {
		if path == "-" && len(paths) > 1 {
			return promptfile.Input{}, refuse("standard input is an input of its own: join the files to it, as in cat part-1.jsonl … | headrace run -")
		}
		in, err := w.oneSource(path)
		if err != nil {
			return in, err
		}
		all = append(all, in)
	}
	in, err := promptfile.Join(format, all...)
	if err != nil {
		text, _, _ := strings.Cut(plainText(err), ": ")
		return in, refuse("%s: leave one of them out", text)
	}
	return in, nil
}

// matching replaces each pattern by the files that it matches, sorted by name. An argument that
// is the name of a file is no pattern.
func matching(args []string) (paths []string, err error) {
	for _, arg := range args {
		if _, err := os.Lstat(arg); err == nil || !strings.ContainsAny(arg, "*?[") || strings.Contains(arg, "://") {
			paths = append(paths, arg)
			continue
		}
		found, err := filepath.Glob(arg)
		switch {
		case err != nil:
			return nil, refuse("%s: the pattern is not well-formed: check the name of the input", arg)
		case len(found) == 0:
			return nil, refuse("%s: no file matches the pattern: check the name of the input", arg)
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// oneSource returns one prompt file. An input that can be read only once (standard input, a
// pipe) is a stream: its lines are checked as they come.
func (w *World) oneSource(path string) (promptfile.Input, error) {
	if path == "-" {
		return promptfile.Stream("standard input", w.stdin), nil
	}
	in, err := promptfile.File(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return in, refuse("%s: there is no such file: check the name of the input", path)
	case errors.Is(err, journal.ErrDirectory):
		return in, refuse("%s: it is a directory: name a prompt file in it", path)
	case err != nil:
		return in, inputFault(path, err)
	}
	return in, nil
}

// inputFault says why an input cannot be read. The error names the file where there are
// several.
func inputFault(name string, err error) error {
	if at, is := errors.AsType[*fs.PathError](err); is {
		name = at.Path
	}
	return refuse("%s: %v: check the permissions of the input", name, disk.Bare(err))
}
