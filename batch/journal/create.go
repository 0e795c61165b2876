package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/headrace/headrace/internal/disk"
)

// Why Create does not write to a file; errors.Is finds them in its error.
var (
	ErrNotEmpty  = errors.New("it is not empty: move it away, or choose another file")
	ErrDirectory = errors.New("it is a directory: name a file in it")
	ErrSameFile  = errors.New("this run uses it already: choose another")
)

// fileMode keeps others from reading prompts and answers.
const fileMode = 0o600

// Create makes the file at path, mode 0600, and returns its Tail. It never overwrites a
// file that holds something (ErrNotEmpty) or a directory (ErrDirectory). It also refuses a
// file at others, such as the input or another output, by whatever name (ErrSameFile).
// Names in others that are not files do not matter.
func Create(path string, others ...string) (*Tail, error) {
	t, err := CreateLazily(path, others...)
	if err != nil {
		return nil, err
	}
	return t.now()
}

// CreateLazily is Create for a file that may turn out not to be needed, such as that of the
// errors. It refuses at once what Create refuses, but makes the file with the first line.
func CreateLazily(path string, others ...string) (*Tail, error) {
	if err := mayWrite(path, others); err != nil {
		return nil, fmt.Errorf("journal: create %s: %w", path, err)
	}
	return &Tail{name: path, open: func() (*os.File, error) { return openEmpty(path) }}, nil
}

// mayWrite returns an error if something at path must stay.
func mayWrite(path string, others []string) error {
	info, err := os.Stat(path)
	there := !errors.Is(err, fs.ErrNotExist)
	switch {
	case there && err != nil:
		return disk.Bare(err)
	case there && info.IsDir():
		return ErrDirectory
	case sameAsAny(path, others):
		return ErrSameFile
	case there && info.Size() > 0:
		return ErrNotEmpty
	}
	return nil
}

// openEmpty opens for appending, so that it cannot overwrite lines even of a second process
// that came between the check and here.
func openEmpty(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode)
	if err != nil {
		return nil, fmt.Errorf("journal: create %s: %w", path, disk.Bare(err))
	}
	info, err := file.Stat()
	if err == nil && info.Size() > 0 {
		err = ErrNotEmpty
	}
	if err == nil {
		err = own(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("journal: create %s: %w", path, disk.Bare(err))
	}
	return file, nil
}

// ErrorsPath returns the default errors file of an output: output with .errors before its
// ending, or before the two endings of a compressed file. For standard output ("-") it
// returns "".
func ErrorsPath(output string) string {
	if output == "-" {
		return ""
	}
	stem, ending := split(output)
	return stem + ".errors" + ending
}

// Beside returns the name of a file that is kept next to an output. The ending replaces
// .jsonl and is added to any other name, so that r.jsonl and r.json share no file. For a
// compressed file it replaces both endings.
func Beside(output, ending string) string {
	if stem, of := split(output); strings.HasPrefix(of, ".jsonl") {
		return stem + ending
	}
	return output + ending
}

// split cuts a name before its ending, or before the two endings of a compressed file.
func split(name string) (stem, ending string) {
	ending = filepath.Ext(name)
	if ending == ".gz" || ending == ".zst" {
		ending = filepath.Ext(strings.TrimSuffix(name, ending)) + ending
	}
	return strings.TrimSuffix(name, ending), ending
}
