package command

import (
	"errors"
	"io/fs"

	"github.com/headrace/headrace/batch/journal"
	"github.com/headrace/headrace/batch/promptfile"
	"github.com/headrace/headrace/internal/disk"
)

// source is the prompt file. What can be read only once (standard input, a pipe)
// is a stream: its lines are checked as they come.
func (w *World) source(path string) (promptfile.Input, error) {
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

// inputFault is why an input cannot be read.
func inputFault(path string, err error) error {
	return refuse("%s: %v: check the permissions of the input", path, disk.Bare(err))
}
