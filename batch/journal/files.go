package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/headrace/headrace/internal/disk"
)

// Why a file is not written to; errors.Is finds them in the error.
var (
	ErrNotEmpty  = errors.New("it is not empty: move it away, or choose another file")
	ErrDirectory = errors.New("it is a directory: name a file in it")
	ErrSameFile  = errors.New("this run uses it already: choose another")
)

// fileMode keeps others from reading prompts and answers.
const fileMode = 0o600

// checkWritable returns an error if something at path must stay. That is a file that holds something (ErrNotEmpty),
// a directory (ErrDirectory), or one of the files at others (ErrSameFile). Others are the input or another output,
// by whatever name. Names in others that are not files do not matter.
func checkWritable(path string, others []string) error {
	info, err := os.Stat(path)
	exists := !errors.Is(err, fs.ErrNotExist)
	switch {
	case exists && err != nil:
		return disk.Bare(err)
	case exists && info.IsDir():
		return ErrDirectory
	case slices.ContainsFunc(others, func(other string) bool { return SameFile(path, other) }):
		return ErrSameFile
	case exists && info.Size() > 0:
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
		err = keepOthersOut(file)
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

// BackupSuffix is the ending of the name of an output that was put aside.
const BackupSuffix = ".bak"

// StartOver puts the file at path aside, as path.bak or, if that is there already,
// path.bak.1 and so on: it never overwrites a file. It returns the new name, "" if there
// was nothing to keep. A link stays a link: the file to which it leads gets another name in
// its own folder. StartOver also refuses to move a directory, or a file of this run
// at others. The caller holds the lock.
func StartOver(path string, others ...string) (kept string, err error) {
	return startOver(disk.Real(), path, others)
}

// startOver is StartOver on the disk d, which tests replace.
func startOver(d disk.Disk, path string, others []string) (kept string, err error) {
	holds, err := MayStartOver(path, others...)
	if err != nil || !holds {
		return "", err
	}
	target := linkedTo(path)
	kept = freeName(target + BackupSuffix)
	if err := d.Move(target, kept); err != nil {
		return "", fmt.Errorf("journal: put %s aside: %w", path, disk.Bare(err))
	}
	return kept, nil
}

// MayStartOver refuses what StartOver refuses, and moves nothing. It reports whether there
// is anything to move. With it a caller can check several files before the first is moved.
func MayStartOver(path string, others ...string) (holds bool, err error) {
	err = checkWritable(path, others)
	switch {
	case err == nil: // not there, or empty
		return false, nil
	case !errors.Is(err, ErrNotEmpty):
		return false, fmt.Errorf("journal: put %s aside: %w", path, err)
	}
	return true, nil
}

// PutBack undoes StartOver: the file at kept gets its name again. If another file has come
// under that name since, PutBack returns ErrNotEmpty. The caller still holds the lock.
func PutBack(kept, path string) error {
	target := linkedTo(path)
	err := ErrNotEmpty
	if _, missing := os.Lstat(target); errors.Is(missing, fs.ErrNotExist) {
		err = disk.Real().Move(kept, target)
	}
	if err != nil {
		return fmt.Errorf("journal: give %s its name back: %w", path, disk.Bare(err))
	}
	return nil
}

// freeName returns name, or the first of name.1, name.2, … that is not taken.
func freeName(name string) string {
	free := name
	for n := 1; ; n++ {
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			return free
		}
		free = fmt.Sprintf("%s.%d", name, n)
	}
}

// SameFile reports whether two names are one file, or will be when it is made, by whatever
// spelling and through whatever links. An empty name is not a file.
func SameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	infoA, err := os.Stat(a)
	infoB, err2 := os.Stat(b)
	if err != nil || err2 != nil {
		return err != nil && err2 != nil && fullName(a) == fullName(b)
	}
	return os.SameFile(infoA, infoB)
}

// OutputName returns the name of an output as the lines of an errors file give it. It is
// the path from the folder of that file, so that both may be moved together. "-" is
// standard output.
func OutputName(errorsPath, output string) string {
	if output == "" || output == "-" {
		return "-"
	}
	name, err := filepath.Rel(filepath.Dir(fullName(errorsPath)), fullName(output))
	if err != nil {
		return output
	}
	return filepath.ToSlash(name)
}

// nameIn is OutputName for a reader that counts only the lines of that output. It returns
// "" for the default errors file of the output, where all lines count: a user who renames
// both files loses nothing.
func nameIn(errorsPath, output string) string {
	if SameFile(errorsPath, ErrorsPath(output)) {
		return ""
	}
	return OutputName(errorsPath, output)
}

// maxLinks is the number of links in a row that are followed: as many as Linux follows.
const maxLinks = 40

// realName returns where the file at path lies, or will lie when it is made. It follows
// links, also one that leads to no file yet. If the folder is missing, the name stays as it
// is.
func realName(path string) string {
	for range maxLinks {
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return path
		}
		path = filepath.Join(folder, filepath.Base(path))
		to, err := os.Readlink(path)
		if err != nil { // not a link
			return path
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(folder, to)
		}
		path = to
	}
	return path
}

// linkedTo returns where the file at path lies if path is a link, else path as given.
func linkedTo(path string) string {
	if _, err := os.Readlink(path); err != nil {
		return path
	}
	return realName(path)
}

// fullName is realName as an absolute path.
func fullName(path string) string {
	path = realName(path)
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// Replace writes the file at path anew, or for the first time. The output of write goes to
// a file next to it, is synced, and takes the file's place at once or not at all. A link
// stays a link, and the new file keeps the old one's permissions to read. An error of write
// ends the work, and is returned as it is. The caller holds the lock.
func Replace(path string, write func(*bufio.Writer) error) error {
	var theirs error
	err := replace(disk.Real(), path, func(out *bufio.Writer) error {
		theirs = write(out)
		return theirs
	})
	if err != nil && theirs == nil {
		return fmt.Errorf("journal: write %s: %w", path, disk.Bare(err))
	}
	return theirs
}

// replace writes a file of lines anew, where it lies if path is a link. The caller holds
// the lock.
func replace(d disk.Disk, path string, write func(*bufio.Writer) error) error {
	return d.Replace(linkedTo(path), mayBeOurs, write)
}
