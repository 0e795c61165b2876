package journal

import (
	"os"
	"path/filepath"
)

// SameFile reports whether two names are one file, or will be when it is made, by whatever
// spelling and through whatever links. An empty name is not a file.
func SameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	if err != nil || err2 != nil {
		return err != nil && err2 != nil && fullName(a) == fullName(b)
	}
	return os.SameFile(one, other)
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

func sameAsAny(path string, others []string) bool {
	for _, other := range others {
		if SameFile(path, other) {
			return true
		}
	}
	return false
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
