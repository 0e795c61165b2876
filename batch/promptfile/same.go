package promptfile

import (
	"fmt"

	"github.com/headrace/headrace/batch/journal"
)

// sameFile says which two of a run's files are one. errors.Is takes it for
// journal.ErrSameFile.
type sameFile struct{ one, name, other, otherName string }

func (e *sameFile) Error() string {
	if e.name == e.otherName {
		return fmt.Sprintf("promptfile: the %s is the %s, %s: choose another file", e.one, e.other, e.name)
	}
	return fmt.Sprintf("promptfile: the %s, %s, is the %s, %s: choose another file", e.one, e.name, e.other, e.otherName)
}

// Is makes errors.Is(err, journal.ErrSameFile) true.
func (e *sameFile) Is(target error) bool { return target == journal.ErrSameFile }

// lockOf returns the name of a file's lock, which is removed at the end; "" without a file.
func lockOf(path string) string {
	if path == "" {
		return ""
	}
	return path + journal.LockSuffix
}

// apart returns an error if two files of a run are one, by whatever names.
func (c *Config) apart() error {
	var pairs []sameFile
	for _, in := range c.Input.Files() {
		pairs = append(pairs,
			sameFile{"output", c.Output, "input", in},
			sameFile{"errors file", c.Errors, "input", in},
			sameFile{"input", in, "lock of the output", lockOf(c.Output)},
			sameFile{"input", in, "lock of the errors file", lockOf(c.Errors)})
	}
	pairs = append(pairs, sameFile{"errors file", c.Errors, "output", c.Output})
	for _, e := range pairs {
		if journal.SameFile(e.name, e.otherName) {
			return &e
		}
	}
	return nil
}
